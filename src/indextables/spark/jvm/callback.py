"""A Python object that only our own JVM code can call.

The callback server of py4j listens on a port of this machine and calls any method of an
object by request. So an object that is passed to the JVM has no method but `apply`, and
answers only requests that carry its token.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from hmac import compare_digest
from typing import Any

Answerer = Callable[[Mapping[str, Any]], Any]


class Callback:
    """A function the JVM can call: takes a request in JSON, returns an answer, never raises.

    `failed` turns a failure into an answer; it gets the exception of `answer`, or the text of a refusal.
    """

    __slots__ = ("_answer", "_failed", "_token")

    class Java:
        """Tells py4j which Java interface this object implements."""

        implements = ("java.util.function.Function",)

    def __init__(self, answer: Answerer, failed: Callable[[Exception | str], Any], token: str) -> None:
        object.__setattr__(self, "_answer", answer)
        object.__setattr__(self, "_failed", failed)
        object.__setattr__(self, "_token", token)

    def __getattribute__(self, name: str) -> Any:
        # py4j looks this up on the class before it passes the object to the JVM.
        if name not in {"apply", "Java", "__class__"}:
            raise AttributeError(f"what the JVM calls has no {name!r}")
        return object.__getattribute__(self, name)

    def apply(self, request: str) -> Any:
        """Answer one request; a failure becomes a message that is later turned back into the exception."""
        token: str = object.__getattribute__(self, "_token")
        failed: Callable[[Exception | str], Any] = object.__getattribute__(self, "_failed")
        answer: Answerer = object.__getattribute__(self, "_answer")
        try:
            decoded = json.loads(request)
            if not compare_digest(str(decoded.get("token", "")).encode(), token.encode()):
                return failed("a caller that does not know the token asked IndexTables")
            return answer(decoded)
        except Exception as error:  # noqa: BLE001  (an exception would reach the JVM as text and lose its type)
            return failed(error)
