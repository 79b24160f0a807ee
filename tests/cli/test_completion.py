"""Completion in a shell, and errors for programs."""

import json
import os
import subprocess
import sys

import pytest

PROGRAM = [sys.executable, "-m", "indextables"]


def run(*words, **more):
    return subprocess.run(
        [*PROGRAM, *map(str, words)], capture_output=True, text=True, env={**os.environ, **more}
    )


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_the_shell_is_printed(shell):
    done = run("completion", shell)
    assert done.returncode == 0, done.stderr
    assert "_INDEXTABLES_COMPLETE" in done.stdout
    assert "indextables" in done.stdout


@pytest.mark.parametrize(
    ("typed", "at", "expected"),
    [
        ("indextables merge-s", "1", "plain,merge-splits"),
        ("indextables search t q --hi", "4", "plain,--highlight"),
        ("indextables inspect da", "2", "dir,da"),
        ("indextables completion z", "2", "plain,zsh"),
    ],
)
def test_verbs_flags_and_tables_complete(typed, at, expected):
    """What the script of bash asks the program."""
    words = {"_INDEXTABLES_COMPLETE": "bash_complete", "COMP_WORDS": typed, "COMP_CWORD": at}
    code = "import sys; sys.argv = ['indextables']; from indextables.cli.main import program; program()"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **words}
    )
    assert expected in done.stdout.splitlines(), done


@pytest.mark.parametrize(
    ("words", "kind", "code"),
    [
        (("inspect", "nowhere", "--json"), "NotATableError", 1),
        (("search", "nowhere", "x", "--json", "--limit", "none"), "UsageError", 2),
        (("sql", "MERGE SPLITS", "--json"), "CommandError", 2),
        (("inspect", "--json"), "UsageError", 2),
    ],
)
def test_with_json_an_error_is_an_object_on_standard_error(words, kind, code):
    done = run(*words)
    assert done.returncode == code
    assert not done.stdout
    said = json.loads(done.stderr)["error"]
    assert said["type"] == kind
    assert said["message"]
