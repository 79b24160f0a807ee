"""The commit that figures were made on."""

from __future__ import annotations

import subprocess
from pathlib import Path


def current_commit() -> str:
    """The commit of this tree, with a plus if files differ from it; empty where there is no git."""
    command = ["git", "describe", "--always", "--abbrev=7", "--dirty=+", "--exclude=*"]
    answer = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return answer.stdout.strip()
