"""What differs between the versions of Spark that IndexTables runs on."""

from __future__ import annotations

import re

Line = tuple[int, int]
"""The first two numbers of a version: what our Java classes are compiled for."""


def line_of(version: str) -> Line:
    """The line of a version: (3, 5) of "3.5.9", and of "3.5.2-amzn-1"."""
    match = re.match(r"(\d+)\.(\d+)", version)
    if match is None:
        raise ValueError(f"{version!r} is no version of Spark")
    return int(match[1]), int(match[2])
