"""Standard error is for what went wrong: a command that succeeds in its own process leaves it empty."""

import subprocess
import sys

import pytest

import indextables as it


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quiet")
    lines = "".join(f"2024-0{n}-03 10:00:00,123 ERROR disk {n} is full\n" for n in range(1, 10))
    (folder / "a.log").write_text(lines)
    ran = command(folder, "load", "a.log", "--to", "t")
    assert (ran.returncode, ran.stderr) == (0, "")
    return folder


def command(folder, *arguments):
    program = [sys.executable, "-m", "indextables", *arguments]
    return subprocess.run(program, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    "arguments",
    [
        ("sql", "SELECT level, count(*) FROM './t' GROUP BY level"),
        ("sql", "DESCRIBE INDEXTABLES STATE './t'"),
        ("search", "t", "disk", "--sort", "ts"),
        ("search", "t", "disk", "--facet", "level"),
        ("search", "t", "disk", "--histogram", "ts=30d"),
        ("count", "t", "disk"),
        ("inspect", "t"),
        ("history", "t"),
        ("files", "t"),
        ("describe", "state", "t"),
        ("check", "t"),
        ("bench", "t"),
        ("checkpoint", "t"),
        ("merge-splits", "t", "--dry-run"),
        ("tail", "a.log", "--to", "u"),
        ("completion", "bash"),
    ],
)
def test_a_command_that_succeeds_leaves_standard_error_empty(folder, arguments):
    ran = command(folder, *arguments)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_limit_holds_for_a_histogram_and_says_what_it_left_out(folder):
    ran = command(folder, "search", "t", "disk", "--histogram", "ts=30d", "-n", "3", "--csv")
    assert len(ran.stdout.splitlines()) == 1 + 3
    assert "6 more" in ran.stderr


def test_an_empty_directory_is_called_empty(tmp_path):
    with pytest.raises(it.errors.NotATableError, match="The directory is empty"):
        it.Table.open(tmp_path)
    with pytest.raises(it.errors.NotATableError, match="There is nothing there"):
        it.Table.open(tmp_path / "none")
