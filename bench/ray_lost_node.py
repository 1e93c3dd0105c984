"""The pipeline on two raylets of one machine, one of which is removed in the middle: its history is that of threads.

python bench/ray_lost_node.py --bem target/release/bem

Prints one JSON object: seconds and head with threads, with one worker, with two workers on two raylets, and with a raylet lost; the
efficiency of two workers, which is the time of one over twice the time of two, on Ray without starting and leaving it; and how many
units the lost node had answered before it was removed, how many others were answered afterwards, and how many were begun again.
Needs the packages bem and ray in the environment of this Python. Exits with 1 if a head differs, if the lost node had not worked
before, or if nothing was worked on afterwards.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ray.cluster_utils import Cluster

PLAN = ["--domains", "stack,memory,aggregation", "--stages", "3", "--unit-steps", "8000", "--mixed-rounds", "1"]
UNIT = re.compile(r"ray: unit \d+ of machine \d+ on node (\w+)(?:, begun again (\d+) times)?$")


@dataclass
class Watched:
    """A run of the pipeline, and what its engine has said so far, with the time of every line."""

    began: float = field(default_factory=time.perf_counter)
    seconds: float = 0.0
    head: str = ""
    ready: float | None = None
    left: float | None = None
    units: list[tuple[float, str, int]] = field(default_factory=list)

    def hear(self, line: str) -> None:
        now = time.perf_counter()
        if found := UNIT.match(line):
            self.units.append((now, found[1], int(found[2] or 0)))
        elif line == "ray: ready":
            self.ready = now
        elif line == "ray: left":
            self.left = now

    def at_work(self) -> float:
        """Seconds without starting and leaving Ray, where there is Ray."""
        return self.seconds if self.ready is None or self.left is None else self.left - self.ready


def pipeline(bem: str, folder: str, name: str, words: list[str], look: Callable[[Watched], None] | None = None) -> Watched:
    """Runs it to its end; ``look`` is called after every line that the engine says."""
    command = [bem, "pipeline", "run", "--json", "--key", f"{folder}/key", "--out", f"{folder}/{name}", *PLAN, *words]
    environment, watched, said = {**os.environ, "BEM_PYTHON": sys.executable}, Watched(), []
    with tempfile.TemporaryFile("w+") as answer:
        with subprocess.Popen(command, stdout=answer, stderr=subprocess.PIPE, text=True, env=environment) as process:
            for line in process.stderr:
                said.append(line)
                watched.hear(line.rstrip("\n"))
                if look is not None:
                    look(watched)
        watched.seconds = time.perf_counter() - watched.began
        if process.returncode:
            sys.exit(f"{name}: {''.join(said)[-2000:]}")
        answer.seek(0)
        watched.head = json.load(answer)["trace_head"]
    return watched


class Loss:
    """Removes a node when it has worked and so many seconds have passed since Ray was ready."""

    def __init__(self, cluster: Cluster, node, after: float):
        self.cluster, self.node, self.after = cluster, node, after
        self.begun, self.over = None, None
        self.thread = threading.Thread(target=self.remove)

    def look(self, watched: Watched) -> None:
        has_worked = any(node == self.node.node_id for _, node, _ in watched.units)
        if self.begun is None and has_worked and self.after <= time.perf_counter() - watched.ready:
            self.begun = time.perf_counter()
            self.thread.start()

    def remove(self) -> None:
        # A graceful removal drains the node first, so that nothing is lost.
        self.cluster.remove_node(self.node, allow_graceful=False)
        self.over = time.perf_counter()

    def figures(self, watched: Watched) -> dict[str, int]:
        """Units that the lost node answered before, units that others answered after it was gone, and how many were begun again."""
        if self.begun is None:
            return {"before": 0, "after": 0, "begun_again": 0}
        self.thread.join()
        return {
            "before": sum(when < self.begun and node == self.node.node_id for when, node, _ in watched.units),
            "after": sum(self.over < when and node != self.node.node_id for when, node, _ in watched.units),
            "begun_again": sum(0 < again for _, _, again in watched.units),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bem", default="target/release/bem")
    parser.add_argument("--lost-after", type=float,
                        help="seconds of work after which a raylet is removed, if it has worked by then, or as soon as it has; "
                        "else half of what two workers took undisturbed")
    arguments = parser.parse_args()
    bem = os.path.abspath(arguments.bem)
    runs = {}
    with tempfile.TemporaryDirectory() as folder:
        runs["threads_1"] = pipeline(bem, folder, "one", ["--workers", "1"])
        runs["threads_2"] = pipeline(bem, folder, "two", ["--workers", "2"])
        runs["processes_2"] = pipeline(bem, folder, "processes", ["--engine", "processes", "--workers", "2"])
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
        second = cluster.add_node(num_cpus=1)
        ray = ["--engine", "ray", "--address", cluster.address, "--workers"]
        runs["ray_1"] = pipeline(bem, folder, "ray1", [*ray, "1"])
        runs["ray_2"] = pipeline(bem, folder, "ray2", [*ray, "2"])
        lost_after = arguments.lost_after if arguments.lost_after is not None else runs["ray_2"].at_work() / 2
        loss = Loss(cluster, second, lost_after)
        runs["ray_2_one_lost"] = pipeline(bem, folder, "lost", [*ray, "2"], loss.look)
        lost = loss.figures(runs["ray_2_one_lost"])
        cluster.shutdown()
    heads = {run.head for run in runs.values()}
    efficiency = {
        engine: round(runs[f"{engine}_1"].at_work() / (2 * runs[f"{engine}_2"].at_work()), 3) for engine in ("threads", "ray")
    }
    print(json.dumps({
        "seconds": {name: round(run.seconds, 1) for name, run in runs.items()},
        "seconds_at_work": {name: round(run.at_work(), 1) for name, run in runs.items()},
        "efficiency_of_two": efficiency,
        "lost_after": round(lost_after, 1),
        "units_of_the_lost_run": lost,
        "heads": sorted(heads),
    }))
    sys.exit(0 if len(heads) == 1 and lost["before"] and lost["after"] else 1)


if __name__ == "__main__":
    main()
