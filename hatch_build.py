"""What the build adds to a wheel: the compiled Java classes, where INDEXTABLES_JARS names their directory.

`make wheel` compiles them and sets it. Any other build, as `pip install .`, makes a wheel without them, and
the first session that needs them compiles them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class JarHook(BuildHookInterface):  # type: ignore[misc]
    """Puts jars that were compiled before into the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Take every jar of the directory."""
        directory = os.environ.get("INDEXTABLES_JARS")
        if version == "editable" or directory is None:
            self.app.display_info("The wheel is built without its jars: make wheel compiles them.")
            return
        for jar in sorted(Path(directory).glob("*.jar")):
            build_data["force_include"][str(jar)] = f"indextables/spark/jvm/jars/{jar.name}"
