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

_LEFT_OUT = object()
"""Stands for an argument that is not given, where a field has a factory instead of a default."""

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414
else:

    def dataclass(
        *, frozen: bool = False, slots: bool = False, kw_only: bool = False, eq: bool = True
    ) -> Any:
        """Make a class of fields, as `dataclasses.dataclass` does."""

        def define(cls: type) -> type:
            record = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(
                cls
            )
            added = {"__repr__": _repr}
            if eq:
                added |= _comparison(record, hashed=frozen)
            if frozen:
                added |= _FROZEN
            for name, method in added.items():
                if name not in cls.__dict__ or (name == "__hash__" and cls.__dict__[name] is None):
                    setattr(record, name, method)
            if "__init__" not in cls.__dict__:
                record.__init__ = _init_when_used(record, frozen=frozen)
            return record

        return define


def _init_when_used(cls: Any, *, frozen: bool) -> Any:
    """An `__init__` that takes its own place with the compiled one when the first value is made."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        if cls.__init__ is __init__:
            cls.__init__ = _compiled_init(cls, frozen=frozen)
        cls.__init__(self, *args, **kwargs)

    return __init__


def _compiled_init(cls: Any, *, frozen: bool) -> Any:
    """An `__init__` that sets every field, with the defaults and factories of `dataclasses.field`."""
    namespace: dict[str, Any] = {"_left_out": _LEFT_OUT, "_set": object.__setattr__}
    positional: list[str] = []
    keyword_only: list[str] = []
    body: list[str] = []
    for item in dataclasses.fields(cls):
        name, value, default = item.name, item.name, ""
        if item.default is not dataclasses.MISSING:
            namespace[f"_default_{name}"], default = item.default, f"=_default_{name}"
            value = name if item.init else f"_default_{name}"
        elif item.default_factory is not dataclasses.MISSING:
            namespace[f"_make_{name}"], default = item.default_factory, "=_left_out"
            value = f"_make_{name}() if {name} is _left_out else {name}" if item.init else f"_make_{name}()"
        elif not item.init:
            # Set by `__post_init__`.
            continue
        if item.init:
            (keyword_only if item.kw_only else positional).append(name + default)
        body.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    arguments = ", ".join(["self", *positional, *(["*", *keyword_only] if keyword_only else [])])
    exec(f"def __init__({arguments}):\n " + "\n ".join(body or ["pass"]), namespace)  # noqa: S102 - as `dataclasses` does
    init = namespace["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {item.name: item.type for item in dataclasses.fields(cls) if item.init}
    return init


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
