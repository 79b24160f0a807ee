"""Any file of a table put in the place of any other: the answers stay the same, or an error is raised.

Every kind of file takes the place of every other kind, and of its own kind at another
version and in another table. What is read then is what was written, or an error: never
fewer rows and never other rows. `make test` takes the other files of one kind of table from the table
itself and those of the other kind from another table; `make test-long` takes them from both.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import Error

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])
OPTIONS = {"indexing.typemap.text": "text"}
READING = {"indexFilters.enabled": "true"}
LOG = "_transaction_log"
SPECIAL = {0: "creation", 10: "metadata"}
"""Versions that say more than others: what the table is."""
JSON = {"checkpoint.format": "json", "checkpoint.actionsPerPart": 1000}
JSON_PARTS = {"checkpoint.format": "json", "checkpoint.actionsPerPart": 2}
PARQUET = {"checkpoint.format": "parquet", "checkpoint.actionsPerPart": 1000}
PARQUET_PARTS = {"checkpoint.format": "parquet", "checkpoint.actionsPerPart": 2}


def rows(start: int, count: int = 3) -> pa.Table:
    ids = range(start, start + count)
    return pa.table({"id": list(ids), "text": [f"word{n} common" for n in ids]}, SCHEMA)


@dataclass(frozen=True)
class World:
    """A table on disk and the ids that each of its versions holds."""

    root: Path
    truth: dict[int, list[int]]

    def files(self) -> dict[str, list[str]]:
        """Every file of the table, by what it is."""
        kinds: dict[str, list[str]] = {}
        floor = max((int(place.name[:20]) for place in (self.root / LOG).glob("*.floor")), default=0)
        for place in sorted(self.root.rglob("*")):
            if place.is_file():
                kinds.setdefault(kind_of(place, floor), []).append(str(place.relative_to(self.root)))
        return kinds


def kind_of(place: Path, floor: int) -> str:
    name = place.name
    if name.endswith(".split"):
        return "split"
    if name.endswith(".filter"):
        return "filter"
    if name == "_last_checkpoint":
        return "hint"
    if name.startswith("_purge."):
        return "mark"
    if name.endswith(".floor"):
        return "floor"
    form = name.rpartition(".")[2]
    if ".checkpoint." not in name:
        number = int(name[:20])
        return "fence" if number < floor else SPECIAL.get(number, "version")
    if "of" in name:
        return f"{form} part"
    parts = list(place.parent.glob(f"{name[:20]}.checkpoint.*of*.{form}"))
    return f"{form} manifest" if parts else f"{form} checkpoint"


def build(root: Path, first: int, *, cut: bool, compressed: bool) -> World:
    """A table with every kind of file: `cut` also has a floor and fences below it."""
    truth: dict[int, list[int]] = {}
    compression = {} if compressed else {"transaction.compression.enabled": "false"}
    it.Table.create(root, SCHEMA, options={**OPTIONS, **compression})
    turn = first

    def grow(count: int = 3) -> None:
        nonlocal turn
        opened = it.Table.open(root)
        opened.append(rows(turn, count))
        turn += count
        note()

    def note() -> None:
        opened = it.Table.open(root)
        truth[opened.version] = sorted(opened.scan().read_all()["id"].to_pylist())

    def checkpoint(options: dict) -> None:
        opened = it.Table.open(root, options={**options, **READING, "checkpoint.interval": 1000})
        opened.checkpoint()
        note()

    note()
    grow()
    grow(2)
    if cut:
        it.Table.open(root).truncate_history()
        truth = {2: truth[2]}
    grow()
    checkpoint(JSON)
    grow()
    it.Table.open(root).delete(f"id = {first + 1}")
    note()
    checkpoint(JSON_PARTS)
    grow()
    grow(1)
    checkpoint(PARQUET)
    grow()
    it.Table.open(root).update_properties({"owner": "somebody"})
    note()
    checkpoint(PARQUET_PARTS)
    grow()
    orphan = root / "part-orphan.split"
    orphan.write_bytes(b"nobody needs it")
    os.utime(orphan, (0, 0))
    assert it.Table.open(root).purge().orphaned_files_deleted == 1
    return World(root, truth)


def ids_of(rows) -> list[int]:
    return sorted(rows.read_all()["id"].to_pylist())


def wrong_answers(world: World, version: int) -> list[str]:
    """What differs from the truth without an error: of the newest version, of another one, after a write."""
    newest = max(world.truth)
    now = world.truth[newest]
    questions = {
        "version": (lambda table: table.version, newest),
        "scan": (lambda table: ids_of(table.scan()), now),
        "count": (lambda table: table.count(), len(now)),
        "filter": (lambda table: table.count(where=f"id > {now[1]}"), len(now) - 2),
        "search": (lambda table: ids_of(table.search("common")), now),
        "word": (lambda table: ids_of(table.search(f"word{now[0]}")), now[:1]),
        "counted search": (lambda table: table.count(query="common"), len(now)),
        "smallest": (lambda table: table.aggregate(None, ["min(id)"])[0][0].as_py(), now[0]),
    }
    wrong = []

    def compare(what: str, ask, truth) -> None:
        try:
            answer = ask()
        except Error:
            return
        if answer != truth:
            wrong.append(f"{what}: {answer} instead of {truth}")

    def opened(at: int | None = None) -> it.Table:
        return it.Table.open(world.root, version=at, options=READING)

    for what, (ask, truth) in questions.items():
        compare(what, lambda ask=ask: ask(opened()), truth)
    for at in {version, version + 1} & world.truth.keys():
        compare(f"version {at}", lambda at=at: ids_of(opened(at).scan()), world.truth[at])
    compare("after a write", lambda: _written(world), [*now, 90_000])
    return wrong


def _written(world: World) -> list[int]:
    """What a checkpoint and an append make permanent."""
    table = it.Table.open(world.root, options=PARQUET)
    table.checkpoint()
    table.append(rows(90_000, 1))
    return ids_of(it.Table.open(world.root).scan())


WORLDS = ("cut, compressed", "whole, plain")
THIS, ANOTHER = "this table", "another table"


@pytest.fixture(scope="module")
def worlds(request, tmp_path_factory):
    cut, compressed = "cut" in request.param, "compressed" in request.param
    here = tmp_path_factory.mktemp("exchanged")
    return (
        build(here / "one", 0, cut=cut, compressed=compressed),
        build(here / "other", 1000, cut=cut, compressed=compressed),
    )


KINDS = (
    "creation", "metadata", "version", "fence", "json checkpoint", "json manifest", "json part",
    "parquet checkpoint", "parquet manifest", "parquet part", "hint", "floor", "mark", "filter", "split",
)  # fmt: skip
UNDER_A_HINT = {"json checkpoint", "json manifest", "parquet checkpoint", "parquet manifest"}


@pytest.mark.parametrize("worlds", WORLDS, indirect=True)
def test_the_tables_have_every_kind_of_file(worlds):
    missing = set(KINDS) - set(worlds[0].files())
    assert missing in ({"fence", "floor"}, {"creation"})


@pytest.mark.parametrize(
    ("worlds", "table"),
    [
        *zip(WORLDS, (THIS, ANOTHER), strict=True),
        *(pytest.param(*pair, marks=pytest.mark.long) for pair in zip(WORLDS, (ANOTHER, THIS), strict=True)),
    ],
    indirect=["worlds"],
)
@pytest.mark.parametrize("kind", KINDS)
def test_no_file_is_believed_in_the_place_of_another(worlds, kind, table, tmp_path):
    one, other = worlds
    source = one if table == THIS else other
    places = one.files().get(kind)
    if places is None:
        pytest.skip("the beginning of the history is whole, or it was cut off")
    place = places[-1]
    wrong = []
    for files in source.files().values():
        same_kind = source is one and place in files
        for file in files[-2:-1] if same_kind else files[-1:]:
            for hinted in (True, False) if kind in UNDER_A_HINT else (True,):
                where = tmp_path / str(len(list(tmp_path.iterdir())))
                shutil.copytree(one.root, where)
                if not hinted:
                    (where / LOG / "_last_checkpoint").unlink()
                shutil.copyfile(source.root / file, where / place)
                name = Path(place).name
                version = int(name[:20]) if name[:20].isdigit() else -1
                found = wrong_answers(World(where, one.truth), version)
                wrong += [f"{file} of {table} as {place}: {each}" for each in found]
    assert not wrong, "\n".join(wrong[:40]) + f"\n{len(wrong)} in all"
