"""What a stranger types in the first hour, and what the program says to go on."""

import pytest

import indextables as it


@pytest.fixture
def logs(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    it.write("logs", [{"message": "java.net.SocketTimeoutException: connect timed out"}], text="message")
    return "logs"


@pytest.mark.parametrize("verb", ["load", "tail"])
def test_a_forgotten_table_is_shown_as_the_command_with_one(run, tmp_path, monkeypatch, verb):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my app.log.1").write_text("2024-05-03 10:00:00 INFO up\n")
    code, _, err = run(verb, "my app.log.1")
    assert code == 2
    assert f"for example: indextables {verb} 'my app.log.1' --to 'my app'" in err
    assert not (tmp_path / "my app").exists()


def test_what_comes_next_can_be_typed_as_it_is_shown(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.log").write_text("2024-05-03 10:00:00 INFO up\n")
    assert "Next: indextables serve 'my table'" in run("load", "a.log", "--to", "my table")[1]


def test_a_word_that_is_only_part_of_others_comes_with_a_way_to_find_it(run, logs):
    out = run("search", logs, "timeout")[1]
    assert out.strip() == "No row matches. Words are found whole; '*timeout*' also finds parts of words."
    assert "SocketTimeoutException" in run("search", logs, "*timeout*")[1]
    assert run("search", logs, "timeout AND connect")[1].strip() == "No row matches."


@pytest.mark.parametrize("verb", ["search", "count"])
def test_a_line_that_is_no_query_comes_with_the_way_to_search_for_it(run, logs, verb):
    code, _, err = run(verb, logs, "Orders - SocketTimeoutException: connect (timed out")
    assert code == 2
    assert "For any text as it is, such as a line of a log, use --text." in err
    assert "--text" not in run(verb, logs, "levle:error")[2]


def test_headings_that_are_numbers_are_pointed_out(run, tmp_path):
    (tmp_path / "a.csv").write_text("1,foo\n2,bar\n")
    code, _, err = run("load", tmp_path / "a.csv", "--to", tmp_path / "t")
    assert code == 0
    assert "was taken as headings, but 1 is a number" in err
    code, _, err = run("load", tmp_path / "a.csv", "--to", tmp_path / "u", "--columns", "n,name")
    assert (code, err) == (0, "")


def test_a_table_that_is_named_without_quotes_is_shown_with_them(run, logs):
    assert "write FROM 'logs'" in run("sql", "SELECT count(*) FROM logs")[2]
    assert "write FROM" not in run("sql", "SELECT count(*) FROM other")[2]
