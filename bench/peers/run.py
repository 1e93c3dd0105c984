"""BEM beside what people would use instead: one command, one table with intervals, one picture.

python bench/peers/run.py --out docs/results/peers.md [--seeds-bandit 10] [--seeds 5] [--only GROUP ...] [--jobs 2] [--fresh]

A row that was measured is kept in target/peers, beside the build: a run that was cut off goes on where it was, and after BEM was
built anew its own rows are measured again, while those of peers stay. ``--fresh`` measures all of them.

Every peer gets the settings that its documentation recommends for the task, the same budget and the same seeds. A peer that
is not installed is left out, and the table says so. Rows in which a peer is better stay, and are listed. Every row is measured in
a process of its own, on one thread, so that its memory is its own and a peer that crashes costs one row. Install the peers into
the environment of the package: pip install -r bench/peers/requirements.txt
"""

from __future__ import annotations

import argparse
import hashlib
import html
import importlib
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "python" / "tests")]
import circuits  # noqa: E402
from harness import Column, Group, Row, Run, load, missing, peak_megabytes  # noqa: E402

ROOT = HERE.parents[1]
PACKAGES = ["bem", "numpy", "gymnasium", "vowpalwabbit", "mabwiser", "river", "scikit-learn", "green_tsetlin",
            "stable_baselines3", "sb3_contrib", "torch", "envpool"]
GROUPS = ["bandits", "supervised", "processes", "families", "throughput", "circuits"]
# Quantiles of Student's distribution for 95 %, by degrees of freedom; with more it is the normal one to two digits.
STUDENT = [12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110,
           2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042]
# Libraries that would take more than one core, so that rows measured side by side would disturb each other.
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}


@dataclass
class Measured:
    """A row with its runs, or with the reason why there are none."""

    row: Row
    runs: list[dict] = field(default_factory=list)
    megabytes: float | None = None
    failure: str | None = None
    # What the whole row took, judging included, and whether that was in a run before this one.
    seconds: float = 0.0
    is_kept: bool = False

    def figures(self, column: str) -> list[float]:
        return [run["figures"][column] for run in self.runs if run["figures"].get(column) is not None]

    def size(self) -> int | None:
        sizes = [run["size"] for run in self.runs if run["size"]]
        return round(float(np.mean(sizes))) if sizes else None


def spread(values: list[float]) -> float:
    """Half of the 95 % interval of the mean by Student's distribution; zero for one value."""
    if len(values) < 2:
        return 0.0
    quantile = STUDENT[len(values) - 2] if len(values) - 2 < len(STUDENT) else 1.96
    return quantile * float(np.std(values, ddof=1)) / len(values) ** 0.5


def number(value: float) -> str:
    return f"{value:,.0f}" if 1_000 <= abs(value) else f"{value:.3g}"


def interval(values: list[float]) -> str:
    return f"{number(float(np.mean(values)))} ± {number(spread(values))}" if 1 < len(values) else number(values[0])


def cell(measured: Measured, column: Column) -> str:
    """Mean and interval over the seeds that have the figure, and how many those are if not all."""
    values, runs = measured.figures(column.name), len(measured.runs)
    if not runs or all(column.name not in run["figures"] for run in measured.runs):
        return ""
    if not values:
        return f"none of {runs}"
    return interval(values) + (f" ({len(values)} of {runs})" if len(values) < runs else "")


def version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def versions() -> str:
    found = [f"{name} {version(name)}" for name in PACKAGES]
    if circuits.programs():
        words = subprocess.run([circuits.programs()[0], "-V"], capture_output=True, text=True).stdout.split()
        found.append(" ".join(words[:2]))
    return ", ".join(found)


def arguments_of(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds-bandit", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=51_200, help="steps in finite processes")
    parser.add_argument("--family-steps", type=int, default=20_480, help="steps in families with and without memory")
    parser.add_argument("--only", choices=GROUPS, nargs="+", default=GROUPS)
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="rows that are measured side by side")
    parser.add_argument("--row-seconds", type=int, default=1_200, help="a row that takes longer is stopped")
    parser.add_argument("--minutes", type=float, default=60.0, help="a run that measures every row and takes longer fails")
    parser.add_argument("--fresh", action="store_true", help="measure rows again that were kept")
    parser.add_argument("--out", type=Path)
    # What the processes of single rows are told; people have no use for it.
    parser.add_argument("--row", nargs=2, metavar=("GROUP", "NUMBER"), help=argparse.SUPPRESS)
    return parser.parse_args(words)


def group_of(name: str, arguments: argparse.Namespace) -> Group:
    return importlib.import_module(name).group(arguments)


def measure_here(arguments: argparse.Namespace) -> None:
    """The process of one row: all seeds, and what they took; the answer goes to the file that --out names."""
    name, place = arguments.row
    runs = []
    if name != "nothing":
        group = group_of(name, arguments)
        row = group.rows[int(place)]
        load(row.needs)
        runs = [asdict(row.measure(seed)) for seed in range(1, group.seeds + 1)]
    arguments.out.write_text(json.dumps({"runs": runs, "megabytes": peak_megabytes()}))


OPTIONS = ("seeds", "seeds_bandit", "steps", "family_steps")


def digest_of(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def learner_digest() -> str:
    """What tells one build of BEM from another: its native part and its Python sources."""
    import bem

    return digest_of([file for file in Path(bem.__file__).parent.iterdir() if file.suffix in (".py", ".so")])


def place_of(name: str, group: Group, row: Row, arguments: argparse.Namespace) -> Path:
    """Where a row is kept: under a name that says everything on which it depends."""
    # Peers play BEM's families, whose rules do not change; what is timed or made by BEM depends on its build.
    depends = "bem" in row.needs and (is_ours(row) or group.alone)
    parts = [
        name, row.task, row.who, row.settings, *(str(getattr(arguments, option)) for option in OPTIONS),
        platform.node(), platform.python_version(), *(f"{package} {version(package)}" for package in PACKAGES),
        digest_of([HERE / f"{part}.py" for part in ("harness", "deep", name)]), learner_digest() if depends else "",
    ]
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / "peers" / f"{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]}.json"


def measure(name: str, place: int, group: Group, arguments: argparse.Namespace) -> Measured:
    """The row from a run before, or measured now."""
    row = group.rows[place]
    absent = missing(row.needs)
    if absent:
        return Measured(row, failure=f"left out: {' and '.join(absent)} not installed")
    file = place_of(name, group, row, arguments)
    if file.exists() and not arguments.fresh:
        kept = json.loads(file.read_text())
        return Measured(row, kept["runs"], kept["megabytes"], seconds=kept["seconds"], is_kept=True)
    began = time.perf_counter()
    measured = measure_apart(name, place, row, arguments)
    measured.seconds = time.perf_counter() - began
    if not measured.failure:
        file.parent.mkdir(parents=True, exist_ok=True)
        aside = file.with_suffix(".tmp")
        kept = {"task": row.task, "who": row.who, "runs": measured.runs, "megabytes": measured.megabytes,
                "seconds": measured.seconds}
        aside.write_text(json.dumps(kept))
        os.replace(aside, file)
    return measured


def measure_apart(name: str, place: int, row: Row, arguments: argparse.Namespace) -> Measured:
    """The row, measured by a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "row.json"
        command = [sys.executable, str(Path(__file__).resolve()), "--row", name, str(place), "--out", str(out)]
        for option in OPTIONS:
            command += [f"--{option.replace('_', '-')}", str(getattr(arguments, option))]
        try:
            seconds, world = arguments.row_seconds, {**os.environ, **ONE_THREAD}
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=seconds, env=world)
        except subprocess.TimeoutExpired:
            return Measured(row, failure=f"stopped after {arguments.row_seconds} s")
        if done.returncode or not out.exists():
            print(f"{row.task}, {row.who}: {done.stderr[-2000:]}", file=sys.stderr)
            last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
            return Measured(row, failure=f"failed: {last[:120]}")
        answer = json.loads(out.read_text())
    return Measured(row, answer["runs"], answer["megabytes"])


def lines_of(group: Group, table: list[Measured]) -> list[str]:
    names = [column.name for column in group.columns]
    heads = ["task", "who", *names, "wall s", "CPU s", "peak MB", "bytes", "settings"]
    lines = ["", f"## {group.title}", "", f"{group.about} {group.seeds} seeds.", "",
             f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for measured in table:
        row = measured.row
        if measured.failure:
            cells = [measured.failure, *[""] * (len(names) + 3)]
        else:
            wall, cpu = ([run[clock] for run in measured.runs] for clock in ("wall", "cpu"))
            size = measured.size()
            cells = [*(cell(measured, column) for column in group.columns), interval(wall), number(float(np.mean(cpu))),
                     number(measured.megabytes or 0), f"{size:,}" if size else ""]
        lines.append("| " + " | ".join([row.task, row.who, *cells, row.settings]) + " |")
    return lines


def is_ours(row: Row) -> bool:
    return row.who.startswith("BEM")


def ahead(group: Group, table: list[Measured]) -> list[str]:
    """Peers whose mean in some column is better than that of BEM, task by task."""
    found = []
    for task in dict.fromkeys(measured.row.task for measured in table):
        ours = [measured for measured in table if measured.row.task == task and is_ours(measured.row)]
        theirs = [measured for measured in table if measured.row.task == task and not is_ours(measured.row)]
        for column in group.columns:
            own = ours[0].figures(column.name) if ours else []
            for peer in theirs:
                values = peer.figures(column.name)
                if not values:
                    continue
                is_whole = own and len(own) == len(ours[0].runs) and not len(values) < len(peer.runs)
                if is_whole:
                    sign = 1 if column.less_is_better else -1
                    is_ahead = sign * np.mean(values) < sign * np.mean(own)
                else:
                    # A figure that more of the seeds reach is better, however many samples that took.
                    runs = len(ours[0].runs) if ours else 0
                    is_ahead = 0 < runs and len(own) * len(peer.runs) < len(values) * runs
                if is_ahead:
                    mine = interval(own) if own else "none"
                    apart = abs(float(np.mean(values)) - float(np.mean(own))) if is_whole else 0.0
                    is_close = is_whole and apart <= spread(values) + spread(own)
                    words = "; the intervals overlap" if is_close else ""
                    found.append(f"- {task}: {peer.row.who}, {column.name} {interval(values)} against {mine}{words}.")
    return found


def costs(measured: Measured) -> dict[str, float | None]:
    """What a row costs besides its figures; less is better."""
    if not measured.runs:
        return {}
    wall, cpu = (float(np.mean([run[clock] for run in measured.runs])) for clock in ("wall", "cpu"))
    return {"wall seconds": wall, "CPU seconds": cpu, "peak memory": measured.megabytes, "bytes": measured.size()}


def cheaper(group: Group, table: list[Measured]) -> list[str]:
    """Peers that cost less than BEM, task by task, whether or not they come as far."""
    found = []
    for task in dict.fromkeys(measured.row.task for measured in table):
        ours = next((costs(one) for one in table if one.row.task == task and is_ours(one.row)), {})
        theirs = [one for one in table if one.row.task == task and not is_ours(one.row)]
        parts = []
        for name, own in ours.items():
            names = [peer.row.who for peer in theirs if own and (costs(peer).get(name) or own) < own]
            # Rows that are timed for as long have no seconds to compare.
            if names and not ("seconds" in name and group.title == "Environments a second"):
                parts.append(f"{name}: {', '.join(names)}")
        if parts:
            found.append(f"- {task}: {'; '.join(parts)}.")
    return found


def page(parts: list[tuple[Group, list[Measured]]], head: list[str], plot: str | None, started: float) -> str:
    lines = [*head]
    for group, table in parts:
        lines += lines_of(group, table)
    better = [line for group, table in parts for line in ahead(group, table)]
    lines += ["", "## Where a peer is ahead of BEM", "", "By the mean over seeds, or by how many seeds came to it at all.", ""]
    is_measured = any(measured.runs for _, table in parts for measured in table if is_ours(measured.row))
    lines += better or ["Nowhere." if is_measured else "BEM was not measured."]
    less = [line for group, table in parts for line in cheaper(group, table)]
    if less:
        lines += ["", "## Where a peer costs less than BEM", "", "Whether or not it comes as far.", "", *less]
    every = [measured for _, table in parts for measured in table]
    kept, took = sum(measured.is_kept for measured in every), sum(measured.seconds for measured in every)
    lines += ["", f"{len(every)} rows took {took / 60:.0f} minutes one after the other, judging included; this command took "
              f"{(time.perf_counter() - started) / 60:.0f} minutes, {kept} rows were kept from a run before."]
    if plot:
        lines += ["", f"![The first figure of every row with its interval]({plot})"]
    return "\n".join(lines) + "\n"


def build_words() -> str:
    """The commit that is measured, if there is one, and the processor."""
    done = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    commit = f"BEM at commit {done.stdout.strip()}, " if done.returncode == 0 else ""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return commit + (names[0] if names else platform.machine())


def head_of(arguments: argparse.Namespace) -> list[str]:
    names = ("seeds_bandit", "seeds", "steps", "family_steps", "jobs")
    words = [f"--{name.replace('_', '-')} {getattr(arguments, name)}" for name in names]
    if arguments.only != GROUPS:
        words.append("--only " + " ".join(arguments.only))
    nobody = Row("", "", [], "", lambda seed: Run({}, 0, 0))
    empty = measure_apart("nothing", 0, nobody, arguments).megabytes or 0
    return [
        "# Peers side by side",
        "",
        f"Written by `python bench/peers/run.py {' '.join(words)}`.",
        f"{build_words()}, {os.cpu_count()} cores (load {os.getloadavg()[0]:.1f} at the start), {arguments.jobs} rows at a time",
        "on one thread each;",
        f"Python {platform.python_version()}, {versions()}.",
        "",
        "Means over seeds with 95 % intervals by Student's distribution. Where not all seeds have a figure, the mean is that of",
        "those which have, and their number stands beside it. Wall seconds are those of learning in one run, judging left out.",
        f"Peak memory is that of a process with nothing else in it, Python included ({empty:.0f} MB with numpy alone). Bytes are",
        "those of what is deployed: a C header for BEM and Tsetlin machines, the weights of the actor for networks, a table of",
        "actions for tabular learners, the saved model for Vowpal Wabbit, a pickle for the others. Where documentation names no",
        "setting for a task, the best of a few that were tried stands; for Vowpal Wabbit they were tried on seeds of this table,",
        "which favours it.",
    ]


def main() -> None:
    arguments = arguments_of()
    if arguments.row:
        measure_here(arguments)
        return
    started = time.perf_counter()
    head = head_of(arguments)
    parts: list[tuple[Group, list[Measured]]] = []
    for name in arguments.only:
        group = group_of(name, arguments)
        with ThreadPoolExecutor(1 if group.alone else arguments.jobs) as pool:
            order = sorted(range(len(group.rows)), key=lambda place: -slowness(group.rows[place]))
            begun = {place: pool.submit(measure, name, place, group, arguments) for place in order}
            table = []
            for place in range(len(group.rows)):
                table.append(begun[place].result())
                print(lines_of(group, table)[-1], flush=True)
        parts.append((group, table))
        # What is there counts, whatever happens to the next group.
        if arguments.out:
            plot = arguments.out.with_suffix(".svg")
            plot.write_text(bars(parts))
            arguments.out.write_text(page(parts, head, plot.name, started))
    if not arguments.out:
        print(page(parts, head, None, started))
    wrong = wrongs([measured for _, table in parts for measured in table], time.perf_counter() - started, arguments.minutes)
    sys.exit("\n".join(wrong) if wrong else 0)


def slowness(row: Row) -> int:
    """A rank, the slowest highest: what may be stopped begins first, so that nobody waits for it alone at the end."""
    if "RecurrentPPO" in row.who:
        return 3
    if "DQN" in row.who:
        return 2
    return int("PPO" in row.who)


def wrongs(every: list[Measured], seconds: float, minutes: float) -> list[str]:
    """Why the command fails: rows that failed or were stopped, and a run of all rows that took longer than it may."""
    ends = ("failed", "stopped")
    wrong = [f"{one.row.task}, {one.row.who}: {one.failure}" for one in every if (one.failure or "").startswith(ends)]
    is_fresh = not any(one.is_kept for one in every)
    if is_fresh and 60 * minutes < seconds:
        wrong.append(f"a run that kept nothing took {seconds / 60:.0f} minutes, more than {minutes:.0f}")
    return wrong


def bars(parts: list[tuple[Group, list[Measured]]]) -> str:
    """Every task as a group of bars with their intervals, the longest as wide as the picture allows."""
    drawn, top = [], 10
    for group, table in parts:
        column = group.columns[0]
        for task in dict.fromkeys(measured.row.task for measured in table):
            rows = [measured for measured in table if measured.row.task == task]
            values = [measured.figures(column.name) for measured in rows]
            most = max((float(np.mean(each)) + spread(each) for each in values if each), default=1.0) or 1.0
            drawn.append(f'<text x="10" y="{top + 14}" font-weight="bold">{html.escape(f"{task}: {column.name}")}</text>')
            top += 22
            for measured, each in zip(rows, values):
                drawn += bar(measured, column, each, most, top)
                top += 18
            top += 12
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="860" height="{top}" font-family="sans-serif" font-size="12">'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *drawn, "</svg>"]) + "\n"


def bar(measured: Measured, column: Column, values: list[float], most: float, top: int) -> list[str]:
    """One row of the picture; a row without figures says why."""
    left, width = 320, 360
    drawn = [f'<text x="{left - 10}" y="{top + 12}" text-anchor="end">{html.escape(measured.row.who)}</text>']
    if not values:
        words = measured.failure or cell(measured, column)
        return [*drawn, f'<text x="{left}" y="{top + 12}" fill="#57606a">{html.escape(words[:60])}</text>']
    mean, half = float(np.mean(values)), spread(values)
    place = [left + width * min(1.0, max(0.0, value / most)) for value in (mean - half, mean, mean + half)]
    colour = "#1f6feb" if is_ours(measured.row) else "#8b949e"
    drawn.append(f'<rect x="{left}" y="{top + 1}" width="{max(1.0, place[1] - left):.1f}" height="14" fill="{colour}"/>')
    drawn.append(f'<path d="M{place[0]:.1f} {top + 8}H{place[2]:.1f}" stroke="#24292f" stroke-width="2"/>')
    drawn.append(f'<text x="{place[2] + 6:.1f}" y="{top + 12}">{html.escape(cell(measured, column))}</text>')
    return drawn


if __name__ == "__main__":
    main()
