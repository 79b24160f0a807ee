"""An object of Python's that the JVM calls, and nobody else.

The callback server of py4j listens on a port of this machine and calls any
method of an object that it is asked for. So an object that crosses has no other
method to call than `apply`, and answers only those who know its token.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from hmac import compare_digest
from typing import Any

Answerer = Callable[[Mapping[str, Any]], Any]


class Callback:
    """A function as the JVM calls it: a request in JSON, an answer, never an exception.

    `failed` makes an answer of a failure, which is an exception of `answer` or the text of a refusal.
    """

    __slots__ = ("_answer", "_failed", "_token")

    class Java:
        """Tells py4j which Java interface this object stands for."""

        implements = ("java.util.function.Function",)

    def __init__(self, answer: Answerer, failed: Callable[[Exception | str], Any], token: str) -> None:
        object.__setattr__(self, "_answer", answer)
        object.__setattr__(self, "_failed", failed)
        object.__setattr__(self, "_token", token)

    def __getattribute__(self, name: str) -> Any:
        # py4j itself looks at the class, before the object crosses.
        if name not in {"apply", "Java", "__class__"}:
            raise AttributeError(f"what the JVM calls has no {name!r}")
        return object.__getattribute__(self, name)

    def apply(self, request: str) -> Any:
        """Answer one request; a failure travels as a message that finds its way back to the exception."""
        token: str = object.__getattribute__(self, "_token")
        failed: Callable[[Exception | str], Any] = object.__getattribute__(self, "_failed")
        answer: Answerer = object.__getattribute__(self, "_answer")
        try:
            asked = json.loads(request)
            if not compare_digest(str(asked.get("token", "")).encode(), token.encode()):
                return failed("a caller that does not know the token asked IndexTables")
            return answer(asked)
        except Exception as error:  # noqa: BLE001  (an exception would reach the JVM as text and lose its type)
            return failed(error)
