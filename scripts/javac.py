"""The Java sources, compiled with javac against the jars of one PySpark."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from indextables.spark.jvm.sources import sources_for

SHOWN = "src/indextables/spark/jvm/java/"


def javac() -> str | None:
    """The compiler of JAVA_HOME or of the path; None where there is only a Java to run programs."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("javac", path=str(Path(home, "bin")) if home else None)


def installed_jars() -> Path | None:
    """The jars of the PySpark that this Python has; None if it has none."""
    spec = find_spec("pyspark")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent / "jars"


def compile_sources(
    compiler: str, spark_version: str, jars: Path, classes: Path, options: Sequence[str]
) -> tuple[int, str]:
    """Compile for one Spark; returns javac's exit code and what it printed, with our paths."""
    with tempfile.TemporaryDirectory() as scratch:
        for name, text in sources_for(spark_version).items():
            Path(scratch, name).write_text(text, "utf-8")
        written = sorted(map(str, Path(scratch).glob("*.java")))
        places = ["-cp", f"{jars}/*", "-d", str(classes)]
        done = subprocess.run(
            [compiler, *options, "-proc:none", "-encoding", "UTF-8", *places, *written],
            capture_output=True,
            text=True,
            check=False,
        )
    return done.returncode, done.stderr.replace(f"{scratch}/", SHOWN)
