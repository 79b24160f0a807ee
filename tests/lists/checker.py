"""An Elle-style checker: histories of appends to lists and reads of them, and the anomalies that they prove.

In come transactions, each with the appends and reads that its client saw and with what the client was
told of its end. Every element is appended at most once, so that a read of a list tells which transactions
came before it. From the reads alone the checker infers in which order the appends to each list took
effect, builds the graph of dependencies, and reports what no serial order of the transactions explains
(Kingsbury and Alvaro, Elle, VLDB 2020; Adya's names of the anomalies). It knows nothing of tables.

A list may be read in its order, or as a set: the elements of one *block* came in an unknown order. A
read of `[[a], [b]]` says that the list once was `{a}` and is `{a, b}` now.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

COMMITTED = "committed"
ABORTED = "aborted"
"""The client was told that nothing happened."""
UNKNOWN = "unknown"
"""The client was told nothing, or that the outcome is unknown."""

State: TypeAlias = frozenset[str]


@dataclass(frozen=True, slots=True)
class Append:
    """One element was to be added to the end of a list."""

    key: str
    element: str


@dataclass(frozen=True, slots=True)
class Read:
    """What a list held: blocks of elements in order, the elements of one block in no order."""

    key: str
    blocks: tuple[tuple[str, ...], ...]

    @classmethod
    def of_list(cls, key: str, elements: Iterable[str]) -> Read:
        """A read that shows the order of the elements."""
        return cls(key, tuple((element,) for element in elements))

    @classmethod
    def of_set(cls, key: str, elements: Iterable[str]) -> Read:
        """A read that shows which elements there are."""
        block = tuple(elements)
        return cls(key, (block,) if block else ())

    @property
    def elements(self) -> list[str]:
        """Everything in the list."""
        return [element for block in self.blocks for element in block]

    @property
    def state(self) -> State:
        """What the list was when it was read."""
        return frozenset(self.elements)

    @property
    def states(self) -> list[State]:
        """What the list has been up to then, the empty list first."""
        passed: list[State] = [frozenset()]
        for block in self.blocks:
            passed.append(passed[-1] | frozenset(block))
        return passed


@dataclass(frozen=True, slots=True)
class Transaction:
    """What one client did in one go, and what it was told."""

    name: str
    process: str
    outcome: str
    began: float
    ended: float
    operations: tuple[Append | Read, ...]
    fresh: bool = True
    """Whether it must see everything that had ended before it began; a read of an old version need not."""
    session: bool = True
    """Whether it must at least see what its own process had committed before."""
    final: bool = False
    """Whether it is the read after everything has come to rest."""
    version: int | None = None
    """The version of the table that it was told it had written or read."""

    @property
    def appends(self) -> list[Append]:
        """Its appends."""
        return [operation for operation in self.operations if isinstance(operation, Append)]

    @property
    def reads(self) -> list[Read]:
        """Its reads."""
        return [operation for operation in self.operations if isinstance(operation, Read)]

    def __str__(self) -> str:
        return f"{self.name} of {self.process} ({self.outcome})"


@dataclass(frozen=True, slots=True)
class Anomaly:
    """Something that the promises rule out."""

    kind: str
    what: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}"


def check(transactions: Sequence[Transaction]) -> list[Anomaly]:
    """Every anomaly that a history proves; of the cycles, the worst of each component."""
    history = _History(transactions)
    anomalies = [*history.impossible_reads(), *history.intermediate_reads()]
    chains = {}
    for key, states in history.states_by_key().items():
        broken = next(((a, b) for a, b in pairwise(states) if not a <= b), None)
        if broken is None:
            chains[key] = states
        else:
            anomalies.append(
                Anomaly("incompatible orders", f"{key} was {_shown(broken[0])} and {_shown(broken[1])}")
            )
    anomalies += history.lost_appends()
    anomalies += history.wrong_versions()
    anomalies += _cycles(history.graph(chains), {item.name: item for item in history.effective})
    return anomalies


class _History:
    """Transactions with the lookups that the checks share."""

    def __init__(self, transactions: Sequence[Transaction]) -> None:
        self.transactions = transactions
        self.writer: dict[tuple[str, str], Transaction] = {}
        for item in transactions:
            for append in item.appends:
                place = (append.key, append.element)
                assert place not in self.writer, f"{place} is appended by two transactions"
                self.writer[place] = item
        self.seen = {
            (read.key, element) for item in transactions for read in item.reads for element in read.elements
        }

    @property
    def effective(self) -> list[Transaction]:
        """Transactions that took effect: told so, or seen."""
        return [
            item
            for item in self.transactions
            if item.outcome == COMMITTED
            or any((append.key, append.element) in self.seen for append in item.appends)
        ]

    def impossible_reads(self) -> Iterator[Anomaly]:
        """Elements that are there twice, that nobody appended, or whose transaction did not happen."""
        for item in self.transactions:
            for read in item.reads:
                elements = read.elements
                if len(elements) != len(set(elements)):
                    twice = sorted({element for element in elements if elements.count(element) > 1})
                    yield Anomaly("duplicate element", f"{read.key} has {twice[:3]} twice in {item}")
                for element in read.state:
                    writer = self.writer.get((read.key, element))
                    if writer is None:
                        yield Anomaly("phantom element", f"{read.key} has {element} in {item}")
                    elif writer.outcome == ABORTED:
                        yield Anomaly("G1a", f"{item} read {element}, which {writer} had appended")

    def intermediate_reads(self) -> Iterator[Anomaly]:
        """Reads of some of what a transaction appended to a list, and not all."""
        together: dict[str, list[tuple[Transaction, State]]] = defaultdict(list)
        for item in self.transactions:
            by_key: dict[str, set[str]] = defaultdict(set)
            for append in item.appends:
                by_key[append.key].add(append.element)
            for key, elements in by_key.items():
                if len(elements) > 1:
                    together[key].append((item, frozenset(elements)))
        for item in self.transactions:
            for read in item.reads:
                for writer, elements in together[read.key]:
                    if read.state & elements not in {frozenset(), elements}:
                        yield Anomaly("G1b", f"{item} read a part of what {writer} appended to {read.key}")

    def states_by_key(self) -> dict[str, list[State]]:
        """The states in which each list was seen, smallest first."""
        states: dict[str, set[State]] = defaultdict(lambda: {frozenset()})
        for item in self.transactions:
            for read in item.reads:
                states[read.key].update(read.states)
        return {
            key: sorted(found, key=lambda state: (len(state), sorted(state))) for key, found in states.items()
        }

    def lost_appends(self) -> Iterator[Anomaly]:
        """Appends that were acknowledged and are not in the last read."""
        last = {read.key: read.state for item in self.transactions if item.final for read in item.reads}
        for (key, element), writer in self.writer.items():
            if writer.outcome == COMMITTED and key in last and element not in last[key]:
                yield Anomaly("lost append", f"{element}, appended to {key} by {writer}")

    def wrong_versions(self) -> Iterator[Anomaly]:
        """Reads of a version that lack a commit up to it, or hold one after it."""
        told = [
            (place, item)
            for place, item in self.writer.items()
            if item.outcome == COMMITTED and item.version is not None
        ]
        for item in self.transactions:
            if item.version is None or item.appends:
                continue
            lists = {read.key: read.state for read in item.reads}
            for (key, element), writer in told:
                if key in lists and (element in lists[key]) != (writer.version <= item.version):  # type: ignore[operator]
                    yield Anomaly(
                        "wrong version",
                        f"{item} of version {item.version}, {element} was committed as {writer.version}",
                    )

    def graph(self, chains: dict[str, list[State]]) -> _Graph:
        """Who came before whom: by writes (ww), reads (wr), missed writes (rw) and by the clock (rt)."""
        graph = _Graph()
        effective = self.effective
        for key, states in chains.items():
            blocks = {after: self._writers(key, after - before) for before, after in pairwise(states)}
            following = dict(pairwise(states))
            for before, after in pairwise(states[1:]):
                graph.connect(blocks[before], blocks[after], "ww")
            for item in effective:
                for read in item.reads:
                    if read.key == key:
                        graph.connect(blocks.get(read.state, ()), [item.name], "wr")
                        later = following.get(read.state)
                        graph.connect([item.name], blocks[later] if later is not None else (), "rw")
        self._connect_by_time(graph, effective)
        return graph

    def _writers(self, key: str, elements: Iterable[str]) -> list[str]:
        writers = {
            self.writer[key, element].name: None
            for element in sorted(elements)
            if (key, element) in self.writer
        }
        return list(writers)

    @staticmethod
    def _connect_by_time(graph: _Graph, effective: Sequence[Transaction]) -> None:
        """Edges through moments: what ended before a moment comes before whatever began at it or later."""
        moments = sorted({item.began for item in effective if item.fresh})
        for earlier, later in pairwise(moments):
            graph.connect([earlier], [later], "rt")
        own: dict[str, list[Transaction]] = defaultdict(list)
        for item in effective:
            if item.fresh:
                graph.connect([item.began], [item.name], "rt")
            if item.outcome == COMMITTED:
                at = bisect_right(moments, item.ended)
                graph.connect([item.name], moments[at : at + 1], "rt")
                own[item.process].append(item)
        for items in own.values():
            last: Transaction | None = None
            for item in sorted(items, key=lambda item: item.began):
                if last is not None and item.session:
                    graph.connect([last.name], [item.name], "rt")
                last = item if item.appends else last


class _Graph:
    """Edges with their kinds; a node is the name of a transaction, or a moment."""

    def __init__(self) -> None:
        self.edges: dict[Any, dict[Any, set[str]]] = defaultdict(dict)

    def connect(self, sources: Iterable[Any], targets: Iterable[Any], kind: str) -> None:
        """Draw an edge from each source to each target; a node does not follow itself."""
        targets = list(targets)
        for source in sources:
            for target in targets:
                if source != target:
                    self.edges[source].setdefault(target, set()).add(kind)

    def targets(self, node: Any, kinds: Collection[str]) -> list[Any]:
        """Where edges of these kinds lead."""
        return [target for target, found in self.edges.get(node, {}).items() if found & set(kinds)]

    def components(self, kinds: Collection[str]) -> list[set[Any]]:
        """The strongly connected components with more than one node (Tarjan, without recursion)."""
        index: dict[Any, int] = {}
        low: dict[Any, int] = {}
        stack: list[Any] = []
        on_stack: set[Any] = set()
        components = []
        for root in list(self.edges):
            if root in index:
                continue
            index[root] = low[root] = len(index)
            stack.append(root)
            on_stack.add(root)
            work = [(root, iter(self.targets(root, kinds)))]
            while work:
                node, targets = work[-1]
                for target in targets:
                    if target not in index:
                        index[target] = low[target] = len(index)
                        stack.append(target)
                        on_stack.add(target)
                        work.append((target, iter(self.targets(target, kinds))))
                        break
                    if target in on_stack:
                        low[node] = min(low[node], index[target])
                else:
                    work.pop()
                    if work:
                        low[work[-1][0]] = min(low[work[-1][0]], low[node])
                    if low[node] == index[node]:
                        component = set()
                        while node not in component:
                            member = stack.pop()
                            on_stack.discard(member)
                            component.add(member)
                        if len(component) > 1:
                            components.append(component)
        return components

    def path(self, source: Any, target: Any, kinds: Collection[str], within: set[Any]) -> list[Any] | None:
        """A shortest path between two nodes."""
        before: dict[Any, Any] = {source: None}
        queue = deque([source])
        while queue:
            node = queue.popleft()
            if node == target:
                path = [node]
                while before[path[-1]] is not None:
                    path.append(before[path[-1]])
                return path[::-1]
            for following in self.targets(node, kinds):
                if following in within and following not in before:
                    before[following] = node
                    queue.append(following)
        return None


def _cycles(graph: _Graph, named: dict[str, Transaction]) -> list[Anomaly]:
    """One cycle of each component, under the name of the strongest promise that it breaks."""
    anomalies: list[Anomaly] = []
    guilty: set[Any] = set()
    for suffix, clock in (("", ()), ("-realtime", ("rt",))):
        for kind, kinds, closing in (
            ("G0", ("ww",), "ww"),
            ("G1c", ("ww", "wr"), "wr"),
            ("G-single", ("ww", "wr"), "rw"),
            ("G2", ("ww", "wr", "rw"), "rw"),
        ):
            for component in graph.components({*kinds, *clock, closing}):
                if component & guilty:
                    continue
                cycle = _cycle(graph, component, {*kinds, *clock}, closing)
                if cycle is not None:
                    guilty |= component
                    shown = " -> ".join(str(named[node]) for node in cycle if node in named)
                    anomalies.append(Anomaly(kind + suffix, shown))
    return anomalies


def _cycle(graph: _Graph, component: set[Any], kinds: Collection[str], closing: str) -> list[Any] | None:
    """A cycle of edges of some kinds, of which one is of the closing kind."""
    for source in sorted(component, key=str):
        for target in graph.targets(source, {closing}):
            if target in component:
                path = graph.path(target, source, kinds, component)
                if path is not None:
                    return [*path, path[0]]
    return None


def _shown(state: State) -> str:
    return "{" + ", ".join(sorted(state)) + "}"
