"""Our Java sources, for one version of Spark.

They are written for the newest Spark and compile with every version since 3.5, after three steps:

- A line that ends with `// since 4.1` is there from Spark 4.1 on, one that ends with `// until 4.1` only
  before it. A mark on a line of its own holds for all lines up to `// end`.
- Scala 2.12, in Spark 3.5, takes `scala.collection.Seq` where 2.13 takes `scala.collection.immutable.Seq`.
- What is in `org.apache.spark.sql.classic` since Spark 4.0 was in `org.apache.spark.sql` before.

A mark that is spelled otherwise, or has no end, is an error.
"""

from __future__ import annotations

import hashlib
import re
from importlib.resources import files

from indextables.spark.versions import Line, line_of

_MARK = re.compile(r"(?P<code>.*?)\s*// (?P<kind>since|until) (?P<version>\d+\.\d+)$")
_END = "// end"
_NEAR_MARK = re.compile(r"//\s*(?:since|until|end)\b")
_BEFORE_4_0 = {
    "scala.collection.immutable.Seq": "scala.collection.Seq",
    "scala.collection.immutable.IndexedSeq": "scala.collection.IndexedSeq",
    "org.apache.spark.sql.classic.": "org.apache.spark.sql.",
}


def sources() -> dict[str, str]:
    """The sources with their marks, by the name of their file."""
    here = files("indextables.spark.jvm").joinpath("java")
    return {item.name: item.read_text("utf-8") for item in here.iterdir() if item.name.endswith(".java")}


def sources_for(spark_version: str) -> dict[str, str]:
    """The sources that compile with this version of Spark."""
    line = line_of(spark_version)
    return {name: resolved(text, line, name) for name, text in sources().items()}


def resolved(text: str, line: Line, name: str = "the source") -> str:
    """One source without marks; lines of other versions become empty, so that numbers of lines stay."""
    lines = []
    in_block = False
    applies = True
    for number, source_line in enumerate(text.splitlines(), 1):
        code = source_line
        mark = _MARK.fullmatch(source_line)
        if source_line.strip() == _END and in_block:
            in_block, applies, code = False, True, ""
        elif mark is None and _NEAR_MARK.search(source_line):
            raise ValueError(f"{name}, line {number}: {source_line.strip()!r} is no mark of a version")
        elif mark is not None and in_block:
            raise ValueError(f"{name}, line {number}: a mark inside of another; close that with {_END}")
        elif mark is not None:
            holds = (line >= line_of(mark["version"])) == (mark["kind"] == "since")
            code = mark["code"] if holds else ""
            if not mark["code"].strip():
                in_block, applies = True, holds
        lines.append(code if applies else "")
    if in_block:
        raise ValueError(f"{name}: a mark of a version has no {_END}")
    whole = "\n".join(lines) + "\n"
    if line < (4, 0):
        for newer, older in _BEFORE_4_0.items():
            whole = whole.replace(newer, older)
    return whole


def digest() -> str:
    """A short digest of the sources."""
    sha = hashlib.sha256()
    for name, text in sorted(sources().items()):
        sha.update(f"{name}\0{text}\0".encode())
    return sha.hexdigest()[:16]
