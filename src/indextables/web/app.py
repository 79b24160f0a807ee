"""The routes of the page: what is asked under which address, and how mistakes are answered."""

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
from indextables.web.questions import Question, read_question
from indextables.web.tables import Catalog, Served
from indextables.web.waiting import Desk

STATIC = Path(__file__).parent / "static"
_ASKED_WRONG = (CommandError, OptionError, PredicateError, QueryError, SchemaError)
_GONE = 499

Endpoint = Callable[[Request], Awaitable[Response]]
Answer = Callable[[Served, Question, Request], dict[str, Any]]


def make_app(catalog: Catalog, access: Access) -> ASGIApp:
    """The application, behind its guard."""
    desk = Desk()
    api = [
        Route("/tables", _tables(catalog, desk)),
        Route("/tables/{table}/about", _asked(catalog, desk, lambda s, q, _: about.overview(s, q.version))),
        Route("/tables/{table}/files", _asked(catalog, desk, lambda s, q, _: about.files(s, q))),
        Route("/tables/{table}/versions", _asked(catalog, desk, lambda s, _q, _r: about.versions(s))),
        Route("/tables/{table}/rows", _asked(catalog, desk, lambda s, q, _: answers.rows(s, q))),
        Route("/tables/{table}/count", _asked(catalog, desk, lambda s, q, _: answers.count(s, q))),
        Route("/tables/{table}/facets", _asked(catalog, desk, _facets)),
        Route("/tables/{table}/histogram", _asked(catalog, desk, _histogram)),
        Route("/tables/{table}/download", _download(catalog, desk)),
        Route("/tables/{table}/tail", _tail(catalog, desk)),
    ]
    app = Starlette(
        routes=[
            Route("/", _page),
            Mount("/api", routes=api),
            Mount("/elastic", routes=elastic_routes(catalog, desk)),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        exception_handlers={Error: _mistake, HTTPException: _http_mistake},
    )
    return Guard(app, access)


async def _page(_request: Request) -> Response:
    return FileResponse(STATIC / "index.html", media_type="text/html; charset=utf-8")


def _tables(catalog: Catalog, desk: Desk) -> Endpoint:
    async def answer(request: Request) -> Response:
        version = read_question(request.query_params).version
        name = request.query_params.get("table")

        def work() -> list[dict[str, Any]]:
            return [tables.summary(one, version if one.name == name else None) for one in catalog]

        return JSONResponse({"tables": await desk.answer(request, work)})

    return answer


def _asked(catalog: Catalog, desk: Desk, work: Answer) -> Endpoint:
    async def answer(request: Request) -> Response:
        served = catalog.find(request.path_params["table"])
        question = read_question(request.query_params)
        return JSONResponse(await desk.answer(request, partial(_counted, work, served, question, request)))

    return answer


def _counted(work: Answer, served: Served, question: Question, request: Request) -> dict[str, Any]:
    with counting_bytes():
        return work(served, question, request)


def _facets(served: Served, question: Question, request: Request) -> dict[str, Any]:
    return answers.facets(served, question, request.query_params.get("column", ""))


def _histogram(served: Served, question: Question, request: Request) -> dict[str, Any]:
    return answers.histogram(served, question, request.query_params.get("column", ""))


def _download(catalog: Catalog, desk: Desk) -> Endpoint:
    async def answer(request: Request) -> Response:
        served = catalog.find(request.path_params["table"])
        question = read_question(request.query_params)
        form = request.query_params.get("format", "csv")
        make = await desk.answer(request, partial(exports.export, served, question, form))
        name = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in served.name)
        headers = {"content-disposition": f'attachment; filename="{name}.{form}"'}
        return StreamingResponse(desk.stream(make), media_type=exports.FORMATS[form], headers=headers)

    return answer


def _tail(catalog: Catalog, desk: Desk) -> Endpoint:
    async def answer(request: Request) -> Response:
        served = catalog.find(request.path_params["table"])
        question = read_question(request.query_params)
        # A browser sends the id of the last event when it connects again, the page when it starts again.
        after = request.headers.get("last-event-id") or request.query_params.get("after")
        follower = await desk.answer(request, partial(live.Follower, served, question, after))
        return StreamingResponse(live.events(desk, follower), media_type="text/event-stream")

    return answer


def mistake_of(error: Error) -> tuple[int, dict[str, Any]]:
    """The status and the words of an error, with the place in the query where it has one."""
    if isinstance(error, CancelledError):
        return _GONE, {"message": error.message}
    status = 400 if isinstance(error, _ASKED_WRONG) else 500
    if isinstance(error, (NotATableError, NotFoundError, VersionNotFoundError)):
        status = 404
    kind = {QueryError: "query", PredicateError: "where"}.get(type(error), "other")
    said: dict[str, Any] = {"message": error.message, "kind": kind, "type": type(error).__name__}
    position = error.fields.get("position")
    if isinstance(position, int):
        said["position"] = position
    return status, said


async def _mistake(_request: Request, error: Exception) -> Response:
    assert isinstance(error, Error)
    status, said = mistake_of(error)
    return JSONResponse({"error": said}, status)


async def _http_mistake(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return Response(json.dumps({"error": {"message": error.detail}}), error.status_code, error.headers)
