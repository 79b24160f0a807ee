"""Where the production code would meet chance, threads or the machine, it meets the simulation instead.

Ids and jitter come from a seeded stream, and work that the code hands to a pool
of threads is done at once by the one who hands it over. Everything is put back
when the block ends.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import random
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Self

_MEMORY = "/dev/shm"


class InlinePool:
    """An executor whose work is done when it is handed in."""

    def __init__(self, *_args: Any, **_more: Any) -> None:
        pass

    def submit(self, work: Callable[..., Any], /, *args: Any, **more: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(work(*args, **more))
        except Exception as error:
            future.set_exception(error)
        return future

    def map(self, work: Callable[..., Any], *items: Any, **_more: Any) -> Iterator[Any]:
        return iter([work(*each) for each in zip(*items, strict=False)])

    def shutdown(self, *_args: Any, **_more: Any) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        pass


@contextlib.contextmanager
def deterministic() -> Iterator[random.Random]:
    """Nothing but the returned stream decides ids and jitter while the block runs; seed it per history."""
    chance = random.Random(0)
    kept: list[tuple[Any, str, Any]] = []

    def put(owner: Any, name: str, value: Any) -> None:
        kept.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    _import_everything()
    logging.disable(logging.CRITICAL)
    put(uuid, "uuid4", lambda: uuid.UUID(int=chance.getrandbits(128), version=4))
    put(random, "random", chance.random)
    for name, module in sorted(sys.modules.items()):
        if (
            name.startswith("indextables")
            and getattr(module, "ThreadPoolExecutor", None) is ThreadPoolExecutor
        ):
            put(module, "ThreadPoolExecutor", InlinePool)
    from indextables import runtime
    from indextables.split.read import read_ahead

    put(read_ahead, "_pools", {})
    if os.access(_MEMORY, os.W_OK):
        # Checkpoints are put together in temporary files, which need not reach a disk here.
        put(tempfile, "tempdir", _MEMORY)
    put(
        runtime.ThreadWorkers,
        "map",
        lambda _self, function, items, *, parallelism=None: map(function, list(items)),
    )
    try:
        yield chance
    finally:
        for owner, name, value in reversed(kept):
            setattr(owner, name, value)
        logging.disable(logging.NOTSET)


@functools.cache
def _import_everything() -> None:
    """Load what the verbs load on demand, so that none of it comes in behind the seams."""
    import importlib
    import pkgutil

    import indextables

    for package in ("log", "model", "storage", "split", "ops", "predicate"):
        root = importlib.import_module(f"indextables.{package}")
        for item in pkgutil.walk_packages(root.__path__, f"indextables.{package}."):
            if item.name.rpartition(".")[2] not in {"__main__", "page"}:
                importlib.import_module(item.name)
    assert indextables.Table
