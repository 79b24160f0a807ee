"""Compile the Java sources with javac and take every warning for an error.

Sessions may compile them with Janino, which warns of nothing and accepts code that javac refuses. Not
reported are raw types, unchecked and redundant casts, since Janino has no generics, and what Spark has
deprecated, since its older versions still call it. Without a JDK nothing is checked, and a line says so.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from javac import compile_sources, installed_jars, javac

LINT = "-Xlint:all,-rawtypes,-unchecked,-cast,-deprecation,-serial,-classfile,-path"


def main() -> int:
    """The exit code of javac; 0 where there is none."""
    compiler, jars = javac(), installed_jars()
    if compiler is None or jars is None:
        missing = "javac (a JDK, such as openjdk-17-jdk-headless)" if compiler is None else "PySpark"
        sys.stdout.write(f"The Java sources were not checked: {missing} is not installed.\n")
        return 0
    from pyspark import __version__

    with tempfile.TemporaryDirectory() as scratch:
        code, printed = compile_sources(
            compiler, str(__version__), jars, Path(scratch, "classes"), [LINT, "-Werror"]
        )
    if code:
        sys.stderr.write(printed)
    else:
        sys.stdout.write(f"javac of Spark {__version__}: no warning\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
