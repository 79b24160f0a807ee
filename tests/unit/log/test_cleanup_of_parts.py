"""Cleanup of a log whose checkpoints consist of several files (docs/behaviour.md, C7, D3, D4)."""

from __future__ import annotations

import pytest

from indextables.errors import StorageError
from indextables.log.checkpoint.reader import NativeCheckpointReader
from indextables.log.format.dialect import NATIVE
from indextables.log.segment import list_log
from support.builder import LOG_DIR, LogBuilder, paths_of
from support.faults import Around

PARTS = {"checkpoint.actionsPerPart": 3, "checkpoint.interval": 5}


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_the_parts_of_the_newest_checkpoint_outlive_every_retention(form):
    """D3, D4: with the versions below gone, the parts are all that is left of the files."""
    table = LogBuilder(options={**PARTS, "checkpoint.format": form}).create().appends(5, files=4)
    before = paths_of(table.log())
    table.wait(days=40).cleanup()
    assert "00000000000000000000.json" not in table.names()
    table.wait(days=40).cleanup()
    assert paths_of(table.log()) == before
    table.append(1)
    assert len(paths_of(table.log())) == len(before) + 1


def test_the_parts_of_a_replaced_checkpoint_go_with_it():
    """D3: an older checkpoint leaves nothing behind."""
    table = LogBuilder(options=PARTS).create().appends(5, files=4)
    table.wait(days=40).appends(5, files=4).wait(days=40).cleanup()
    assert {name[:20] for name in table.names() if "of" in name} == {f"{10:020d}"}
    assert len(paths_of(table.log())) == 40


class Locked(Around):
    """A store that cannot delete one file."""

    def __init__(self, inner, path):
        super().__init__(inner)
        self.path = path

    def _do(self, operation, path, call):
        if (operation, path) == ("delete", self.path):
            raise StorageError("locked")
        return call()


def test_a_checkpoint_that_could_not_be_deleted_keeps_its_parts_until_it_goes():
    """D3, D5: no checkpoint is left that names parts which are gone."""
    table = LogBuilder(options=PARTS).create().appends(5, files=4)
    table.wait(days=40).appends(5, files=4).wait(days=40)
    first, *_ = (name for name in table.names() if name.endswith(".checkpoint.parquet"))
    old = {name for name in table.names() if name.startswith(first.removesuffix("parquet"))}
    LogBuilder(Locked(table.store, f"{LOG_DIR}/{first}"), PARTS, table.clock).cleanup()
    assert old <= set(table.names())
    table.cleanup()
    assert not old & set(table.names())
    assert len(paths_of(table.log())) == 40


class Meanwhile(Around):
    """A store whose caller waits, once, before it asks for one operation; others go on meanwhile."""

    def __init__(self, inner, operation, part_of_path, others):
        super().__init__(inner)
        self.moment = (operation, part_of_path)
        self.others = others

    def _do(self, operation, path, call):
        others, (awaited, part_of_path) = self.others, self.moment
        if others is not None and operation == awaited and part_of_path in path:
            self.others = None
            others()
        return call()


def complete_checkpoints(store):
    """The versions of all checkpoints; each is read to its end, which fails without a part."""
    reader = NativeCheckpointReader()
    checkpoints = NATIVE.checkpoints(list_log(store, NATIVE).files)
    return {item.version: len(list(reader.adds(store, item))) for item in checkpoints}


SOON = {**PARTS, "checkpointRetention.duration": 0}
ONLY_WRITES = {"cleanup.enabled": "false"}


@pytest.mark.parametrize("form", ["json", "parquet"])
@pytest.mark.parametrize(
    ("operation", "moment"), [("put_file", "00002of"), ("put_if_absent", f"{5:020d}.checkpoint")]
)
def test_a_checkpointer_that_takes_hours_finds_its_parts_where_it_put_them(form, operation, moment):
    """D6: the cleanup of others meets parts whose main file is not there yet."""
    options = {**SOON, "checkpoint.format": form}
    table = LogBuilder(options=options).create().appends(4, files=4)

    def others():
        table.wait(hours=3).appends(6, files=4).wait(hours=3).cleanup()

    store = Meanwhile(table.store, operation, moment, others)
    LogBuilder(store, {**options, **ONLY_WRITES}, table.clock).append(4)
    assert complete_checkpoints(table.store)[5] == 20
    assert len(paths_of(table.log())) == 44


def test_a_checkpoint_that_others_wrote_and_cleaned_up_meanwhile_can_be_put_again():
    """D6: its main file comes and goes between the parts of a slow writer and its main file."""
    options = {**SOON, "checkpoint.format": "json"}
    table = LogBuilder(options=options).create().appends(4, files=4)

    def others():
        table.checkpoint().append(4).checkpoint().cleanup()
        assert f"{5:020d}.checkpoint.json" not in table.names()

    store = Meanwhile(table.store, "put_if_absent", ".checkpoint.", others)
    LogBuilder(store, {**options, **ONLY_WRITES}, table.clock).append(4)
    assert complete_checkpoints(table.store) == {5: 20, 6: 24}


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_a_checkpoint_whose_parts_are_gone_is_written_again_before_the_hint_names_it(form, caplog):
    """D6: a release before this rule cleans up parts whose main file is not there yet."""
    options = {**SOON, "checkpoint.format": form}
    table = LogBuilder(options=options).create().appends(4, files=4)

    def others():
        for meta in table.store.list_level(LOG_DIR):
            if ".00001of" in meta.path:
                table.store.delete(meta.path)

    store = Meanwhile(table.store, "put_if_absent", f"{5:020d}.checkpoint", others)
    LogBuilder(store, options, table.clock).append(4)
    assert "written again" in caplog.text
    assert complete_checkpoints(table.store) == {5: 20}
    assert len(paths_of(table.log())) == 20
