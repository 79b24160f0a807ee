"""What the build adds to a wheel: the pages for users, and the compiled Java classes.

The classes come from the directory that INDEXTABLES_JARS names.

`make wheel` compiles them and sets it. Any other build, as `pip install .`, makes a wheel without them, and
the first session that needs them compiles them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGES = ("howto", "reference", "spec")
"""The directories of pages for users, beside docs itself."""


class JarHook(BuildHookInterface):  # type: ignore[misc]
    """Puts the pages, and jars that were compiled before, into the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Take every page that an error or the demo may name, and every jar of the directory."""
        docs = Path(self.root, "docs")
        for page in (*docs.glob("*.md"), *(file for name in PAGES for file in docs.glob(f"{name}/*.md"))):
            if version != "editable":
                build_data["force_include"][str(page)] = f"indextables/docs/{page.relative_to(docs)}"
        directory = os.environ.get("INDEXTABLES_JARS")
        if version == "editable" or directory is None:
            self.app.display_info("The wheel is built without its jars: make wheel compiles them.")
            return
        for jar in sorted(Path(directory).glob("*.jar")):
            build_data["force_include"][str(jar)] = f"indextables/spark/jvm/jars/{jar.name}"
