"""A clock that stands still until a test moves it, and on which sleeping takes no time."""

from __future__ import annotations

from indextables.runtime import Runtime

START_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


class FixedClock:
    """Time under a test's control; `slept_s` remembers every pause asked for."""

    def __init__(self, now_ms: int = START_MS) -> None:
        self._now_ms = now_ms
        self.slept_s: list[float] = []

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_s(self) -> float:
        return self._now_ms / 1000

    def sleep_s(self, seconds: float) -> None:
        self.slept_s.append(seconds)
        self.advance(ms=round(seconds * 1000))

    def advance(self, *, ms: int = 0, s: float = 0, hours: float = 0, days: float = 0) -> None:
        self._now_ms += ms + round(s * 1000) + round(hours * HOUR_MS) + round(days * DAY_MS)


def runtime_at(clock: FixedClock, **more: object) -> Runtime:
    """A local runtime whose time is the given clock's."""
    return Runtime(clock=clock, **more)
