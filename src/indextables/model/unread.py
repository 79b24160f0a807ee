"""Actions that are read at the first look: a commit may hold thousands of which only the paths are wanted.

Such an action has its path and whatever its fields can be read from. All other slots are empty at first.
Python asks `__getattr__` for an attribute that is not there: that fills every slot, and from then on the
action is like any other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

U = TypeVar("U", bound="Unread")


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


_new, _put = object.__new__, object.__setattr__


def unread(kind: type[U], path: str, source: Any) -> U:
    """An action that knows its path, and from its source the rest."""
    action = _new(kind)
    _put(action, "path", path)
    _put(action, "source", source)
    return action
