"""Compile the Java sources with javac and take every warning for an error.

Sessions compile them with Janino, which warns of nothing and accepts code that javac refuses. Not reported
are raw types, unchecked and redundant casts, since Janino has no generics, and what Spark has deprecated,
since its older versions still call it. Without a JDK nothing is checked, and a line says so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from indextables.spark.jvm.sources import sources_for

LINT = "-Xlint:all,-rawtypes,-unchecked,-cast,-deprecation,-serial,-classfile,-path"
SHOWN = "src/indextables/spark/jvm/java/"


def main() -> int:
    """The exit code of javac; 0 where there is none."""
    home = os.environ.get("JAVA_HOME")
    javac = shutil.which("javac", path=str(Path(home, "bin")) if home else None)
    pyspark = find_spec("pyspark")
    if javac is None or pyspark is None or pyspark.origin is None:
        missing = "javac (a JDK, such as openjdk-17-jdk-headless)" if javac is None else "PySpark"
        sys.stdout.write(f"The Java sources were not checked: {missing} is not installed.\n")
        return 0
    from pyspark import __version__

    jars = Path(pyspark.origin).parent / "jars" / "*"
    with tempfile.TemporaryDirectory() as scratch:
        for name, text in sources_for(str(__version__)).items():
            Path(scratch, name).write_text(text, "utf-8")
        sources = sorted(map(str, Path(scratch).glob("*.java")))
        options = [LINT, "-Werror", "-proc:none", "-encoding", "UTF-8", "-d", str(Path(scratch, "classes"))]
        done = subprocess.run(
            [javac, *options, "-cp", str(jars), *sources], capture_output=True, text=True, check=False
        )
    if done.returncode:
        sys.stderr.write(done.stderr.replace(f"{scratch}/", SHOWN))
    else:
        sys.stdout.write(f"javac of Spark {__version__}: {len(sources)} files, no warning\n")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
