"""How long Ctrl-C takes while BEM works: python bench/python/interrupts.py [--times 100] [--only learn fit verify save]

``learn`` is asked in environments of Python and of BEM, ``fit`` is a bandit's log, ``verify`` writes and audits a history, ``save``
puts a learner on disk. Exits with 1 if one of them took more than 100 ms. On a machine whose cores are busy with other work
that says little: the seconds in which the waiting thread itself ran stand beside it.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import gymnasium
import numpy as np

import bem

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python" / "tests"))
from interrupting import Waited, interrupted  # noqa: E402

LONGEST_MS = 100
WORLDS: dict[str, Callable[[], gymnasium.Env]] = {
    "FrozenLake-v1 (Python)": lambda: gymnasium.make("FrozenLake-v1"),
    "Taxi (Python)": lambda: gymnasium.make("Taxi-v4" if "Taxi-v4" in gymnasium.registry else "Taxi-v3"),
    "dyck (native)": lambda: bem.make("dyck"),
    "key_value (native)": lambda: bem.make("key_value"),
}


def quantile(values: list[float], part: float) -> float:
    """The smallest value that so large a part of the values does not exceed."""
    return sorted(values)[math.ceil(part * len(values)) - 1]


def learning(name: str) -> Callable[[], object]:
    learner = bem.Learner(WORLDS[name](), seed=1)
    return lambda: learner.learn(10**9)


def fitting() -> Callable[[], object]:
    draw = np.random.default_rng(6)
    rows = draw.integers(0, 2, (120_000, 8)).astype(np.int8)
    actions = draw.integers(0, 4, len(rows))
    rewards = (actions == rows[:, 0] + 2 * rows[:, 3]).astype(float)
    bandit = bem.ContextualBandit(4, 8, seed=3)
    return lambda: bandit.partial_fit(rows, actions, rewards)


def calls(folder: str) -> list[tuple[str, str, Callable[[], Callable[[], object]]]]:
    """What is interrupted: its kind, what it works on, and how it is set up."""
    learner = bem.Learner(bem.make("majority", n=9), seed=2).learn(20_000)
    return [
        *(("learn", name, lambda name=name: learning(name)) for name in WORLDS),
        ("fit", "120,000 rows of 8 bits", fitting),
        ("verify", "majority, 20,000 steps", lambda: learner.verify),
        ("save", "majority, 20,000 steps", lambda: lambda: learner.save(Path(folder) / "learner")),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--only", choices=["learn", "fit", "verify", "save"], nargs="+", default=["learn", "fit", "verify", "save"])
    arguments = parser.parse_args()
    late = []
    print("| call | works on | p50 ms | p99 ms | largest ms | p99 ms of its own thread |\n|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for kind, what, make in calls(folder):
            if kind not in arguments.only:
                continue
            call = make()
            waits: list[Waited] = [interrupted(call, random.uniform(0.02, 0.4)) for _ in range(arguments.times)]
            wall, processor = ([1_000 * seconds for seconds in part] for part in zip(*waits))
            print(f"| {kind} | {what} | {quantile(wall, 0.5):.1f} | {quantile(wall, 0.99):.1f} | {max(wall):.1f} "
                  f"| {quantile(processor, 0.99):.1f} |", flush=True)
            if LONGEST_MS < max(wall):
                late.append(f"{kind}, {what}: an interrupt took {max(wall):.0f} ms, not {LONGEST_MS}")
    sys.exit("\n".join(late) if late else 0)


if __name__ == "__main__":
    main()
