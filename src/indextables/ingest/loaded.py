"""Which files a table has, and how far: what the commits of `load` and `tail` say in their transactions.

A file is known by a place in it: an offset, and a digest of the first and the last bytes before that.
"""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from indextables.errors import OptionError
from indextables.ingest.followed_file import FollowedFile, Place
from indextables.ingest.log_lines import LogForm
from indextables.model.actions import TxnAction

_LOAD = "load:"


def place_at(path: str, offset: int) -> Place:
    """The place in a file after so many bytes."""
    file = FollowedFile(path)
    try:
        file.skip_to(offset)
        return file.place
    finally:
        file.close()


def load_txn(places: Sequence[Place], form: LogForm | None, *, again: bool) -> TxnAction:
    """What the commit of a load says; two loads of the same files say the same, and one of them commits."""
    digest = hashlib.blake2b(digest_size=16)
    for place in places:
        digest.update(f"{place.offset}:{place.digest};".encode())
    app_id = f"{_LOAD}{digest.hexdigest()}" + (f"#{uuid.uuid4().hex}" if again else "")
    wire = {"places": [place.to_wire() for place in places], "form": form and form.to_wire()}
    return TxnAction(app_id=app_id, version=1, extra={"load": wire})


def refuse_loaded(path: str, txns: Mapping[str, TxnAction], target: str) -> None:
    """Refuse a file that the table has, or that begins with one that it has."""
    file = FollowedFile.at(path)
    if file is None:
        return
    try:
        ends = [place.offset for place in _places(txns) if place.offset and file.resume(place, copy=True)]
        size = file.size
    finally:
        file.close()
    if size in ends:
        raise OptionError(
            f"{path} is in {target} already, all {size:,} bytes of it. --again loads it once more."
        )
    if ends:
        raise OptionError(
            f"the first {max(ends):,} of {size:,} bytes of {path} are in {target} already. "
            f"`indextables tail {path} --to {target}` loads the rest; --again loads all of it once more."
        )


def loaded_places(txns: Mapping[str, TxnAction], path: str) -> list[Place]:
    """How far the file of a path was loaded, the furthest first."""
    real_path = os.path.realpath(path)
    places = [place for load in _loads(txns) for place in _places_of(load) if place.path == real_path]
    return sorted(places, key=lambda place: -place.offset)


def loaded_form(txns: Mapping[str, TxnAction]) -> LogForm | None:
    """The form of the log that was brought in last."""
    for txn in reversed(list(txns.values())):
        for key in ("load", "tail"):
            form = (txn.extra.get(key) or {}).get("form")
            if form:
                return LogForm.from_wire(form)
    return None


def _loads(txns: Mapping[str, TxnAction]) -> list[Mapping[str, Any]]:
    return [txn.extra["load"] for app, txn in txns.items() if app.startswith(_LOAD) and "load" in txn.extra]


def _places_of(load: Mapping[str, Any]) -> list[Place]:
    return [Place.from_wire(wire) for wire in load["places"]]


def _places(txns: Mapping[str, TxnAction]) -> list[Place]:
    followed = [txn.extra["tail"].get("place") for txn in txns.values() if "tail" in txn.extra]
    return [
        *(place for load in _loads(txns) for place in _places_of(load)),
        *(Place.from_wire(wire) for wire in followed if wire),
    ]
