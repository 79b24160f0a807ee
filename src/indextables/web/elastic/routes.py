"""The addresses of Elasticsearch's interface, its types of fields, and its form of errors."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

import pyarrow as pa
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from indextables.errors import Error, NotATableError, NotFoundError
from indextables.web.elastic import parameters
from indextables.web.elastic.scrolls import MissingScrollError, Scrolls
from indextables.web.elastic.search import NOTES, SearchRequest, fields_of
from indextables.web.elastic.shapes import document, flag_at, refused, texts_at
from indextables.web.elastic.translate import TableFields
from indextables.web.tables import Catalog, ServedTable
from indextables.web.workers import RequestWorkers

VERSION = "9.0.0"
"""The version of Elasticsearch whose form of answers this is."""
HTTP_BAD_REQUEST, HTTP_NOT_FOUND, HTTP_SERVER_ERROR = 400, 404, 500
_PRODUCT = {"x-elastic-product": "Elasticsearch"}
_LONGEST_NOTE = 1000

_FIELD_TYPES = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int8, "byte"),
    (pa.types.is_int16, "short"),
    (pa.types.is_int32, "integer"),
    (pa.types.is_integer, "long"),
    (pa.types.is_float32, "float"),
    (pa.types.is_floating, "double"),
    (pa.types.is_decimal, "double"),
    (pa.types.is_timestamp, "date"),
    (pa.types.is_date, "date"),
    (pa.types.is_binary, "binary"),
)
"""The field type of each kind of column; the first that fits counts."""

Endpoint = Callable[[Request], Awaitable[Response]]
Parameters = Mapping[str, Any]
Work = Callable[[dict[str, Any], Parameters, Mapping[str, str]], dict[str, Any]]
"""An answer from a body, the parameters of the URL, and the parts of its path."""


def elastic_routes(catalog: Catalog, workers: RequestWorkers) -> list[Route]:
    """The routes, below whatever they are mounted under."""
    one = ["GET", "POST"]
    scrolls = Scrolls()
    search = _endpoint(workers, parameters.SEARCH, partial(_search, catalog, scrolls))
    several = _endpoint(workers, parameters.SEVERAL, partial(_search_several, catalog), lines=True)
    caps = _endpoint(workers, parameters.FIELDS, partial(_caps, catalog))
    following = _endpoint(workers, parameters.SCROLL, partial(_following, scrolls))
    close = _endpoint(workers, frozenset({"scroll_id"}), partial(_close, scrolls))
    return [
        Route("/", _endpoint(workers, frozenset(), _info)),
        Route("/_search", search, methods=one),
        Route("/_search/scroll", following, methods=one),
        Route("/_search/scroll", close, methods=["DELETE"]),
        Route("/_search/scroll/{scroll_id}", following, methods=one),
        Route("/_search/scroll/{scroll_id}", close, methods=["DELETE"]),
        Route("/{index}/_search", search, methods=one),
        Route("/_msearch", several, methods=one),
        Route("/{index}/_msearch", several, methods=one),
        Route("/_field_caps", caps, methods=one),
        Route("/{index}/_field_caps", caps, methods=one),
        Route("/{index}/_mapping", _endpoint(workers, parameters.MAPPING, partial(_mapping, catalog))),
    ]


def _endpoint(
    workers: RequestWorkers, obeyed: frozenset[str], work: Work, *, lines: bool = False
) -> Endpoint:
    """An endpoint that refuses unknown parameters and bodies of another form, and answers the rest."""

    async def endpoint(request: Request) -> Response:
        try:
            params = parameters.checked(request.query_params, obeyed, request.url.path)
            text = await request.body()
            if lines:
                body: dict[str, Any] = {
                    "lines": [document(line) for line in text.splitlines() if line.strip()]
                }
            else:
                body = document(text) if text.strip() else {}
            answer = await workers.answer(request, partial(work, body, params, request.path_params))
        except Error as error:
            return JSONResponse(_error_body(error), _status(error), headers=_PRODUCT)
        return JSONResponse(
            {key: value for key, value in answer.items() if key != NOTES},
            headers={**_PRODUCT, **_warnings(answer.get(NOTES, ()))},
        )

    return endpoint


def _warnings(notes: Iterable[str]) -> dict[str, str]:
    """What the author of a query should know, as the header in which clients look for it."""
    plain = (re.sub(r"[^ !#-~]", lambda char: _in_header(char[0]), note)[:_LONGEST_NOTE] for note in notes)
    header = ", ".join(f'299 indextables "{note}"' for note in plain)
    return {"Warning": header} if header else {}


def _in_header(char: str) -> str:
    """A character between the double quotes of a header: they may hold neither such quotes nor Unicode."""
    return "'" if char == '"' else " " if char.isspace() else char.encode("unicode_escape").decode()


def _info(_body: dict[str, Any], _params: Parameters, _path: Mapping[str, str]) -> dict[str, Any]:
    return {
        "name": "indextables",
        "cluster_name": "indextables",
        "version": {"number": VERSION, "build_flavor": "default"},
        "tagline": "Tables that answer a part of Elasticsearch's interface",
    }


def _search(
    catalog: Catalog, scrolls: Scrolls, body: dict[str, Any], params: Parameters, path: Mapping[str, str]
) -> dict[str, Any]:
    served = _table(catalog, path.get("index", "*"))
    whole = parameters.search_body(body, params)
    if "scroll" in params:
        answer = scrolls.begin(SearchRequest(served, whole, scroll=True).pages(), params["scroll"])
    else:
        answer = SearchRequest(served, whole).answer()
    return _with_total(answer, params)


def _following(
    scrolls: Scrolls, body: dict[str, Any], params: Parameters, path: Mapping[str, str]
) -> dict[str, Any]:
    scroll = _scroll_body(
        {**path, **body, **{name: params[name] for name in ("scroll", "scroll_id") if name in params}}
    )
    return _with_total(scrolls.following(scroll.get("scroll_id"), scroll.get("scroll")), params)


def _close(
    scrolls: Scrolls, body: dict[str, Any], params: Parameters, path: Mapping[str, str]
) -> dict[str, Any]:
    scroll = _scroll_body({**path, **body, **params})
    ids = [one for text in texts_at(scroll.get("scroll_id"), "scroll_id") for one in text.split(",")]
    closed = scrolls.close(ids)
    if not closed:
        raise MissingScrollError("none of these scrolls is open")
    return {"succeeded": True, "num_freed": closed}


def _scroll_body(entries: dict[str, Any]) -> dict[str, Any]:
    if set(entries) - {"scroll", "scroll_id"} - parameters.HARMLESS:
        raise refused(f"a scroll has scroll and scroll_id, not {sorted(entries)}")
    return entries


def _with_total(answer: dict[str, Any], params: Parameters) -> dict[str, Any]:
    """The answer with its total as a plain number, where the URL asks for that."""
    if not flag_at(params.get("rest_total_hits_as_int", False), "rest_total_hits_as_int"):
        return answer
    hits = answer["hits"]
    return {**answer, "hits": {**hits, "total": hits["total"]["value"] if "total" in hits else -1}}


def _search_several(
    catalog: Catalog, body: dict[str, Any], params: Parameters, path: Mapping[str, str]
) -> dict[str, Any]:
    lines = body["lines"]
    if len(lines) % 2:
        raise refused("_msearch takes lines in pairs: a header and a body")
    fallback = path.get("index", "*")
    pairs = zip(lines[::2], lines[1::2], strict=True)
    responses = [_one_search(catalog, fallback, header, one, params) for header, one in pairs]
    notes = [note for item in responses for note in item.pop(NOTES, ())]
    took = sum(item.get("took", 0) for item in responses)
    return {"took": took, "responses": responses, NOTES: list(dict.fromkeys(notes))}


def _one_search(
    catalog: Catalog, fallback: str, header: dict[str, Any], body: dict[str, Any], params: Parameters
) -> dict[str, Any]:
    """One search of several; an error in it is its answer, and the others go on."""
    try:
        named = parameters.checked(header, parameters.HEADER, "_msearch")
        name = ",".join(texts_at(named.get("index"), "index")) or fallback
        answer = SearchRequest(_table(catalog, name), body).answer()
        return {**_with_total(answer, params), "status": 200}
    except Error as error:
        return _error_body(error)


def _caps(
    catalog: Catalog, body: dict[str, Any], params: Parameters, path: Mapping[str, str]
) -> dict[str, Any]:
    if set(body) - {"fields"}:
        raise refused(f"_field_caps does not support {sorted(set(body) - {'fields'})}")
    fields = body.get("fields") or params.get("fields", "*")
    patterns = [one for text in texts_at(fields, "fields") for one in text.split(",")]
    served = _table(catalog, path.get("index", "*"))
    return field_caps(served.name, fields_of(served.open()), patterns)


def _mapping(
    catalog: Catalog, _body: dict[str, Any], _params: Parameters, path: Mapping[str, str]
) -> dict[str, Any]:
    served = _table(catalog, path["index"])
    return mapping(served.name, fields_of(served.open()))


def field_type(name: str, columns: TableFields) -> str:
    """The type of a column, by how it is searched first."""
    index = columns.indexed.get(name)
    if index in ("text", "ip"):
        return str(index)
    kind = columns.schema.field(name).type
    if pa.types.is_string(kind) and index != "json":
        return "keyword"
    return next((shown for is_kind, shown in _FIELD_TYPES if is_kind(kind)), "object")


def field_caps(index: str, columns: TableFields, patterns: list[str]) -> dict[str, Any]:
    """The answer to `_field_caps`."""
    fields = {}
    kinds = {name: field_type(name, columns) for name in columns.schema.names}
    kinds |= {f"{name}.keyword": "keyword" for name in columns.schema.names if columns.has_values(name)}
    for name, kind in kinds.items():
        if not any(fnmatchcase(name, pattern) for pattern in patterns):
            continue
        fields[name] = {
            kind: {
                "type": kind,
                "metadata_field": False,
                "searchable": kind != "binary",
                "aggregatable": kind not in ("text", "object", "binary"),
            }
        }
    return {"indices": [index], "fields": fields}


def mapping(index: str, columns: TableFields) -> dict[str, Any]:
    """The answer to `_mapping`."""
    properties: dict[str, Any] = {}
    for name in columns.schema.names:
        properties[name] = {"type": field_type(name, columns)}
        if columns.has_values(name):
            properties[name]["fields"] = {"keyword": {"type": "keyword"}}
    return {index: {"mappings": {"properties": properties}}}


def _table(catalog: Catalog, name: str) -> ServedTable:
    names = [served.name for served in catalog]
    if name in ("*", "_all", ""):
        if len(names) != 1:
            raise refused(f"name one table; served are {', '.join(names)}")
        return catalog.find(names[0])
    return catalog.find(name)


def _status(error: Error) -> int:
    if isinstance(error, (NotFoundError, NotATableError)):
        return HTTP_NOT_FOUND
    return HTTP_BAD_REQUEST if isinstance(error, ValueError) else HTTP_SERVER_ERROR


def _error_body(error: Error) -> dict[str, Any]:
    kind = "illegal_argument_exception"
    if isinstance(error, MissingScrollError):
        kind = "search_context_missing_exception"
    elif _status(error) != HTTP_BAD_REQUEST:
        kind = (
            "index_not_found_exception"
            if _status(error) == HTTP_NOT_FOUND
            else "search_phase_execution_exception"
        )
    cause = {"type": kind, "reason": error.message}
    return {"error": {"root_cause": [cause], **cause}, "status": _status(error)}
