"""Size of learned circuits beside what logic synthesis makes of the same function: two-input gates after Yosys with ABC."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import bem

TASKS = {
    "parity, 8 bits": ("parity", {"n": 8}),
    "majority, 9 bits": ("majority", {"n": 9}),
    "compare, 4 bits": ("compare", {"bits": 4}),
}
SCRIPT = "read_verilog {file}; hierarchy -auto-top; proc; flatten; opt; techmap; opt; abc -g AND,OR,XOR,NAND,NOR,XNOR,ANDNOT,ORNOT; opt_clean; stat"


def yosys(verilog: str) -> int:
    """Two-input gates that Yosys with ABC makes of a circuit; inverters are not counted."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "circuit.v"
        file.write_text(verilog)
        words = subprocess.run(["yosys", "-p", SCRIPT.format(file=file)], capture_output=True, text=True, check=True).stdout
    last = words[words.rindex("Number of cells:"):]
    return sum(int(count) for kind, count in re.findall(r"\$_(\w+)_\s+(\d+)", last) if kind != "NOT")


def rows(arguments):
    table = []
    for task, (family, params) in TASKS.items():
        ours, theirs, seconds, peer = [], [], [], []
        for seed in range(1, arguments.seeds + 1):
            started = time.process_time()
            learner = bem.Learner(bem.make(family, **params), seed=seed).learn(4_000)
            seconds.append(time.process_time() - started)
            ours.append(learner.circuit.gates)
            if shutil.which("yosys"):
                began = time.perf_counter()
                theirs.append(yosys(learner.export("verilog")))
                peer.append(time.perf_counter() - began)
        table.append((task, "BEM, as learned", ours, seconds, None, "default"))
        note = "abc -g with two-input gates, inverters free" if theirs else "yosys is not installed"
        table.append((task, "Yosys with ABC, of the same circuit", theirs, peer, None, note))
    return "Size of circuits", "gates", table
