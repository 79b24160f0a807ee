"""Use the wheel of `make wheel` as a stranger does: install it alone, run what its pages say.

Two environments that hold nothing else, each made from nothing:

    newest   the wheel, with the newest versions of everything that pyproject.toml allows
    lowest   the source distribution, with the lowest

In each, first without Spark and then with it: every module is imported, every
verb prints its help, the README and the pages run and print what they show, and
the tour runs to its end. The wheel carries the jars for Spark, and `connect` compiles
nothing on any version of it; what is installed from source compiles it, for the oldest
Spark, on which statements on named tables run too. Needs nothing but Python, pip's index
and, for Spark, Java.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path

from sparks import PYSPARKS, ROOT, sparks

PLACE = ROOT / "build" / "test-wheel"
PAGES = ROOT / "tests" / "support" / "pages.py"
CONNECT = ROOT / "scripts" / "connect_once.py"
STATEMENTS = ROOT / "tests" / "support" / "run_statements.py"
README = ROOT / "README.md"
DIST = ROOT / "dist"
WITHOUT_SPARK = "In Python"

IMPORTS = """
import importlib, pkgutil, indextables
for module in pkgutil.walk_packages(indextables.__path__, "indextables."):
    extra = module.name.startswith(("indextables.spark", "indextables.web"))
    if extra != {extras} or module.name.endswith("__main__"):
        continue
    importlib.import_module(module.name)
"""
VERBS = "from indextables.cli.main import cli; print(*sorted(cli.commands))"
REFUSAL = """
import indextables
try:
    indextables.connect(object())
except indextables.errors.MissingPackageError as missing:
    assert 'pip install "indextables[spark]"' in str(missing), missing
else:
    raise SystemExit("connect went through without pyspark")
"""


def main() -> None:
    """Check both environments; the first command that fails ends it."""
    began = time.monotonic()
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir(parents=True)
    (wheel,) = DIST.glob("*.whl")
    (source,) = DIST.glob("*.tar.gz")
    lowest = PLACE / "lowest.txt"
    lowest.write_text("".join(f"{line}\n" for line in lowest_versions()), encoding="utf-8")
    for name, built, constraints in (("newest", wheel, ()), ("lowest", source, ("--constraint", lowest))):
        Environment(name).check(built, constraints)
    say(f"The wheel works alone ({time.monotonic() - began:.0f} s)")


def lowest_versions() -> list[str]:
    """A constraint for each requirement: the lower bound that pyproject.toml gives."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    asked = [*project["dependencies"], *(item for extra in extras for item in extra)]
    bounds = (re.match(r"([\w-]+)(?:\[\w+\])?>=([\w.]+)", item) for item in asked)
    return sorted({f"{found[1]}=={found[2]}" for found in bounds if found})


class Environment:
    """A virtual environment that holds nothing but what this package asks for."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.home = PLACE / name
        say(f"An empty environment: {name}")
        run(sys.executable, "-m", "venv", self.home)
        self.python("-m", "pip", "install", "--quiet", "--upgrade", "pip")

    def check(self, built: Path, constraints: Sequence[object]) -> None:
        """Install without and then with the extra, and use it each time."""
        self.install(constraints, built)
        say(f"{self.name}: without Spark")
        self.check_imports(extras=False)
        self.python("-c", REFUSAL)
        self.check_help()
        pages = [page for page in pages_with_examples() if not mentions_spark(page)]
        self.pages(f"{README}#{WITHOUT_SPARK}", *pages)
        self.command("demo", "--no-spark", "--rows", "20000")
        self.install(constraints, f"{built}[spark,serve]")
        say(f"{self.name}: with Spark")
        self.check_imports(extras=True)
        self.check_jar(carried=built.suffix == ".whl")
        if built.suffix == ".whl":
            self.check_connect()
        self.check_readme()
        # A page may need a package of its own, which a reader sees in its first lines.
        self.install(constraints, "deltalake>=1.0")
        self.pages(*(page for page in pages_with_examples() if mentions_spark(page)))
        if constraints:
            sys.stdout.write(self.python(STATEMENTS))

    def install(self, constraints: Sequence[object], *what: object) -> None:
        """Install something with pip; compiling what is never imported would take most of the time."""
        self.python("-m", "pip", "install", "--quiet", "--no-compile", *constraints, *what)

    def python(self, *arguments: object) -> str:
        """Run this environment's Python, which sees nothing of the working directory or of the user's own."""
        return self.run(self.home / "bin" / "python", "-I", *arguments)

    def command(self, *arguments: object) -> str:
        """Run the installed command."""
        return self.run(self.home / "bin" / "indextables", *arguments)

    def run(self, *command: object) -> str:
        """Run a command that finds nothing in the user's cache."""
        return run(*command, directory=self.home, XDG_CACHE_HOME=str(self.home / "cache"))

    def check_jar(self, *, carried: bool) -> None:
        """Ask for the jar, which a wheel carries and everybody else compiles into the cache."""
        found = self.python("-m", "indextables", "jar").split()[-1]
        assert Path(found).is_file(), found
        assert ("site-packages" in Path(found).parts) == carried, found

    def check_connect(self) -> None:
        """Connect a session of each version of Spark with an empty cache, which stays without a jar."""
        for line, version in sparks().items():
            # The version that the build's own environment has is the one that is installed here.
            place = [PYSPARKS / version] if (PYSPARKS / version).is_dir() else []
            figures = json.loads(self.python(CONNECT, *place).splitlines()[-1])
            assert figures["spark"].startswith(f"{line}."), figures
            compiled = list((self.home / "cache").rglob("*.jar"))
            assert not compiled, f"connect compiled the classes for Spark {line}: {compiled}"
            sys.stdout.write(f"  connect on Spark {figures['spark']}: {figures['cpu_s']} s of CPU\n")

    def check_imports(self, *, extras: bool) -> None:
        """Import every module, those of the Spark package or all others."""
        self.python("-c", IMPORTS.format(extras=extras))

    def check_help(self) -> None:
        """Ask the command and the module for help, and every verb."""
        assert "Usage:" in self.command("--help")
        assert "Usage:" in self.python("-m", "indextables", "--help")
        for verb in self.python("-c", VERBS).split():
            assert f"indextables {verb}" in self.command(verb, "--help"), verb

    def pages(self, *pages: object) -> None:
        """Run the examples of pages, all in one process."""
        sys.stdout.write(self.python(PAGES, *pages))

    def check_readme(self) -> None:
        """Run the programs of the README, and its commands beside the tables that the programs write."""
        directory = self.home / "readme"
        directory.mkdir()
        (directory / "app.log").write_text("2026-11-14 08:00:03 ERROR connection timeout\n", encoding="utf-8")
        self.pages("--in", directory, README)
        paths = os.pathsep.join([str(self.home / "bin"), os.environ["PATH"]])
        for line in "".join(blocks("sh", README)).splitlines():
            if line.startswith(("pip install", "indextables serve")):
                continue  # done above; runs until it is stopped
            run("sh", "-euc", line, directory=directory, PATH=paths)
            sys.stdout.write(f"  {line.partition('#')[0].rstrip()}\n")


def pages_with_examples() -> list[Path]:
    """The pages below docs/ that have Python blocks."""
    return [page for page in sorted((ROOT / "docs").rglob("*.md")) if blocks("python", page)]


def mentions_spark(page: Path) -> bool:
    """Whether the examples of a page need Spark, or a package that is not ours."""
    code = "".join(blocks("python", page))
    return "spark" in code.lower() or "deltalake" in code


def blocks(kind: str, page: Path) -> list[str]:
    """The blocks of a page that are in one language."""
    return re.findall(rf"^```{kind}[^\n]*\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def run(*command: object, directory: Path = ROOT, **environment: str) -> str:
    """Run a command and give back what it printed; one that fails ends everything, with what it said."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=directory,
        env={**clean, **environment},
        text=True,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        sys.stdout.write(done.stdout[-4000:])
        sys.stderr.write(done.stderr[-8000:])
        sys.exit(f"\nFAILED: {' '.join(map(str, command))[:300]}")
    return done.stdout


def say(text: str) -> None:
    """Print a step."""
    sys.stdout.write(f"== {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
