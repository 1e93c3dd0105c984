"""What the documents show runs: the examples of the guide and of the readme files, and the notebooks."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "python" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("page", ["docs/guide/python.md", "python/README.md", "README.md"])
def test_examples_of_a_page_run_one_after_the_other(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), names)  # noqa: S102 - our own page


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(path):
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient")
    client.NotebookClient(nbformat.read(path, as_version=4), timeout=300, kernel_name="python3").execute()


def test_there_are_three_notebooks():
    assert len(NOTEBOOKS) == 3
