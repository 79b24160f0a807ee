"""The values of a request, each checked to have the form that its place needs.

JSON can hold anything anywhere. A value of another form is refused by the name of
its place, so that nothing below has to expect it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from indextables.errors import QueryError

DEEPEST = 100
"""How deeply the objects and lists of a body may be nested."""
_WIDEST = 1 << 63
_WHOLE = re.compile(r"-?\d{1,19}", re.ASCII)


def refused(reason: str) -> QueryError:
    """The error for what cannot be answered exactly."""
    return QueryError(
        f"{reason}; the page serve.md of the documentation lists what is supported", elastic=True
    )


def document(text: bytes) -> dict[str, Any]:
    """A body, read: a JSON object whose texts are Unicode and whose depth is bounded."""
    try:
        body = json.loads(text, parse_constant=_no_constant)
        json.dumps(body, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise refused("the body is not JSON, or nested too deeply") from None
    level, depth = [body], 0
    while level:
        depth += 1
        level = [item for value in level for item in _inside(value)]
    if depth > DEEPEST:
        raise refused(f"the body is nested more than {DEEPEST} levels deep")
    return dict(object_at(body, "the body"))


def object_at(value: Any, place: str) -> Mapping[str, Any]:
    """An object; nothing stands for an empty one."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise refused(f"[{place}] must be an object, not {_form(value)}")
    return value


def list_at(value: Any, place: str) -> Sequence[Any]:
    """A list; a single value stands for a list of one, and nothing for an empty one."""
    if isinstance(value, list):
        return value
    return [] if value is None else [object_or_value(value, place)]


def object_or_value(value: Any, place: str) -> Any:
    """Anything but a list or nothing."""
    if value is None or isinstance(value, list):
        raise refused(f"[{place}] must not be {_form(value)}")
    return value


def text_at(value: Any, place: str) -> str:
    """A text."""
    if not isinstance(value, str):
        raise refused(f"[{place}] must be a text, not {_form(value)}")
    return value


def texts_at(value: Any, place: str) -> list[str]:
    """Texts in a list, or one text."""
    return [text_at(item, place) for item in list_at(value, place)]


def value_at(value: Any, place: str) -> Any:
    """A text, a number or a truth."""
    if not isinstance(value, (str, int, float, bool)):
        raise refused(f"[{place}] must be a single value, not {_form(value)}")
    return value


def whole_at(value: Any, place: str) -> int:
    """A whole number, as a number or as text."""
    number = value
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        number = int(value)
    if not isinstance(number, int) or isinstance(number, bool) or abs(number) >= _WIDEST:
        raise refused(f"[{place}] must be a whole number, not {value!r:.60}")
    return number


def flag_at(value: Any, place: str) -> bool:
    """True or false, as a truth or as text; a URL parameter without a value is true."""
    spelled = str(value).lower() if isinstance(value, (bool, str)) else None
    if spelled not in ("true", "false", ""):
        raise refused(f"[{place}] must be true or false, not {value!r:.60}")
    return spelled != "false"


def _inside(value: Any) -> Sequence[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return value if isinstance(value, list) else []


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _form(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, Mapping):
        return "an object"
    return "a list" if isinstance(value, list) else f"{value!r:.60}"
