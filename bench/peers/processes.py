"""Finite processes of Gymnasium: the exact value of the policy, steps until it is good, and what was lost on the way."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import deep
import gymnasium
import numpy as np
from exact import Table
from harness import GOAL, Column, Group, Row, Run, Watch, settled

WORLDS = [("FrozenLake-v1", 100), ("CliffWalking-v1", 100)]
CHECKPOINTS = 25
COLUMNS = [Column("percent of what can be gained", False), Column("steps to 99 %", True), Column("percent lost online", True)]


class World:
    """A process, its exact judge, and what was seen of a learner so far."""

    def __init__(self, name: str, horizon: int, steps: int):
        self.name, self.horizon, self.steps = name, horizon, steps
        self.table = Table(gymnasium.make(name, max_episode_steps=horizon), horizon)
        self.random, self.optimum = self.table.random(), self.table.optimum()
        self.returns: list[float] = []
        self.scores: list[tuple[int, float]] = []
        self.watch = Watch()

    def make(self) -> gymnasium.Env:
        return deep.Recorder(gymnasium.make(self.name, max_episode_steps=self.horizon), self.returns)

    def part(self, value: float) -> float:
        return (value - self.random) / (self.optimum - self.random)

    def check(self, at: int, value: Callable[[], float]) -> None:
        """Judges while the clock stands."""
        with self.watch.paused():
            self.scores.append((at, self.part(value())))

    def run(self, size: int) -> Run:
        self.watch.stop()
        figures = {
            "percent of what can be gained": 100 * self.scores[-1][1],
            "steps to 99 %": settled([(at, score >= GOAL) for at, score in self.scores]),
            "percent lost online": 100 * (1 - self.part(float(np.mean(self.returns)))) if self.returns else None,
        }
        return Run(figures, self.watch.wall, self.watch.cpu, size)

    def value(self, policy: np.ndarray) -> float:
        """The exact value of actions by state, or by time and state."""
        every, worth = np.arange(self.table.states), np.zeros(self.table.states)
        for time in reversed(range(self.horizon)):
            actions = policy if policy.ndim == 1 else policy[time]
            worth = self.table.reward[every, actions] + self.table.next[every, actions] @ worth
        return float(self.table.start @ worth)


def bem_learner(world: World, seed: int) -> Run:
    import bem

    learner = bem.Learner(world.make(), seed=seed)
    for at in checkpoints(world.steps):
        # Steps that were played to see how large rewards are belong to the budget.
        learner.learn(max(0, at - learner.probe_steps - learner.num_timesteps))
        world.check(at, lambda: world.table.value(learner))
    return world.run(len(learner.export("c")))


def checkpoints(steps: int) -> list[int]:
    return [steps * part // CHECKPOINTS for part in range(1, CHECKPOINTS + 1)]


def q_learning(world: World, seed: int) -> Run:
    """Tabular Q-learning: rate 1/visits^0.5, epsilon from 1 to 0.05 over half of the steps, discount 0.999, start at 0."""
    env, draw, due = world.make(), np.random.default_rng(seed), checkpoints(world.steps)
    values = np.zeros((env.observation_space.n, env.action_space.n))
    visits = np.zeros_like(values)
    state, _ = env.reset(seed=seed)
    for step in range(1, world.steps + 1):
        epsilon = max(0.05, 1 - step / (world.steps / 2))
        best = np.flatnonzero(values[state] == values[state].max())
        action = int(draw.integers(env.action_space.n) if draw.random() < epsilon else draw.choice(best))
        after, reward, terminated, truncated, _ = env.step(action)
        visits[state, action] += 1
        target = reward + (0 if terminated else 0.999 * values[after].max())
        values[state, action] += (target - values[state, action]) / visits[state, action] ** 0.5
        state = env.reset()[0] if terminated or truncated else after
        if step == due[0]:
            world.check(due.pop(0), lambda: world.value(values.argmax(axis=1)))
            due = due or [-1]
    return world.run(len(values.argmax(axis=1).astype(np.uint8).tobytes()))


class Posterior:
    """What PSRL believes: Dirichlet counts that begin with 1 in all, and mean rewards, 1 where nothing was tried."""

    def __init__(self, states: int, actions: int, horizon: int):
        self.states, self.horizon = states, horizon
        # The last state is the end.
        self.counts = np.full((states, actions, states + 1), 1.0 / (states + 1))
        self.sums, self.seen = np.zeros((states, actions)), np.zeros((states, actions))

    def plan(self, chances: np.ndarray) -> np.ndarray:
        """The best actions by time and state."""
        worth, policy = np.zeros(self.states), np.zeros((self.horizon, self.states), dtype=np.uint8)
        rewards = self.sums / np.maximum(self.seen, 1) + (self.seen == 0)
        for time in reversed(range(self.horizon)):
            each = rewards + chances[:, :, : self.states] @ worth
            policy[time], worth = each.argmax(axis=1), each.max(axis=1)
        return policy

    def sample(self, draw: np.random.Generator) -> np.ndarray:
        sampled = draw.gamma(self.counts)
        return self.plan(sampled / sampled.sum(axis=2, keepdims=True))

    def mean(self) -> np.ndarray:
        return self.plan(self.counts / self.counts.sum(axis=2, keepdims=True))


def posterior_sampling(world: World, seed: int) -> Run:
    """PSRL: a new sample and a plan for the whole horizon every episode; judged is the plan for the mean."""
    env, draw, due = world.make(), np.random.default_rng(seed), checkpoints(world.steps)
    posterior = Posterior(env.observation_space.n, env.action_space.n, world.horizon)
    taken = 0
    while taken < world.steps:
        policy = posterior.sample(draw)
        state, _ = env.reset(seed=int(draw.integers(2**31)))
        for time in range(world.horizon):
            action = int(policy[time, state])
            after, reward, terminated, truncated, _ = env.step(action)
            posterior.counts[state, action, posterior.states if terminated else after] += 1
            posterior.sums[state, action] += reward
            posterior.seen[state, action] += 1
            state, taken = after, taken + 1
            if due and taken == due[0]:
                world.check(due.pop(0), lambda: world.value(posterior.mean()))
            if terminated or truncated or world.steps <= taken:
                break
    return world.run(posterior.mean().nbytes)


def network(name: str, is_zoo: bool) -> Callable[[World, int], Run]:
    def learn(world: World, seed: int) -> Run:
        with world.watch.paused():
            deep.prepare()

        def check(model: Any, at: int) -> None:
            states = np.arange(world.table.states)
            world.check(at, lambda: world.value(np.asarray(model.predict(states, deterministic=True)[0])))

        every = world.steps // CHECKPOINTS
        model = deep.train(name, is_zoo, world.make, world.steps, every, seed, check)
        return world.run(deep.actor_bytes(model))

    return learn


PEERS: list[tuple[str, str, str, Callable[[World, int], Run]]] = [
    ("BEM", "bem", "default", bem_learner),
    ("Q-learning", "numpy", "rate 1/visits^0.5, epsilon 1 to 0.05 over half of the steps, discount 0.999", q_learning),
    ("PSRL", "numpy", "Dirichlet prior of weight 1, a sample an episode, plans for the horizon", posterior_sampling),
    ("SB3 PPO", "stable_baselines3", deep.settings_of("PPO", False), network("PPO", False)),
    ("SB3 PPO, RL Zoo", "stable_baselines3", deep.settings_of("PPO", True), network("PPO", True)),
    ("SB3 DQN, RL Zoo", "stable_baselines3", deep.settings_of("DQN", True), network("DQN", True)),
]


def group(arguments: argparse.Namespace) -> Group:
    rows = []
    for name, horizon in WORLDS:
        for who, needs, settings, learn in PEERS:
            measure = lambda seed, name=name, horizon=horizon, learn=learn: learn(  # noqa: E731
                World(name, horizon, arguments.steps), seed
            )
            rows.append(Row(f"{name}, {arguments.steps:,} steps", who, [needs], settings, measure))
    about = (
        "Policies are judged by the exact tables of the processes over 100 steps, 0 for random play and 100 for the optimum. "
        f"Steps to 99 %: from there on every {CHECKPOINTS}th part of the run ends with at least 99. Lost online: what the "
        "episodes played while learning fell short of the optimum, 100 for random play."
    )
    return Group("Finite processes", about, COLUMNS, arguments.seeds, rows)
