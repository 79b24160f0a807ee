"""The architecture page: what it names exists, its journeys are the real ones, and its tables leave nothing out."""

from __future__ import annotations

import ast
import importlib
import re
import uuid
from pathlib import Path
from urllib.request import Request, urlopen

import pyarrow as pa
import pytest

import indextables as it
from support.journeys import PAGE, called, is_walked, section, steps
from support.served import TOKEN, serving

SOURCE = Path(it.__file__).parent
ROOT = SOURCE.parents[1]
CODE = re.findall(r"`([^`\n]+)`", PAGE.read_text())
PLACES = sorted({text for text in CODE if re.fullmatch(r"[a-z_]+(/[a-z_]+)*(\.py|/)", text)})
TOPS = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
NAMES = sorted(
    {text for text in CODE if re.fullmatch(r"\w+(\.\w+)+", text) and text.split(".")[0] in TOPS} - set(PLACES)
)
MODULES = sorted(SOURCE.rglob("*.py"))


def test_the_page_names_places_and_functions():
    assert len(PLACES) > 50
    assert len(NAMES) > 40


@pytest.mark.parametrize("place", PLACES)
def test_a_file_or_package_that_the_page_names_exists(place):
    path = (ROOT if place.startswith(("tests/", "docs/")) else SOURCE) / place
    assert path.is_dir() if place.endswith("/") else path.is_file()


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("spark.")])
def test_a_function_that_the_page_names_exists(name):
    assert resolved(name)


def resolved(name: str) -> object:
    """The module, class or function of a dotted name."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        path = SOURCE.joinpath(*parts[:cut])
        if path.with_suffix(".py").is_file() or path.is_dir():
            found: object = importlib.import_module(".".join(["indextables", *parts[:cut]]))
            for attribute in parts[cut:]:
                found = getattr(found, attribute)
            return found
    raise AssertionError(f"there is no {name}")


def test_every_package_is_in_the_tree_of_the_page():
    packages = {f"{path.parent.relative_to(SOURCE).as_posix()}/" for path in SOURCE.rglob("__init__.py")} - {
        "./"
    }
    assert packages <= set(PLACES)


def test_every_module_of_the_package_itself_is_in_the_tree_of_the_page():
    alone = {path.name for path in SOURCE.glob("*.py")} - {"__init__.py", "__main__.py"}
    assert alone <= set(PLACES)


def table_of(title: str) -> set[str]:
    """The files in the first column of a table."""
    return set(re.findall(r"^\| `([\w/]+\.py)` \|", section(title), re.M))


def test_every_cache_is_in_the_table_of_caches():
    assert holding(is_cache) - {"cache.py"} <= table_of("Caches")


def test_every_pool_of_threads_is_in_the_table_of_threads():
    pools = holding(
        lambda node: (
            isinstance(node, ast.Call)
            and ast.unparse(node.func) in {"ThreadPoolExecutor", "threading.Thread"}
        )
    )
    assert pools == table_of("Threads")


def holding(is_it) -> set[str]:
    """The modules in which something of a kind is made."""
    found = set()
    for path in MODULES:
        if any(is_it(node) for node in ast.walk(ast.parse(path.read_text()))):
            found.add(path.relative_to(SOURCE).as_posix())
    return found


def is_cache(node: ast.AST) -> bool:
    """Whether something is kept beyond the call that made it: by a cache, or in an ordered or weak map."""
    if isinstance(node, ast.FunctionDef):
        return any(re.search(r"\b(lru_)?cache\b", ast.unparse(item)) for item in node.decorator_list)
    kinds = {"TtlCache", "OrderedDict", "WeakKeyDictionary"}
    return isinstance(node, ast.Call) and ast.unparse(node.func) in kinds


@pytest.mark.parametrize("journey", ["append", "a Spark read", "MERGE INTO", "a search", "serve"])
def test_a_journey_passes_through_no_module_twice(journey):
    modules = [module_of(step) for step in steps(journey)]
    assert len(modules) > 10
    assert len(set(modules)) == len(modules)


def module_of(name: str) -> str:
    parts = name.split(".")
    while not SOURCE.joinpath(*parts).with_suffix(".py").is_file():
        parts.pop()
    return ".".join(parts)


@pytest.fixture
def table(tmp_path):
    schema = pa.schema([("id", pa.int64()), ("day", pa.string()), ("message", pa.string())])
    made = it.Table.create(str(tmp_path / "t"), schema, ["day"], options={"indexing.typemap.message": "text"})
    made.append(rows(schema))
    return made


def rows(schema: pa.Schema) -> pa.Table:
    # A word of its own, since parts of an index are kept by their contents: had another test of this process
    # searched in the same texts, this one would not read them.
    text = [f"an error, then a timeout {uuid.uuid4().hex}", "all quiet"]
    return pa.table({"id": [1, 2], "day": ["2024-01-01", "2024-01-02"], "message": text}, schema)


def test_an_append_goes_the_way_of_the_page(table):
    trace = called(lambda: table.append(rows(table.schema)))
    assert is_walked(steps("append"), trace) is None


def test_a_search_goes_the_way_of_the_page(table):
    opened = it.Table.open(table.uri)
    trace = called(lambda: opened.search("error AND timeout", where="day = '2024-01-01'").read_all())
    assert is_walked(steps("a search"), trace) is None


def test_serve_goes_the_way_of_the_page(table):
    pytest.importorskip("starlette")

    def search_on_the_page() -> None:
        with serving(table.uri) as address:
            url = f"{address}/api/tables/t/rows?q=error%20AND%20timeout"
            with urlopen(Request(url, headers={"authorization": f"Bearer {TOKEN}"})) as answer:
                assert b"timeout" in answer.read()

    assert is_walked(steps("serve"), called(search_on_the_page)) is None


def test_a_repair_goes_the_way_of_the_page(table, tmp_path):
    log = f"{table.uri}/_transaction_log"
    trace = called(lambda: it.repair_log(log, str(tmp_path / "clean")))
    assert is_walked(steps("a repair"), trace) is None
