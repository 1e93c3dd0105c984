"""Steps a second of many environments at once, random actions, observations, rewards and ends looked at every step."""

from __future__ import annotations

import importlib.util
import time

import numpy as np

import bem

LANES, STEPS = 256, 400


def rate(reset, step, actions, seed):
    draw = np.random.default_rng(seed)
    reset()
    chosen = draw.integers(0, actions, (STEPS, LANES))
    started = time.process_time()
    for row in chosen:
        step(row)
    return STEPS * LANES / (time.process_time() - started)


def frozen_lake_gymnasium(seed):
    import gymnasium

    env = gymnasium.make_vec("FrozenLake-v1", num_envs=LANES)
    return rate(lambda: env.reset(seed=seed), env.step, 4, seed)


def frozen_lake_envpool(seed):
    import envpool

    env = envpool.make_gymnasium("FrozenLake-v1", num_envs=LANES, seed=seed)
    return rate(env.reset, lambda row: env.step(row.astype(np.int32)), 4, seed)


def family(name):
    def measure(seed):
        env = bem.envs.make_vec(name, LANES)
        return rate(lambda: env.reset(seed=seed), env.step, int(env.single_action_space.n), seed)

    return measure


PEERS = [
    ("FrozenLake, 256 environments", "Gymnasium", "gymnasium", frozen_lake_gymnasium, "make_vec, default"),
    ("FrozenLake, 256 environments", "EnvPool", "envpool", frozen_lake_envpool, "one thread pool, default"),
    ("safety_grid, 256 environments", "BEM", "bem", family("safety_grid"), "default"),
    ("parity, 256 environments", "BEM", "bem", family("parity"), "default"),
]


def rows(arguments):
    table = []
    for task, who, module, measure, settings in PEERS:
        if importlib.util.find_spec(module) is None:
            table.append((task, who, [], [], None, f"{module} is not installed"))
            continue
        rates = [measure(seed) for seed in range(1, arguments.seeds + 1)]
        table.append((task, who, rates, [STEPS * LANES / rate for rate in rates], None, settings))
    return "Environments a second", "steps a second of CPU time", table
