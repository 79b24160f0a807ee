"""Predicates to ask of a world, and what they mean for its rows."""

from __future__ import annotations

import random
from typing import Any

from indextables.log.delta.snapshot import open_snapshot
from indextables.options import Options
from indextables.predicate.build.from_sql import as_node
from indextables.predicate.tree import Node, Unknown, walk
from support.deltaworlds import World, value_of
from support.predicates import condition
from support.spark_meaning import truth

ZONES = ("UTC", "America/Los_Angeles", "Asia/Kolkata")


def questions(world: World, seed: int, count: int, zone: str) -> list[tuple[str, Node]]:
    """Predicates of a world with their trees; what the tree cannot hold is left out."""
    rng = random.Random(seed)
    columns = [(col.sql, col.kind) for col in [*world.columns, *world.partitions]]
    schema = open_snapshot(world.log.store.uri, options=Options.of(None)).schema
    found = []
    while len(found) < count:
        text = condition(columns, lambda kind: value_of(kind, rng), rng)
        node = as_node(text, schema, zone)
        if not any(isinstance(item, Unknown) for item in walk(node)):
            found.append((text, node))
    return found


def matching(world: World, node: Node) -> dict[str, list[Any]]:
    """Ids of the rows for which a predicate is true, by file."""
    return {
        path: ids
        for path, rows in world.live().items()
        if (ids := [row["id"] for row in rows if truth(node, row) is True])
    }
