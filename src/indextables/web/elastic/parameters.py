"""The URL parameters of each address: every one is obeyed, or harmless here, or refused by name.

A table is one index of one shard that answers completely or not at all, so that what
only says how shards, caches and missing indices are treated changes no row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from starlette.datastructures import QueryParams

from indextables.web.elastic.shapes import flag_at, refused, whole_at

_LOOKS = frozenset({"pretty", "human", "error_trace"})
_INDICES = frozenset({"allow_no_indices", "expand_wildcards", "ignore_unavailable", "ignore_throttled"})
_SHARDS = frozenset(
    {
        "allow_partial_search_results", "batched_reduce_size", "ccs_minimize_roundtrips",
        "max_concurrent_searches", "max_concurrent_shard_requests", "pre_filter_shard_size", "preference",
        "request_cache", "routing", "stats", "timeout",
    }
)  # fmt: skip
HARMLESS = _LOOKS | _INDICES | _SHARDS
"""What changes neither rows nor counts, whatever its value."""
_ONLY_FALSE = frozenset({"explain", "seq_no_primary_term", "track_scores", "typed_keys"})
"""Accepted only where they ask for nothing."""
_SEARCH_TYPES = ("query_then_fetch", "dfs_query_then_fetch")

_OF_TEXT = ("df", "default_operator", "analyze_wildcard", "lenient")
SEARCH = frozenset(
    {
        "q", *_OF_TEXT, "from", "size", "sort", "_source", "_source_includes", "_source_excludes",
        "track_total_hits", "scroll", "rest_total_hits_as_int", "version",
    }
)  # fmt: skip
SEVERAL = frozenset({"rest_total_hits_as_int"})
HEADER = frozenset({"index"})
SCROLL = frozenset({"scroll", "scroll_id", "rest_total_hits_as_int"})
FIELDS = frozenset({"fields", "include_unmapped"})
MAPPING = frozenset({"local", "master_timeout"})


def checked(params: Mapping[str, Any], obeyed: Iterable[str], address: str) -> Mapping[str, Any]:
    """Refuse what is neither obeyed nor harmless; what remains has one value for each name."""
    if isinstance(params, QueryParams):
        names = [name for name, _ in params.multi_items()]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise refused(f"the parameters {twice} are given more than once")
    unknown = sorted(set(params) - set(obeyed) - HARMLESS - _ONLY_FALSE - {"search_type"})
    if unknown:
        raise refused(f"request [{address}] contains unrecognized or unsupported parameters: {unknown}")
    for name in sorted(_ONLY_FALSE & set(params)):
        if flag_at(params[name], name):
            raise refused(f"the parameter [{name}] is not supported")
    if params.get("search_type", _SEARCH_TYPES[0]) not in _SEARCH_TYPES:
        raise refused(f"[search_type] is one of {', '.join(_SEARCH_TYPES)}")
    return params


def search_body(body: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a search with what its URL says, which comes first as it does in Elasticsearch."""
    merged = dict(body)
    if "q" in params:
        text = {"query": params["q"], **{name: params[name] for name in _OF_TEXT if name in params}}
        if "df" in text:
            text["default_field"] = text.pop("df")
        merged["query"] = {"query_string": text}
    elif set(_OF_TEXT) & set(params):
        raise refused(f"{sorted(set(_OF_TEXT) & set(params))} say how the parameter [q] is read")
    merged |= {name: params[name] for name in ("from", "size", "version") if name in params}
    if "sort" in params:
        merged["sort"] = [_sorted_by(item) for item in params["sort"].split(",")]
    if "track_total_hits" in params:
        merged["track_total_hits"] = _total(params["track_total_hits"])
    if "_source" in params:
        text = params["_source"]
        merged["_source"] = text == "true" if text in ("true", "false") else text.split(",")
    if "_source_includes" in params or "_source_excludes" in params:
        ends = {"includes": "_source_includes", "excludes": "_source_excludes"}
        merged["_source"] = {key: params[name].split(",") for key, name in ends.items() if name in params}
    return merged


def _sorted_by(item: str) -> Any:
    field, colon, way = item.rpartition(":")
    return {field: {"order": way}} if colon else item


def _total(text: str) -> Any:
    return whole_at(text, "track_total_hits") if text.isdigit() else flag_at(text, "track_total_hits")
