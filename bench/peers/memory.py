"""Worlds that need memory: the score of the frozen policy after a number of steps, 0 for random play and 100 for the optimum."""

from __future__ import annotations

import importlib.util
import io
import time

import numpy as np

import bem

TASKS = {
    "parity of a stream of 6 bits": ("parity_stream", {"n": 6}),
    "key and value, 4 keys": ("key_value", {}),
}
STEPS, EPISODES = 20_000, 400


def score(env, act, seed):
    """The mean return on episodes that nobody learned from, as percent between random play and the optimum."""
    total = 0.0
    for episode in range(EPISODES):
        seen, _ = env.reset(seed=10_000_000 + 1_000 * seed + episode)
        memory, over = None, False
        while not over:
            action, memory = act(seen, memory)
            seen, reward, terminated, truncated, _ = env.step(int(action))
            total += reward
            over = terminated or truncated
    game = env.unwrapped
    return 100 * (total / EPISODES - game.random) / (game.optimum - game.random)


def bem_learner(env, seed):
    learner = bem.Learner(env, seed=seed).learn(STEPS)

    def act(seen, memory):
        return learner.predict(seen, state=memory) if memory is not None else learner.predict(seen)

    return act, len(learner.export("c"))


def recurrent(env, seed):
    import torch
    from sb3_contrib import RecurrentPPO

    torch.set_num_threads(1)
    model = RecurrentPPO("MlpLstmPolicy", env, seed=seed, device="cpu").learn(STEPS)
    buffer = io.BytesIO()
    torch.save(model.policy.state_dict(), buffer)

    def act(seen, memory):
        return model.predict(seen, state=memory, episode_start=np.array([memory is None]), deterministic=True)

    return act, buffer.getbuffer().nbytes


PEERS = [
    ("BEM", "bem", bem_learner, "default"),
    ("SB3 RecurrentPPO", "sb3_contrib", recurrent, "defaults"),
]


def rows(arguments):
    table = []
    for task, (family, params) in TASKS.items():
        for who, module, learn, settings in PEERS:
            name = f"{task}, {STEPS} steps"
            if importlib.util.find_spec(module) is None:
                table.append((name, who, [], [], None, f"{module} is not installed"))
                continue
            scores, seconds, size = [], [], None
            for seed in range(1, arguments.seeds + 1):
                env = bem.make(family, **params)
                started = time.process_time()
                act, size = learn(env, seed)
                seconds.append(time.process_time() - started)
                scores.append(score(env, act, seed))
            table.append((name, who, scores, seconds, size, settings))
    return "Worlds that need memory", "percent between random play and the optimum", table
