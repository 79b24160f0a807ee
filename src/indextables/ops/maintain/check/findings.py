"""What a check reports: findings, each with its consequence and the command that helps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from indextables.display.notebook import table_html
from indextables.log.format.dialect import NATIVE
from indextables.model.names import quoted_text
from indextables.ops.outcomes import rows_to_arrow

if TYPE_CHECKING:
    import pyarrow as pa

BROKEN = "BROKEN"
"""The newest version needs something that is lost or cannot be read."""
WARNING = "WARNING"
"""The newest version is complete; something else is lost, or works less well than it could."""
NOTE = "NOTE"
"""Something that takes up space but does no harm."""
OK = "OK"
_ORDER = (BROKEN, WARNING, NOTE)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be."""

    severity: str
    subject: str
    """The file, version or setting it is about."""
    finding: str
    consequence: str
    command: str = ""
    """The command to run; empty if nothing has to be done."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What CHECK INDEXTABLES found, the worst first."""

    table_path: str
    version: int
    """The newest version; -1 if none can be read."""
    findings: tuple[Finding, ...]
    looked_at: str
    """What was checked, in words."""

    @property
    def status(self) -> str:
        """OK, NOTE, WARNING or BROKEN: the worst that was found."""
        return self.findings[0].severity if self.findings else OK

    @property
    def is_broken(self) -> bool:
        """Whether the newest version cannot be read in full."""
        return self.status == BROKEN

    def _repr_html_(self) -> str:
        return table_html(self.to_arrow(), f"{self.status}: {self.table_path}")

    def to_arrow(self) -> pa.Table:
        """One row per finding; one row that says OK where there is none."""
        healthy = Finding(OK, self.table_path, f"nothing is wrong with {self.looked_at}", "")
        return rows_to_arrow(Finding, self.findings or (healthy,))


def worst_first(findings: list[Finding]) -> tuple[Finding, ...]:
    """The findings in the order they are shown."""
    return tuple(sorted(findings, key=lambda finding: _ORDER.index(finding.severity)))


@dataclass(frozen=True, slots=True)
class Commands:
    """The commands that mend a table, with its address filled in."""

    uri: str

    def repair(self, how: str = "") -> str:
        """REPAIR into a directory beside the log."""
        log = f"{self.uri}/{NATIVE.log_dir}"
        place = quoted_text(f"{log}_repaired")
        suffix = f" {how}" if how else ""
        return f"REPAIR INDEXFILES TRANSACTION LOG {quoted_text(log)} AT LOCATION {place}{suffix}"

    def on_table(self, verb: str, rest: str = "") -> str:
        """A command that names the table."""
        return f"{verb} {quoted_text(self.uri)}{rest}"
