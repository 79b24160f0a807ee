"""Run the tests of Spark from the wheel, on a line of Spark: `test_spark.py 3.5 core|whole [--keep]`.

The environment, build/spark-3.5, holds the wheel with its extras, the PySpark that pyproject.toml names for
the line, and what the tests import. Nothing may be compiled: the wheel carries the classes. With `--keep` the
figures are written to tests/spark_versions.json, from which docs/deploy.md has its table. Further arguments
are pytest's.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree as ET

from sparks import ROOT, sparks

RECORD = ROOT / "tests" / "spark_versions.json"


SUITES = {"core": ["-m", "core", "tests/spark"], "whole": ["-m", "spark and not long", "tests"]}


def main() -> int:
    """The exit code of pytest, or 1 where something was compiled or a test of the core was skipped."""
    line, suite, *arguments = sys.argv[1:]
    if line not in sparks():
        sys.exit(f"SPARK={line} is no line of Spark that pyproject.toml names: {', '.join(sparks())}")
    keeping = "--keep" in arguments
    place = ROOT / "build" / f"spark-{line}"
    python = environment(place, sparks()[line])
    results, cache = place / "results.xml", place / "cache"
    began = time.monotonic()
    code = subprocess.run(
        [
            *(python, "-m", "pytest", "-p", "no:cacheprovider", f"--junit-xml={results}", *SUITES[suite]),
            *(argument for argument in arguments if argument != "--keep"),
        ],
        cwd=ROOT,
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
        check=False,
    ).returncode
    outcome = outcomes(results)
    compiled = list(cache.rglob("*.jar"))
    sys.stdout.write(f"Spark {sparks()[line]}: {json.dumps(outcome, indent=1)}\n")
    if compiled:
        sys.exit(f"the wheel has no classes for Spark {line}: {compiled[0]} was compiled")
    if suite == "core" and outcome["skipped"]:
        sys.exit("a test of the core was skipped, and every version has to pass all of them")
    if keeping:
        keep(sparks()[line], suite, {**outcome, "seconds": round(time.monotonic() - began)})
    return code


def environment(place: Path, version: str) -> Path:
    """The Python of an environment that has the newest wheel of dist/."""
    (wheel,) = (ROOT / "dist").glob("*.whl")
    python = place / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--no-compile"]
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        subprocess.run([*pip, "--upgrade", "pip>=25.1"], check=True)
    subprocess.run(
        [*pip, f"{wheel}[connect,serve]", f"pyspark=={version}", "--group", "test"], check=True, cwd=ROOT
    )
    # A wheel of the same version is installed anew only if pip is told to.
    subprocess.run([*pip, "--force-reinstall", "--no-deps", wheel], check=True)
    return python


def outcomes(results: Path) -> dict[str, object]:
    """How many tests passed and failed, and how many were skipped by what reason."""
    suite = next(ET.parse(results).getroot().iter("testsuite"))  # noqa: S314  (pytest wrote it)
    reasons: dict[str, int] = {}
    for skipped in suite.iter("skipped"):
        reason = re.sub(r"\s+", " ", skipped.get("message") or "")
        reasons[reason] = reasons.get(reason, 0) + 1
    counts = {name: int(suite.get(name) or 0) for name in ("tests", "failures", "errors", "skipped")}
    failed = counts["failures"] + counts["errors"]
    return {"passed": counts["tests"] - failed - counts["skipped"], "failed": failed, "skipped": reasons}


def keep(version: str, suite: str, outcome: dict[str, object]) -> None:
    """Write the outcome of a run beside those of the other versions and of the other suite."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    record[f"{version} {suite}"] = {"commit": commit, **outcome}
    RECORD.write_text(json.dumps(dict(sorted(record.items())), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
