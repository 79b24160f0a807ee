"""What actors set out to do, and what they were told came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from simulation.world import LOG_DIR

if TYPE_CHECKING:
    from simulation.questions import Question

ACKNOWLEDGED = "acknowledged"
NOTHING = "nothing"
"""Returned, and said that nothing was to be done."""
FAILED = "failed"
"""Raised, and did not say that the outcome is unknown: it claims that nothing was committed."""
UNKNOWN = "unknown"
CRASHED = "crashed"


@dataclass(eq=False)
class Intent:
    """One call of a verb by one actor."""

    number: int
    who: str
    verb: str
    began_ms: int
    operation: str | None = None
    """The operation that its commit carries; None where the verb commits nothing of its own."""
    rows: tuple[Any, ...] = ()
    """Rows it means to add."""
    sources: tuple[str, ...] = ()
    """Files it means to take away."""
    marked: dict[str, frozenset[int]] = field(default_factory=dict)
    """The rows it means to delete by vectors, by their file and numbers."""
    matches: Callable[[Any], bool] | None = None
    """Which rows its condition is true for."""
    version: int | None = None
    """The version it restores or was made from."""
    change: Callable[[Any], Any] | None = None
    """What becomes of a row that its condition is true for."""
    effect: Callable[[Counter[Any]], Counter[Any]] | None = None
    """What becomes of all rows, where the verb promises it whatever others do."""
    properties: dict[str, str | None] = field(default_factory=dict)
    """Properties it means to set, or to remove."""
    txn: tuple[str, int] | None = None
    outcome: str = CRASHED
    error: BaseException | None = None
    returned: int | None = None
    """The version it was told it had written."""
    ended_ms: int = 0
    after_swap: bool = False
    """Whether a repaired log was put in place before: a handle may not have noticed yet."""
    faults: list[tuple[str, str, str]] = field(default_factory=list)

    def met(self, fault: str, operation: str, path: str) -> None:
        """Remember a fault that was injected on the way."""
        self.faults.append((fault, operation, path))

    @property
    def doubtful(self) -> bool:
        """Whether a put of a version, or the look at what became of it, got no honest answer or came late."""
        return any(
            fault == "pause" or path == LOG_DIR or (path.endswith(".json") and ".checkpoint" not in path)
            for fault, _, path in self.faults
        )

    def __str__(self) -> str:
        told = f" as version {self.returned}" if self.returned is not None else ""
        reason = f" ({type(self.error).__name__}: {self.error})" if self.error is not None else ""
        return f"#{self.number} {self.verb} by {self.who}: {self.outcome}{told}{reason}"


@dataclass(frozen=True)
class Observation:
    """What a reader was given."""

    intent: Intent
    version: int | None
    """None where the reader was not told."""
    paths: frozenset[str]
    newest: bool
    """Whether it had asked for the newest version."""
    staleness_ms: int = 0
    question: Question | None = None
    answer: Any = None
    """What the question was answered with."""
    as_of_ms: int | None = None
    """The moment it had asked for."""
    hidden: Mapping[str, frozenset[int]] | None = None
    """The deleted rows of its files, where it was told."""


@dataclass(frozen=True)
class Found:
    """What a log said about a commit."""

    intent: Intent
    commit_id: str
    version: int | None


@dataclass
class Followed:
    """What one follower was given."""

    who: str
    follower: Any
    first: int
    rows: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class Violation:
    """A promise that was broken."""

    promise: str
    what: str

    def __str__(self) -> str:
        return f"{self.promise}: {self.what}"
