"""The peers' table: every group can be built, and tiny rows of it go through the whole way to the page."""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parents[2] / "bench" / "peers"


@pytest.fixture(scope="module")
def run():
    """The command as a module, with the files beside it."""
    before, known = list(sys.path), set(sys.modules)
    sys.path.insert(0, str(HERE))
    try:
        import run

        yield run
    finally:
        sys.path[:] = before
        # Names such as `run` and `harness` are nobody's outside that folder.
        for name in set(sys.modules) - known:
            if str(HERE) in (getattr(sys.modules[name], "__file__", None) or ""):
                del sys.modules[name]


@pytest.fixture
def arguments(run, tmp_path, monkeypatch):
    """A table of one seed and few steps, kept where nobody looks for another one."""
    monkeypatch.setenv("CARGO_TARGET_DIR", str(tmp_path / "target"))
    return run.arguments_of(["--seeds", "1", "--seeds-bandit", "1", "--steps", "400", "--family-steps", "400", "--jobs", "1"])


def test_every_group_says_what_it_measures_without_its_peers(run, arguments):
    for name in run.GROUPS:
        group = run.group_of(name, arguments)
        assert group.title and group.about and group.columns and group.seeds == 1, name
        assert any(run.is_ours(row) for row in group.rows), name
        assert any(not run.is_ours(row) for row in group.rows), name
        places = [run.place_of(name, group, row, arguments) for row in group.rows]
        assert len(set(places)) == len(places), f"{name}: two rows would be kept in one place"
        assert all(row.settings and callable(row.measure) for row in group.rows), name


@pytest.mark.parametrize("name, who", [("bandits", "UCB1"), ("processes", "BEM"), ("processes", "Q-learning"), ("families", "BEM")])
def test_a_tiny_row_is_measured_by_a_process_of_its_own_kept_and_written(run, arguments, name, who):
    group = run.group_of(name, arguments)
    place = next(place for place, row in enumerate(group.rows) if row.who == who)
    measured = run.measure(name, place, group, arguments)
    assert measured.failure is None and len(measured.runs) == 1 and 0 < measured.megabytes, measured
    assert set(measured.runs[0]["figures"]) == {column.name for column in group.columns}
    assert measured.figures(group.columns[0].name) and 0 < measured.size()
    again = run.measure(name, place, group, arguments)
    assert again.is_kept and again.runs == measured.runs
    text = run.page([(group, [again])], ["# Peers"], "peers.svg", 0.0)
    assert f"| {group.rows[place].task} | {who} | " in text and "1 rows were kept" in text
    assert who in run.bars([(group, [again])])
    assert run.wrongs([again], 1.0, 60.0) == []


def test_a_row_whose_peer_is_not_installed_is_left_out_and_one_that_fails_fails_the_command(run, arguments):
    row = run.Row("a task", "nobody", ["no_such_package"], "", lambda seed: None)
    group = run.Group("Nothing", "", [run.Column("figure", True)], 1, [row])
    measured = run.measure("bandits", 0, group, arguments)
    assert measured.failure == "left out: no_such_package not installed" and run.wrongs([measured], 1.0, 60.0) == []
    failed = run.Measured(row, failure="failed: it raised")
    assert run.wrongs([failed], 1.0, 60.0) == ["a task, nobody: failed: it raised"]
