"""How fast environments and circuits are from Python, beside Gymnasium's own vector environments of the same rules.

python bench/python/throughput.py [--lanes 256] [--seconds 0.6] [--only FAMILY ...]

Every family steps with numpy observations, rewards and terminations in every step: `bem.make_vec` against
`gymnasium.vector.SyncVectorEnv` over `bem.make`, as many lanes on both sides, in one run, the median of three takes turns.
Both are one thread and their seconds are those of the processor, so that other work on the machine changes the ratio little.
Then `predict` on batches of 10,000, of bytes and of numpy's whole numbers. Exits with 1 if the median ratio over all families is below 100, one of them below 20,
or a prediction takes more than 50 ns.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable

import gymnasium
import numpy as np
from gymnasium.vector import SyncVectorEnv

import bem

MEDIAN_RATIO, LEAST_RATIO, PREDICT_NS = 100, 20, 50
# Worlds with as many bits in an observation.
WIDE = {16: ("parity", {"n": 16}), 64: ("parity", {"n": 64})}


def steps_a_second(envs: gymnasium.vector.VectorEnv, seconds: float) -> float:
    envs.reset(seed=1)
    random = np.random.default_rng(1)
    actions = random.integers(0, envs.single_action_space.n, (64, envs.num_envs))
    envs.step(actions[0])
    steps, started, took = 0, time.process_time(), 0.0
    while took < seconds:
        # Looking at this clock takes a part of a microsecond.
        for place in range(8):
            envs.step(actions[(steps + place) % 64])
        steps += 8
        took = time.process_time() - started
    return steps * envs.num_envs / took


def vectors(families: list[str], lanes: int, seconds: float) -> list[str]:
    """The table; what it falls short of."""
    print(f"{'family':24}{'gymnasium':>14}{'bem':>14}{'ratio':>8}  form")
    ratios = {}
    for family in families:
        theirs = SyncVectorEnv([lambda: bem.make(family)] * lanes)
        ours = bem.make_vec(family, lanes)
        takes = [[steps_a_second(envs, seconds / 3) for envs in (theirs, ours)] for _ in range(3)]
        slow, fast = (statistics.median(take[place] for take in takes) for place in (0, 1))
        ratios[family] = fast / slow
        form = "sliced" if ours.game.is_sliced else "single"
        print(f"{family:24}{slow:14,.0f}{fast:14,.0f}{fast / slow:8.0f}  {form}", flush=True)
    median, least = statistics.median(ratios.values()), min(ratios, key=ratios.get)
    print(f"median ratio {median:.0f}, smallest {ratios[least]:.0f} ({least})")
    short = [f"{name} is {ratio:.1f} times as fast, not {LEAST_RATIO}" for name, ratio in ratios.items() if ratio < LEAST_RATIO]
    return short + ([f"the median ratio is {median:.0f}, not {MEDIAN_RATIO}"] if median < MEDIAN_RATIO else [])


def prediction(name: str, learner: bem.Learner, rows: np.ndarray) -> list[str]:
    learner.predict(rows)
    takes = []
    for _ in range(21):
        started = time.process_time()
        learner.predict(rows)
        takes.append((time.process_time() - started) / len(rows) * 1e9)
    took = statistics.median(takes)
    print(f"predict {name:24} {took:8.1f} ns an observation, {learner.circuit}", flush=True)
    return [f"a prediction in {name} takes {took:.0f} ns, not {PREDICT_NS}"] if PREDICT_NS < took else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lanes", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=0.6)
    parser.add_argument("--only", nargs="+", choices=sorted(bem.families()), help="families; no predictions then")
    arguments = parser.parse_args()
    print(f"bem {bem.__version__}, gymnasium {gymnasium.__version__}, numpy {np.__version__}, {arguments.lanes} lanes each")
    short = vectors(arguments.only or list(bem.families()), arguments.lanes, arguments.seconds)
    random = np.random.default_rng(1)
    worlds: dict[str, tuple[Callable[[], gymnasium.Env], int]] = {
        "parity": (lambda: bem.make("parity", n=16), 20_000),
        "compare": (lambda: bem.make("compare", bits=8), 20_000),
        "parity_stream": (lambda: bem.make("parity_stream", n=8), 20_000),
        "FrozenLake-v1": (lambda: gymnasium.make("FrozenLake-v1"), 50_000),
    }
    for name, (make, steps) in {} if arguments.only else worlds.items():
        env = make()
        is_number = name == "FrozenLake-v1"
        rows = random.integers(0, 16, 10_000) if is_number else random.integers(0, 2, (10_000, env.bits)).astype(np.int8)
        short += prediction(name, bem.Learner(env, seed=1).learn(steps), rows)
    # What numpy makes of bits where nobody says a type: eight bytes each.
    for width, (family, parameters) in {} if arguments.only else WIDE.items():
        env = bem.make(family, **parameters)
        rows = random.integers(0, 2, (10_000, env.bits))
        assert rows.dtype == np.int64 and env.bits == width
        short += prediction(f"{family}, {width} int64", bem.Learner(env, seed=1).learn(20_000), rows)
    sys.exit("\n".join(short) if short else 0)


if __name__ == "__main__":
    main()
