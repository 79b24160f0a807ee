"""A process that has everything loaded and does nothing but fork: a child that is killed costs no imports.

It never touches a table itself, so no thread and no connection exists that a
fork could cut in two. One line of JSON on standard input is a list of jobs that
run at the same time; one line on standard output tells how each of them ended. A job
names a verb of `harness.verbs`, or as its `work` a function that is called with the job.

A child dies by SIGKILL: of its own hand at the n-th time it is about to touch a
file of the table (Python's audit events tell: open, link, rename, remove, list),
or by the nursery's after some time or once a file exists, wherever it is.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self

_TOUCHES = frozenset({"open", "os.link", "os.rename", "os.remove", "os.mkdir", "os.scandir", "os.rmdir"})


class Nursery:
    """The nursery as its owner sees it."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "harness.nursery"]
        home = Path(__file__).parents[1]
        paths = os.pathsep.join([str(home), str(home.parent), os.environ.get("PYTHONPATH", "")])
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=home,
            env={**os.environ, "PYTHONPATH": paths},
        )  # fmt: skip

    def run(self, jobs: list[dict[str, Any]]) -> list[int]:
        """Run jobs side by side; the exit status of each, negative for the signal that ended it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(jobs) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the nursery ended with {self._process.wait()}")
        return list(json.loads(answer))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)


def main() -> None:
    """Fork a child for every job of every line."""
    for name in (
        "harness.verbs",
        "lists.processes",
        "ingestion.run",
        "indextables.cli.main",
        "indextables.cli.load_verbs",
        "indextables.ingest.tail",
        "indextables.ingest.files",
        "pyarrow.compute",
        "pyarrow.parquet",
        "indextables.sql.runner",
    ):
        importlib.import_module(name)
    for line in sys.stdin:
        jobs = json.loads(line)
        children = [_born(job) for job in jobs]
        print(json.dumps(_ends(jobs, children)), flush=True)


def _born(job: dict[str, Any]) -> int:
    child = os.fork()
    if child:
        return child
    status = 3
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        _live(job)
        status = 0
    except Exception as error:  # noqa: BLE001 - the child has nobody else to tell
        note(job["notes"], {"failed": f"{type(error).__name__}: {error}"[:2000]})
    finally:
        os._exit(status)


def _ends(jobs: list[dict[str, Any]], children: list[int]) -> list[int]:
    began = time.monotonic()
    waiting = dict(zip(children, jobs, strict=True))
    ends: dict[int, int] = {}
    while len(ends) < len(children):
        done, status = os.waitpid(-1, os.WNOHANG)
        if done:
            ends[done] = os.waitstatus_to_exitcode(status)
            continue
        for child, job in waiting.items():
            limit_s, mark = job.get("kill_after_s"), job.get("kill_when")
            late = limit_s is not None and time.monotonic() - began >= limit_s
            if child not in ends and (late or (mark is not None and Path(mark).exists())):
                os.kill(child, signal.SIGKILL)
        time.sleep(0.0005)
    return [ends[child] for child in children]


def _live(job: dict[str, Any]) -> None:
    from harness.verbs import VERBS

    if job.get("kill_at") is not None:
        _die_at(job["root"], job["kill_at"])
    if "work" in job:
        module, _, name = job["work"].partition(":")
        getattr(importlib.import_module(module), name)(job)
        return
    dice = random.Random(job["seed"])
    for number, step in enumerate(VERBS[job["verb"]](job["root"], job["name"], dice)):
        note(job["notes"], {"begun": number})
        step.run()
        note(job["notes"], {"done": number})


def _die_at(root: str, wanted: int) -> None:
    seen = 0

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal seen
        if event in _TOUCHES and isinstance(arguments[0], str) and arguments[0].startswith(root):
            seen += 1
            if seen >= wanted:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)


def note(place: str, fact: dict[str, Any]) -> None:
    """Say something that outlives the process: one write, appended."""
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(descriptor, json.dumps(fact).encode() + b"\n")
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    main()
