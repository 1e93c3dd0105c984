"""BEM beside what people would use instead: one command, one table.

python bench/peers/run.py [--seeds-bandit 10] [--seeds 5] [--steps 50000] [--only GROUP] [--out docs/results/peers.md]

Every peer gets the settings that its documentation recommends for the task, the same budget and the same seeds. A peer that
is not installed is left out, and the table says so. Rows in which a peer is better stay. Install the peers into the environment of
the package: pip install -r bench/peers/requirements.txt
"""

from __future__ import annotations

import argparse
import importlib.metadata
import pickle
import platform
import sys
import time
from pathlib import Path

import numpy as np

import bem

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "python" / "tests")]
import bandits  # noqa: E402
import processes  # noqa: E402
import supervised  # noqa: E402

PACKAGES = ["bem", "numpy", "gymnasium", "vowpalwabbit", "mabwiser", "river", "scikit-learn", "green_tsetlin",
            "stable_baselines3", "torch"]
GROUPS = {"bandits": bandits.rows, "supervised": supervised.rows, "processes": processes.rows}


def interval(values: list[float]) -> str:
    """The mean with a 95 % interval by the normal approximation; one value stands alone."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return f"{mean:,.4g}"
    return f"{mean:,.4g} ± {1.96 * float(np.std(values, ddof=1)) / len(values) ** 0.5:,.2g}"


def versions() -> str:
    found = []
    for name in PACKAGES:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            found.append(f"{name} not installed")
    return ", ".join(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds-bandit", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=50_000, help="steps in finite processes")
    parser.add_argument("--only", choices=sorted(GROUPS))
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    started = time.perf_counter()
    lines = [
        "# Peers side by side",
        "",
        "Written by `python bench/peers/run.py " + " ".join(sys.argv[1:]) + "`.",
        f"{platform.machine()}, Python {platform.python_version()}; {versions()}.",
        f"{arguments.seeds_bandit} seeds for bandits, {arguments.seeds} otherwise; means with 95 % intervals over seeds; CPU",
        "seconds a run; bytes of what is deployed (C header for BEM, pickle for Python, saved policy for networks).",
    ]
    for name, rows in GROUPS.items():
        if arguments.only not in (None, name):
            continue
        title, unit, table = rows(arguments)
        lines += ["", f"## {title}", "", f"| task | who | {unit} | CPU s | bytes | settings |", "|---|---|---|---|---|---|"]
        for task, who, figures, seconds, size, settings in table:
            figure = interval(figures) if figures else "left out"
            cost = f"{np.mean(seconds):.2f}" if seconds else ""
            lines.append(f"| {task} | {who} | {figure} | {cost} | {size if size else ''} | {settings} |")
            print(lines[-1], flush=True)
    lines += ["", f"The whole took {time.perf_counter() - started:.0f} s."]
    text = "\n".join(lines) + "\n"
    if arguments.out:
        arguments.out.write_text(text)
    else:
        print(text)


def size_of(thing: object) -> int:
    return len(pickle.dumps(thing))


if __name__ == "__main__":
    main()
