"""The routes of the page: which address gives which answer, and how errors are answered."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from indextables.errors import (
    CancelledError,
    CommandError,
    Error,
    NotATableError,
    NotFoundError,
    OptionError,
    PredicateError,
    QueryError,
    SchemaError,
    VersionNotFoundError,
)
from indextables.split.source import counting_bytes
from indextables.web import about, answers, exports, live, tables
from indextables.web.elastic.routes import elastic_routes
from indextables.web.guard import Access, Guard
from indextables.web.row_request import RowRequest, read_row_request
from indextables.web.tables import Catalog, ServedTable
from indextables.web.workers import RequestWorkers

STATIC = Path(__file__).parent / "static"
_BAD_REQUESTS = (CommandError, OptionError, PredicateError, QueryError, SchemaError)
_GONE = 499

Endpoint = Callable[[Request], Awaitable[Response]]
Answer = Callable[[ServedTable, RowRequest, Request], dict[str, Any]]


def make_app(catalog: Catalog, access: Access) -> ASGIApp:
    """The application, behind its guard."""
    workers = RequestWorkers()
    api = [
        Route("/tables", _tables(catalog, workers)),
        Route(
            "/tables/{table}/about",
            _answered_by(catalog, workers, lambda s, q, _: about.overview(s, q.version)),
        ),
        Route("/tables/{table}/files", _answered_by(catalog, workers, lambda s, q, _: about.files(s, q))),
        Route(
            "/tables/{table}/versions", _answered_by(catalog, workers, lambda s, _q, _r: about.versions(s))
        ),
        Route("/tables/{table}/rows", _answered_by(catalog, workers, lambda s, q, _: answers.rows(s, q))),
        Route("/tables/{table}/count", _answered_by(catalog, workers, lambda s, q, _: answers.count(s, q))),
        Route("/tables/{table}/facets", _answered_by(catalog, workers, _facets)),
        Route("/tables/{table}/histogram", _answered_by(catalog, workers, _histogram)),
        Route("/tables/{table}/download", _download(catalog, workers)),
        Route("/tables/{table}/tail", _tail(catalog, workers)),
    ]
    app = Starlette(
        routes=[
            Route("/", _page),
            Mount("/api", routes=api),
            Mount("/elastic", routes=elastic_routes(catalog, workers)),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        exception_handlers={Error: _mistake, HTTPException: _http_mistake},
    )
    return Guard(app, access)


async def _page(_request: Request) -> Response:
    return FileResponse(STATIC / "index.html", media_type="text/html; charset=utf-8")


def _tables(catalog: Catalog, workers: RequestWorkers) -> Endpoint:
    async def answer(request: Request) -> Response:
        version = read_row_request(request.query_params).version
        name = request.query_params.get("table")

        def work() -> list[dict[str, Any]]:
            return [tables.summary(one, version if one.name == name else None) for one in catalog]

        return JSONResponse({"tables": await workers.answer(request, work)})

    return answer


def _answered_by(catalog: Catalog, workers: RequestWorkers, work: Answer) -> Endpoint:
    async def answer(request: Request) -> Response:
        served = catalog.find(request.path_params["table"])
        row_request = read_row_request(request.query_params)
        return JSONResponse(
            await workers.answer(request, partial(_counted, work, served, row_request, request))
        )

    return answer


def _counted(work: Answer, served: ServedTable, row_request: RowRequest, request: Request) -> dict[str, Any]:
    with counting_bytes():
        return work(served, row_request, request)


def _facets(served: ServedTable, row_request: RowRequest, request: Request) -> dict[str, Any]:
    return answers.facets(served, row_request, request.query_params.get("column", ""))


def _histogram(served: ServedTable, row_request: RowRequest, request: Request) -> dict[str, Any]:
    return answers.histogram(served, row_request, request.query_params.get("column", ""))


def _download(catalog: Catalog, workers: RequestWorkers) -> Endpoint:
    async def answer(request: Request) -> Response:
        served = catalog.find(request.path_params["table"])
        row_request = read_row_request(request.query_params)
        form = request.query_params.get("format", "csv")
        make = await workers.answer(request, partial(exports.export, served, row_request, form))
        name = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in served.name)
        headers = {"content-disposition": f'attachment; filename="{name}.{form}"'}
        return StreamingResponse(workers.stream(make), media_type=exports.FORMATS[form], headers=headers)

    return answer


def _tail(catalog: Catalog, workers: RequestWorkers) -> Endpoint:
    async def answer(request: Request) -> Response:
        served = catalog.find(request.path_params["table"])
        row_request = read_row_request(request.query_params)
        # A browser sends the id of the last event when it connects again, the page when it starts again.
        after = request.headers.get("last-event-id") or request.query_params.get("after")
        tail = await workers.answer(request, partial(live.LiveTail, served, row_request, after))
        return StreamingResponse(live.events(workers, tail), media_type="text/event-stream")

    return answer


def mistake_of(error: Error) -> tuple[int, dict[str, Any]]:
    """The status and the JSON of an error, with the position in the query where it has one."""
    if isinstance(error, CancelledError):
        return _GONE, {"message": error.message}
    status = 400 if isinstance(error, _BAD_REQUESTS) else 500
    if isinstance(error, (NotATableError, NotFoundError, VersionNotFoundError)):
        status = 404
    kind = {QueryError: "query", PredicateError: "where"}.get(type(error), "other")
    payload: dict[str, Any] = {"message": error.message, "kind": kind, "type": type(error).__name__}
    position = error.fields.get("position")
    if isinstance(position, int):
        payload["position"] = position
    return status, payload


async def _mistake(_request: Request, error: Exception) -> Response:
    assert isinstance(error, Error)
    status, payload = mistake_of(error)
    return JSONResponse({"error": payload}, status)


async def _http_mistake(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return Response(json.dumps({"error": {"message": error.detail}}), error.status_code, error.headers)
