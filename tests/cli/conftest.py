"""The command line as the shell runs it."""

import io
import sys

import pytest

from indextables.cli.main import main


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the program as the shell would; gives its exit code, output and errors."""
    monkeypatch.setenv("COLUMNS", "80")

    def call(*arguments, stdin=""):
        monkeypatch.setattr(sys, "argv", ["indextables", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code or 0
        out, err = capsys.readouterr()
        return code, out, err

    return call
