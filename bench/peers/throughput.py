"""Steps a second of many environments at once with random actions: observations, rewards and ends come with every step."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from harness import Column, Group, Row, Run

LANES, SECONDS = 256, 1.0
FAMILIES = ["safety_grid", "parity_stream"]


def rate(step: Callable[[np.ndarray], Any], actions: int, lanes: int, seed: int) -> Run:
    """Takes steps for a second, after some that do not count."""
    chosen = np.random.default_rng(seed).integers(0, actions, (64, lanes))
    for row in chosen[:8]:
        step(row)
    steps, wall, cpu = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - wall < SECONDS:
        for row in chosen:
            step(row)
        steps += 64 * lanes
    took, used = time.perf_counter() - wall, time.process_time() - cpu
    return Run({"steps a second": steps / took, "steps a CPU second": steps / used}, took, used)


def frozen_lake_gymnasium(seed: int) -> Run:
    import gymnasium

    env = gymnasium.make_vec("FrozenLake-v1", num_envs=LANES)
    env.reset(seed=seed)
    return rate(env.step, 4, LANES, seed)


def frozen_lake_envpool(seed: int) -> Run:
    import envpool

    env = envpool.make_gymnasium("FrozenLake-v1", num_envs=LANES, num_threads=os.cpu_count(), seed=seed)
    env.reset()
    return rate(lambda row: env.step(row.astype(np.int32)), 4, LANES, seed)


def frozen_lake_envpool_async(seed: int) -> Run:
    """What EnvPool recommends for throughput: half of the environments answer while the others work."""
    import envpool

    half = LANES // 2
    env = envpool.make_gymnasium("FrozenLake-v1", num_envs=LANES, batch_size=half, num_threads=os.cpu_count(), seed=seed)
    env.async_reset()

    def step(row: np.ndarray) -> None:
        info = env.recv()[-1]
        env.send(row.astype(np.int32), info["env_id"])

    return rate(step, 4, half, seed)


def family_gymnasium(name: str) -> Callable[[int], Run]:
    def measure(seed: int) -> Run:
        import bem
        from gymnasium.vector import SyncVectorEnv

        env = SyncVectorEnv([lambda: bem.make(name)] * LANES)
        env.reset(seed=seed)
        return rate(env.step, int(env.single_action_space.n), LANES, seed)

    return measure


def family_bem(name: str) -> Callable[[int], Run]:
    def measure(seed: int) -> Run:
        import bem

        env = bem.make_vec(name, LANES)
        env.reset(seed=seed)
        return rate(env.step, int(env.single_action_space.n), LANES, seed)

    return measure


def group(arguments: argparse.Namespace) -> Group:
    lake = f"FrozenLake, {LANES} environments"
    rows = [
        Row(lake, "Gymnasium", ["gymnasium"], "SyncVectorEnv", frozen_lake_gymnasium),
        Row(lake, "EnvPool", ["envpool"], "synchronous, a thread a core", frozen_lake_envpool),
        Row(lake, "EnvPool, asynchronous", ["envpool"], "batches of half, a thread a core", frozen_lake_envpool_async),
    ]
    for name in FAMILIES:
        task = f"{name}, {LANES} environments"
        rows.append(Row(task, "BEM", ["bem"], "make_vec, one thread", family_bem(name)))
        rows.append(Row(task, "Gymnasium", ["bem"], "SyncVectorEnv over the same rules", family_gymnasium(name)))
    about = (
        "EnvPool cannot run the rules of BEM, and BEM has no FrozenLake, so that each stands beside Gymnasium's own vector of "
        "the same rules: what can be compared is how many times faster than Gymnasium each is."
    )
    columns = [Column("steps a second", False), Column("steps a CPU second", False)]
    return Group("Environments a second", about, columns, arguments.seeds, rows, alone=True)
