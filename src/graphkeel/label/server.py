"""The page, served on this machine alone.

Who may speak to it: a browser that has opened the address with the one-time token, from a page of
this very origin. Who may not: other machines (loopback only), other sites (Host, Origin and
Sec-Fetch-Site are checked), other users (the token). Nothing from data becomes code: scripts and
styles come from two files of ours, and values are sent as JSON."""

from __future__ import annotations

import json
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.resources import files

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graphkeel.core.errors import ConfigError, KeelError
from graphkeel.label.session import Session, Stale
from graphkeel.label.shown import IMAGES

LOOPBACK = "127.0.0.1"
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_FILES = {
    "/": ("index.html", "text/html"),
    "/label.css": ("label.css", "text/css"),
    "/label.js": ("label.js", "text/javascript"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}


@dataclass(frozen=True)
class ServerSettings:
    """Limits of the server.

    Attributes:
        body: bytes of a request's body; an answer has about fifty.
        connections: that are open at once.
        patience: seconds for requests under way when it ends.
    """

    body: int = 2048
    connections: int = 64
    patience: int = 2


@dataclass
class Access:
    """Who may come in: the token opens the door once, and leaves a cookie.

    Attributes:
        port: the page's own.
        token: in the address that is printed.
    """

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    _cookie: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    _used: bool = False

    @property
    def address(self) -> str:
        return f"http://{LOOPBACK}:{self.port}/?token={self.token}"

    @property
    def cookie_name(self) -> str:
        """Browsers share cookies between the ports of a machine."""
        return f"keel-label-{self.port}"

    def admit(self, request: Request) -> Response | None:
        """Exchange the token for the cookie; None where there is none to exchange.

        A browser that only looks ahead does not use it up.
        """
        given = request.query_params.get("token")
        if request.url.path != "/" or request.method != "GET" or given is None:
            return None
        if "prefetch" in request.headers.get("sec-purpose", ""):
            return _refused(403, "Prefetching is not allowed.")
        if not self.has_cookie(request):
            if self._used or not _same(given, self.token):
                return _refused(403, "This address was used already, or is wrong. " + _START)
            self._used = True
        answer = RedirectResponse("/", status_code=303)
        answer.set_cookie(self.cookie_name, self._cookie, httponly=True, samesite="lax")
        return answer

    def objection(self, request: Request) -> str | None:
        """Why a request is refused, before anybody asks who sent it; None where it is not."""
        hosts = [f"{name}:{self.port}" for name in (LOOPBACK, "localhost")]
        host = request.headers.getlist("host")
        if len(host) != 1 or host[0] not in hosts:
            return "This host is not served here."
        origins = request.headers.getlist("origin")
        if any(origin != f"http://{host[0]}" for origin in origins):
            return "Other sites may not ask."
        if request.method not in ("GET", "HEAD") and not origins:
            return "A request that changes something must name its origin."
        # a link on another page may open this one, which holds no data; nothing else may be asked
        site = request.headers.get("sec-fetch-site", "none")
        if request.url.path != "/" and site not in ("same-origin", "none"):
            return "Other sites may not ask."
        return None

    def has_cookie(self, request: Request) -> bool:
        return _same(request.cookies.get(self.cookie_name, ""), self._cookie)


_START = "Start keel label again, and open the address that it prints."


class _Gate:
    """Lets in whom `Access` admits, and puts the security headers on every answer."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app = app
        self.access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                extra = [(k.lower().encode(), v.encode()) for k, v in _HEADERS.items()]
                message["headers"] = [*message["headers"], *extra]
            await send(message)

        answer = self._answer(Request(scope))
        await (answer or self.app)(scope, receive, sealed)

    def _answer(self, request: Request) -> Response | None:
        """The gate's own answer; None: come in."""
        objection = self.access.objection(request)
        if objection is not None:
            return _refused(403, objection)
        admitted = self.access.admit(request)
        if admitted is None and not self.access.has_cookie(request):
            return _refused(403, "This page is for the browser that opened it first. " + _START)
        return admitted


def application(
    session: Session, access: Access, settings: ServerSettings = ServerSettings()
) -> Starlette:
    """The page and what it asks for.

    Args:
        session: the nodes and answers.
        access: who may come in.
        settings: limits.
    """

    async def page(request: Request) -> Response:
        name, kind = _FILES[request.url.path]
        text = files("graphkeel.label").joinpath("page", name).read_text(encoding="utf-8")
        return Response(text, media_type=kind)

    async def state(_: Request) -> Response:
        return JSONResponse(await run_in_threadpool(session.state))

    async def answer(request: Request) -> Response:
        version, node, label = await _whole_numbers(request, settings, "version", "node", "label")
        if version is None or node is None:
            raise HTTPException(400, "version and node must be whole numbers.")
        await run_in_threadpool(session.answer, version, node, label)
        return await state(request)

    async def undo(request: Request) -> Response:
        (version,) = await _whole_numbers(request, settings, "version")
        if version is None:
            raise HTTPException(400, "version must be a whole number.")
        await run_in_threadpool(session.undo, version)
        return await state(request)

    async def image(request: Request) -> Response:
        path = session.shown.image(request.path_params["node"], request.path_params["column"])
        if path is None:
            raise HTTPException(404, "There is no such image.")
        return FileResponse(path, media_type=IMAGES[path.suffix.lower()])

    return Starlette(
        routes=[
            *(Route(path, page, methods=["GET"]) for path in _FILES),
            Route("/state", state, methods=["GET"]),
            Route("/answer", answer, methods=["POST"]),
            Route("/undo", undo, methods=["POST"]),
            Route("/image/{node:int}/{column:int}", image, methods=["GET"]),
        ],
        middleware=[Middleware(_Gate, access=access)],
        exception_handlers={
            HTTPException: _http_refusal,
            KeelError: _keel_refusal,
            ClientDisconnect: _http_refusal,
        },
    )


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
    with _bound(port) as listening:
        access = Access(listening.getsockname()[1])
        config = uvicorn.Config(
            application(session, access, settings),
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            lifespan="off",
            limit_concurrency=settings.connections,
            timeout_graceful_shutdown=settings.patience,
        )
        ready(access.address)
        uvicorn.Server(config).run(sockets=[listening])


def _bound(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((LOOPBACK, port))
        listening.listen()
    except OSError as error:
        listening.close()
        raise ConfigError(
            "the page cannot be served on this port",
            got=f"{port}: {error.strerror}",
            fix="Choose another --port, or leave it out.",
        ) from error
    return listening


# ---- what comes in, and what goes out where it is refused


async def _whole_numbers(
    request: Request, settings: ServerSettings, *names: str
) -> list[int | None]:
    """Fields of the JSON object in the body: each a whole number or null."""
    if request.headers.get("content-type", "").split(";")[0].strip() != "application/json":
        raise HTTPException(415, "The body must be application/json.")
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > settings.body:
            raise HTTPException(413, "The body is too large.")
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        raise HTTPException(400, "The body must be JSON.") from None
    if not isinstance(given, dict) or set(given) != set(names):
        raise HTTPException(400, f"The body must be an object with {', '.join(names)}.")
    values = [given[name] for name in names]
    if not all(value is None or (type(value) is int and abs(value) < 2**53) for value in values):
        raise HTTPException(400, "Every value must be a whole number or null.")
    return values


def _refused(status: int, words: str) -> Response:
    return JSONResponse({"error": words}, status_code=status)


async def _http_refusal(_: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        return _refused(400, "The request was cut off.")
    answer = _refused(error.status_code, str(error.detail))
    answer.headers.update(error.headers or {})
    return answer


async def _keel_refusal(_: Request, error: Exception) -> Response:
    """409 where another tab was quicker; 400 for what cannot be done."""
    return _refused(409 if isinstance(error, Stale) else 400, str(error))


def _same(given: str, wanted: str) -> bool:
    return secrets.compare_digest(given.encode("utf-8", "replace"), wanted.encode())
