"""Our data classes behave like those of the standard library, field by field and method by method."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import field
from typing import ClassVar

import pytest

from indextables import records


def point(decorate):
    class Point:
        """A place with a name, and a distance that `__post_init__` works out."""

        __qualname__ = "Point"
        x: int
        y: int = 0
        tags: list[str] = field(default_factory=list, compare=False, repr=False)
        distance: int = field(init=False, default=-1)
        unit: ClassVar[str] = "m"

        def __post_init__(self):
            if self.x < 0:
                raise ValueError("x is below zero")
            object.__setattr__(self, "distance", self.x + self.y)

    return decorate(frozen=True, slots=True)(Point)


BOTH = pytest.mark.parametrize("decorate", [dataclasses.dataclass, records.dataclass], ids=["stdlib", "ours"])


@BOTH
def test_values_are_made_shown_and_compared_by_their_fields(decorate):
    kind = point(decorate)
    made = kind(1, y=2, tags=["a"])
    assert repr(made) == "Point(x=1, y=2, distance=3)"
    assert made == kind(1, 2) and made != kind(1, 3) and made != (1, 2, 3)
    assert hash(made) == hash(kind(1, 2))
    assert kind(1).tags is not kind(1).tags
    assert kind.unit == "m"


@BOTH
def test_wrong_arguments_are_refused_and_checks_are_made(decorate):
    kind = point(decorate)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        kind()
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        kind(1, z=2)
    with pytest.raises(ValueError, match="below zero"):
        kind(-1)


@BOTH
def test_a_frozen_value_cannot_be_changed_but_copied_and_replaced(decorate):
    made = point(decorate)(1, 2)
    with pytest.raises(dataclasses.FrozenInstanceError, match="'x'"):
        made.x = 5
    with pytest.raises(dataclasses.FrozenInstanceError, match="'x'"):
        del made.x
    assert made.x == 1
    assert copy.deepcopy(made) == made
    assert dataclasses.replace(made, y=7) == type(made)(1, 7)
    assert dataclasses.asdict(made) == {"x": 1, "y": 2, "tags": [], "distance": 3}
    assert not hasattr(made, "__dict__")


@records.dataclass(frozen=True, slots=True)
class Named:
    """What can be pickled has a module."""

    name: str
    size: int = 1


@records.dataclass(frozen=True, slots=True)
class Sized(Named):
    """A class with fields of its own after those it inherits."""

    deep: bool = False


@records.dataclass(slots=True, kw_only=True)
class Counter:
    """A value that changes."""

    seen: int = 0


def test_values_travel_between_processes():
    assert pickle.loads(pickle.dumps(Named("a", 3))) == Named("a", 3)


def test_inherited_fields_come_first_and_classes_do_not_compare_as_equal():
    assert repr(Sized("a", 2, deep=True)) == "Sized(name='a', size=2, deep=True)"
    assert Sized("a", 1) != Named("a", 1)


def test_a_value_that_is_not_frozen_changes_and_has_no_hash():
    counter = Counter(seen=1)
    counter.seen += 1
    assert counter == Counter(seen=2)
    with pytest.raises(TypeError, match="unhashable"):
        hash(counter)
    with pytest.raises(TypeError, match="positional"):
        Counter(1)
