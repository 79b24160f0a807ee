"""`bin/spark-sql` with plain settings, on Hive with Derby: the statements, a Python that comes and goes, a restart."""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path

import psutil
import pyspark
import pytest

import indextables as it
from indextables.spark.jvm import jar
from support.core_statements import CORE
from support.recovery import REPAIRED, ROWS_LEFT, damaged_table, moves, repair, verify
from support.spark_sql import RefusedError, SqlShell
from support.statement_places import Place, wrong

pytestmark = pytest.mark.long


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """The name of a Python that is not there yet."""
    return tmp_path / "python"


def becomes(python: Path, line: str) -> None:
    """Let the Python be a script that notes its process and then is something else."""
    python.write_text(f'#!/bin/sh\necho $$ > "{python}.pid"\n{line}\n')
    python.chmod(0o755)


def open_to_others(process: psutil.Process) -> list[str]:
    """The addresses a process listens on that are not this machine's own."""
    listening = [found.laddr.ip for found in process.net_connections("inet") if found.status == "LISTEN"]
    assert listening, "the two listen to each other"
    return [address for address in listening if not re.fullmatch(r"(::ffff:)?127\.0\.0\.1|::1", address)]


def recovered(shell: SqlShell, table: Path) -> None:
    """The manual recovery, typed into a running shell."""
    damaged_table(table)
    with pytest.raises(RefusedError, match="FILE_NOT_EXIST|does not exist"):
        shell.run(f"SELECT max(id) FROM indextables.`{table}`")
    (row,) = shell.run(repair(table))
    assert row[2:] == REPAIRED
    for source, target in moves(table):
        source.rename(target)
    assert shell.run(verify(table)) == [(ROWS_LEFT,)]


def test_spark_sql_runs_every_verb_and_comes_back_to_its_tables(tmp_path, python):
    packed = jar.ready_jar()
    place = Place("", tmp_path / "warehouse")
    with SqlShell(tmp_path, packed, python, {}) as shell:
        with pytest.raises(RefusedError, match=r"python cannot be started: .*Set spark.pyspark.python"):
            shell.run("CREATE TABLE t (id INT) USING indextables")
        becomes(python, f'exec "{sys.executable}" -I -S "$@"')
        with pytest.raises(
            RefusedError, match=r'pip install "indextables\[spark\]".*No module named'
        ) as told:
            shell.run("CREATE TABLE t (id INT) USING indextables")
        assert "ended before it was ready" in str(told.value)
        becomes(python, f'exec "{sys.executable}" "$@"')
        found = wrong(shell.run, place, CORE, pyspark.__version__, text=True)
        assert not found, "\n".join(found)
        recovered(shell, tmp_path / "damaged")
        helper = int(Path(f"{python}.pid").read_text())
        os.kill(helper, signal.SIGKILL)
        shell.run("INSERT INTO t VALUES (10, 'k', NULL, NULL, NULL)")
        again = psutil.Process(int(Path(f"{python}.pid").read_text()))
        assert again.pid != helper, "a Python that died is started again"
        assert open_to_others(again) == open_to_others(again.parent()) == []
    version = it.Table.open(place.paths["t"]).version
    with SqlShell(tmp_path, packed, python, {}) as shell:
        assert shell.run("SELECT id FROM t ORDER BY id") == [("1",), ("2",), ("9",), ("10",), ("500",)]
        assert shell.run("SELECT count(*) FROM t VERSION AS OF 1") == [("2",)]
        shell.run("DELETE FROM t WHERE id = 10")
        assert it.Table.open(place.paths["t"]).version == version + 1
        shell.run("DROP TABLE t")
        assert not place.paths["t"].exists()
