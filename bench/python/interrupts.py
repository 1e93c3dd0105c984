"""How long Ctrl-C takes while a learner works: python bench/python/interrupts.py [--times 20]

Exits with 1 if one of them took more than 100 ms. On a machine whose cores are busy with other work that says little.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import statistics
import sys
import threading
import time

import gymnasium

import bem

LONGEST_MS = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20)
    arguments = parser.parse_args()
    late = []
    for name, make in {
        "FrozenLake-v1 (Python)": lambda: gymnasium.make("FrozenLake-v1"),
        "Taxi (Python)": lambda: gymnasium.make("Taxi-v4" if "Taxi-v4" in gymnasium.registry else "Taxi-v3"),
        "dyck (native)": lambda: bem.make("dyck"),
        "key_value (native)": lambda: bem.make("key_value"),
    }.items():
        learner, waits = bem.Learner(make(), seed=1), []
        for _ in range(arguments.times):
            asked = []

            def ask() -> None:
                asked.append(time.perf_counter())
                os.kill(os.getpid(), signal.SIGINT)

            timer = threading.Timer(random.uniform(0.05, 0.6), ask)
            timer.start()
            try:
                learner.learn(10**9)
            except KeyboardInterrupt:
                waits.append(1000 * (time.perf_counter() - asked[0]))
        steps = learner.num_timesteps
        print(f"{name:24} median {statistics.median(waits):6.1f} ms, largest {max(waits):6.1f} ms, {steps} steps", flush=True)
        if LONGEST_MS < max(waits):
            late.append(f"{name}: an interrupt took {max(waits):.0f} ms, not {LONGEST_MS}")
    sys.exit("\n".join(late) if late else 0)


if __name__ == "__main__":
    main()
