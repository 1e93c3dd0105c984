"""BEM beside what people would use instead: one command, one table.

python bench/peers/run.py [--seeds-bandit 10] [--seeds 5] [--steps 50000] [--only GROUP] [--out docs/results/peers.md]

Every peer gets the settings that its documentation recommends for the task, the same budget and the same seeds. A peer that
is not installed is left out, and the table says so. Rows in which a peer is better stay. Install the peers into the environment of
the package: pip install -r bench/peers/requirements.txt
"""

from __future__ import annotations

import argparse
import html
import importlib.metadata
import platform
import sys
import time
from pathlib import Path

import numpy as np

import bem

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "python" / "tests")]
import bandits  # noqa: E402
import circuits  # noqa: E402
import memory  # noqa: E402
import processes  # noqa: E402
import supervised  # noqa: E402
import throughput  # noqa: E402

PACKAGES = ["bem", "numpy", "gymnasium", "vowpalwabbit", "mabwiser", "river", "scikit-learn", "green_tsetlin",
            "stable_baselines3", "sb3_contrib", "torch", "envpool"]
GROUPS = {"bandits": bandits.rows, "supervised": supervised.rows, "processes": processes.rows, "memory": memory.rows,
          "throughput": throughput.rows, "circuits": circuits.rows}


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
    drawn = []
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
            if figures:
                drawn.append((f"{title}: {task} ({unit})", who, float(np.mean(figures))))
        # What is there counts, whatever happens to the next group.
        keep(arguments.out, lines, drawn, started)
    if not arguments.out:
        print("\n".join(lines))


def keep(out: Path | None, lines: list[str], drawn: list, started: float) -> None:
    """Writes the table as far as it goes, and its picture beside it."""
    if out is None:
        return
    plot = out.with_suffix(".svg")
    plot.write_text(bars(drawn))
    took = f"Measured in {time.perf_counter() - started:.0f} s."
    out.write_text("\n".join([*lines, "", took, "", f"![The same as bars]({plot.name})"]) + "\n")


def bars(rows: list[tuple[str, str, float]]) -> str:
    """Every task as a group of bars, the longest as wide as the picture allows."""
    parts, top = [], 10
    for task in dict.fromkeys(task for task, _, _ in rows):
        group = [(who, value) for name, who, value in rows if name == task]
        most = max(abs(value) for _, value in group) or 1.0
        parts.append(f'<text x="10" y="{top + 14}" font-weight="bold">{html.escape(task)}</text>')
        top += 22
        for who, value in group:
            colour = "#1f6feb" if who.startswith("BEM") else "#8b949e"
            width = max(1.0, 360 * max(0.0, value) / most)
            parts.append(f'<text x="220" y="{top + 12}" text-anchor="end">{html.escape(who)}</text>')
            parts.append(f'<rect x="230" y="{top + 1}" width="{width:.1f}" height="14" fill="{colour}"/>')
            parts.append(f'<text x="{236 + width:.1f}" y="{top + 12}">{value:,.4g}</text>')
            top += 18
        top += 12
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="680" height="{top}" font-family="sans-serif" font-size="12">'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    main()
