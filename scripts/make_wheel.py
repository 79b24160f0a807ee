"""Build the source distribution and the wheel into dist/: what a release publishes.

The wheel carries our Java classes once per line of Spark, so that no driver compiles them. javac compiles
them against the jars of each PySpark that pyproject.toml names, which pip brings into build/pyspark. Whatever
is missing, a compiler, a PySpark or a jar, ends the build.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from javac import compile_sources, installed_jars, javac
from sparks import PYSPARKS, ROOT, sparks

from indextables.spark.jvm.jar import CARRIED, carried_name, fits, pack
from indextables.spark.versions import java_needed, line_of

JARS = ROOT / "build" / "jars"
DIST = ROOT / "dist"


def main() -> None:
    """Compile what is not yet compiled, build, and look whether the wheel carries everything."""
    compiler = javac()
    if compiler is None:
        sys.exit("A wheel carries compiled Java classes, and there is no javac: install a JDK of Java 17.")
    JARS.mkdir(parents=True, exist_ok=True)
    for version in sparks().values():
        compile_jar(compiler, version)
    shutil.rmtree(DIST, ignore_errors=True)
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", DIST, ROOT],
        check=True,
        env={**os.environ, "INDEXTABLES_JARS": str(JARS)},
    )
    (wheel,) = DIST.glob("*.whl")
    missing = {f"{CARRIED}/{carried_name(line)}" for line in sparks()} - set(
        zipfile.ZipFile(wheel).namelist()
    )
    if missing:
        sys.exit(f"{wheel} lacks {', '.join(sorted(missing))}")
    sys.stdout.write(f"{wheel.relative_to(ROOT)} carries the classes for Spark {', '.join(sparks())}\n")


def compile_jar(compiler: str, version: str) -> None:
    """The jar for a version of Spark, in build/jars; one that was compiled of the same sources is left."""
    target = JARS / carried_name(version)
    if target.is_file() and fits(target, version):
        return
    sys.stdout.write(f"javac: the classes for Spark {version}\n")
    sys.stdout.flush()
    with tempfile.TemporaryDirectory() as scratch:
        options = ["-nowarn", "--release", str(java_needed(line_of(version)))]
        code, printed = compile_sources(compiler, version, jars_of(version), Path(scratch), options)
        if code:
            sys.exit(f"{printed}\nThe classes do not compile for Spark {version}.")
        pack(Path(scratch), target, version)


def jars_of(version: str) -> Path:
    """The jars of a PySpark: of the one that is installed, or else of one that pip brings."""
    from pyspark import __version__

    installed = installed_jars()
    if __version__ == version and installed is not None:
        return installed
    place = PYSPARKS / version
    jars = place / "pyspark" / "jars"
    if not (place / "py4j").is_dir():
        # With the py4j that it was made with: `make test-wheel` starts it.
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--upgrade"]
        subprocess.run([*pip, "--target", place, f"pyspark=={version}"], check=True)
    if not list(jars.glob("spark-catalyst*.jar")):
        sys.exit(
            f"pyspark {version} was installed into {place} and has no jars there; remove it and try again."
        )
    return jars


if __name__ == "__main__":
    main()
