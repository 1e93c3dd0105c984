"""The pipeline on two raylets of one machine, one of which is removed in the middle: its history is that of threads.

python bench/ray_lost_node.py --bem target/release/bem

Prints one JSON object: seconds and head with threads, with one worker, with two workers on two raylets, and with a raylet lost.
Needs the packages bem and ray in the environment of this Python. Exits with 1 if a head differs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time

from ray.cluster_utils import Cluster

PLAN = ["--domains", "stack,memory,aggregation", "--stages", "3", "--unit-steps", "8000", "--mixed-rounds", "1"]


def pipeline(bem: str, folder: str, name: str, words: list[str]) -> tuple[float, str]:
    command = [bem, "pipeline", "run", "--json", "--key", f"{folder}/key", "--out", f"{folder}/{name}", *PLAN, *words]
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "BEM_PYTHON": sys.executable})
    if done.returncode:
        sys.exit(f"{name}: {done.stderr[-2000:]}")
    return time.perf_counter() - started, json.loads(done.stdout)["trace_head"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bem", default="target/release/bem")
    parser.add_argument("--lost-after", type=float,
                        help="seconds after which a raylet is removed; else half of what two workers took undisturbed")
    arguments = parser.parse_args()
    bem = os.path.abspath(arguments.bem)
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        results["threads_1"] = pipeline(bem, folder, "one", ["--workers", "1"])
        results["threads_2"] = pipeline(bem, folder, "two", ["--workers", "2"])
        results["processes_2"] = pipeline(bem, folder, "processes", ["--engine", "processes", "--workers", "2"])
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
        second = cluster.add_node(num_cpus=1)
        ray = ["--engine", "ray", "--address", cluster.address, "--workers"]
        results["ray_1"] = pipeline(bem, folder, "ray1", [*ray, "1"])
        results["ray_2"] = pipeline(bem, folder, "ray2", [*ray, "2"])
        lost = []

        def lose() -> None:
            # A graceful removal drains the node first, so that nothing is lost.
            cluster.remove_node(second, allow_graceful=False)
            lost.append(True)

        lost_after = arguments.lost_after or results["ray_2"][0] / 2
        timer = threading.Timer(lost_after, lose)
        timer.start()
        results["ray_2_one_lost"] = pipeline(bem, folder, "lost", [*ray, "2"])
        timer.cancel()
        timer.join()
        cluster.shutdown()
    heads = {head for _, head in results.values()}
    seconds = {name: round(took, 1) for name, (took, _) in results.items()}
    print(json.dumps({"seconds": seconds, "lost_after": round(lost_after, 1), "heads": sorted(heads), "node_lost": bool(lost)}))
    sys.exit(0 if len(heads) == 1 and lost else 1)


if __name__ == "__main__":
    main()
