"""Many lines of a log file at once: the quick way from JSON to actions.

A commit may hold thousands of adds of which a reader looks at the paths only.
So lines are decoded by types taken from the actions themselves, and the fields
of an add are moved into it at the first look at any of them. Lines that do not
have exactly the expected form (an unknown field, a number written as text) are
left to the reader of `actions`, which knows what to do with them or how to
complain.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, get_type_hints

import msgspec

from indextables.model.actions import KINDS, Action, AddAction, RemoveAction, action_from_wire


def _typed(kind: type[Action]) -> Any:
    """A struct with the wire names and types of an action, and nothing beside them."""
    hints = get_type_hints(kind)
    fields: list[Any] = []
    for item in dataclasses.fields(kind):
        if item.name == "extra":
            continue
        if item.default is not dataclasses.MISSING:
            fields.append((item.name, hints[item.name], item.default))
        elif item.default_factory is not dataclasses.MISSING:
            default = msgspec.field(default_factory=item.default_factory)
            fields.append((item.name, hints[item.name], default))
        else:
            fields.append((item.name, hints[item.name]))
    return msgspec.defstruct(
        f"{kind.__name__}Line", fields, rename="camel", forbid_unknown_fields=True, gc=False
    )


_ADD, _REMOVE = _typed(AddAction), _typed(RemoveAction)
_LINE = msgspec.defstruct(
    "Line",
    [
        (key, {"add": _ADD, "remove": _REMOVE}.get(key, msgspec.Raw) | msgspec.UnsetType, msgspec.UNSET)
        for key in KINDS
    ],
    forbid_unknown_fields=True,
    gc=False,
)
_DECODER: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_LINE)
_OTHERS = tuple(key for key in KINDS if key not in {"add", "remove"})


def decode_many(text: bytes) -> list[Action] | None:
    """The actions of JSON lines in order; None when a line needs the careful reader."""
    try:
        lines = _DECODER.decode_lines(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    unset = msgspec.UNSET
    actions: list[Action] = []
    for line in lines:
        if line.add is not unset:
            actions.append(_unread(line.add))
        elif line.remove is not unset:
            actions.append(RemoveAction(**{name: getattr(line.remove, name) for name in _REMOVE_FIELDS}))
        else:
            other = _other(line)
            if other is None:
                return None
            actions.append(other)
    return actions


_REMOVE_FIELDS: tuple[str, ...] = _REMOVE.__struct_fields__
_ADD_FIELDS: tuple[str, ...] = _ADD.__struct_fields__


def _other(line: Any) -> Action | None:
    found = [key for key in _OTHERS if getattr(line, key) is not msgspec.UNSET]
    if len(found) != 1:
        return None
    body = msgspec.json.decode(getattr(line, found[0]))
    return None if body is None else action_from_wire(found[0], body)


def _setter(name: str) -> Callable[[Any, Any], None]:
    set_slot: Callable[[Any, Any], None] = getattr(AddAction, name).__set__
    return set_slot


_SETTERS = tuple((name, _setter(name)) for name in _ADD_FIELDS if name != "path")
_SET_PATH, _SET_EXTRA, _LINE_OF = _setter("path"), _setter("extra"), AddAction.__dict__["extra"].__get__


class _UnreadAdd(AddAction):
    """An add of which only the path has been looked at; the decoded line waits in the slot of `extra`.

    Any other attribute finds its slot empty and comes here, and from then on it is a plain AddAction.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        _read(self)
        return getattr(self, name)

    @property
    def extra(self) -> Any:
        """No line decoded here has fields beyond the known ones."""
        _read(self)
        return self.extra

    def __eq__(self, other: object) -> bool:
        _read(self)
        return self == other

    __hash__ = AddAction.__hash__

    def __repr__(self) -> str:
        _read(self)
        return repr(self)

    def __reduce__(self) -> tuple[Any, ...]:
        _read(self)
        return dataclasses.replace, (self,)


# Whoever asks for its name learns what it is about to be.
_UnreadAdd.__name__ = _UnreadAdd.__qualname__ = AddAction.__name__


def _unread(line: Any) -> AddAction:
    add = object.__new__(_UnreadAdd)
    _SET_PATH(add, line.path)
    _SET_EXTRA(add, line)
    return add


def _read(add: AddAction) -> None:
    line = _LINE_OF(add)
    for name, set_slot in _SETTERS:
        set_slot(add, getattr(line, name))
    _SET_EXTRA(add, {})
    object.__setattr__(add, "__class__", AddAction)
