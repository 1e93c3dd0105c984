"""What `problems.py` and `tables.py` have measured already: one line of JSON each, in a file that is named by all it depends on."""
import hashlib
import importlib.metadata
import json
import platform
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def key(bem, sources, packages, tools=()):
    """A digest of the program, of every file of these sources (folders with all that is in them), and of the versions of Python,
    of its packages and of the tools: whatever changes a result changes the digest."""
    digest = hashlib.sha256()

    def add(name, content):
        for part in (name.encode(), content):
            digest.update(len(part).to_bytes(8, "little") + part)

    add("program", Path(bem).read_bytes())
    for source in [Path(__file__).resolve(), *(Path(source).resolve() for source in sources)]:
        if not source.exists():
            raise SystemExit(f"{source}: no such file or folder")
        files = [source] if source.is_file() else sorted(path for path in source.rglob("*") if path.is_file())
        for path in files:
            # What Python keeps of its compiled sources says nothing that they do not say.
            if "__pycache__" not in path.parts:
                add(str(path.relative_to(source.parent)), path.read_bytes())
    add("python", platform.python_version().encode())
    for package in packages:
        add(package, importlib.metadata.version(package).encode())
    for tool in tools:
        add(tool, subprocess.run([tool, "--version"], capture_output=True, check=True).stdout)
    return digest.hexdigest()[:16]


class Kept:
    """The results that one key belongs to."""

    def __init__(self, name, key):
        self.file = ROOT / "target" / "battery" / f"{name}-{key}.jsonl"
        self.file.parent.mkdir(parents=True, exist_ok=True)

    def read(self):
        if not self.file.exists():
            return []
        return [json.loads(line) for line in self.file.read_text().splitlines()]

    def add(self, result):
        with open(self.file, "a") as file:
            file.write(json.dumps(result) + "\n")
