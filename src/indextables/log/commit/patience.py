"""Pauses between attempts, and looks at the log that are repeated before they count as failed.

Pauses are asked of the runtime's clock and decide nothing: they only spread writers and give a
store time to recover.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeVar

from indextables.errors import StorageError
from indextables.options import TransactionOptions
from indextables.runtime import Clock

T = TypeVar("T")

MOST_LOOKS = 5
"""So often is the log looked at before its writer says that it does not know."""
_JITTER = 0.1


def delay_ms(transaction: TransactionOptions, failures: int, jitter: float) -> float:
    """The pause in ms after `failures` failures in a row; `jitter` is a number from 0 to 1."""
    plain = min(transaction.base_delay_ms * 2 ** min(failures - 1, 62), transaction.max_delay_ms)
    return float(plain) * (1 + _JITTER * jitter)


def pause(transaction: TransactionOptions, failures: int, clock: Clock) -> None:
    """Wait after a failure, longer after each."""
    jitter = random.random()  # noqa: S311 - spreading writers, not a secret
    clock.sleep_s(delay_ms(transaction, failures, jitter) / 1000)


def look_patiently(look: Callable[[], T], transaction: TransactionOptions, clock: Clock) -> T:
    """What a look at the store shows; one that fails is repeated, and the last failure is raised."""
    for failures in range(1, MOST_LOOKS):
        try:
            return look()
        except StorageError:
            pause(transaction, failures, clock)
    return look()
