"""Data classes that cost little to define.

`dataclasses.dataclass` writes and compiles half a dozen methods for every class, even for one of which a
program never makes a value: a sixth of the time of a short command. The decorator here takes the same
arguments and makes the same kind of class, on which `fields`, `replace` and `asdict` work. It shares every
method but `__init__`, and compiles that when the first value is made.
"""

from __future__ import annotations

import dataclasses
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414
else:

    def dataclass(
        *, frozen: bool = False, slots: bool = False, kw_only: bool = False, eq: bool = True
    ) -> Any:
        """Make a class of fields, as `dataclasses.dataclass` does."""

        def define(cls: type) -> type:
            made = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(cls)
            added = {"__repr__": _repr}
            if eq:
                added |= _comparison(made, hashed=frozen)
            if frozen:
                added |= _FROZEN
            for name, method in added.items():
                if name not in cls.__dict__ or (name == "__hash__" and cls.__dict__[name] is None):
                    setattr(made, name, method)
            if "__init__" not in cls.__dict__:
                made.__init__ = _init_when_used(made, frozen=frozen)
            return made

        return define


def _init_when_used(cls: Any, *, frozen: bool) -> Any:
    """An `__init__` that takes its own place with the compiled one when the first value is made."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        if cls.__init__ is __init__:
            cls.__init__ = _compiled_init(cls, frozen=frozen)
        cls.__init__(self, *args, **kwargs)

    return __init__


def _compiled_init(cls: Any, *, frozen: bool) -> Any:
    """The `__init__` that `dataclasses` writes for a class with the same fields."""
    fields = dataclasses.fields(cls)
    body = {"__module__": cls.__module__, "__doc__": cls.__doc__}
    body["__annotations__"] = {item.name: item.type for item in fields}
    body |= {item.name: item for item in fields}
    if hasattr(cls, "__post_init__"):
        body["__post_init__"] = cls.__post_init__
    twin: Any = dataclasses.dataclass(repr=False, eq=False, frozen=frozen)(type(cls.__name__, (), body))
    return twin.__init__


def _repr(self: Any) -> str:
    shown = (f"{item.name}={getattr(self, item.name)!r}" for item in dataclasses.fields(self) if item.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _comparison(cls: Any, *, hashed: bool) -> dict[str, Any]:
    """Equality by class and fields, and a hash that goes with it; without one, values have no hash."""
    names = [item.name for item in dataclasses.fields(cls) if item.compare]
    values: Any = attrgetter(*names) if names else lambda _: ()

    def __eq__(self: Any, other: object) -> Any:  # noqa: N807
        if other.__class__ is not self.__class__:
            return NotImplemented
        return (values(self),) == (values(other),)

    def __hash__(self: Any) -> int:  # noqa: N807
        return hash(values(self))

    return {"__eq__": __eq__, "__hash__": __hash__ if hashed else None}


def _refuse_change(self: Any, name: str, *_: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot change field {name!r} of {type(self).__qualname__}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, item.name) for item in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for item, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, item.name, value)


_FROZEN = {
    "__setattr__": _refuse_change,
    "__delattr__": _refuse_change,
    "__getstate__": _state,
    "__setstate__": _set_state,
}
