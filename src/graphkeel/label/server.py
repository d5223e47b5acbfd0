"""The page, served on this machine alone.

Who may speak to it: the browser that first opened the address with its one-time token, from a page
of this very origin. Who may not: other machines (loopback only), other sites (Host, Origin and
Sec-Fetch-Site are checked), other users (the token). Nothing from data becomes code: scripts and
styles come from files of ours, and values are sent as JSON."""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graphkeel.core.errors import ConfigError, KeelError
from graphkeel.label.session import Session, Stale
from graphkeel.label.shown import IMAGES

LOOPBACK = "127.0.0.1"
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_START = "Start keel label again, and open the address that it prints."


@dataclass(frozen=True)
class ServerSettings:
    """Limits of the server."""

    body: int = 2048  # bytes of a request's body; an answer has about fifty
    path: int = 100  # characters of an address
    connections: int = 64  # that are open at once
    # seconds for a body to come, and for requests under way when the server ends
    patience: float = 2.0


class Door:
    """Lets in the browser that brings the token, which opens once and leaves a cookie; and puts the
    security headers on every answer."""

    def __init__(self, app: ASGIApp, port: int, longest: int) -> None:
        self.app = app
        self.longest = longest
        self.hosts = (f"{LOOPBACK}:{port}", f"localhost:{port}")
        self.cookie = f"keel-label-{port}"  # browsers share cookies between a machine's ports
        self.token = secrets.token_urlsafe(24)
        self._secret = secrets.token_urlsafe(24)
        self._used = False

    @property
    def address(self) -> str:
        return f"http://{self.hosts[0]}/?token={self.token}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                extra = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
                message["headers"] = [*message["headers"], *extra]
            await send(message)

        own = self._answer(Request(scope)) if scope["type"] == "http" else None
        await (own or self.app)(scope, receive, sealed)

    def _answer(self, request: Request) -> Response | None:
        """The door's own answer; None: come in."""
        objection = self._objection(request)
        if objection is not None:
            return _refused(403, objection)
        token = request.query_params.get("token")
        known = _same(request.cookies.get(self.cookie, ""), self._secret)
        if known and token is None:
            return None
        fits = token is not None and not self._used and _same(token, self.token)
        looks_ahead = "prefetch" in request.headers.get("sec-purpose", "")
        if not known and (not fits or looks_ahead or request.method != "GET"):
            return _refused(403, f"This page is for the browser that opened it first. {_START}")
        self._used = True
        answer = RedirectResponse("/", status_code=303)  # the token leaves the address bar
        answer.set_cookie(self.cookie, self._secret, httponly=True, samesite="lax")
        return answer

    def _objection(self, request: Request) -> str | None:
        """Why a request is refused, whoever sends it."""
        if len(request.url.path) > self.longest:
            return "There is no such address."
        host = request.headers.getlist("host")
        if len(host) != 1 or host[0] not in self.hosts:
            return "This host is not served here."
        origins = request.headers.getlist("origin")
        if any(origin != f"http://{host[0]}" for origin in origins):
            return "Other sites may not ask."
        if request.method not in ("GET", "HEAD") and not origins:
            return "A request that changes something must name its origin."
        # a link elsewhere may open the page, which holds no data, and nothing else
        site = request.headers.get("sec-fetch-site", "none")
        if request.url.path != "/" and site not in ("same-origin", "none"):
            return "Other sites may not ask."
        return None


def application(session: Session, port: int, settings: ServerSettings = ServerSettings()) -> Door:
    """The page and what it asks for, behind its door, to be served at a port."""

    async def state(_: Request) -> Response:
        return JSONResponse(await run_in_threadpool(session.state))

    async def answer(request: Request) -> Response:
        given = await _numbers(request, settings, {"version", "node", "label"})
        await run_in_threadpool(session.answer, **given)
        return await state(request)

    async def undo(request: Request) -> Response:
        given = await _numbers(request, settings, {"version"})
        await run_in_threadpool(session.undo, **given)
        return await state(request)

    async def image(request: Request) -> Response:
        path = session.shown.image(**request.path_params)
        if path is None:
            raise HTTPException(404, "There is no such image.")
        return FileResponse(path, media_type=IMAGES[path.suffix.lower()])

    pages = StaticFiles(packages=[("graphkeel.label", "page")], html=True)
    routes = [
        Route("/state", state, methods=["GET"]),
        Route("/answer", answer, methods=["POST"]),
        Route("/undo", undo, methods=["POST"]),
        Route("/image/{node:int}/{column:int}", image, methods=["GET"]),
        *(Route(path, pages) for path in ("/", "/label.css", "/label.js", "/icon.svg")),
    ]
    refusals = dict.fromkeys((HTTPException, KeelError, ClientDisconnect), _refusal)
    return Door(Starlette(routes=routes, exception_handlers=refusals), port, settings.path)


def serve(
    session: Session,
    *,
    port: int = 0,
    ready: Callable[[str], object] = lambda _: None,
    settings: ServerSettings = ServerSettings(),
) -> None:
    """Serve the page until Ctrl-C.

    Args:
        session: the nodes and answers.
        port: on loopback; 0 takes a free one.
        ready: called with the address, once it can be opened.
        settings: limits.
    """
    try:
        listening = socket.create_server((LOOPBACK, port))
    except OSError as error:
        raise ConfigError(
            "the page cannot be served on this port",
            got=f"{port}: {error.strerror}",
            fix="Choose another --port, or leave it out.",
        ) from error
    with listening:
        door = application(session, listening.getsockname()[1], settings)
        ready(door.address)
        server_of(door, settings).run(sockets=[listening])


def server_of(door: Door, settings: ServerSettings = ServerSettings()) -> uvicorn.Server:
    """The server behind `serve`, not running yet."""
    config = uvicorn.Config(
        door,
        log_level="error",  # requests that make no sense are answered, not told
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="off",
        limit_concurrency=settings.connections,
        timeout_graceful_shutdown=int(settings.patience),
    )
    return uvicorn.Server(config)


# ---- what comes in, and what goes out where it is refused


async def _numbers(request: Request, settings: ServerSettings, names: set[str]) -> dict[str, Any]:
    """The JSON object in the body: whole numbers; `label` may be null, which skips."""
    if request.headers.get("content-type", "").split(";")[0].strip() != "application/json":
        raise HTTPException(415, "The body must be application/json.")
    try:
        async with asyncio.timeout(settings.patience):
            given = json.loads(await _body(request, settings.body))
    except TimeoutError:
        raise HTTPException(408, "The body did not come.") from None
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict) or set(given) != names:
        raise HTTPException(400, f"The body must be a JSON object of {', '.join(sorted(names))}.")
    for name, value in given.items():
        if type(value) is not int and not (name == "label" and value is None):
            raise HTTPException(400, f"{name} must be a whole number.")
    return given


async def _body(request: Request, longest: int) -> bytes:
    """The body, read no further than it may be long."""
    too_large = HTTPException(413, "The body is too large.")
    if int(request.headers.get("content-length", 0)) > longest:
        raise too_large
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > longest:
            raise too_large
    return body


async def _refusal(_: Request, error: Exception) -> Response:
    """409 where another tab was quicker, 400 for what cannot be done."""
    if isinstance(error, HTTPException):
        answer = _refused(error.status_code, str(error.detail))
        answer.headers.update(error.headers or {})
        return answer
    return _refused(409 if isinstance(error, Stale) else 400, str(error))


def _refused(status: int, words: str) -> Response:
    return JSONResponse({"error": words}, status_code=status)


def _same(given: str, wanted: str) -> bool:
    return secrets.compare_digest(given.encode("utf-8", "replace"), wanted.encode())
