"""What a program waits for before it begins: the packages that each way in loads, all of them and no others."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest

import indextables as it

# What Python itself, a compiler of extensions, or the installation of this project brings along.
NOISE = (
    "_cython",
    "_distutils_hack",
    "_sysconfig",
    "cython_runtime",
    "sitecustomize",
    "usercustomize",
    "_editable",
    "__",
)
ARROW = {"numpy", "pyarrow"}
LOG = {"isal", "msgspec"}
TERMINAL = {"click", "rich"}
# What pyarrow looks for to give a timestamp its zone.
ZONES = {"dateutil", "six", "pytz"}


def loaded_after(*statements: str, arguments: tuple[str, ...] = ()) -> set[str]:
    """The packages outside the standard library that a Python process has loaded at its end."""
    script = "\n".join(
        [
            "import atexit, sys",
            "names = lambda: {name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)",
            "atexit.register(lambda: print('LOADED', *names()))",
            *statements,
        ]
    )
    ran = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    *_, last = ran.stdout.splitlines()
    word, *names = last.split()
    assert word == "LOADED"
    return {name for name in names if not name.startswith(NOISE)} - {"typing_extensions"}


def test_describing_a_small_table_loads_no_functions_of_arrow(table):
    """They take longer to load than the rest of what `indextables inspect` does."""
    asked = (
        f"print('pyarrow.compute' in sys.modules) if it.Table.open({table!r}).describe().num_rows == 4 else 1"
    )
    script = f"import sys; import indextables as it; {asked}"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ran.stdout == "False\n", ran.stderr


def after_command(*arguments: str) -> set[str]:
    return loaded_after("from indextables.cli.main import program", "program()", arguments=arguments)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A small table with an index, written over several versions."""
    path = str(tmp_path_factory.mktemp("startup") / "events")
    schema = pa.schema([("id", pa.int64()), ("day", pa.string()), ("message", pa.string())])
    made = it.Table.create(path, schema, ["day"], options={"indexing.typemap.message": "text"})
    for day in ("mon", "tue"):
        rows = {"id": [1, 2], "day": [day] * 2, "message": ["all quiet", "an error, then a timeout"]}
        made.append(pa.table(rows, schema))
    return path


def test_importing_the_package_loads_nothing_else():
    assert loaded_after("import indextables") == {"indextables"}


def test_naming_the_table_class_loads_nothing_else():
    assert loaded_after("import indextables as it", "it.Table") == {"indextables"}


def test_naming_the_class_of_delta_tables_loads_nothing_else():
    assert loaded_after("import indextables as it", "it.DeltaTable") == {"indextables"}


def test_counting_a_delta_table_loads_no_engine(tmp_path):
    from deltalake import write_deltalake

    write_deltalake(str(tmp_path / "d"), pa.table({"id": [1, 2]}))
    asked = f"assert it.DeltaTable.open({str(tmp_path / 'd')!r}).count() == 2"
    engines = {"pyspark", "duckdb", "sqlglot", "lark", "obstore"}
    assert not engines & loaded_after("import indextables as it", asked)


def test_opening_and_counting_a_table_loads_what_reads_its_log_and_no_arrow(table):
    asked = f"assert it.Table.open({table!r}).count() == 4"
    assert loaded_after("import indextables as it", asked) == {"indextables"} | LOG


@pytest.mark.parametrize(
    "arguments", [("--help",), ("--version",), ("inspect", "--help"), ("demo", "--help")]
)
def test_help_loads_only_what_prints_it(arguments):
    assert after_command(*arguments) <= {"indextables", "msgspec"} | TERMINAL


@pytest.mark.parametrize("verb", ["inspect", "history", "files"])
def test_a_verb_that_looks_at_the_log_loads_no_engine(verb, table):
    assert after_command(verb, table) <= {"indextables"} | TERMINAL | LOG | ARROW | ZONES


def test_a_search_loads_what_searches_and_no_pandas(table):
    assert not {"pandas", "pyspark", "obstore", "sqlglot", "lark"} & after_command("search", table, "error")


@pytest.mark.parametrize(
    "module",
    ["indextables.log.transaction_log", "indextables.delta", "indextables.ops.write.rows", "indextables.ops.read.scan",
     "indextables.ops.rewrite.merge", "indextables.sql.runner", "indextables.report"],
)  # fmt: skip
def test_no_module_loads_pandas_by_being_imported(module):
    assert "pandas" not in loaded_after(f"import {module}")
