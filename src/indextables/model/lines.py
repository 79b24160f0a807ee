"""Many lines of a log file at once: the quick way from JSON to actions.

A commit may hold thousands of adds and removes of which a reader looks at the
paths only. So a line is checked to be JSON with one action and a path, and its
other fields are read at the first look at any of them, by the same reader that
reads lines one by one. What is not of that form is left to that reader at once.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import astuple

from indextables.errors import ADVICE_ON_DAMAGE, CorruptLogError
from indextables.model.actions import KINDS, Action, AddAction, RemoveAction, action_from_wire

Source: TypeAlias = tuple[msgspec.Raw, str, int, int]
"""The text of an action, the file and version it stands in, and the number of its line."""


class _Keyed(msgspec.Struct, gc=False):
    path: str


_KEYED = msgspec.json.Decoder(_Keyed)
_READING = threading.Lock()
"""Held while an action is read: threads share what caches hold, and the text is gone once it is read."""
_LINE = msgspec.defstruct(
    "Line",
    [(key, msgspec.Raw | msgspec.UnsetType, msgspec.UNSET) for key in KINDS],
    forbid_unknown_fields=True,
    gc=False,
)
_DECODER: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_LINE)
_OTHERS = tuple(key for key in KINDS if key not in {"add", "remove"})


def decode_many(text: bytes, *, name: str, version: int) -> list[Action] | None:
    """The actions of JSON lines in order; None when a line needs the careful reader."""
    try:
        lines = _DECODER.decode_lines(text)
        return _actions(lines, name, version) if len(lines) == text.count(b"\n") else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _actions(lines: list[Any], name: str, version: int) -> list[Action] | None:
    unset, path_of, add, remove = msgspec.UNSET, _KEYED.decode, _UNREAD_ADD, _UNREAD_REMOVE
    actions: list[Action] = []
    for number, line in enumerate(lines, start=1):
        if astuple(line).count(unset) != len(_OTHERS) + 1:
            return None
        if line.add is not unset:
            actions.append(add(path_of(line.add).path, (line.add, name, version, number)))
        elif line.remove is not unset:
            actions.append(remove(path_of(line.remove).path, (line.remove, name, version, number)))
        else:
            found = [key for key in _OTHERS if getattr(line, key) is not unset]
            body = msgspec.json.decode(getattr(line, found[0]))
            action = None if body is None else action_from_wire(found[0], body)
            if action is None:
                return None
            actions.append(action)
    return actions


def source_of(action: Action) -> Source | None:
    """The text of an action that has not been looked at yet; None for any other."""
    with _READING:
        known = _SOURCES.get(type(action))
        return None if known is None else known(action)


def _whole(key: str, source: Source) -> Action | None:
    raw, name, version, number = source
    try:
        return action_from_wire(key, msgspec.json.decode(raw))
    except (CorruptLogError, RecursionError) as bad:
        raise CorruptLogError(
            f"line {number} of {name} (version {version}) cannot be read: {bad}. {ADVICE_ON_DAMAGE}",
            file=name, version=version, line=number,
        ) from bad  # fmt: skip


def _unread(kind: type[Any], key: str) -> Callable[[str, Source], Any]:
    """Make the class of actions of a kind that nobody has looked into, and the function that builds one.

    The text waits in the slot of `extra`. Every other attribute but the path finds its slot empty and comes
    to `__getattr__`, which reads the text; from then on the action is a plain one.
    """
    slots = {item.name: getattr(kind, item.name) for item in dataclasses.fields(kind)}
    set_path, set_source, source = slots["path"].__set__, slots["extra"].__set__, slots["extra"].__get__

    def read(action: Any) -> None:
        with _READING:
            if type(action) is kind:
                return
            whole = _whole(key, source(action))
            for slot, descriptor in slots.items():
                descriptor.__set__(action, getattr(whole, slot))
            object.__setattr__(action, "__class__", kind)

    class Unread(kind):  # type: ignore[misc]
        __slots__ = ()
        __hash__ = kind.__hash__

        def __getattr__(self, name: str) -> Any:
            read(self)
            return getattr(self, name)

        @property
        def extra(self) -> Any:
            read(self)
            return self.extra

        def __eq__(self, other: object) -> bool:
            read(self)
            return bool(self == other)

        def __repr__(self) -> str:
            read(self)
            return repr(self)

        def __reduce__(self) -> tuple[Any, ...]:
            read(self)
            return dataclasses.replace, (self,)

    # Whoever asks for its name learns what it is about to be.
    Unread.__name__ = Unread.__qualname__ = kind.__name__
    _SOURCES[Unread] = source
    new = object.__new__

    def build(path: str, text: Source) -> Any:
        action = new(Unread)
        set_path(action, path)
        set_source(action, text)
        return action

    return build


_SOURCES: dict[type[Any], Callable[[Any], Source]] = {}
_UNREAD_ADD = _unread(AddAction, "add")
_UNREAD_REMOVE = _unread(RemoveAction, "remove")
