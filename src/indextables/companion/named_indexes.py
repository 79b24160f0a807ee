"""CREATE, DROP, REFRESH and SHOW INDEX: the indexes of a table by name, whichever table it is.

On a Delta table or Parquet files an index is a companion. It lies beside its source, in
`<source>_indexes/<name>`, so the listing of that directory is the list of the indexes: nothing is
written into the source, and nothing can differ from what is there. On a table of ours an index is a
property that names columns of its index settings; splits that were indexed otherwise are scanned until
a merge indexes them anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from indextables.companion.make import BuildRequest, run_build
from indextables.companion.merge import merge_splits
from indextables.companion.opening import require_companion_of
from indextables.companion.refresh import run_refresh, status_of
from indextables.companion.settings import CompanionSettings
from indextables.companion.source import open_source
from indextables.errors import Error, NotATableError, OptionError, TableError
from indextables.index.settings import TEXT, IndexField, IndexSpec, from_options, is_value
from indextables.log.commit.changes import properties
from indextables.log.commit.conflicts import CommitPlan, Rule
from indextables.log.format.dialect import NATIVE
from indextables.log.table_kind import TableKind
from indextables.log.transaction_log import TransactionLog
from indextables.model.names import find_name, require_name
from indextables.ops.maintain.purge import may_delete
from indextables.ops.outcomes import NO_ACTION, SUCCESS, IndexDescription, IndexResult
from indextables.ops.progress import Progress, silent
from indextables.ops.rewrite.merge import MergeRequest, is_indexed_otherwise
from indextables.ops.table_settings import indexing_of, require_parquet, settings_of
from indextables.options import PREFIX, Options
from indextables.storage.store import BulkDeleting, Store, open_store
from indextables.storage.urls import parse_url

if TYPE_CHECKING:
    import pyarrow as pa

    from indextables.log.snapshot import Snapshot
    from indextables.model.actions import Action
    from indextables.options.groups import IndexingOptions
    from indextables.runtime import Runtime

PLACE_SUFFIX = "_indexes"
"""The indexes of a Delta table or of Parquet files lie in a directory of the same name and this."""
INDEX_PROPERTY = "index."
"""The properties of a table of ours that name an index, and are lists of its columns."""
_NAME = re.compile(r"\w[\w-]*")
_SPEC_KEY = re.compile(r"indexing\.(?:typemap|tokenizer|indexrecordoption|fastfields)\b", re.IGNORECASE)


class NamedIndexes:
    """The indexes of one table."""

    def __init__(self, uri: str, options: Options, runtime: Runtime, progress: Progress = silent) -> None:
        """Look what kind of table it is; one of another system than Delta and Parquet is an error."""
        self._options, self._runtime, self._progress = options, runtime, progress
        self._log = TransactionLog.open(uri, options, runtime=runtime)
        self._uri = self._log.uri
        self._beside = open_store(f"{self._uri}{PLACE_SUFFIX}", options.storage)
        try:
            own = self._log.snapshot(max_staleness_s=0)
        except NotATableError as other:
            kind = other.fields.get("kind")
            if kind not in (TableKind.DELTA, TableKind.FILES):
                raise _not_indexed(self._uri, other) from other
            self._is_source = True
        else:
            require_parquet(own)
            self._is_source = False

    def create(
        self, name: str, columns: Sequence[str], given: Mapping[str, str], *, if_not_exists: bool
    ) -> IndexResult:
        """Make an index: build a companion, or change the settings of a table of ours and return at once."""
        if _NAME.fullmatch(name) is None:
            raise OptionError(
                f"{name!r} is no name of an index: only letters, digits, _ and - can stand in one, for a "
                "directory may be called by it"
            )
        there = find_name(self._names(), name)
        if there is not None:
            if if_not_exists:
                return self._result(there, NO_ACTION, f"there is an index {there}")
            raise TableError(
                f"{self._uri} has an index {there}. REFRESH INDEX brings it up to date, and DROP INDEX "
                "removes it.",
                uri=self._uri,
            )
        if self._is_source:
            return self._build(name, columns, given)

        def changed(base: Snapshot) -> Sequence[Action]:
            for other, taken in _named(base).items():
                shared = [column for column in columns if find_name(taken, column) is not None]
                if shared:
                    raise TableError(
                        f"{shared[0]!r} is a column of the index {other} of {self._uri}: drop that one first",
                        uri=self._uri,
                    )
            indexing = _indexing(base.schema, columns, given)
            added = from_options(indexing, base.schema, current=settings_of(base))
            left = [item for item in settings_of(base).fields if item.column not in added.columns]
            return self._changes(base, [*left, *added.fields], {name: json.dumps(list(added.columns))})

        self._commit("CREATE INDEX", name, changed)
        return self._result(name, SUCCESS, "")

    def drop(self, name: str, *, if_exists: bool) -> IndexResult:
        """Remove an index: the files of a companion, or the settings of its columns."""
        there = find_name(self._names(), name)
        if there is None:
            if if_exists:
                return IndexResult(name, self._uri, None, NO_ACTION, 0, f"there is no index {name}")
            raise self._absent(name)
        if self._is_source:
            place = self._companion(there)
            _remove(place.store)
            return IndexResult(there, self._uri, place.uri, SUCCESS, 0, f"{place.uri} was removed")

        def changed(base: Snapshot) -> Sequence[Action]:
            dropped = _named(base).get(there, ())
            left = [item for item in settings_of(base).fields if item.column not in dropped]
            return self._changes(base, left, {there: None})

        self._commit("DROP INDEX", there, changed)
        message = "its columns are not indexed any more; splits keep their indexes until they are rewritten"
        return IndexResult(there, self._uri, self._uri, SUCCESS, 0, message)

    def refresh(self, name: str) -> IndexResult:
        """Index what is not indexed yet: new files of a source, or waiting splits by a merge."""
        there = find_name(self._names(), name)
        if there is None:
            raise self._absent(name)
        if self._is_source:
            refreshed = run_refresh(self._companion(there), progress=self._progress)
            return self._result(there, refreshed.status.upper().replace("_", " "), refreshed.message)
        merged = merge_splits(self._log, MergeRequest(), self._progress)
        return self._result(there, merged.status, merged.message)

    def show(self) -> list[IndexDescription]:
        """All of them; of a table of ours also the columns that are indexed without a name."""
        if self._is_source:
            return [self._describe(name) for name in self._names()]
        own = self._log.snapshot(max_staleness_s=0)
        spec, named = settings_of(own), _named(own)
        of_none = set(spec.columns) - {column for columns in named.values() for column in columns}
        groups: list[tuple[str | None, Sequence[str]]] = [*named.items()]
        if of_none:
            groups.append((None, [column for column in spec.columns if column in of_none]))
        waiting = _waiting(own)
        return [
            IndexDescription(
                name, self._uri, self._uri, _described(spec, columns), _state(waiting), waiting,
                _waits("split", waiting, "MERGE SPLITS or REFRESH INDEX"),
            )
            for name, columns in groups
        ]  # fmt: skip

    def _build(self, name: str, columns: Sequence[str], given: Mapping[str, str]) -> IndexResult:
        if not parse_url(self._uri).parent()[1]:
            raise OptionError(
                f"{self._uri} is the root of a store, and nothing can lie beside it. Say where the index is "
                "to be: BUILD INDEXTABLES COMPANION FOR ... AT LOCATION '...'"
            )
        source = open_source(self._uri, None, options=self._options, runtime=self._runtime)
        indexing = _indexing(source.columns.schema, columns, given)
        log = self._companion_log(name, replace(self._options, indexing=indexing))
        _, built = run_build(log, BuildRequest(self._uri), self._progress)
        return self._result(name, SUCCESS, built.message)

    def _names(self) -> list[str]:
        if not self._is_source:
            return sorted(_named(self._log.snapshot(max_staleness_s=0)))
        return list(_directories(self._beside))

    def _absent(self, name: str) -> TableError:
        names = ", ".join(self._names()) or "none"
        return TableError(f"{self._uri} has no index {name}; its indexes: {names}", uri=self._uri)

    def _companion_log(self, name: str, options: Options) -> TransactionLog:
        return TransactionLog.open(f"{self._beside.uri}/{name}", options, runtime=self._runtime)

    def _companion(self, name: str) -> TransactionLog:
        """The log of a companion, which has to be one of this source."""
        log = self._companion_log(name, self._options)
        require_companion_of(log, self._uri)
        return log

    def _describe(self, name: str) -> IndexDescription:
        try:
            log = self._companion(name)
            spec = CompanionSettings.of(log.snapshot()).spec
            waiting = status_of(log).files_stale
        except Error as bad:
            place = f"{self._beside.uri}/{name}"
            return IndexDescription(name, self._uri, place, "", "BROKEN", None, str(bad))
        said = _waits("file", waiting, "REFRESH INDEX")
        return IndexDescription(
            name, self._uri, log.uri, _described(spec, spec.columns), _state(waiting), waiting, said
        )

    def _result(self, name: str, status: str, message: str) -> IndexResult:
        """What was done, with how much is not indexed yet."""
        if self._is_source:
            now = self._describe(name)
            return IndexResult(name, self._uri, now.index_path, status, now.waiting, message)
        waiting = _waiting(self._log.snapshot(max_staleness_s=0))
        said = (
            "; ".join(
                part for part in (message, _waits("split", waiting, "MERGE SPLITS or REFRESH INDEX")) if part
            )
            or "no split waits"
        )
        return IndexResult(name, self._uri, self._uri, status, waiting, said)

    def _changes(
        self, base: Snapshot, fields: Sequence[IndexField], names: Mapping[str, str | None]
    ) -> Sequence[Action]:
        """The properties of a table of ours that is to have these index fields."""
        order = {column: at for at, column in enumerate(base.schema.names)}
        spec = IndexSpec(tuple(sorted(fields, key=lambda item: order[item.column])))
        old = [key for key in indexing_of(base.metadata.configuration) if _SPEC_KEY.search(key)]
        named = {f"{INDEX_PROPERTY}{name}": columns for name, columns in names.items()}
        return properties(base, {**dict.fromkeys(old), **spec.to_properties(), **named})

    def _commit(self, operation: str, name: str, changed: Callable[[Snapshot], Sequence[Action]]) -> None:
        self._log.commit(CommitPlan(operation, Rule.APPEND, changed, parameters={"index": name}))


def _indexing(schema: pa.Schema, columns: Sequence[str], given: Mapping[str, str]) -> IndexingOptions:
    """How some columns are indexed: as the options say, else text as words and values as values."""
    for key in given:
        if _SPEC_KEY.match(key.removeprefix(PREFIX)) is None:
            raise OptionError(
                f"OPTIONS of CREATE INDEX say how its columns are indexed, such as "
                f"indexing.typemap.{columns[0]} = 'string'; {key} is none of these"
            )
    names = [require_name(schema.names, column) for column in columns]
    said = Options.of(given).indexing
    chosen = from_options(replace(said, tokenizer={}, record_option={}), schema)
    others = [name for name in names if name not in chosen.columns]
    values = [name for name in others if is_value(schema.field(name).type)]
    texts = {name: TEXT for name in others if name not in values}
    indexing = replace(
        said, typemap={**said.typemap, **texts}, fast_fields=(*(said.fast_fields or ()), *values)
    )
    unnamed = sorted(set(from_options(indexing, schema).columns) - set(names))
    if unnamed:
        raise OptionError(f"OPTIONS say how {unnamed[0]!r} is indexed, and it is no column of the index")
    return indexing


def _named(own: Snapshot) -> dict[str, list[str]]:
    """The named indexes of a table of ours, and their columns."""
    configuration = own.metadata.configuration
    return {
        key.removeprefix(INDEX_PROPERTY): json.loads(value or "[]")
        for key, value in sorted(configuration.items())
        if key.startswith(INDEX_PROPERTY)
    }


def _directories(store: Store) -> Iterator[str]:
    """The directories below a root that hold the log of a table; each costs one listing."""
    last: str | None = None
    while (path := next(iter(store.list(start_after=last)), None)) is not None:
        name, _, rest = path.path.partition("/")
        if rest:
            if store.list_level(f"{name}/{NATIVE.log_dir}"):
                yield name
            last = f"{name}/\U0010ffff"
        else:
            last = path.path


def _remove(store: Store) -> None:
    """Delete the files of a companion: the splits first, and of its log the newest version first.

    Whatever dies in between leaves an index that is there, answers rightly and can be dropped again.
    """
    listed = [meta.path for meta in store.list()]
    in_log = [path for path in listed if path.startswith(f"{NATIVE.log_dir}/")]
    splits = [path for path in listed if path not in set(in_log) and may_delete(path)]
    if isinstance(store, BulkDeleting):
        store.delete_many(splits)
    else:
        for path in splits:
            store.delete(path)
    for path in reversed(in_log):
        store.delete(path)


def _waiting(own: Snapshot) -> int:
    """How many splits of a table of ours are not indexed as its settings say."""
    spec = settings_of(own)
    return sum(is_indexed_otherwise(spec, add) for add in own.adds())


def _waits(what: str, waiting: int, statement: str) -> str:
    if not waiting:
        return ""
    counted = f"1 {what} waits" if waiting == 1 else f"{waiting} {what}s wait"
    return f"{counted} for {statement}, and {'is' if waiting == 1 else 'are'} scanned until then"


def _state(waiting: int) -> str:
    return "STALE" if waiting else "CURRENT"


def _described(spec: IndexSpec, columns: Sequence[str]) -> str:
    return ", ".join(f"{column} {','.join(spec.kinds(column))}" for column in columns)


def _not_indexed(uri: str, other: NotATableError) -> Error:
    kind = other.fields.get("kind")
    if kind in (TableKind.ICEBERG, TableKind.HUDI):
        return TableError(
            f"{uri} is {kind.value}: indexes are made for Delta tables, directories of Parquet files and "
            "tables of IndexTables",
            uri=uri,
        )
    return other
