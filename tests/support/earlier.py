"""The earlier release, unpacked from the commit that RELEASES.md names, to run in a process of its own."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def unpack_release(version: str, home: Path) -> Path | None:
    """The `src` of a release below `home`; None where this copy of the repository does not have its commit."""
    row = re.search(
        rf"\| {re.escape(version)} \|[^|]*\| ([0-9a-f]{{40}}) \|", (ROOT / "RELEASES.md").read_text()
    )
    assert row is not None, f"RELEASES.md does not name {version}"
    try:
        packed = subprocess.run(
            ["git", "archive", row[1], "src"], cwd=ROOT, capture_output=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    subprocess.run(["tar", "-x", "-C", str(home)], input=packed, check=True)
    return home / "src"


WHY_SKIPPED = "needs git and the commit of 0.2.0, which this copy of the repository does not have"
