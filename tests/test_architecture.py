"""The shape of the tree: what may import what, how long things are, where heavy libraries live."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "indextables"
MODULES = sorted(path for path in SOURCE.rglob("*.py"))

# Lower layers first: a module imports its own layer and the ones before it.
LAYERS = (
    ("errors",),
    ("options",),
    ("cache",),
    ("runtime",),
    ("model",),
    ("predicate",),
    ("storage",),
    ("log",),
    ("index",),
    ("split",),
    ("ops",),
    ("table", "delta"),
    ("sql",),
    ("report",),
    ("spark",),
    ("cli",),
    ("__main__",),
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}

# Each heavy dependency has one home.
HOMES = {
    "obstore": ("storage/",),
    "pyspark": ("spark/",),
    "py4j": ("spark/",),
    "tantivy": ("index/", "split/"),
    "sqlglot": ("predicate/", "sql/"),
    "lark": ("sql/",),
    "click": ("cli/",),
    "rich": ("cli/",),
    "isal": ("storage/",),
    "duckdb": ("storage/", "log/"),
}
# The places that reach for a layer above them, by name, through one importlib call each.
SPARK_DOORS = {"__init__.py", "delta.py"}
MAX_LINES = 500
MAX_FUNCTION = 60


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def layer_of(path: Path) -> str:
    return name_of(path).split("/")[0].removesuffix(".py")


def imports_of(path: Path) -> list[str]:
    """Every imported module, those inside functions and under TYPE_CHECKING included."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{name_of(path)}: relative import"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_imports_only_its_own_layer_and_the_layers_below(path):
    if name_of(path) == "__init__.py":
        return
    own = RANK[layer_of(path)]
    for imported in imports_of(path):
        parts = imported.split(".")
        if parts[0] != "indextables" or len(parts) == 1:
            continue
        target = parts[1]
        if target.startswith("__") or target not in RANK:
            continue
        assert RANK[target] <= own, f"{name_of(path)} imports {imported}, which is above it"
        if RANK[target] == own:
            assert target == layer_of(path), f"{name_of(path)} imports its neighbour {imported}"


def test_splits_never_import_the_log():
    for path in (SOURCE / "split").rglob("*.py"):
        assert not [name for name in imports_of(path) if name.startswith("indextables.log")], name_of(path)


def test_no_module_is_part_of_an_import_cycle():
    known = {module_name(path): path for path in MODULES}
    edges = {
        name: {
            target
            for item in imports_of(path)
            for target in candidates(item)
            if target in known and target != name
        }
        for name, path in known.items()
        if name != "indextables"
    }
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, "cycle: " + " -> ".join([*trail[trail.index(name) :], name])
        if name in done:
            return
        for target in sorted(edges.get(name, ())):
            visit(target, (*trail, name))
        done.add(name)

    for name in edges:
        visit(name, ())


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def candidates(imported: str) -> list[str]:
    """`a.b.c` may be the module a.b.c or the name c of module a.b; a package counts only when it is named itself."""
    return [imported, imported.rsplit(".", 1)[0]]


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_heavy_dependency_is_imported_only_in_its_home(path):
    for imported in imports_of(path):
        homes = HOMES.get(imported.split(".")[0])
        if homes is not None:
            assert name_of(path).startswith(homes), f"{imported} belongs in {' or '.join(homes)}"


def test_only_the_listed_doors_reach_for_spark():
    pattern = re.compile(r"import_module\(\s*[\"']indextables\.spark")
    doors = {name_of(path) for path in MODULES if pattern.search(path.read_text())}
    assert {door for door in doors if not door.startswith(("spark/", "cli/"))} <= SPARK_DOORS


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_is_short_and_says_what_it_is(path):
    text = path.read_text()
    assert len(text.splitlines()) <= MAX_LINES, f"{name_of(path)} has {len(text.splitlines())} lines"
    tree = ast.parse(text)
    assert ast.get_docstring(tree), f"{name_of(path)} has no docstring"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or 0) - node.lineno + 1
            assert length <= MAX_FUNCTION, f"{name_of(path)}: {node.name} has {length} lines"


def test_no_module_is_named_after_nothing_in_particular():
    vague = re.compile(r"util|helper|common|^core$|^base$|manager|impl|optimi[sz]ed|enhanced|_v2$")
    assert not [name_of(path) for path in MODULES if vague.search(path.stem)]
