"""Files that a table has: they are not loaded twice by mistake, and `tail` goes on where `load` ended."""

import bz2
import threading

import pytest

import indextables as it
from indextables.cli.main import cli

LINES = [f"2024-05-03 10:00:{second:02} INFO line {second}\n" for second in range(40)]


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "app.log"
    path.write_text("".join(LINES[:20]))
    return path


@pytest.fixture
def messages(tmp_path):
    return lambda: sorted(it.Table.open(tmp_path / "t").scan().read_all()["message"].to_pylist())


@pytest.mark.parametrize("name", ["app.log", "other.log"])
def test_the_same_file_is_refused_unless_it_is_said(run, tmp_path, log, messages, name):
    assert run("load", log, "--to", tmp_path / "t")[0] == 0
    same = tmp_path / name
    same.write_text(log.read_text())
    code, _, err = run("load", same, "--to", tmp_path / "t")
    assert (code, "already, all" in err, "--again" in err) == (2, True, True)
    assert len(messages()) == 20
    for rows in (40, 60):
        assert run("load", same, "--to", tmp_path / "t", "--again")[0] == 0
        assert len(messages()) == rows


def test_a_longer_file_is_refused_and_tail_loads_the_rest(run, tmp_path, log, messages):
    assert run("load", log, "--to", tmp_path / "t")[0] == 0
    with log.open("a") as out:
        out.write("".join(LINES[20:30]))
    code, _, err = run("load", log, "--to", tmp_path / "t")
    assert (code, f"indextables tail {log}" in err) == (2, True)
    for more in (LINES[30:35], LINES[35:]):
        assert run("tail", log, "--to", tmp_path / "t")[0] == 0
        with log.open("a") as out:
            out.write("".join(more))
    assert run("tail", log, "--to", tmp_path / "t")[0] == 0
    assert messages() == sorted(f"line {second}" for second in range(40))
    assert run("load", log, "--to", tmp_path / "t")[0] == 2


def test_tail_finds_a_loaded_file_that_was_rotated(run, tmp_path, log, messages):
    assert run("load", log, "--to", tmp_path / "t")[0] == 0
    with log.open("a") as out:
        out.write("".join(LINES[20:30]))
    log.rename(tmp_path / "app.log.1")
    log.write_text("".join(LINES[30:]))
    assert run("tail", log, "--to", tmp_path / "t")[0] == 0
    assert messages() == sorted(f"line {second}" for second in range(40))


def test_another_file_with_another_beginning_is_loaded(run, tmp_path, log, messages):
    assert run("load", log, "--to", tmp_path / "t")[0] == 0
    (tmp_path / "next.log").write_text("".join(LINES[20:]))
    (tmp_path / "packed.bz2").write_bytes(bz2.compress("".join(LINES[:20]).encode()))
    assert run("load", tmp_path / "next.log", "--to", tmp_path / "t")[0] == 0
    assert run("load", tmp_path / "packed.bz2", "--to", tmp_path / "t")[0] == 0
    assert run("load", tmp_path / "packed.bz2", "--to", tmp_path / "t")[0] == 2
    assert len(messages()) == 60


def test_of_two_loads_of_a_file_at_once_one_commits(tmp_path, log, messages):
    (tmp_path / "first.log").write_text("".join(LINES[20:]))
    arguments = ["load", str(log), "--to", str(tmp_path / "t")]
    cli.main(["load", str(tmp_path / "first.log"), "--to", str(tmp_path / "t")], standalone_mode=False)
    loads = [
        threading.Thread(target=cli.main, args=(arguments,), kwargs={"standalone_mode": False})
        for _ in range(2)
    ]
    for load in loads:
        load.start()
    for load in loads:
        load.join()
    assert len(messages()) == 40


@pytest.mark.parametrize("verb", ["load", "tail"])
def test_a_log_of_another_form_is_refused(run, tmp_path, log, messages, verb):
    assert run("load", log, "--to", tmp_path / "t")[0] == 0
    (tmp_path / "other.log").write_text("May  3 10:00:05 web1 sshd[7]: in\n" * 3)
    code, _, err = run(verb, tmp_path / "other.log", "--to", tmp_path / "t")
    assert (code, "ISO times" in err, "'May  3 10:00:05 web1 sshd[7]: in'" in err) == (2, True, True)
    # As it is, with a field less: the columns are those of the table.
    (tmp_path / "less.log").write_text("2024-05-03 11:00:00 nothing else\n")
    assert run(verb, tmp_path / "less.log", "--to", tmp_path / "t")[0] == 0
    assert "nothing else" in messages()
