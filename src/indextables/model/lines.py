"""Many lines of a log file at once: the quick way from JSON to actions.

A commit may hold thousands of adds and removes of which a reader looks at the
paths only. So a line is checked to be JSON with one action and a path, and its
other fields are read at the first look at any of them, by the same reader that
reads lines one by one. What is not of that form is left to that reader at once.

An action that is read late has its path and a source; its other slots are empty.
Python asks `__getattr__` for an attribute that is not there: that fills every
slot, and from then on the action is like any other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, TypeAlias, TypeVar

import msgspec
from msgspec.structs import astuple

from indextables.errors import ADVICE_ON_DAMAGE, CorruptLogError
from indextables.model.actions import KINDS, Action, AddAction, RemoveAction, action_from_wire

Source: TypeAlias = tuple[msgspec.Raw, str, int, int]
"""The text of an action, the file and version it stands in, and the number of its line."""


U = TypeVar("U", bound="Unread")
_new, _put = object.__new__, object.__setattr__


class Unread:
    """What makes a subclass of an action be read late; it equals, prints and pickles as a plain action."""

    __slots__ = ()
    plain_kind: ClassVar[type[Any]]
    """The class of the action it stands for."""
    field_names: ClassVar[tuple[str, ...]]
    source: Any
    """A slot of the subclass: what the fields are read from."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for kind in cls.__mro__:
            if "__dataclass_fields__" in vars(kind):
                cls.plain_kind = kind
                cls.field_names = tuple(item.name for item in dataclasses.fields(kind))
                # Whoever asks for its name learns what kind of action it is.
                cls.__name__ = cls.__qualname__ = kind.__name__
                break

    def __new__(cls, **fields: Any) -> Any:
        """A plain action: `dataclasses.replace` comes here with the fields of the changed one."""
        return cls.plain_kind(**fields)

    def read_fields(self) -> Mapping[str, Any]:
        """The fields by name; nothing where another thread has read them meanwhile."""
        raise NotImplementedError

    def plain(self) -> Any:
        """The same action, all of it read."""
        return self.plain_kind(**{name: getattr(self, name) for name in self.field_names})

    def __getattr__(self, name: str) -> Any:
        if name not in self.field_names:
            raise AttributeError(f"an action of kind {type(self).__name__} has no field {name!r}")
        for field, value in self.read_fields().items():
            _put(self, field, value)
        return object.__getattribute__(self, name)

    def __eq__(self, other: object) -> bool:
        return bool(self.plain() == (other.plain() if isinstance(other, Unread) else other))

    def __hash__(self) -> int:
        return hash(self.plain())

    def __repr__(self) -> str:
        return repr(self.plain())

    def __reduce__(self) -> tuple[Any, ...]:
        return dataclasses.replace, (self.plain(),)


def unread(kind: type[U], path: str, source: Any) -> U:
    """An action that knows its path, and from its source the rest."""
    action = _new(kind)
    _put(action, "path", path)
    _put(action, "source", source)
    return action


class _Keyed(msgspec.Struct, gc=False):
    path: str


_KEYED = msgspec.json.Decoder(_Keyed)
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
    unset, path_of = msgspec.UNSET, _KEYED.decode
    actions: list[Action] = []
    for number, line in enumerate(lines, start=1):
        if astuple(line).count(unset) != len(_OTHERS) + 1:
            return None
        if line.add is not unset:
            source = (line.add, name, version, number)
            actions.append(unread(_UnreadAdd, path_of(line.add).path, source))
        elif line.remove is not unset:
            source = (line.remove, name, version, number)
            actions.append(unread(_UnreadRemove, path_of(line.remove).path, source))
        else:
            found = [key for key in _OTHERS if getattr(line, key) is not unset]
            body = msgspec.json.decode(getattr(line, found[0]))
            action = None if body is None else action_from_wire(found[0], body)
            if action is None:
                return None
            actions.append(action)
    return actions


class _Unread(Unread):
    """An action of a log file that nobody has looked into: its text waits in `source`."""

    __slots__ = ()
    key: ClassVar[str]
    source: Source | None

    def read_fields(self) -> Mapping[str, Any]:
        source = self.source
        if source is None:
            return {}
        whole = _whole(self.key, source)
        # The text goes last: a thread that finds it gone finds the fields in their slots.
        return {**{name: getattr(whole, name) for name in self.field_names}, "source": None}


class _UnreadAdd(_Unread, AddAction):
    __slots__ = ("source",)
    key = "add"


class _UnreadRemove(_Unread, RemoveAction):
    __slots__ = ("source",)
    key = "remove"


def source_of(action: Action) -> Source | None:
    """The text of an action that has not been looked at yet; None for any other."""
    return action.source if isinstance(action, _Unread) else None


def _whole(key: str, source: Source) -> Action | None:
    raw, name, version, number = source
    try:
        return action_from_wire(key, msgspec.json.decode(raw))
    except (CorruptLogError, RecursionError) as bad:
        raise CorruptLogError(
            f"line {number} of {name} (version {version}) cannot be read: {bad}. {ADVICE_ON_DAMAGE}",
            file=name, version=version, line=number,
        ) from bad  # fmt: skip
