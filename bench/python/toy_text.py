"""FrozenLake, Taxi and CliffWalking of Gymnasium, judged exactly by their tables of transitions.

python bench/python/toy_text.py [--steps 1000000] [--seeds 5] [--only NAME]

The steps that are played at random to see how large rewards are belong to these steps.

For every seed: the value of the frozen policy over the horizon as a share of the way from random play to the optimum, its
distance from the undiscounted optimum in percent, and the first tenth of the steps at which that was at most one percent and stayed so.
Exits with 1 if a seed is more than one percent below at the end.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import gymnasium

import bem

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python" / "tests"))
from exact import Table  # noqa: E402

# Name and horizon: CliffWalking has no limit of its own.
WORLDS = [("FrozenLake-v1", 100), ("Taxi", 200), ("CliffWalking-v1", 100), ("CliffWalkingSlippery-v1", 100)]


def newest(name: str) -> str:
    versions = [spec.id for spec in gymnasium.registry.values() if spec.name == name and spec.namespace is None]
    return max(versions, default=name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    print(f"bem {bem.__version__}, gymnasium {gymnasium.__version__}, {arguments.steps} steps")
    below = []
    for name, horizon in WORLDS:
        name = newest(name)
        if arguments.only not in name:
            continue
        for seed in range(1, arguments.seeds + 1):
            env = gymnasium.make(name, max_episode_steps=horizon)
            table = Table(env, horizon)
            optimum, random = table.optimum(), table.random()
            learner, started, since = bem.Learner(env, seed=seed), time.process_time(), None
            for part in range(10):
                so_far = (part + 1) * arguments.steps // 10
                learner.learn(max(0, so_far - learner.probe_steps - learner.num_timesteps))
                value = table.value(learner)
                is_close = optimum - value <= 0.01 * abs(optimum)
                since = (since or so_far) if is_close else None
            if arguments.steps < learner.num_timesteps + learner.probe_steps:
                below.append(f"{name}, seed {seed}: more steps than were allowed")
            gap = 100 * (optimum - value) / abs(optimum)
            if not is_close:
                below.append(f"{name}, seed {seed}: {gap:.3f} % below the optimum, not 1 %")
            print(
                f"{name:24} seed {seed}: value {value:9.4f} of {optimum:9.4f} (random {random:9.3f}), "
                f"{gap:6.3f} % below, within 1 % since {since}, {learner.circuit.gates} gates, "
                f"{learner.circuit.memory_bits} memory bits, {learner.num_timesteps + learner.probe_steps} steps, "
                f"{time.process_time() - started:.1f} CPU s",
                flush=True,
            )
    sys.exit("\n".join(below) if below else 0)


if __name__ == "__main__":
    main()
