"""What a program waits for before it begins: the packages that each way in loads, all of them and no others."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal

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
FUNCTIONS = {"pyarrow.compute"}
LOG = {"isal", "msgspec"}
TERMINAL = {"click", "rich"}
WORDS = {"tantivy"}
# What pyarrow looks for to give a timestamp its zone.
ZONES = {"dateutil", "six", "pytz"}


def loaded_after(*statements: str, arguments: tuple[str, ...] = ()) -> set[str]:
    """The packages outside the standard library that a Python process has loaded at its end.

    The functions of Arrow count as a package: they take longer to load than a short verb takes otherwise.
    """
    script = "\n".join(
        [
            "import atexit, sys",
            "own = lambda name: name if name == 'pyarrow.compute' else name.partition('.')[0]",
            "names = lambda: {own(name) for name in sys.modules} - set(sys.stdlib_module_names)",
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


def after_command(*arguments: str) -> set[str]:
    return loaded_after("from indextables.cli.main import program", "program()", arguments=arguments)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A small table with an index, written over several versions."""
    path = str(tmp_path_factory.mktemp("startup") / "events")
    schema = pa.schema(
        [("id", pa.int64()), ("day", pa.string()), ("message", pa.string()), ("at", pa.timestamp("us", "UTC")),
         ("price", pa.float64()), ("cost", pa.decimal128(10, 2))]
    )  # fmt: skip
    made = it.Table.create(path, schema, ["day"], options={"indexing.typemap.message": "text"})
    for day in ("mon", "tue"):
        rows = {
            "id": [1, 2], "day": [day] * 2, "message": ["all quiet", "an error, then a timeout"],
            "at": [datetime(2024, 1, 1, tzinfo=UTC)] * 2, "price": [0.5, 1.0], "cost": [Decimal("1.00"), None],
        }  # fmt: skip
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


@pytest.mark.parametrize("question", ["files()", "files('id > 1 AND day = 2')"])
def test_finding_the_files_of_a_delta_table_does_not_load_pandas(question, tmp_path):
    """pyarrow looks for pandas to make an array of Python values, which takes longer than most questions."""
    from deltalake import write_deltalake

    pytest.importorskip("pandas")
    rows = pa.table({"id": [1, 2], "day": pa.array([1, 2], pa.int32())})
    write_deltalake(str(tmp_path / "d"), rows, partition_by=["day"])
    asked = f"it.DeltaTable.open({str(tmp_path / 'd')!r}).{question}"
    assert "pandas" not in loaded_after("import indextables as it", asked)


def test_opening_and_counting_a_table_loads_what_reads_its_log_and_no_arrow(table):
    asked = f"assert it.Table.open({table!r}).count() == 4"
    assert loaded_after("import indextables as it", asked) == {"indextables"} | LOG


@pytest.mark.parametrize(
    "arguments", [("--help",), ("--version",), ("inspect", "--help"), ("demo", "--help")]
)
def test_help_loads_only_what_prints_it(arguments):
    assert after_command(*arguments) <= {"indextables", "msgspec"} | TERMINAL


def test_describing_a_small_table_loads_no_engine_and_no_functions_of_arrow(table):
    assert after_command("inspect", table) <= {"indextables"} | TERMINAL | LOG | ARROW | ZONES


@pytest.mark.parametrize("verb", ["history", "files"])
def test_a_verb_that_looks_at_the_log_loads_no_engine(verb, table):
    assert after_command(verb, table) <= {"indextables"} | TERMINAL | LOG | ARROW | ZONES | FUNCTIONS


def test_counting_the_rows_of_a_word_loads_what_reads_the_index_and_no_functions_of_arrow(table):
    asked = f"assert it.Table.open({table!r}).count(query='error') == 2"
    assert loaded_after("import indextables as it", asked) == {"indextables"} | LOG | ARROW | WORDS


@pytest.mark.parametrize(
    "where",
    ["id = 2", "id < 5 AND day = 'mon'", "NOT id > 5 OR message = 'x'", "id IN (1, 2)", "message LIKE '%timeout%'",
     "id BETWEEN 1 AND 3 AND message IS NOT NULL", "at >= '2024-01-01' AND price > 0.5 AND cost < 1.5"],
)  # fmt: skip
@pytest.mark.parametrize("query", ["'error'", "None"])
def test_a_simple_filter_loads_neither_the_parser_of_sql_nor_pandas(where, query, table):
    """Either takes as long to load as all the rest; pyarrow loads pandas to make an array of Python values."""
    assert importlib.util.find_spec("pandas"), "this test says nothing where pandas is not installed"
    question = f"it.Table.open({table!r}).count({where!r}, query={query})"
    loaded = loaded_after("import indextables as it", question)
    assert loaded <= {"indextables"} | LOG | ARROW | WORDS | FUNCTIONS


def test_a_comparison_does_not_load_the_functions_of_arrow(table):
    question = f"assert it.Table.open({table!r}).count('id = 2', query='error') == 2"
    assert loaded_after("import indextables as it", question) == {"indextables"} | LOG | ARROW | WORDS


def test_a_search_loads_what_searches_and_prints_and_no_functions_of_arrow(table):
    found = after_command("search", table, "error AND timeout")
    assert found == {"indextables"} | TERMINAL | LOG | ARROW | WORDS


@pytest.mark.parametrize("more", [("--where", "id = 2"), ("--score",), ("--sort", "id"), ("--highlight",)])
def test_what_a_search_may_also_do_is_loaded_when_it_is_asked_for(more, table):
    found = after_command("search", table, "error AND timeout", *more)
    assert not {"pandas", "pyspark", "obstore", "lark", "duckdb"} & found


@pytest.mark.parametrize(
    "module",
    ["indextables.log.transaction_log", "indextables.delta", "indextables.ops.write.rows", "indextables.ops.read.scan",
     "indextables.ops.rewrite.merge", "indextables.sql.runner", "indextables.report"],
)  # fmt: skip
def test_no_module_loads_pandas_by_being_imported(module):
    assert "pandas" not in loaded_after(f"import {module}")
