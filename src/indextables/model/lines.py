"""Decodes many lines of a log file at once, and reads most fields only when they are needed.

A commit may hold thousands of adds and removes of which a reader uses only the paths. So
each line is only checked to be valid JSON with one action and a path; its other fields
are read when one of them is first used, by the same reader that handles single lines. A
line that does not pass the check goes to that reader at once.

Such an action has its path and a `source`; its other slots are empty. For an empty slot
Python calls `__getattr__`, which fills all slots; from then on the action is like any
other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, TypeAlias, TypeVar

import msgspec
from msgspec.structs import astuple

from indextables.errors import ADVICE_ON_DAMAGE, CorruptLogError
from indextables.model.actions import KINDS, Action, AddAction, RemoveAction, action_from_wire

LineSource: TypeAlias = tuple[msgspec.Raw, str, int, int]
"""The text of an action, the file and version that hold it, and its line number."""


LazyKind = TypeVar("LazyKind", bound="LazyAction")
_new, _put = object.__new__, object.__setattr__


class LazyAction:
    """An action whose fields are decoded on first use; it compares, prints and pickles as a plain action."""

    __slots__ = ()
    plain_kind: ClassVar[type[Any]]
    """The action class it represents."""
    field_names: ClassVar[tuple[str, ...]]
    source: Any
    """A slot of the subclass: the text from which the fields are read."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for kind in cls.__mro__:
            if "__dataclass_fields__" in vars(kind):
                cls.plain_kind = kind
                cls.field_names = tuple(item.name for item in dataclasses.fields(kind))
                # Reports and error messages show the plain action's class name.
                cls.__name__ = cls.__qualname__ = kind.__name__
                break

    def __new__(cls, **fields: Any) -> Any:
        """Make a plain action: `dataclasses.replace` calls this with the fields of the changed action."""
        return cls.plain_kind(**fields)

    def read_fields(self) -> Mapping[str, Any]:
        """The fields by name; empty if another thread has read them meanwhile."""
        raise NotImplementedError

    def plain(self) -> Any:
        """The same action as a plain one, with all fields read."""
        return self.plain_kind(**{name: getattr(self, name) for name in self.field_names})

    def __getattr__(self, name: str) -> Any:
        if name not in self.field_names:
            raise AttributeError(f"an action of kind {type(self).__name__} has no field {name!r}")
        for field, value in self.read_fields().items():
            _put(self, field, value)
        return object.__getattribute__(self, name)

    def __eq__(self, other: object) -> bool:
        return bool(self.plain() == (other.plain() if isinstance(other, LazyAction) else other))

    def __hash__(self) -> int:
        return hash(self.plain())

    def __repr__(self) -> str:
        return repr(self.plain())

    def __reduce__(self) -> tuple[Any, ...]:
        return dataclasses.replace, (self.plain(),)


def lazy_action(kind: type[LazyKind], path: str, source: Any) -> LazyKind:
    """An action that has only its path so far, and `source` to read the rest from."""
    action = _new(kind)
    _put(action, "path", path)
    _put(action, "source", source)
    return action


class _PathOnly(msgspec.Struct, gc=False):
    path: str


_PATH_ONLY = msgspec.json.Decoder(_PathOnly)
_LINE = msgspec.defstruct(
    "Line",
    [(key, msgspec.Raw | msgspec.UnsetType, msgspec.UNSET) for key in KINDS],
    forbid_unknown_fields=True,
    gc=False,
)
_DECODER: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_LINE)
_OTHERS = tuple(key for key in KINDS if key not in {"add", "remove"})


def decode_many(text: bytes, *, name: str, version: int) -> list[Action] | None:
    """The actions of JSON lines in order; None when a line has to be read by the single-line reader."""
    try:
        lines = _DECODER.decode_lines(text)
        return _actions(lines, name, version) if len(lines) == text.count(b"\n") else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _actions(lines: list[Any], name: str, version: int) -> list[Action] | None:
    unset, path_of = msgspec.UNSET, _PATH_ONLY.decode
    actions: list[Action] = []
    for number, line in enumerate(lines, start=1):
        if astuple(line).count(unset) != len(_OTHERS) + 1:
            return None
        if line.add is not unset:
            source = (line.add, name, version, number)
            actions.append(lazy_action(_LazyAdd, path_of(line.add).path, source))
        elif line.remove is not unset:
            source = (line.remove, name, version, number)
            actions.append(lazy_action(_LazyRemove, path_of(line.remove).path, source))
        else:
            keys = [key for key in _OTHERS if getattr(line, key) is not unset]
            body = msgspec.json.decode(getattr(line, keys[0]))
            action = None if body is None else action_from_wire(keys[0], body)
            if action is None:
                return None
            actions.append(action)
    return actions


class _LazyLine(LazyAction):
    """An action of a log file whose fields have not been read; its text is in `source`."""

    __slots__ = ()
    key: ClassVar[str]
    source: LineSource | None

    def read_fields(self) -> Mapping[str, Any]:
        source = self.source
        if source is None:
            return {}
        whole = _whole(self.key, source)
        # The text is dropped last: a thread that finds it gone finds the fields in their slots.
        return {**{name: getattr(whole, name) for name in self.field_names}, "source": None}


class _LazyAdd(_LazyLine, AddAction):
    __slots__ = ("source",)
    key = "add"


class _LazyRemove(_LazyLine, RemoveAction):
    __slots__ = ("source",)
    key = "remove"


def source_of(action: Action) -> LineSource | None:
    """The text of an action whose fields have not been read; None for any other action."""
    return action.source if isinstance(action, _LazyLine) else None


def _whole(key: str, source: LineSource) -> Action | None:
    raw, name, version, number = source
    try:
        return action_from_wire(key, msgspec.json.decode(raw))
    except (CorruptLogError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as bad:
        raise CorruptLogError(
            f"line {number} of {name} (version {version}) cannot be read: {bad}. {ADVICE_ON_DAMAGE}",
            file=name, version=version, line=number,
        ) from bad  # fmt: skip
