"""Finite processes of Gymnasium: the exact value of the policy after a number of steps, as percent of what can be gained."""

from __future__ import annotations

import importlib.util
import io
import time

import gymnasium
import numpy as np
from exact import Table

import bem

WORLDS = [("FrozenLake-v1", 100), ("CliffWalking-v1", 100)]


class Fixed:
    """A policy of states, for the exact evaluation."""

    class circuit:  # noqa: N801 - it stands where a learner's circuit would
        memory_bits = 0

    def __init__(self, actions):
        self.actions = np.asarray(actions)

    def predict(self, states):
        return self.actions[states], None


def bem_learner(env, horizon, steps, seed):
    learner = bem.Learner(env, seed=seed).learn(steps)
    return learner, len(learner.export("c"))


def q_learning(env, horizon, steps, seed):
    """Tabular Q-learning: rate 1/sqrt(visits), epsilon from 1 to 0.05 over half of the steps, no discount, optimistic start at 0."""
    draw = np.random.default_rng(seed)
    values = np.zeros((env.observation_space.n, env.action_space.n))
    visits = np.zeros_like(values)
    state, _ = env.reset(seed=seed)
    for step in range(steps):
        epsilon = max(0.05, 1 - step / (steps / 2))
        best = np.flatnonzero(values[state] == values[state].max())
        action = int(draw.integers(env.action_space.n) if draw.random() < epsilon else draw.choice(best))
        after, reward, terminated, truncated, _ = env.step(action)
        visits[state, action] += 1
        target = reward + (0 if terminated else 0.999 * values[after].max())
        values[state, action] += (target - values[state, action]) / visits[state, action] ** 0.5
        state = env.reset()[0] if terminated or truncated else after
    return Fixed(values.argmax(axis=1)), values.nbytes


def posterior_sampling(env, horizon, steps, seed):
    """PSRL: Dirichlet counts of 1, mean rewards, a new sample and finite-horizon plan every episode."""
    draw = np.random.default_rng(seed)
    states, actions = env.observation_space.n, env.action_space.n
    counts = np.full((states, actions, states + 1), 1.0 / (states + 1))
    sums, seen = np.zeros((states, actions)), np.zeros((states, actions))
    taken, length = 0, min(horizon, 60)

    def plan(chances):
        value, policy = np.zeros(states), np.zeros((length, states), dtype=int)
        rewards = sums / np.maximum(seen, 1) + (seen == 0)
        for left in range(length):
            worth = rewards + chances[:, :, :states] @ value
            policy[length - 1 - left] = worth.argmax(axis=1)
            value = worth.max(axis=1)
        return policy

    while taken < steps:
        sampled = draw.gamma(counts)
        policy = plan(sampled / sampled.sum(axis=2, keepdims=True))
        state, _ = env.reset(seed=int(draw.integers(2**31)))
        for time_ in range(horizon):
            action = int(policy[min(time_, length - 1), state])
            after, reward, terminated, truncated, _ = env.step(action)
            counts[state, action, states if terminated else after] += 1
            sums[state, action] += reward
            seen[state, action] += 1
            state, taken = after, taken + 1
            if terminated or truncated or steps <= taken:
                break
    mean = counts / counts.sum(axis=2, keepdims=True)
    return Fixed(plan(mean)[0]), counts.nbytes


def deep(name, options):
    def learn(env, horizon, steps, seed):
        import stable_baselines3 as sb3
        import torch

        torch.set_num_threads(1)
        model = getattr(sb3, name)("MlpPolicy", env, seed=seed, device="cpu", **options).learn(steps)
        buffer = io.BytesIO()
        torch.save(model.policy.state_dict(), buffer)
        actions = [int(model.predict(np.array(state), deterministic=True)[0]) for state in range(env.observation_space.n)]
        return Fixed(actions), buffer.getbuffer().nbytes

    return learn


PEERS = [
    ("BEM", "bem", bem_learner, "default"),
    ("Q-learning", "numpy", q_learning, "see q_learning"),
    ("PSRL", "numpy", posterior_sampling, "see posterior_sampling"),
    ("SB3 PPO", "stable_baselines3", deep("PPO", {}), "defaults"),
    ("SB3 DQN", "stable_baselines3", deep("DQN", {"exploration_fraction": 0.3, "learning_starts": 1000}), "exploration_fraction 0.3"),
]


def rows(arguments):
    table = []
    for name, horizon in WORLDS:
        for who, module, learn, settings in PEERS:
            task = f"{name}, {arguments.steps} steps"
            if importlib.util.find_spec(module) is None:
                table.append((task, who, [], [], None, f"{module} is not installed"))
                continue
            scores, seconds, size = [], [], None
            for seed in range(1, arguments.seeds + 1):
                env = gymnasium.make(name, max_episode_steps=horizon)
                exact = Table(env, horizon)
                started = time.process_time()
                policy, size = learn(env, horizon, arguments.steps, seed)
                seconds.append(time.process_time() - started)
                optimum, random = exact.optimum(), exact.random()
                scores.append(100 * (exact.value(policy) - random) / (optimum - random))
            table.append((task, who, scores, seconds, size, settings))
    return "Finite processes, judged by their exact tables", "percent of what can be gained", table
