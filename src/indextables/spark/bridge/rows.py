"""Rows that Spark passes to us: INSERT in all its forms, and rewritten rows of DELETE, UPDATE and MERGE."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa

from indextables.errors import TableError
from indextables.ops.read.matching import plan_match
from indextables.ops.rewrite.replace import change_metrics, commit_or_discard, live_records, replace_plan
from indextables.ops.write.commit import outcome
from indextables.ops.write.rows import effective, plan_write
from indextables.spark.bridge.request import JvmRequest, row_counts
from indextables.spark.read.planner import conjunction, hadoop_paths
from indextables.spark.requests import NO_LAYOUT, WriteRequest, save_mode
from indextables.spark.write.job import Job, MarkedRows, run_job, run_marked_job, schema_of, written
from indextables.spark.write.save import save_frame

if TYPE_CHECKING:
    from indextables.log.snapshot import Snapshot
    from indextables.model.actions import AddAction
    from indextables.predicate.tree import Node

# Spark's names for what partitionBy and clusterBy were given, as JSON.
_PARTITIONED_BY, _CLUSTERED_BY = "__partition_columns", "__clustering_columns"


def save(request: JvmRequest) -> dict[str, Any]:
    """`save(path)` of every front end but Spark Connect."""
    arguments = request.arguments
    options = dict(arguments["given"])
    partition_by = options.pop(_PARTITIONED_BY, None)
    if _CLUSTERED_BY in options:
        raise TableError(NO_LAYOUT)
    save_request = WriteRequest(
        request.path,
        save_mode(str(arguments["mode"])),
        options,
        None if partition_by is None else tuple(json.loads(partition_by)),
    )
    save_frame(request.spark, request.frame("data"), save_request)
    return {}


def write(request: JvmRequest) -> dict[str, Any]:
    """INSERT INTO, INSERT OVERWRITE, REPLACE WHERE and their DataFrame forms."""
    arguments = request.arguments
    options = {**request.options, **(arguments.get("given") or {})}
    mode, node = str(arguments["mode"]), None
    if mode == "where":
        snapshot = request.log().snapshot(max_staleness_s=0)
        node = conjunction([arguments["where"]["tree"]], snapshot)
    elif mode in {"overwrite", "dynamic"}:
        options["partitionOverwriteMode"] = "dynamic" if mode == "dynamic" else "static"
    write_request = WriteRequest(
        request.path, "append" if mode == "append" else "overwrite", options, where=node
    )
    done = save_frame(request.spark, request.frame("data"), write_request)
    return {} if done is None else {"version": done.version}


@dataclass(frozen=True, slots=True)
class Touched:
    """The files that a statement removes from the table."""

    whole: frozenset[str]
    """All their rows match, as statistics prove; they are not read."""
    read: frozenset[str]
    """Some of their rows may change, and are written again with the others."""
    matching_rows: int | None = None
    """How many rows of the files to read match, where they were counted."""


def replace_rows(request: JvmRequest) -> dict[str, Any]:
    """DELETE, UPDATE and MERGE: write the rows of the touched files as they are afterwards, in one commit.

    The answer is how many rows were changed in which way.
    """
    arguments = request.arguments
    command = str(arguments["command"])
    log = request.log()
    snapshot = log.snapshot(version=int(arguments["version"]))
    node = conjunction(arguments["conditions"], snapshot)
    touched = _touched(request, snapshot, node)
    _restrict(request, "target", touched.read)
    if command != "MERGE" and not touched.whole and not touched.read:
        return row_counts()
    frame, marked_frame = request.frame("data"), request.frame_of_plan("marked")
    options = effective(snapshot, request.settings.options())
    job = Job(plan_write(snapshot, schema_of(frame), options), log.store.spec(), options)
    marked = None
    if marked_frame is not None:
        built, marked = run_marked_job(marked_frame, job)
    else:
        built = [] if command == "DELETE" and not touched.read else run_job(frame, job)
    removed = list(snapshot.adds(touched.whole | touched.read))
    adds = [split.add for split in built]
    if not removed and not adds:
        return row_counts()
    changed = _changed(command, touched, removed, adds, marked)
    # Conditions that compare with other tables, and those of a MERGE, have no text here.
    has_text = node is not None and command != "MERGE" and arguments["complete"]
    parameters = {"predicate": str(node)} if has_text else {}
    commit = replace_plan(
        snapshot, command, removed, adds, node=node, inserts=command == "MERGE", parameters=parameters,
        metrics=change_metrics(**changed),
    )  # fmt: skip
    written(log, outcome(commit_or_discard(log, commit, adds), built), options)
    return row_counts(**changed)


def _changed(
    command: str,
    touched: Touched,
    removed: Sequence[AddAction],
    adds: Sequence[AddAction],
    marked: MarkedRows | None,
) -> dict[str, int | None]:
    """The rows that a statement changes, by what it does to them."""
    before, after = live_records(removed), sum(add.num_records or 0 for add in adds)
    if command == "UPDATE":
        return {"updated": touched.matching_rows}
    if command == "DELETE":
        return {"deleted": None if before is None else before - after}
    if not removed:
        return {"updated": 0, "deleted": 0, "inserted": after}
    if marked is None:
        return {"updated": None, "deleted": None, "inserted": None}
    deleted = None if before is None else before - marked.copied - marked.updated
    return {"updated": marked.updated, "deleted": deleted, "inserted": marked.inserted}


def _touched(request: JvmRequest, snapshot: Snapshot, node: Node | None) -> Touched:
    whole: frozenset[str] = frozenset()
    if request.arguments["inserts"]:
        return Touched(whole, frozenset(), 0)
    if request.arguments["command"] == "DELETE" and request.arguments["complete"] and node is not None:
        planned = plan_match(snapshot, node)
        whole = frozenset(add.path for add in planned.whole)
        paths = [add.path for add in planned.doubtful]
    else:
        paths = snapshot.plan(node, columns={"path"}).files.column("path").to_pylist()
    matching = request.frame_of_plan("matching")
    if matching is None or not paths:
        return Touched(whole, frozenset(paths))
    _restrict(request, "probe", frozenset(paths))
    counts = {
        _plain(row[0]): int(row[1]) for row in matching.groupBy("_metadata.file_path").count().collect()
    }
    by_name = {
        _plain(name, encoded=False): path for path, name in zip(paths, _names(snapshot, paths), strict=True)
    }
    if not set(counts) <= set(by_name):
        raise TableError(
            f"{request.path}: Spark read {min(set(counts) - set(by_name))}, which is not a file of version "
            f"{snapshot.version}; nothing was changed",
            uri=request.path,
        )
    return Touched(whole, frozenset(by_name[name] for name in counts), sum(counts.values()))


def _restrict(request: JvmRequest, relation: str, paths: frozenset[str]) -> None:
    """Let a relation of the statement read these files only; its plan may not read the table at all."""
    index = request.objects.get(relation)
    if index is not None:
        index.restrict(json.dumps(sorted(paths)))


def _names(snapshot: Snapshot, paths: list[str]) -> list[str]:
    names: list[str] = hadoop_paths(snapshot.store, pa.array(paths, pa.string())).to_pylist()
    return names


def _plain(address: str, *, encoded: bool = True) -> str:
    """An address in comparable form: `_metadata.file_path` is percent-encoded, a Hadoop path is not."""
    text = unquote(address) if encoded else address
    return text.replace("file:///", "file:/")
