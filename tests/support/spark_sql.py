"""`bin/spark-sql` as a process of its own, spoken to as by somebody who types.

Rows come from its standard output, what it complains of from its standard
error. A statement is over when the number selected after it has been printed.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import pyspark

_PROMPT = re.compile(r"spark-sql(?: \([^)]*\))?> ")
_ERROR = re.compile(
    r"^(?:Error in query|\[[A-Z_]+[.\]]|org\.apache\.|java\.lang\.|.*Exception: )", re.MULTILINE
)
HOME = Path(pyspark.__path__[0])

CONFS = {
    "spark.sql.extensions": "io.indextables.Extensions",
    "spark.sql.catalog.spark_catalog": "io.indextables.Catalog",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "ERROR",
}


class RefusedError(Exception):
    """What the shell wrote to its standard error."""


class SqlShell:
    """A running spark-sql in a directory, where its metastore lies too."""

    def __init__(self, directory: Path, jar: Path, python: Path, confs: Mapping[str, str]) -> None:
        given = {
            **CONFS,
            "spark.jars": str(jar),
            "spark.sql.warehouse.dir": f"{directory}/warehouse",
            **confs,
        }
        environment = {**os.environ, "SPARK_HOME": str(HOME), "PYSPARK_PYTHON": str(python)}
        environment.pop("PYSPARK_DRIVER_PYTHON", None)
        self._errors = directory / "errors.txt"
        self._asked = 0
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [HOME / "bin" / "spark-sql", "--master", "local[2]"]
                + [part for key, value in given.items() for part in ("--conf", f"{key}={value}")],
                cwd=directory, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                text=True,
            )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(60)

    def run(self, sql: str) -> list[tuple[str, ...]]:
        """The rows of a statement as they are printed; what it complained of is an error."""
        assert self._process.stdin
        assert self._process.stdout
        self._asked += 1
        mark = f"asked {self._asked}"
        before = self._errors.stat().st_size
        self._process.stdin.write(f"{sql};\nSELECT 'asked ' || {self._asked};\n")
        self._process.stdin.flush()
        rows: list[tuple[str, ...]] = []
        echoed = False
        for line in self._process.stdout:
            shown = line.rstrip("\n")
            if echoed or _PROMPT.match(shown):
                # What was typed comes back after the prompt, in as many lines as a narrow terminal needs.
                echoed = not shown.rstrip().endswith(";")
            elif shown == mark:
                break
            else:
                rows.append(tuple(shown.split("\t")))
        else:
            raise RefusedError(f"spark-sql ended: {self._errors.read_text()[-2000:]}")
        said = self._errors.read_bytes()[before:].decode()
        if _ERROR.search(said):
            raise RefusedError(said)
        return rows
