"""What the build adds to a wheel: the compiled Java classes, where the build has PySpark and Java.

`python -m build --no-isolation` in the development environment does. Elsewhere the
wheel is built without them, and the first session that needs them compiles them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

CARRIED = "indextables/spark/jvm/indextables-spark.jar"


class JarHook(BuildHookInterface):  # type: ignore[misc]
    """Compiles the classes with the Janino of the PySpark that is installed, as `indextables jar` does."""

    scratch: str | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Put the jar into the wheel; a compilation that fails ends the build."""
        java = os.environ.get("JAVA_HOME") or shutil.which("java")
        if version == "editable" or not java or find_spec("pyspark") is None:
            self.app.display_info("The wheel is built without its jar, which needs PySpark and Java.")
            return
        self.scratch = tempfile.mkdtemp()
        jar = str(Path(self.scratch, "indextables-spark.jar"))
        environment = {**os.environ, "PYTHONPATH": str(Path(self.root, "src"))}
        subprocess.run(
            [sys.executable, "-m", "indextables", "jar", "--into", jar],
            check=True,
            env=environment,
            stdout=sys.stderr,
        )
        build_data["force_include"][jar] = CARRIED

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Leave nothing behind."""
        if self.scratch is not None:
            shutil.rmtree(self.scratch)
