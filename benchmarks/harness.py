"""How a measurement is made: one operation, in a process of its own, with its wall time and peak memory.

A target is a module `benchmarks.<name>` with a `TARGET`. Its cases are functions
that take the work directory, do their imports and set-up, and return the
operation to be timed; what the operation returns (a mapping) is kept as facts.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

Operation = Callable[[], Mapping[str, Any] | None]
BUSY = 0.25
"""A machine is busy where others take more than this share of its cores."""
LOOK_S = 0.3
"""How long the machine is looked at before and after the runs of a case."""


@dataclass(frozen=True, slots=True)
class Case:
    """One thing to measure: what (`name`), by whom (`system`), with which function of the target's module."""

    name: str
    system: str
    function: str
    sizes: tuple[str, ...] | None = None
    """Only these sizes; None is all."""
    repeat: int | None = None
    """So many runs instead of the number asked for; 1 for operations that change the data."""
    needs: str | None = None
    """A package without which the case is left out, and said to be."""
    least_timeout_s: float = 0.0
    """A run is not given up before, whatever was asked for: a cluster takes long to start on a busy machine."""


@dataclass(frozen=True, slots=True)
class Target:
    """A set of cases over one workload."""

    name: str
    prepare: Callable[[Path, str], None]
    """Make the data of a size in a directory; called once, the data is kept."""
    cases: Sequence[Case]
    rival: str
    """The system others are compared with."""
    packages: Sequence[str] = ()
    """Packages whose versions belong in the results."""
    goals: Callable[[Sequence[Mapping[str, Any]]], list[str]] | None = None
    """Turns the rows into lines that say which goals are met."""


@dataclass(frozen=True, slots=True)
class Row:
    """The outcome of one case at one size: the median of its runs."""

    case: str
    system: str
    size: str
    seconds: float
    best_seconds: float
    import_seconds: float
    cpu_seconds: float
    peak_mb: float
    runs: int
    facts: Mapping[str, Any] = field(default_factory=dict)
    load: float = 0.0
    """Cores that other processes kept busy before or after its runs; above BUSY of all cores wall times mean little."""


def load(name: str) -> Target:
    """The target of a module `benchmarks.<name>`."""
    target: Target = importlib.import_module(f"benchmarks.{name}").TARGET
    return target


def measure(target: str, case: Case, size: str, directory: Path, repeat: int, timeout_s: float) -> Row:
    """Run a case in fresh processes and take the median."""
    before = busy_cores()
    given_s = max(timeout_s, case.least_timeout_s)
    runs = [_run(target, case, directory, given_s) for _ in range(case.repeat or repeat)]
    load = max(before, busy_cores())
    seconds = [run["seconds"] for run in runs]
    return Row(
        case.name, case.system, size, round(median(seconds), 6), round(min(seconds), 6),
        round(median(run["import_seconds"] for run in runs), 4),
        round(median(run["cpu_seconds"] for run in runs), 4),
        round(max(run["peak_mb"] for run in runs), 1), len(runs), runs[-1]["facts"], load,
    )  # fmt: skip


def beside(row: Row) -> list[Row]:
    """A row, and those of the systems that its process measured in turn with it (`beside` in the facts).

    Where the facts say everybody's CPU milliseconds, these count, not those of the process.
    """
    facts = {key: value for key, value in row.facts.items() if key != "beside"}
    cpu: Mapping[str, float] = row.facts.get("cpu_ms", {})

    def one(system: str, seconds: float, facts: Mapping[str, Any]) -> Row:
        worked = round(cpu[system] / 1000, 5) if system in cpu else row.cpu_seconds
        best = row.best_seconds if system == row.system else round(seconds, 6)
        return replace(
            row, system=system, seconds=round(seconds, 6), best_seconds=best, cpu_seconds=worked, facts=facts
        )

    others = [one(system, seconds, {}) for system, seconds in row.facts.get("beside", {}).items()]
    return [one(row.system, row.seconds, facts), *others]


def prepare(target: str, size: str, directory: Path) -> None:
    """Make the data in a process of its own, so that this one stays small."""
    subprocess.run(
        [sys.executable, "-m", "benchmarks.harness", "--prepare", target, size, str(directory)], check=True
    )


def _run(target: str, case: Case, directory: Path, timeout_s: float) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.harness", target, case.function, str(directory)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        return {
            "seconds": timeout_s,
            "import_seconds": 0.0,
            "cpu_seconds": 0.0,
            "peak_mb": 0.0,
            "facts": {"timed_out": True},
        }
    if done.returncode:
        raise RuntimeError(f"{target} {case.name} by {case.system} failed:\n{done.stderr[-4000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def child(target: str, function: str, directory: str) -> dict[str, Any]:
    """What the process of one run does."""
    began = time.perf_counter()
    operation: Operation = getattr(importlib.import_module(f"benchmarks.{target}"), function)(Path(directory))
    # What the imports left behind is not to be walked by a collection in the middle of the operation.
    gc.collect()
    gc.freeze()
    ready = time.perf_counter()
    cpu = time.process_time()
    facts = operation() or {}
    spent = time.process_time() - cpu
    seconds = facts.pop("seconds", None) if isinstance(facts, dict) else None
    # What runs in processes of its own knows their time; this one only waited for them.
    spent = facts.pop("cpu_seconds", spent) if isinstance(facts, dict) else spent
    done = time.perf_counter()
    gc.unfreeze()
    return {
        "seconds": done - ready if seconds is None else seconds,
        "import_seconds": ready - began,
        "cpu_seconds": spent,
        "peak_mb": _peak_mb(),
        "facts": dict(facts),
    }


def _peak_mb() -> float:
    """The most memory this process has had resident; ru_maxrss would begin with that of the parent."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def machine(packages: Sequence[str]) -> dict[str, Any]:
    """Where the numbers come from."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(memory, 1),
        "python": platform.python_version(),
        "packages": {name: installed(name) or "not installed" for name in packages},
        "commit": commit(),
        "load_before": busy_cores(),
    }


def commit() -> str:
    """The commit whose code is measured; empty outside a checkout."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()  # noqa: S603


def busy_cores() -> float:
    """How many cores other processes keep busy while this one sleeps.

    The load average would also count the run before, and nobody's work a minute ago.
    """
    stat = Path("/proc/stat")
    if not stat.exists():
        return round(os.getloadavg()[0], 2)

    def ticks() -> int:
        user, nice, system, _idle, _waiting, *rest = map(int, stat.read_text().split(maxsplit=9)[1:9])
        return user + nice + system + sum(rest)

    before, began = ticks(), time.perf_counter()
    time.sleep(LOOK_S)
    passed = time.perf_counter() - began
    return round((ticks() - before) / os.sysconf("SC_CLK_TCK") / passed, 2)


def installed(package: str) -> str | None:
    """The version of a package; None where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def save(
    target: Target, rows: Sequence[Row], results: Path, facts: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Put rows into the results of a target; rows of other cases and sizes stay as they were measured."""
    file = results / f"{target.name}.json"
    old = json.loads(file.read_text())["rows"] if file.exists() else []
    fresh = {(row.case, row.system, row.size): asdict(row) for row in rows}
    known = {(row["case"], row["system"], row["size"]) for row in old}
    merged = [fresh.get((row["case"], row["system"], row["size"]), row) for row in old]
    merged += [row for key, row in fresh.items() if key not in known]
    results.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"machine": facts, "rows": merged}, indent=1) + "\n")
    goals = target.goals(merged) if target.goals else []
    text = [f"# {target.name}", "", circumstances(facts, merged), "", *render(target, merged), ""]
    text += [f"- {line}" for line in goals]
    (results / f"{target.name}.md").write_text("\n".join(text).rstrip() + "\n")
    return merged


def circumstances(facts: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """On what the last run was made, and whether its wall times mean anything."""
    load, cores = facts["load_before"], facts["cores"]
    said = f"{facts['system']}, {cores} cores, {facts['memory_gib']} GiB; {load} cores busy before the run."
    if facts.get("commit"):
        said += f" Commit {facts['commit']}."
    loads = [row["load"] for row in rows if row.get("load", 0.0) > cores * BUSY]
    if not loads:
        return said
    return (
        f"{said} THE MACHINE WAS BUSY during {len(loads)} of {len(rows)} measurements (up to {max(loads)} cores by others): "
        "their wall times mean little, and their ratios are of CPU seconds."
    )


def ratio(ours: Mapping[str, Any], rival: Mapping[str, Any]) -> tuple[float, str]:
    """How many times faster than a rival, and by what: CPU seconds where the machine was busy for either."""
    cores = len(os.sched_getaffinity(0))
    busy = max(ours.get("load", 0.0), rival.get("load", 0.0)) > cores * BUSY
    if not busy:
        return rival["seconds"] / ours["seconds"] if ours["seconds"] else 0.0, "wall"
    return (cpu_of(rival) / cpu_of(ours) if cpu_of(ours) else 0.0), "cpu"


def cpu_of(row: Mapping[str, Any]) -> float:
    """CPU seconds of the process and of those it started, where it counted them."""
    return float(row["cpu_seconds"]) + float(row["facts"].get("jvm_cpu_s", 0.0))


def _seconds(seconds: float) -> str:
    """Seconds to the millisecond, or to the microsecond where that is all there is."""
    return f"{seconds:.3f}" if seconds >= 0.01 else f"{seconds:.6f}"  # noqa: PLR2004 - ten milliseconds


def render(target: Target, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The rows as a Markdown table with the ratio to the rival."""
    rivals = {(row["case"], row["size"]): row for row in rows if row["system"] == target.rival}
    grows = any("heap_growth_mb" in row["facts"] for row in rows)
    lines = [
        "| case | size | system | seconds | cpu s | import s | peak MB | load | faster | memory |"
        + " driver grew MB |" * grows,
        "|---|---|---|---|---|---|---|---|---|---|" + "---|" * grows,
    ]
    for row in sorted(rows, key=lambda row: (row["case"], count_of(row["size"]), row["system"])):
        rival = rivals.get((row["case"], row["size"]))
        times = memory = ""
        if rival is not None and rival is not row and row["seconds"]:
            found, by = ratio(row, rival)
            times = f"{found:.1f}x" if by == "wall" else f"{found:.1f}x cpu"
            memory = f"{row['peak_mb'] / rival['peak_mb']:.2f}" if rival["peak_mb"] else ""
        lines.append(
            f"| {row['case']} | {row['size']} | {row['system']} | {_seconds(row['seconds'])} | "
            f"{cpu_of(row):.3f} | {row['import_seconds']:.2f} | {row['peak_mb']:.0f} | {row.get('load', '')} | "
            f"{times} | {memory} |" + f" {growth_of(row)} |" * grows
        )
    return lines


def growth_of(row: Mapping[str, Any]) -> str:
    """Megabytes that the driver's Python and its JVM's heap grew by, where they were measured."""
    facts = row["facts"]
    return str(facts["python_growth_mb"] + facts["heap_growth_mb"]) if "heap_growth_mb" in facts else ""


def count_of(size: str) -> int:
    """`100k` -> 100000."""
    units = {"k": 1000, "M": 1_000_000}
    return int(size[:-1]) * units[size[-1]] if size[-1] in units else int(size)


if __name__ == "__main__":
    if sys.argv[1] == "--prepare":
        load(sys.argv[2]).prepare(Path(sys.argv[4]), sys.argv[3])
    else:
        print(json.dumps(child(*sys.argv[1:4])))
