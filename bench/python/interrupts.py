"""How long Ctrl-C takes while a learner works: python bench/python/interrupts.py [--times 20]"""

from __future__ import annotations

import argparse
import os
import random
import signal
import statistics
import threading
import time

import gymnasium

import bem


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    arguments = parser.parse_args()
    for name, make in {
        "FrozenLake-v1 (Python)": lambda: gymnasium.make("FrozenLake-v1"),
        "Taxi (Python)": lambda: gymnasium.make("Taxi-v4" if "Taxi-v4" in gymnasium.registry else "Taxi-v3"),
        "dyck (native)": lambda: bem.make("dyck"),
    }.items():
        learner, waits = bem.Learner(make(), seed=1), []
        for _ in range(arguments.times):
            asked = []

            def ask():
                asked.append(time.perf_counter())
                os.kill(os.getpid(), signal.SIGINT)

            timer = threading.Timer(random.uniform(0.05, 0.6), ask)
            timer.start()
            try:
                learner.learn(10**9)
            except KeyboardInterrupt:
                waits.append(1000 * (time.perf_counter() - asked[0]))
        print(f"{name:24} median {statistics.median(waits):6.1f} ms, largest {max(waits):6.1f} ms, {learner.num_timesteps} steps")


if __name__ == "__main__":
    main()
