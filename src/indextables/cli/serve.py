"""The verb that serves tables as a web page."""

from __future__ import annotations

import os
import signal
from importlib.util import find_spec

import click

from indextables.cli import render
from indextables.cli.flags import Flags, verb
from indextables.cli.render import Form
from indextables.errors import MissingPackageError

_NEEDED = ("anyio", "starlette", "uvicorn")


@click.command()
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    default=7878,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="The port; 0 takes a free one.",
)
@click.option("--open", "open_browser", is_flag=True, help="Open the page in a browser.")
@verb
def serve(*, tables: tuple[str, ...], host: str, port: int, open_browser: bool, settings: Flags) -> None:
    """Open a page on this machine to search tables.

    Nothing can be changed there. TABLE is a path or NAME=PATH. The address that is
    printed contains a token; set the environment variable INDEXTABLES_TOKEN to keep
    the same token. Below /elastic the same tables answer Elasticsearch's _search, _msearch and
    _field_caps, for Grafana and scripts.

    For example: indextables serve /data/logs orders=s3://lake/orders
    """
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise MissingPackageError(
            f"the page needs {', '.join(missing)}, not installed in this Python; "
            'install with: pip install "indextables[serve]"',
            packages=missing,
        )
    from indextables.web.server import prepare
    from indextables.web.tables import Catalog

    catalog = Catalog.of(tables, settings.options)
    server = prepare(catalog, host, port, os.environ.get("INDEXTABLES_TOKEN") or None)
    # Ctrl-C is the way to end it, also before it has begun to serve.
    signal.signal(signal.SIGINT, lambda *_: server.stop())
    if settings.form is Form.TEXT:
        click.echo(f"Open {server.address}")
        click.echo("Press Ctrl-C to stop.")
    else:
        render.show_line(settings.form, {"address": server.address})
    if open_browser:
        click.launch(server.address)
    server.run()


VERBS = (serve,)
