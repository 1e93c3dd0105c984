"""Files that are there whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


def write_whole(path: Any, data: bytes) -> None:
    """Writes beside the file and puts it in its place when it is on disk: whatever breaks off leaves the old one."""
    aside = Path(f"{os.fspath(path)}.tmp")
    with aside.open("wb") as target:
        target.write(data)
        target.flush()
        os.fsync(target.fileno())
    os.replace(aside, path)
