"""A small pipeline on Ray beside the same one on threads; the battery `ray` does it at length, with a node that is lost."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("ray", reason="ray is not installed: pip install ray, or cargo xtask battery ray")
PROGRAM = os.environ.get("BEM_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="BEM_PROGRAM names the program")

PLAN = ["--domains", "memory", "--stages", "2", "--unit-steps", "2000"]


def start(tmp_path, *words):
    command = [PROGRAM, "pipeline", "run", "--json", "--key", "key", *words]
    environment = {**os.environ, "BEM_PYTHON": sys.executable}
    return subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )


def said(process):
    out, words = process.communicate(timeout=600)
    assert process.returncode == 0, words[-2000:]
    return json.loads(out)


def test_the_history_on_ray_is_that_of_threads_also_after_ctrl_c_in_the_middle(tmp_path):
    threads = said(start(tmp_path, "--out", "threads", *PLAN, "--workers", "2"))
    ray = ["--engine", "ray", "--workers", "2"]
    process = start(tmp_path, "--out", "ray", *PLAN, *ray)
    units = tmp_path / "ray" / "units"
    deadline = time.monotonic() + 300
    # One process of the engine serves all rounds.
    engines = set()
    while process.poll() is None and time.monotonic() < deadline and len(engines) < 1:
        engines |= children(process.pid)
        time.sleep(0.02)
    while process.poll() is None and time.monotonic() < deadline:
        if units.is_dir() and any(path.suffix == "" for path in units.iterdir()):
            break
        time.sleep(0.01)
    assert process.poll() is None, "it was over before it could be interrupted"
    assert children(process.pid) == engines
    process.send_signal(signal.SIGINT)
    cut = said(process)
    assert not cut["finished"]
    whole = said(start(tmp_path, "--resume", "ray", *ray))
    assert whole["finished"] and whole["trace_head"] == threads["trace_head"]
    # The interruption stands as a marker of a snapshot in the ledger that was written then; all others have the same entries.
    heads = threads["heads"]
    assert heads.keys() == whole["heads"].keys()
    assert sum(heads[name] != head for name, head in whole["heads"].items()) <= 1


def children(parent):
    """The processes that this one has started."""
    found = set()
    for thread in os.listdir(f"/proc/{parent}/task"):
        with open(f"/proc/{parent}/task/{thread}/children", encoding="ascii") as listed:
            found |= {int(child) for child in listed.read().split()}
    return found
