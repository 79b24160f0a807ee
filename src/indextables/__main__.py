"""The command line as a module: `python -m indextables`."""

from __future__ import annotations

from indextables.cli.main import program

program()
