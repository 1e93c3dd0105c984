"""How fast environments and circuits are from Python, beside Gymnasium's own vector environments of the same rules.

python bench/python/throughput.py [--lanes 1024] [--seconds 0.3]

Every family steps with numpy observations, rewards and terminations in every step: `bem.make_vec` against
`gymnasium.vector.SyncVectorEnv` over as many `bem.make`, in one run, the median of three takes turns. Then `predict` on batches.
"""

from __future__ import annotations

import argparse
import statistics
import time

import gymnasium
import numpy as np
from gymnasium.vector import SyncVectorEnv

import bem


def steps_a_second(envs: gymnasium.vector.VectorEnv, seconds: float) -> float:
    envs.reset(seed=1)
    random = np.random.default_rng(1)
    actions = random.integers(0, envs.single_action_space.n, (64, envs.num_envs))
    envs.step(actions[0])
    steps, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        envs.step(actions[steps % 64])
        steps += 1
    return steps * envs.num_envs / (time.perf_counter() - started)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lanes", type=int, default=1024)
    parser.add_argument("--seconds", type=float, default=0.3)
    arguments = parser.parse_args()
    print(f"bem {bem.__version__}, gymnasium {gymnasium.__version__}, numpy {np.__version__}, {arguments.lanes} lanes")
    print(f"{'family':24}{'gymnasium':>14}{'bem':>14}{'ratio':>8}  form")
    ratios = []
    for family in bem.families():
        theirs = SyncVectorEnv([lambda: bem.make(family)] * 16)
        ours = bem.make_vec(family, arguments.lanes)
        takes = [[steps_a_second(envs, arguments.seconds / 3) for envs in (theirs, ours)] for _ in range(3)]
        slow, fast = (statistics.median(take[place] for take in takes) for place in (0, 1))
        ratios.append(fast / slow)
        form = "sliced" if ours.game.is_sliced else "single"
        print(f"{family:24}{slow:14,.0f}{fast:14,.0f}{fast / slow:8.0f}  {form}", flush=True)
    print(f"median ratio {statistics.median(ratios):.0f}, smallest {min(ratios):.0f}")
    for family, params in (("parity", {"n": 16}), ("compare", {"bits": 8}), ("parity_stream", {"n": 8})):
        env = bem.make(family, **params)
        learner = bem.Learner(env, seed=1).learn(20_000)
        rows = np.random.default_rng(1).integers(0, 2, (10_000, env.bits)).astype(np.int8)
        learner.predict(rows)
        learner.predict(rows)
        takes = []
        for _ in range(20):
            started = time.perf_counter()
            learner.predict(rows)
            takes.append((time.perf_counter() - started) / len(rows) * 1e9)
        print(f"predict {family:20} {statistics.median(takes):8.1f} ns an observation, {learner.circuit}")
    env = gymnasium.make("FrozenLake-v1")
    learner = bem.Learner(env, seed=1).learn(50_000)
    rows = np.random.default_rng(1).integers(0, 16, 10_000)
    takes = []
    for _ in range(20):
        started = time.perf_counter()
        learner.predict(rows)
        takes.append((time.perf_counter() - started) / len(rows) * 1e9)
    print(f"predict {'FrozenLake-v1':20} {statistics.median(takes):8.1f} ns an observation, {learner.circuit}")


if __name__ == "__main__":
    main()
