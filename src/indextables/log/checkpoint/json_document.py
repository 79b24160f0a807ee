"""A checkpoint as one JSON document: `{protocol, metaData, mergeskip, txn, add: [...]}`.

We write the adds last and one per line, so that the head is the first gzip member and the
adds follow in members of their own. When reading, any layout of the document is accepted,
as are a JSON list of actions and JSON lines. The manifest of a multi-part checkpoint is
the same document with `parts` instead of `add`; a part says that it is part i of n, and
of which table and version, before its `add`. Parts written by 0.2.0 have `add` only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from indextables.errors import CorruptLogError
from indextables.log.adds.lines import LINE_END, PATH_DECODER, chunk_raws, cut_text
from indextables.records import dataclass
from indextables.storage.envelope import unpack_members

OPENING = b'"add":[\n'
CLOSING = b"]}\n"
ORDER = "path"
"""Value of `order` in the head of a document whose adds are sorted by path. Other writers may leave it out.
"""
COUNT = "numFiles"
"""The key in the head under which a document says how many adds follow."""
COMMIT_IDS = "commitIds"
"""The key in the head with the ids of the last commits, null where one has none; the last is its own."""
PART_OPENING = b"{" + OPENING
"""The opening of a part written by 0.2.0."""
_HEAD_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Document:
    """A checkpoint document: its head, and its adds as chunks of lines."""

    head: Mapping[str, Any]
    chunks: Iterator[bytes]


class _Actions(msgspec.Struct):
    """One object of a log; its adds are left as undecoded text."""

    protocol: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    metaData: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET  # noqa: N815 - wire name
    add: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    remove: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    mergeskip: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    txn: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    commitInfo: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET  # noqa: N815 - wire name


_ONE = msgspec.json.Decoder(_Actions)
_MANY = msgspec.json.Decoder(list[_Actions])
_RAWS = msgspec.json.Decoder(list[msgspec.Raw])
_DOCUMENT = msgspec.json.Decoder(dict[str, msgspec.Raw])


def encode_head(head: Mapping[str, Any]) -> bytes:
    """The text of a document up to and including the bracket that opens its adds."""
    fields = [msgspec.json.encode(key) + b":" + msgspec.json.encode(value) for key, value in head.items()]
    return b"{" + b",\n".join([*fields, OPENING])


def encode_manifest(head: Mapping[str, Any]) -> bytes:
    """The text of a manifest: a document without adds of its own."""
    return msgspec.json.encode(head) + b"\n"


def read_document(data: bytes, name: str, *, workers: int = 1) -> Document:
    """Read a stored checkpoint file, or one part of it; CorruptLogError when it is not one."""
    members = unpack_members(data, name, workers=workers)
    first = next(members, b"")
    if first.endswith(OPENING):
        head = _decode_head(first, name)
        if head is not None and _is_ours(first, head):
            return Document(head, _checked_end(members, name))
    text = first + b"".join(members)
    laid_out = _split_plain(text, name)
    return laid_out if laid_out is not None else _read_any(text, name)


def read_head(data: bytes, name: str) -> Mapping[str, Any] | None:
    """The head of a document, from the first of its stored bytes; None when these are too few."""
    try:
        first = next(unpack_members(data, name), b"")
    except CorruptLogError:
        return None
    return _decode_head(first, name) if first.endswith(OPENING) else None


def _decode_head(opening: bytes, name: str) -> Mapping[str, Any] | None:
    try:
        head = msgspec.json.decode(opening + b"]}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(head, dict) or head.pop("add", None) != []:
        raise CorruptLogError(f"{name} is not a checkpoint document", file=name)
    return head


def _is_ours(opening: bytes, head: Mapping[str, Any]) -> bool:
    """Whether the adds are sorted by path without duplicates, so that they can be streamed as they are."""
    return opening == PART_OPENING or head.get("order") == ORDER


def _checked_end(members: Iterator[bytes], name: str) -> Iterator[bytes]:
    """The chunks of lines, after checking that the closing bracket is the last gzip member."""
    held: list[bytes] = []
    for member in members:
        if len(held) == 2:  # noqa: PLR2004 - the last chunk and the closing bracket
            yield held.pop(0)
        held.append(member)
    if not held or held.pop() != CLOSING:
        raise CorruptLogError(f"{name} ends before its list of adds does. It was cut off.", file=name)
    if held:
        yield _ended(held[0])


def _ended(lines: bytes) -> bytes:
    """The last lines of a document, given the comma and newline that every other line has."""
    return lines.removesuffix(b"\n") + LINE_END


def _split_plain(text: bytes, name: str) -> Document | None:
    """Cut a document that is one gzip member, or plain text, into head and lines, if its layout is ours."""
    at = text.find(b"\n" + OPENING, 0, _HEAD_BYTES << 4)
    begin = at + 1 + len(OPENING) if at >= 0 else len(PART_OPENING)
    if at < 0 and not text.startswith(PART_OPENING):
        return None
    if not text.endswith(CLOSING):
        return None
    head = _decode_head(text[:begin], name)
    if head is None or not _is_ours(text[:begin], head):
        return None
    lines = text[begin : len(text) - len(CLOSING)]
    return Document(head, cut_text(_ended(lines)) if lines else iter(()))


def _read_any(text: bytes, name: str) -> Document:
    stripped = text.removeprefix(b"\xef\xbb\xbf").strip()
    try:
        if stripped.startswith(b"["):
            return _reduce(_MANY.decode(stripped), name)
        try:
            document = _DOCUMENT.decode(stripped)
        except msgspec.DecodeError:
            return _reduce((_ONE.decode(line) for line in stripped.split(b"\n") if line.strip()), name)
        return _whole_document(document, name)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as bad:
        raise CorruptLogError(
            f"{name} cannot be read as a checkpoint: {bad}. It is damaged or was cut off.", file=name
        ) from bad


def _whole_document(document: dict[str, Any], name: str) -> Document:
    adds = document.pop("add", None)
    if adds is not None and bytes(adds).lstrip().startswith(b"{"):
        # A single line of a JSON-lines file also parses as a document; it holds one action.
        return _reduce([_Actions(add=adds)], name)
    head = {key: msgspec.json.decode(raw) for key, raw in document.items()}
    raws = [] if adds is None or bytes(adds) == b"null" else _RAWS.decode(adds)
    return Document(head, chunk_raws(_newest(raws)))


def _newest(raws: Iterable[Any]) -> list[Any]:
    """The adds sorted by path; of two with the same path the later one."""
    live = {PATH_DECODER.decode(raw).path: raw for raw in raws}
    return [live[path] for path in sorted(live)]


def _reduce(lines: Iterable[_Actions], name: str) -> Document:
    """Reduce a list of actions, or JSON lines, to the newest action of each key, in order.

    Version files look the same, but their commitInfo names their version, and version 0 holds nothing but the
    two actions that create a table: these are refused.
    """
    kinds: set[str] = set()
    bound = False
    head: dict[str, Any] = {}
    live: dict[str, Any] = {}
    skips: dict[str, Any] = {}
    txns: dict[str, Any] = {}
    for line in lines:
        kinds.update(key for key in line.__struct_fields__ if getattr(line, key) is not msgspec.UNSET)
        for key in ("protocol", "metaData"):
            if (raw := getattr(line, key)) is not msgspec.UNSET:
                head[key] = msgspec.json.decode(raw)
        if line.remove is not msgspec.UNSET:
            live.pop(PATH_DECODER.decode(line.remove).path, None)
        if line.add is not msgspec.UNSET:
            live[PATH_DECODER.decode(line.add).path] = line.add
        if line.commitInfo is not msgspec.UNSET:
            info = msgspec.json.decode(line.commitInfo)
            bound = bound or (isinstance(info, dict) and "version" in info)
        if line.mergeskip is not msgspec.UNSET:
            skip = msgspec.json.decode(line.mergeskip)
            skips[skip.get("path")] = skip
        if line.txn is not msgspec.UNSET:
            txn = msgspec.json.decode(line.txn)
            txns[txn.get("appId")] = txn
    if bound or kinds == {"protocol", "metaData"}:
        raise CorruptLogError(
            f"{name} is a version file in the place of a checkpoint: it was overwritten with a copy",
            file=name,
        )
    head |= {"mergeskip": list(skips.values()), "txn": list(txns.values())}
    return Document(head, chunk_raws(live[path] for path in sorted(live)))
