"""Rows that Spark passes to us: INSERT in all its forms, and rewritten rows of DELETE, UPDATE and MERGE."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from indextables.errors import TableError
from indextables.ops.read.matching import plan_match
from indextables.ops.rewrite.replace import change_metrics, commit_or_discard, live_records, replace_plan
from indextables.ops.rewrite.vectors import DeletedRows, VectorCommit, most_deleted, vector_metrics
from indextables.ops.write.commit import outcome
from indextables.ops.write.rows import effective, plan_write
from indextables.spark.bridge.request import JvmRequest, row_counts
from indextables.spark.read.planner import conjunction, hadoop_paths
from indextables.spark.read.wire import encode_files
from indextables.spark.requests import NO_LAYOUT, WriteRequest, save_mode
from indextables.spark.write.job import Job, MarkedRows, run_job, run_marked_job, schema_of, written
from indextables.spark.write.matching import matching_rows, plain_address
from indextables.spark.write.save import save_frame
from indextables.storage.deletion_vectors import number_deleted

if TYPE_CHECKING:
    import numpy as np

    from indextables.log.snapshot import Snapshot
    from indextables.model.actions import AddAction
    from indextables.options.groups import VectorOptions
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
    """How many rows of the files that stay or are read match, where they were counted."""
    deleted: tuple[DeletedRows, ...] = ()
    """The rows that leave files which stay; what UPDATE and MERGE make of them is written into new files."""


def replace_rows(request: JvmRequest) -> dict[str, Any]:
    """DELETE, UPDATE and MERGE: write changed rows as they are afterwards, in one commit.

    Of files that lose few rows, these leave by a vector and are read alone; other touched files are
    written anew. The answer is how many rows were changed in which way.
    """
    arguments = request.arguments
    command = str(arguments["command"])
    log = request.log()
    snapshot = log.snapshot(version=int(arguments["version"]))
    node = conjunction(arguments["conditions"], snapshot)
    touched = _touched(request, snapshot, node)
    stays_deleted = command == "DELETE"
    moving = {} if stays_deleted else {item.source.path: item.rows for item in touched.deleted}
    _restrict(request, "target", {**dict.fromkeys(touched.read), **moving})
    if command != "MERGE" and not (touched.whole or touched.read or touched.deleted):
        return row_counts()
    frame, marked_frame = request.frame("data"), request.frame_of_plan("marked")
    options = effective(snapshot, request.settings.options())
    job = Job(plan_write(snapshot, schema_of(frame), options), log.store.spec(), options)
    marked = None
    if marked_frame is not None:
        built, marked = run_marked_job(marked_frame, job)
    else:
        built = [] if stays_deleted and not touched.read else run_job(frame, job)
    removed = list(snapshot.adds(touched.whole | touched.read))
    adds = [split.add for split in built]
    if not removed and not adds and not touched.deleted:
        return row_counts()
    changed = _changed(command, touched, removed, adds, marked)
    # Conditions that compare with other tables, and those of a MERGE, have no text here.
    has_text = node is not None and command != "MERGE" and arguments["complete"]
    parameters = {"predicate": str(node)} if has_text else {}
    vectors = VectorCommit(log, command, touched.deleted) if touched.deleted else None
    commit = replace_plan(
        snapshot, command, removed, adds, node=node, inserts=command == "MERGE", parameters=parameters,
        metrics={**change_metrics(**changed), **vector_metrics(touched.deleted)}, vectors=vectors,
    )  # fmt: skip
    written(log, outcome(commit_or_discard(log, commit, adds, vectors), built), options)
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
    if before is not None:
        before += sum(len(item.rows) for item in touched.deleted)
    if command == "UPDATE":
        return {"updated": touched.matching_rows}
    if command == "DELETE":
        return {"deleted": None if before is None else before - after}
    if not removed and not touched.deleted:
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
    _restrict(request, "probe", dict.fromkeys(paths))
    options, adds = snapshot.settings.vectors, {add.path: add for add in snapshot.adds(paths)}
    by_name = {
        plain_address(name, encoded=False): adds[path]
        for path, name in zip(paths, _names(snapshot, paths), strict=True)
    }
    live = {name: live_records([add]) for name, add in by_name.items()}
    most = {name: _most_deleted(options, by_name[name], rows) for name, rows in live.items()}
    found = matching_rows(matching, most)
    if not set(found) <= set(by_name):
        raise TableError(
            f"{request.path}: Spark read {min(set(found) - set(by_name))}, which is not a file of version "
            f"{snapshot.version}; nothing was changed",
            uri=request.path,
        )
    read: list[str] = []
    deleted: list[DeletedRows] = []
    for name, item in found.items():
        rows = live[name]
        if item.rows is None or rows is None or item.count == rows:
            read.append(by_name[name].path)
        else:
            deleted.append(DeletedRows(by_name[name], item.rows, rows))
    matching_count = sum(item.count for item in found.values())
    return Touched(whole, frozenset(read), matching_count, tuple(deleted))


def _most_deleted(options: VectorOptions, add: AddAction, live: int | None) -> int:
    """How many rows of a file may leave it by a vector; none if nobody knows how many it has."""
    if live is None:
        return 0
    hidden = number_deleted(add.deletion_vector)
    return most_deleted(options, hidden, hidden + live)


def _restrict(request: JvmRequest, relation: str, files: Mapping[str, np.ndarray | None]) -> None:
    """Let a relation of the statement, if there is one, read these files only, and of some these rows."""
    index = request.objects.get(relation)
    if index is not None:
        index.restrict(encode_files(files))


def _names(snapshot: Snapshot, paths: list[str]) -> list[str]:
    names: list[str] = hadoop_paths(snapshot.store, pa.array(paths, pa.string())).to_pylist()
    return names
