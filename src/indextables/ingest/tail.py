"""Following a file into a table, each line exactly once: a commit says how far the file was read.

The place in the file stands in the `txn` of the commit that holds the rows, so both are
there or neither is. The number of that `txn` counts the commits: of two processes that
follow the same file one commits, and the other goes on behind it. Its name tells files of
the same path on several machines apart: a process goes on with the one it finds on its
own. A file that is
replaced under its name (rotated, removed and created again, cut short, or a link that
points elsewhere) is read to its end, wherever in its directory it can be found, before
the one that took its place is read from its start. The last few are kept in sight: a
program may go on writing to a file that was renamed.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from indextables.errors import StorageError
from indextables.ingest.followed_file import FollowedFile, Place, find
from indextables.ingest.loaded import loaded_places
from indextables.ingest.log_lines import LineReader, LogForm, line_shown, split_lines
from indextables.ingest.log_times import Years
from indextables.model.actions import TxnAction
from indextables.ops.write.after_write import after_write
from indextables.table import Table

_EARLIER = 8
"""How many files that had the name before are remembered."""


class Tailer:
    """One file and the table it goes into; `say` is told what a person should know."""

    def __init__(
        self, path: str, table: Table, form: LogForm, say: Callable[[str], None] = lambda _: None
    ) -> None:
        self._path = os.path.abspath(path)  # noqa: PTH100 - Path.absolute keeps '..'
        self._table = table
        self._form = form
        self._say = say
        self._is_loaded = False
        self._app_id: str | None = None
        self._taken: frozenset[str] = frozenset()
        """The names of transactions that the table had when it was looked at."""
        self._number = 0
        self._current: FollowedFile | None = None
        self._earlier: list[FollowedFile] = []
        self._has_begun = False
        self.commits = 0
        self.without_time = 0

    @property
    def offset(self) -> int:
        """How far the file that has the name was read."""
        return self._current.offset if self._current else 0

    def poll(self) -> int:
        """Commit the next whole lines, if there are any; how many rows that were."""
        try:
            while (rows := self._step()) == 0:
                pass
        except BaseException:
            # Whether the commit is in the table is not known here: look there before going on.
            self.close()
            raise
        return rows or 0

    def close(self) -> None:
        """Let go of all files."""
        for file in (*self._earlier, *([self._current] if self._current else ())):
            file.close()
        self._current, self._earlier, self._is_loaded = None, [], False

    def _step(self) -> int | None:
        """Commit lines of the oldest file that has some, or switch to the next; None if there is neither."""
        if not self._is_loaded:
            self._load()
        for file in self._earlier:
            if data := file.read():
                return self._commit(file, data)
        now = FollowedFile.at(self._path)
        if self._current is not None:
            if now is not None and self._current.is_same(now):
                now.close()
                now = None
            data = self._current.read()
            if data is None or data:
                if now is not None:
                    now.close()
                return self._commit(self._current, data) if data else self._search()
        return None if now is None else self._switch(now)

    def _search(self) -> int:
        """What was read of the file is no longer in it: go on in a copy, if there is one."""
        assert self._current is not None
        place = self._current.place
        self._current.close()
        self._current = find(place)
        if self._current is None:
            self._say_lost()
        return 0

    def _switch(self, now: FollowedFile) -> int:
        """Go on to the file that has the name now, after those that fall out of sight."""
        again = next((file for file in self._earlier if now.resume(file.place)), None)
        before = [*self._earlier, *([self._current] if self._current else ())]
        past = [
            file for number, file in enumerate(before) if file.is_removed or number < len(before) - _EARLIER
        ]
        for file in past:
            if file is not again and (data := file.read(final=True)):
                now.close()
                return self._commit(file, data)
        for file in {*past, *([again] if again else ())}:
            file.close()
        self._earlier = [file for file in before if file not in past and file is not again]
        if self._has_begun:
            self._say(
                f"{self._path} is another file now; it is read from "
                + ("where it was left" if again else "its start")
            )
        self._current, self._has_begun = now, True
        return 0

    def _load(self) -> None:
        """Find out how far the table has the file, and open what is still there of it."""
        txns = self._table.log.snapshot(max_staleness_s=0).txns
        runs = _runs(txns, self._path)
        self._is_loaded, self._taken = True, frozenset(txns)
        self._app_id, self._number, self._has_begun = None, 0, bool(runs)
        states: list[tuple[str | None, int, Mapping[str, Any]]] = [
            (run.app_id, run.version, _state(run)) for run in runs
        ] or [
            (None, 0, {"place": place.to_wire(), "earlier": []}) for place in loaded_places(txns, self._path)
        ]
        for look in (_at_path, _moved, _seen_earlier):
            for app_id, number, state in states:
                if (files := look(self._path, state)) is not None:
                    self._current, self._earlier = files
                    self._app_id, self._number, self._has_begun = app_id, number, True
                    if self._current is None:
                        self._say_lost()
                    return
        if runs:
            self._say_lost()
        else:
            self._current = self._as_left_before(txns)
            self._has_begun = self._current is not None

    def _as_left_before(self, txns: Mapping[str, TxnAction]) -> FollowedFile | None:
        """The file as 0.2.0 left it, which kept its inode and offset only."""
        file = FollowedFile.at(self._path)
        if file is None:
            return None
        stem = f"tail:{file.path}:{file.inode}"
        turns = [int(app.rpartition("#")[2]) for app in txns if app.rpartition("#")[0] == stem]
        offset = txns[f"{stem}#{max(turns)}"].version if turns else 0
        if file.size >= offset:
            file.skip_to(offset)
        return file

    def _commit(self, file: FollowedFile, data: bytes) -> int:
        reader = LineReader(self._form, lambda: _years(file, self._form))
        rows = reader.read(split_lines(data))
        if reader.without_time and not self.without_time:
            self._say(
                f"{file.path}: the line {line_shown(reader.example)} has no time that can be read; "
                "ts is null there, and message holds the whole line"
            )
        self.without_time += reader.without_time
        file.advance(data)
        if not rows.num_rows:
            return 0
        state = {
            "place": self._current.place.to_wire() if self._current else None,
            "earlier": [file.place.to_wire() for file in self._earlier],
            "form": self._form.to_wire(),
        }
        if self._app_id is None:
            self._app_id = self._new_app_id(self._current or file)
        txn = TxnAction(app_id=self._app_id, version=self._number + 1, extra={"tail": state})
        written = self._table.append(pa.Table.from_batches([rows], self._form.schema), txn=txn)
        self._number += 1
        newest = self._table.log.snapshot(max_staleness_s=0).txns.get(txn.app_id)
        if newest is None or newest.version != self._number or _state(newest) != state:
            # Another process follows the file too and was first.
            self.close()
            return written.rows
        self.commits += 1
        after_write(self._table.log, stream=True)
        return written.rows

    def _new_app_id(self, file: FollowedFile) -> str:
        """A name that every process gives to this file, and that no other file has yet."""
        stem = f"{_stem(self._path)}{file.name_digest()}"
        turn = next(turn for turn in itertools.count() if f"{stem}#{turn}" not in self._taken)
        return f"{stem}#{turn}"

    def _say_lost(self) -> None:
        self._say(
            f"the file that was {self._path} before is neither in its directory under another name nor "
            "copied there: lines that were written to it after it was last read, if any, are not loaded"
        )


def saved_form(table: Table, path: str) -> LogForm | None:
    """How the lines of a file that was followed into a table before are taken apart."""
    absolute = os.path.abspath(path)  # noqa: PTH100 - as above
    for run in _runs(table.log.snapshot(max_staleness_s=0).txns, absolute):
        return LogForm.from_wire(_state(run)["form"])
    return None


def _stem(path: str) -> str:
    return f"tail:{path}:f"


def _runs(txns: Mapping[str, TxnAction], path: str) -> list[TxnAction]:
    """What the table knows of files that were followed under a path, on this machine or another."""
    ident = re.compile(re.escape(_stem(path)) + r"[0-9a-f]{32}#\d+")
    return [txn for app, txn in reversed(list(txns.items())) if ident.fullmatch(app)]


def _state(txn: TxnAction) -> Mapping[str, Any]:
    state = txn.extra.get("tail")
    if not isinstance(state, dict) or not {"place", "earlier", "form"} <= state.keys():
        raise StorageError(
            f"the table says that it has lines of {txn.app_id}, and not how far the file was read: "
            "another program wrote its log anew. Follow the file into another table."
        )
    return state


_Files = tuple[FollowedFile | None, list[FollowedFile]]


def _at_path(path: str, state: Mapping[str, Any]) -> _Files | None:
    """The files of a state, if the one that was followed still has the name."""
    file = FollowedFile.at(path)
    if file is None or state["place"] is None:
        return None
    if file.resume(Place.from_wire(state["place"])):
        return file, _earlier(state)
    file.close()
    return None


def _moved(_path: str, state: Mapping[str, Any]) -> _Files | None:
    """The files of a state, if the one that was followed has another name now."""
    file = None if state["place"] is None else find(Place.from_wire(state["place"]))
    return None if file is None else (file, _earlier(state))


def _seen_earlier(_path: str, state: Mapping[str, Any]) -> _Files | None:
    """The files of a state, if any of those that were followed before is still there."""
    files = _earlier(state)
    return (None, files) if files else None


def _earlier(state: Mapping[str, Any]) -> list[FollowedFile]:
    return [file for wire in state["earlier"] if (file := find(Place.from_wire(wire))) is not None]


def _years(file: FollowedFile, form: LogForm) -> Years:
    return Years.of((form.times(split_lines(part)) for part in file.rest()), file.modified)
