"""The addresses of Elasticsearch's interface, and its form of errors."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from indextables.errors import Error, NotFoundError
from indextables.web.elastic.fields import field_caps, mapping
from indextables.web.elastic.search import columns_of, search
from indextables.web.elastic.translate import refused
from indextables.web.tables import Catalog, Served
from indextables.web.waiting import Desk

VERSION = "9.0.0"
"""The version of Elasticsearch whose form of answers this is."""
_PRODUCT = {"x-elastic-product": "Elasticsearch"}

Endpoint = Callable[[Request], Awaitable[Response]]


def elastic_routes(catalog: Catalog, desk: Desk) -> list[Route]:
    """The routes, below whatever they are mounted under."""
    one = ["GET", "POST"]
    return [
        Route("/", _info),
        Route("/_search", _answered(catalog, desk, _search), methods=one),
        Route("/{index}/_search", _answered(catalog, desk, _search), methods=one),
        Route("/_msearch", _several(catalog, desk), methods=one),
        Route("/{index}/_msearch", _several(catalog, desk), methods=one),
        Route("/_field_caps", _answered(catalog, desk, _caps), methods=one),
        Route("/{index}/_field_caps", _answered(catalog, desk, _caps), methods=one),
        Route("/{index}/_mapping", _answered(catalog, desk, _mapping)),
    ]


async def _info(_request: Request) -> Response:
    said = {
        "name": "indextables",
        "cluster_name": "indextables",
        "version": {"number": VERSION, "build_flavor": "default"},
        "tagline": "Tables that answer a part of Elasticsearch's interface",
    }
    return JSONResponse(said, headers=_PRODUCT)


def _answered(
    catalog: Catalog, desk: Desk, work: Callable[[Served, Any, Request], dict[str, Any]]
) -> Endpoint:
    async def answer(request: Request) -> Response:
        try:
            served = _table(catalog, request.path_params.get("index", "*"))
            text = await request.body()
            given = _document(text) if text else {}
            found = await desk.answer(request, partial(work, served, given, request))
        except Error as error:
            return JSONResponse(_mistake(error), _status(error), headers=_PRODUCT)
        return JSONResponse(found, headers=_PRODUCT)

    return answer


def _several(catalog: Catalog, desk: Desk) -> Endpoint:
    async def answer(request: Request) -> Response:
        fallback = request.path_params.get("index", "*")
        try:
            lines = [_document(line) for line in (await request.body()).splitlines() if line.strip()]
            if len(lines) % 2:
                raise refused("_msearch takes lines in pairs: a header and a body")
        except Error as error:
            return JSONResponse(_mistake(error), _status(error), headers=_PRODUCT)
        pairs = list(zip(lines[::2], lines[1::2], strict=True))

        def work() -> list[dict[str, Any]]:
            return [_one_of(catalog, fallback, header, body) for header, body in pairs]

        responses = await desk.answer(request, work)
        took = sum(item.get("took", 0) for item in responses)
        return JSONResponse({"took": took, "responses": responses}, headers=_PRODUCT)

    return answer


def _one_of(catalog: Catalog, fallback: str, header: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """A mistake in one question of several is its answer; the others go on."""
    try:
        index = header.get("index") or fallback
        name = ",".join(index) if isinstance(index, list) else str(index)
        return {**search(_table(catalog, name), body), "status": 200}
    except Error as error:
        return _mistake(error)


def _search(served: Served, given: Any, request: Request) -> dict[str, Any]:
    asked = dict(given)
    text = request.query_params.get("q")
    if text and "query" not in asked:
        asked["query"] = {"query_string": {"query": text}}
    for name in ("size", "from"):
        if name in request.query_params:
            asked.setdefault(name, request.query_params[name])
    if request.query_params.get("track_total_hits") == "false":
        asked.setdefault("track_total_hits", False)
    return search(served, asked)


def _caps(served: Served, given: Any, request: Request) -> dict[str, Any]:
    fields = given.get("fields") or request.query_params.get("fields", "*")
    patterns = fields.split(",") if isinstance(fields, str) else [str(item) for item in fields]
    return field_caps(served.name, columns_of(served.open()), patterns)


def _mapping(served: Served, _given: Any, _request: Request) -> dict[str, Any]:
    return mapping(served.name, columns_of(served.open()))


def _table(catalog: Catalog, name: str) -> Served:
    names = [served.name for served in catalog]
    if name in ("*", "_all", ""):
        if len(names) != 1:
            raise refused(f"name one table; served are {', '.join(names)}")
        return catalog.find(names[0])
    return catalog.find(name)


def _document(text: bytes) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        raise refused("the body is not JSON") from None
    if not isinstance(found, dict):
        raise refused("the body is not a JSON object")
    return found


def _status(error: Error) -> int:
    if isinstance(error, NotFoundError):
        return 404
    return 400 if isinstance(error, ValueError) else 500


def _mistake(error: Error) -> dict[str, Any]:
    kind = "index_not_found_exception" if isinstance(error, NotFoundError) else "illegal_argument_exception"
    cause = {"type": kind, "reason": error.message}
    return {"error": {"root_cause": [cause], **cause}, "status": _status(error)}
