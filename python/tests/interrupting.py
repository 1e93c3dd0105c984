"""Ctrl-C while a call works, and what it took to come back."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

# What is promised of the thread that waits, whatever else the machine does; and what a busy machine may make of it.
PROCESSOR_SECONDS = 0.1
WALL_SECONDS = 1.0


class Waited(NamedTuple):
    """Seconds from Ctrl-C until the caller had its thread back: by the wall, and those in which the thread ran itself."""

    wall: float
    processor: float

    def is_prompt(self) -> bool:
        return self.processor < PROCESSOR_SECONDS and self.wall < WALL_SECONDS


def interrupted(call: Callable[[], Any], after: float, again: bool = True) -> Waited:
    """Calls, again and again if it may, until the Ctrl-C that is pressed after so many seconds ends it."""
    clock = time.pthread_getcpuclockid(threading.get_ident())
    asked: list[tuple[float, float]] = []

    def ask() -> None:
        asked.append((time.perf_counter(), time.clock_gettime(clock)))
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(after, ask)
    timer.start()
    try:
        call()
        while again:
            call()
    except KeyboardInterrupt:
        now = time.perf_counter(), time.clock_gettime(clock)
        timer.join()
        return Waited(now[0] - asked[0][0], now[1] - asked[0][1])
    finally:
        timer.cancel()
    raise AssertionError(f"it came to its end within {after} s")
