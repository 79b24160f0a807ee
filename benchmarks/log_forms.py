"""What is recognised in real logs: `python -m benchmarks.log_forms loghub.tsv.gz`, then scripts/write_pages.py.

The file has a system and a line per row, 2,000 lines each of 16 systems of Loghub (Zhu et al., ISSRE 2023). The
form of a system's lines is found from the first half of them, and what it makes of the second half is held against
patterns that were written for that system alone.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from indextables.ingest.log_forms import log_form
from indextables.ingest.log_lines import LineReader
from indextables.ingest.log_times import Years

RESULTS = Path(__file__).parent / "results" / "log_forms.json"
FIELDS = ("ts", "level", "host", "program", "pid")
_HEAD = r"(?:(?P<host>\S+) (?P<program>[^\[:]+?)(?:\[(?P<pid>\d+)\])?: )?"


@dataclass(frozen=True, slots=True)
class Truth:
    """How the lines of one system are written: a pattern, and how its time is read."""

    pattern: str
    time: str
    """A format of `strptime`, or `epoch`."""

    def fields(self, line: str) -> dict[str, Any]:
        """The values of a line."""
        match = re.match(self.pattern, line)
        if match is None:
            return {}
        values: dict[str, Any] = {name: text for name, text in match.groupdict().items() if text}
        if "pid" in values:
            values["pid"] = int(values["pid"])
        values["ts"] = self._instant(values["ts"])
        return values

    def _instant(self, text: str) -> datetime:
        if self.time == "epoch":
            return datetime.fromtimestamp(int(text), UTC)
        if ":%f" in self.time:
            # Milliseconds without leading zeros.
            whole, _, millis = text.rpartition(":")
            text = f"{whole}:{int(millis):03}"
        has_year = any(sign in self.time for sign in ("%Y", "%y"))
        text, form = (text, self.time) if has_year else (f"2024 {text}", f"%Y {self.time}")
        return datetime.strptime(text, form).replace(tzinfo=UTC)


TRUTH = {
    "Android": Truth(r"(?P<ts>\S+ \S+)\s+(?P<pid>\d+)\s+\d+ (?P<level>[A-Z]) (?P<program>[^:]*?)\s*: ", "%m-%d %H:%M:%S.%f"),
    "Apache": Truth(r"\[(?P<ts>.{24})\] \[(?P<level>\w+)\] ", "%a %b %d %H:%M:%S %Y"),
    "BGL": Truth(r"\S+ (?P<ts>\d+) \S+ (?P<host>\S+) \S+ \S+ \S+ \S+ (?P<level>[A-Z]+) ", "epoch"),
    "HDFS": Truth(r"(?P<ts>\d{6} \d{6}) (?P<pid>\d+) (?P<level>\w+) (?P<program>[^:]+): ", "%y%m%d %H%M%S"),
    "HPC": Truth(r"\d+ (?P<host>\S+) \S+ \S+ (?P<ts>\d+) \d ", "epoch"),
    "Hadoop": Truth(r"(?P<ts>\S+ \S+) (?P<level>\w+) \[.*?\] (?P<program>[\w.$]+): ", "%Y-%m-%d %H:%M:%S,%f"),
    "HealthApp": Truth(r"(?P<ts>[^|]+)\|(?P<program>[^|]+)\|(?P<pid>\d+)\|", "%Y%m%d-%H:%M:%S:%f"),
    "Linux": Truth(rf"(?P<ts>\w+ +\d+ \S+) {_HEAD}", "%b %d %H:%M:%S"),
    "Mac": Truth(rf"(?P<ts>\w+ +\d+ \S+) {_HEAD}", "%b %d %H:%M:%S"),
    "OpenSSH": Truth(rf"(?P<ts>\w+ +\d+ \S+) {_HEAD}", "%b %d %H:%M:%S"),
    "OpenStack": Truth(r"\S+ (?P<ts>\S+ \S+) (?P<pid>\d+) (?P<level>\w+) (?P<program>[\w.]+) ", "%Y-%m-%d %H:%M:%S.%f"),
    "Proxifier": Truth(r"\[(?P<ts>[^\]]+)\] (?P<program>\S+)(?: \*64)? - ", "%m.%d %H:%M:%S"),
    "Spark": Truth(r"(?P<ts>\S+ \S+) (?P<level>\w+) (?P<program>[^:]+): ", "%y/%m/%d %H:%M:%S"),
    "Thunderbird": Truth(rf"\S+ (?P<ts>\d+) \S+ \S+ \w+ +\d+ [\d:]+ {_HEAD}", "epoch"),
    "Windows": Truth(r"(?P<ts>\S+ [\d:]+), (?P<level>\w+)\s+(?P<program>\w+)", "%Y-%m-%d %H:%M:%S"),
    "Zookeeper": Truth(r"(?P<ts>\S+ \S+) - (?P<level>\w+)\s+\[.*:(?P<program>[\w$]+)@-?\d+\] - ", "%Y-%m-%d %H:%M:%S,%f"),
}  # fmt: skip


def lines_of(path: Path) -> dict[str, list[str]]:
    """The lines of each system, in their order."""
    lines: dict[str, list[str]] = {}
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as packed:
        for row in packed:
            system, _, line = row.rstrip("\n").partition("\t")
            lines.setdefault(system, []).append(line)
    return lines


def grade(system: str, lines: list[str]) -> dict[str, Any]:
    """Of each field, how many lines of the second half have it, and in how many it was recognised as it is."""
    half = len(lines) // 2
    form = log_form(pa.array(lines[:half]))
    columns = [name for name in FIELDS if name in form.schema.names]
    has, right = dict.fromkeys(FIELDS, 0), dict.fromkeys(FIELDS, 0)
    # A year for all lines that say none, as the truth has it.
    rows = LineReader(form, lambda: Years(2024)).read(pa.array(lines[half:])).select(columns).to_pylist()
    for line, row in zip(lines[half:], rows, strict=True):
        truth = TRUTH[system].fields(line)
        for name in FIELDS:
            has[name] += name in truth
            right[name] += name in truth and row.get(name) == truth[name]
    return {"form": form.name, "lines": len(rows), "has": has, "right": right}


def main() -> None:
    """Grade all systems and keep the figures."""
    lines = lines_of(Path(sys.argv[1]))
    grades = {system: grade(system, lines[system]) for system in sorted(TRUTH)}
    RESULTS.write_text(json.dumps(grades, indent=1) + "\n")
    for system, found in grades.items():
        print(
            system, found["form"], *(f"{name} {found['right'][name]}/{found['has'][name]}" for name in FIELDS)
        )


if __name__ == "__main__":
    main()
