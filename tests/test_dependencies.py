"""What pyproject.toml asks for is what the code imports: no less, so that the wheel works alone, and no more."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "indextables"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
# Asked for though never imported: PySpark's mapInArrow imports pandas.
FOR_PYSPARK = {"pandas"}
# Imported though not asked for: each PySpark brings its own.
WITH_PYSPARK = {"py4j"}
# Imported only when a user asks for a result in their form, or by Spark's functions, whose extra brings it.
ON_REQUEST = {"pandas", "polars"}
# Import names that differ from the name of their distribution.
DISTRIBUTIONS = {"botocore": "boto3", "_pytest": "pytest"}
OWN = {"indextables", "tests", "benchmarks", "conftest"} | {path.name for path in (ROOT / "tests").iterdir()}


def imports_of(path: Path) -> set[str]:
    """The distributions a file imports, those inside functions and by `import_module("...")` included."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
        elif isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func):
            found |= {a.value for a in node.args if isinstance(a, ast.Constant)}
    names = {name.partition(".")[0] for name in found}
    return {DISTRIBUTIONS.get(name, name) for name in names - OWN - sys.stdlib_module_names - {""}}


def asked_for(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=! ]", item)[0] for item in requirements} - {"indextables"}


CORE = asked_for(PROJECT["project"]["dependencies"])
SPARK = asked_for(PROJECT["project"]["optional-dependencies"]["spark"])
SERVE = asked_for(PROJECT["project"]["optional-dependencies"]["serve"])
DEVELOPMENT = asked_for(
    [item for group in PROJECT["dependency-groups"].values() for item in group if isinstance(item, str)]
)


def imported(below: str, *, outside: tuple[str, ...] = ()) -> set[str]:
    paths = [path for path in (ROOT / below).rglob("*.py") if not {*outside} & {*path.parts}]
    return set().union(*map(imports_of, paths))


def test_the_dependencies_are_what_the_code_outside_spark_and_the_page_imports():
    assert imported("src/indextables", outside=("spark", "web")) - ON_REQUEST == CORE


def test_the_serve_extra_is_what_the_page_imports_besides():
    assert imported("src/indextables/web") - CORE == SERVE


def test_the_spark_extra_is_what_the_spark_package_imports_besides():
    found = imported("src/indextables/spark") | imported("src/pyspark_indextables")
    assert found - CORE - WITH_PYSPARK == SPARK - FOR_PYSPARK
    assert SPARK >= FOR_PYSPARK


def test_tests_and_benchmarks_import_only_what_the_project_or_its_development_groups_ask_for():
    for directory in ("tests", "benchmarks"):
        assert imported(directory) <= CORE | SPARK | WITH_PYSPARK | SERVE | DEVELOPMENT


def test_every_requirement_has_a_lower_bound():
    extras = PROJECT["project"]["optional-dependencies"].values()
    for requirement in [*PROJECT["project"]["dependencies"], *(item for extra in extras for item in extra)]:
        assert ">=" in requirement or requirement.startswith("indextables["), requirement


REACHES_FOR_SPARK = {
    "connect": "it.connect(object())",
    "configure": "it.configure(object())",
    "Table.create": "it.Table.create('t', pa.schema([('a', pa.int64())]), spark=object())",
    "Table.open": "it.Table.open('t', spark=object())",
    "sql": "it.sql(\"DESCRIBE INDEXTABLES HISTORY 't'\", spark=object())",
    "repair_log": "it.repair_log('a', 'b', spark=object())",
    "delta.files": "it.delta.files('t', spark=object())",
    "delta.replay": "it.delta.replay(object(), 't')",
    "delta.apply_skipping": "it.delta.apply_skipping(object(), pa.schema([]), 'a = 1')",
    "delta.read": "it.delta.read(object(), 't')",
}


HIDES = """
from importlib.machinery import PathFinder
find = PathFinder.find_spec
PathFinder.find_spec = lambda name, *rest: None if name == {missing!r} else find(name, *rest)
"""


@pytest.mark.parametrize("missing", ["pyspark", "pandas"])
def test_what_needs_spark_names_the_extra_that_brings_it(missing, tmp_path):
    calls = "\n".join(
        f"try:\n    {call}\n    print('{name}: went through')\n"
        f"except it.errors.MissingPackageError as error:\n    print('{name}:', error)"
        for name, call in REACHES_FOR_SPARK.items()
    )
    script = f"{HIDES.format(missing=missing)}\nimport indextables as it, pyarrow as pa\n{calls}"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    said = (
        f"IndexTables needs {missing} to work with Spark, not installed in this Python; "
        'install with: pip install "indextables[spark]"'
    )
    assert run.stdout.splitlines() == [f"{name}: {said}" for name in REACHES_FOR_SPARK]
