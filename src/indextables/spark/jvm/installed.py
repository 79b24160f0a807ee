"""The Java that Spark would start, looked for before Spark fails to start it in words of its own."""

# ruff: noqa: SLF001
# because PySpark keeps its gateway and a builder's options private
from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from indextables.errors import MissingPackageError
from indextables.spark.versions import installed, java_needed

_ADVICE = (
    "Install Java 17 (Debian, Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install "
    "openjdk@17) or point JAVA_HOME to one. Everything but Spark works without Java."
)


def check_java() -> None:
    """Raise an error that says what to install unless Java is there and new enough for Spark."""
    home = os.environ.get("JAVA_HOME")
    command = str(Path(home, "bin", "java")) if home else "java"
    if shutil.which(command) is None:
        where = f"JAVA_HOME is {home}, which has no bin/java" if home else "there is no java on the path"
        raise MissingPackageError(f"Spark needs Java and {where}. {_ADVICE}", java_home=home)
    answer = subprocess.run([command, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    oldest = java_needed(installed())
    if version is not None and int(version.group(1)) < oldest:
        java = shutil.which(command)
        raise MissingPackageError(
            f"Spark needs Java {oldest} or later and {java} is Java {version.group(1)}. {_ADVICE}",
            java_home=home,
        )


def will_start_java(builder: Any) -> bool:
    """Whether `getOrCreate` of a builder starts a Java process of its own.

    It does not for Spark Connect, below spark-submit, and where a context runs already.
    """
    from pyspark import SparkContext

    remote = "spark.remote" in getattr(builder, "_options", {}) or "SPARK_REMOTE" in os.environ
    return not (remote or "PYSPARK_GATEWAY_PORT" in os.environ or SparkContext._gateway is not None)
