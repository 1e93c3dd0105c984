"""What the groups of the peers' table share: rows, figures of a run, a clock that pauses, and when somebody is good for good."""

from __future__ import annotations

import importlib
import importlib.util
import resource
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

# A policy counts as learned when it gains this part of what lies between random play and the optimum.
GOAL = 0.99


class Watch:
    """Wall and CPU seconds of learning; what only judges is left out by :meth:`paused`."""

    def __init__(self) -> None:
        self.wall, self.cpu = 0.0, 0.0
        self._resume()

    def _resume(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def stop(self) -> None:
        self.wall += time.perf_counter() - self._wall
        self.cpu += time.process_time() - self._cpu

    @contextmanager
    def paused(self) -> Iterator[None]:
        self.stop()
        try:
            yield
        finally:
            self._resume()


@dataclass(frozen=True)
class Run:
    """One seed: figures by the names of the group's columns, seconds, and the bytes of what is deployed."""

    figures: dict[str, float | None]
    wall: float
    cpu: float
    size: int | None = None


@dataclass(frozen=True)
class Row:
    """Somebody on one task. ``needs`` are modules or programs without which the row is left out."""

    task: str
    who: str
    needs: Sequence[str]
    settings: str
    measure: Callable[[int], Run]


@dataclass(frozen=True)
class Column:
    """A figure; the first column of a group is the one that is drawn and compared."""

    name: str
    less_is_better: bool


@dataclass(frozen=True)
class Group:
    """A part of the table. A group that is ``alone`` is measured while nothing else runs."""

    title: str
    about: str
    columns: Sequence[Column]
    seeds: int
    rows: Sequence[Row] = field(default_factory=list)
    alone: bool = False


def has_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        # The package around it is missing.
        return False


def missing(needs: Sequence[str]) -> list[str]:
    """Packages and programs that are not there."""
    return [name.split(".")[0] for name in needs if not has_module(name) and shutil.which(name) is None]


def load(needs: Sequence[str]) -> None:
    """Imports what a row needs, so that this is no part of its seconds."""
    for name in needs:
        if has_module(name):
            importlib.import_module(name)


def settled(checks: Sequence[tuple[int, bool]]) -> int | None:
    """The first checkpoint from which on every checkpoint is good; nothing if the last one is not.

    >>> settled([(10, True), (20, False), (30, True), (40, True)]), settled([(10, True), (20, False)])
    (30, None)
    """
    since = None
    for at, is_good in checks:
        since = (at if since is None else since) if is_good else None
    return since


def peak_megabytes() -> float:
    """The most memory that this process, or a program that it waited for, has held so far."""
    unit = 2**20 if sys.platform == "darwin" else 1024
    programs = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / unit
    status = Path("/proc/self/status")
    if not status.exists():
        return max(programs, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit)
    # The counter of getrusage survives exec, so that for this process it would tell of the one that started it.
    lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
    return max(programs, int(lines["VmHWM"].split()[0]) / 1024)
