"""Cleanup of a log whose checkpoints consist of several files (docs/behaviour.md, C7, D3, D4)."""

from __future__ import annotations

import pytest

from indextables.errors import StorageError
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
