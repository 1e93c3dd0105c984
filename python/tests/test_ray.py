"""A small pipeline on Ray beside the same one on threads; the battery `ray` does it at length, with a node that is lost."""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("ray", reason="ray is not installed: pip install ray, or cargo xtask battery ray")
PROGRAM = os.environ.get("BEM_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="BEM_PROGRAM names the program")

PLAN = ["--domains", "memory", "--stages", "2", "--unit-steps", "2000"]


def test_the_history_on_ray_is_that_of_threads(tmp_path):
    def head(name, *words):
        command = [PROGRAM, "pipeline", "run", "--json", "--key", "key", "--out", name, *PLAN, *words]
        environment = {**os.environ, "BEM_PYTHON": sys.executable}
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr[-2000:]
        return json.loads(done.stdout)["trace_head"]

    assert head("ray", "--engine", "ray", "--workers", "2") == head("threads", "--workers", "2")
