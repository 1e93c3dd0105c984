"""Families of BEM with and without memory beside deep learners: the frozen policy, steps until it is good, what was lost."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import deep
import gymnasium
import numpy as np
from harness import GOAL, Column, Group, Row, Run, Watch, settled

WITHOUT = {"compare, 4 and 4 bits": ("compare", {"bits": 4}), "safe way over a grid, 4 by 4": ("safety_grid", {})}
WITH = {"parity of a stream of up to 6 bits": ("parity_stream", {"n": 6}), "key and value, 4 keys": ("key_value", {})}
CHECKPOINTS, EPISODES = 20, 1_024
COLUMNS = [Column("percent of what can be gained", False), Column("steps to 99 %", True), Column("percent lost online", True)]
# Observations of many lanes and what was remembered of them; the actions, and what is remembered now.
Policy = Callable[[np.ndarray, Any], tuple[np.ndarray, Any]]


class World:
    """A family and its judge: episodes of other seeds than those that are learned from, many at once."""

    def __init__(self, family: str, params: dict[str, int], steps: int, seed: int):
        import bem

        self.family, self.params, self.steps, self.seed = family, params, steps, seed
        self.judges = bem.make_vec(family, EPISODES, **params)
        self.env = bem.make(family, **params)
        self.scores: list[tuple[int, float]] = []
        self.returns: list[float] = []
        self.watch = Watch()

    def part(self, value: float) -> float:
        return (value - self.env.random) / (self.env.optimum - self.env.random)

    def check(self, at: int, policy: Policy) -> None:
        with self.watch.paused():
            seen, _ = self.judges.reset(seed=10_000_000 + self.seed)
            memory, total, alive = None, 0.0, np.ones(EPISODES, dtype=bool)
            while alive.any():
                actions, memory = policy(seen, memory)
                seen, rewards, terminated, truncated, _ = self.judges.step(np.asarray(actions, dtype=np.int64))
                total += float(rewards[alive].sum())
                # A lane that is over begins anew at once; only its first episode counts.
                alive &= ~(terminated | truncated)
            self.scores.append((at, self.part(total / EPISODES)))

    def run(self, size: int, online: float | None) -> Run:
        self.watch.stop()
        figures = {
            "percent of what can be gained": 100 * self.scores[-1][1],
            "steps to 99 %": settled([(at, score >= GOAL) for at, score in self.scores]),
            "percent lost online": None if online is None else 100 * (1 - self.part(online)),
        }
        return Run(figures, self.watch.wall, self.watch.cpu, size)


def bem_learner(world: World, seed: int) -> Run:
    import bem

    learner = bem.Learner(world.env, seed=seed)
    for at in (world.steps * part // CHECKPOINTS for part in range(1, CHECKPOINTS + 1)):
        learner.learn(at - learner.num_timesteps)
        world.check(at, lambda seen, memory: learner.predict(seen, state=memory))
    return world.run(len(learner.export("c")), learner.online_mean)


def network(name: str, is_zoo: bool, is_stacked: bool = False) -> Callable[[World, int], Run]:
    """A deep learner; a stack shows it all observations of the episode so far, zeros where there were none yet."""

    def learn(world: World, seed: int) -> Run:
        import bem

        with world.watch.paused():
            deep.prepare()
        depth = world.env.horizon if is_stacked else 0

        def make() -> gymnasium.Env:
            env = deep.Recorder(bem.make(world.family, **world.params), world.returns)
            return gymnasium.wrappers.FrameStackObservation(env, depth, padding_type="zero") if is_stacked else env

        def check(model: Any, at: int) -> None:
            def plain(seen: np.ndarray, memory: Any) -> tuple[np.ndarray, Any]:
                return model.predict(seen, deterministic=True)[0], None

            def stacked(seen: np.ndarray, memory: Any) -> tuple[np.ndarray, Any]:
                before = np.zeros((len(seen), depth, *seen.shape[1:]), dtype=seen.dtype) if memory is None else memory
                frames = np.concatenate([before[:, 1:], seen[:, None]], axis=1)
                return model.predict(frames, deterministic=True)[0], frames

            def recurrent(seen: np.ndarray, memory: Any) -> tuple[np.ndarray, Any]:
                begun = np.full(len(seen), memory is None)
                return model.predict(seen, state=memory, episode_start=begun, deterministic=True)

            world.check(at, recurrent if name == "RecurrentPPO" else stacked if is_stacked else plain)

        model = deep.train(name, is_zoo, make, world.steps, world.steps // CHECKPOINTS, seed, check)
        return world.run(deep.actor_bytes(model), float(np.mean(world.returns)) if world.returns else None)

    return learn


SB3, CONTRIB = ["bem", "stable_baselines3"], ["bem", "sb3_contrib"]
STACK = "all observations of the episode stacked; "
WITHOUT_PEERS: list[tuple[str, list[str], str, Callable[[World, int], Run]]] = [
    ("BEM", ["bem"], "default", bem_learner),
    ("SB3 PPO", SB3, deep.settings_of("PPO", False), network("PPO", False)),
    ("SB3 PPO, RL Zoo", SB3, deep.settings_of("PPO", True), network("PPO", True)),
    ("SB3 DQN, RL Zoo", SB3, deep.settings_of("DQN", True), network("DQN", True)),
]
WITH_PEERS: list[tuple[str, list[str], str, Callable[[World, int], Run]]] = [
    ("BEM", ["bem"], "default", bem_learner),
    ("SB3 RecurrentPPO, RL Zoo", CONTRIB, deep.settings_of("RecurrentPPO", True), network("RecurrentPPO", True)),
    ("SB3 PPO, RL Zoo, stacked", SB3, STACK + deep.settings_of("PPO", True), network("PPO", True, True)),
    ("SB3 DQN, RL Zoo, stacked", SB3, STACK + deep.settings_of("DQN", True), network("DQN", True, True)),
]


def group(arguments: argparse.Namespace) -> Group:
    rows = []
    for tasks, peers in ((WITHOUT, WITHOUT_PEERS), (WITH, WITH_PEERS)):
        for task, (family, params) in tasks.items():
            for who, needs, settings, learn in peers:
                measure = lambda seed, family=family, params=params, learn=learn: learn(  # noqa: E731
                    World(family, params, arguments.family_steps, seed), seed
                )
                rows.append(Row(f"{task}, {arguments.family_steps:,} steps", who, needs, settings, measure))
    about = (
        f"The mean return of the frozen policy on {EPISODES:,} episodes of other seeds, 0 for random play and 100 for the "
        f"optimum. Steps to 99 %: from there on every {CHECKPOINTS}th part of the run ends with at least 99. Lost online: what "
        "the episodes played while learning fell short of the optimum, 100 for random play. The first two tasks need no memory."
    )
    return Group("Families with and without memory", about, COLUMNS, arguments.seeds, rows)
