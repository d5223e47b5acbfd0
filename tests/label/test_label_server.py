"""Who may ask the page, for what; and what happens to nonsense."""

from __future__ import annotations

import http.client
import json
import logging
import os
import random
import socket
import sys
from pathlib import Path

import pytest

from graphkeel.label import Shown
from graphkeel.label.files import read_rows
from tally import TALLY

pytest.importorskip("starlette", reason="pip install 'graphkeel[label]'")
pytest.importorskip("uvicorn", reason="pip install 'graphkeel[label]'")

from served import Client, served

REQUESTS = 1000


@pytest.fixture
def session(start, tmp_path):
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    (pictures / "a.png").write_bytes(b"\x89PNG picture")
    cells = dict.fromkeys(range(600), ("<b>bold</b>", "a.png"))
    return start(shown=Shown(("title", "scan"), cells, pictures))


@pytest.fixture
def outside(session):
    """A client that has not come in."""
    with served(session) as client:
        yield client


@pytest.fixture
def client(outside: Client) -> Client:
    outside.enter()
    return outside


def first_answer(client: Client) -> dict:
    state = client.state()
    return {"version": state["version"], "node": state["task"]["node"], "label": 1}


# ---- who


def test_the_token_opens_once(outside):
    path = outside.address.partition(str(outside.port))[2]
    assert outside.ask("GET", "/")[0] == 403
    assert outside.ask("GET", "/?token=wrong")[0] == 403
    assert outside.ask("GET", path, Sec_Purpose="prefetch;prerender")[0] == 403
    assert outside.ask("HEAD", path)[0] == 403
    outside.enter()
    assert outside.ask("GET", "/")[0] == 200
    assert outside.ask("GET", path)[0] == 303  # the same browser may open it again
    assert outside.ask("GET", path, Cookie=None)[0] == 403  # another one may not


def test_the_cookie_is_for_this_page_alone(outside):
    path = outside.address.partition(str(outside.port))[2]
    cookie = outside.ask("GET", path)[1]["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=lax" in cookie
    assert str(outside.port) in cookie.partition("=")[0]


@pytest.mark.parametrize("path", ["/", "/label.js", "/label.css", "/state", "/image/1/1", "/none"])
def test_nothing_without_the_cookie(outside, path):
    status, _, body = outside.ask("GET", path)
    assert status == 403
    assert "Start keel label again" in json.loads(body)["error"]


@pytest.mark.parametrize("path", ["/answer", "/undo"])
def test_no_change_without_the_cookie(outside, session, path):
    state = session.state()
    body = {"version": state["version"], "node": state["task"]["node"], "label": 1}
    assert outside.post(path, **body)[0] == 403
    assert not session.path.exists()


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "evil.example:{port}", "", None])
def test_other_hosts_are_refused(client, host):
    """A name that an attacker lets point at this machine (DNS rebinding)."""
    given = None if host is None else host.format(port=client.port)
    assert client.ask("GET", "/state", Host=given)[0] in (400, 403)


def test_localhost_is_this_machine_too(client):
    local = f"localhost:{client.port}"
    assert client.ask("GET", "/state", Host=local)[0] == 200
    body = json.dumps(first_answer(client)).encode()
    assert client.ask("POST", "/answer", body, Host=local, Origin=f"http://{local}")[0] == 200


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1:{port}", None],
)
def test_other_origins_are_refused(client, session, origin):
    given = None if origin is None else origin.format(port=client.port)
    body = json.dumps(first_answer(client)).encode()
    assert client.ask("POST", "/answer", body, Origin=given)[0] == 403
    assert not session.path.exists()


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_other_pages_may_not_read(client, site):
    assert client.ask("GET", "/state", Sec_Fetch_Site=site)[0] == 403
    assert client.ask("GET", "/image/1/1", Sec_Fetch_Site=site)[0] == 403
    assert client.ask("GET", "/", Sec_Fetch_Site=site)[0] == 200  # a link to it


# ---- what


def test_answer_skip_undo(client, session):
    status, after = client.post("/answer", **first_answer(client))
    assert status == 200 and after["labels"] == 1
    status, after = client.post("/answer", **{**first_answer(client), "label": None})
    assert (status, after["skipped"]) == (200, 1)
    status, after = client.post("/undo", version=after["version"])
    assert (status, after["skipped"], after["labels"]) == (200, 0, 1)
    assert len(session._rows) == 1


def test_the_slower_tab_is_told(client):
    answer = first_answer(client)
    assert client.post("/answer", **answer)[0] == 200
    status, found = client.post("/answer", **answer)
    assert status == 409 and "another tab" in found["error"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"label": "1"},
        {"label": 1.0},
        {"label": True},
        {"label": 3},
        {"label": -1},
        {"node": None},
        {"node": "x"},
        {"version": None},
        {"more": 1},
    ],
)
def test_answers_that_are_none(client, session, wrong):
    assert client.post("/answer", **{**first_answer(client), **wrong})[0] == 400
    assert not session.path.exists()


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b"null", b"\xff", b"[" * 2000, b'{"version": 1e999}']
)
def test_bodies_that_are_none(client, body):
    assert client.ask("POST", "/undo", body)[0] == 400


def test_bodies_that_are_too_large(client):
    assert client.ask("POST", "/answer", b" " * 3000)[0] == 413
    assert client.ask("POST", "/answer", b"{}", Content_Length=str(2**40))[0] == 413
    endless = b"bb8\r\n" + b" " * 3000 + b"\r\n"
    assert client.ask("POST", "/answer", endless, Transfer_Encoding="chunked")[0] == 413


def test_bodies_that_do_not_come(client):
    assert client.ask("POST", "/answer", b"{", Content_Length="50")[0] == 408


def test_forms_are_refused(client):
    body = json.dumps(first_answer(client)).encode()
    assert client.ask("POST", "/answer", body, Content_Type="text/plain")[0] == 415
    assert client.ask("POST", "/answer", body, Content_Type=None)[0] == 415


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/"),
        ("POST", "/state"),
        ("GET", "/answer"),
        ("DELETE", "/undo"),
        ("PUT", "/answer"),
    ],
)
def test_methods(client, method, path):
    origin = f"http://127.0.0.1:{client.port}"
    assert client.ask(method, path, b"" if method != "GET" else None, Origin=origin)[0] == 405


@pytest.mark.parametrize(
    "path",
    [
        "/image/1/0",  # text
        "/image/1/2",
        "/image/9999/1",
        "/image/-1/1",
        "/image/../../etc/passwd",
        "/image/1/1/../../../a.png",
        "/page/index.html",
        "/label.py",
        "/..%2f..%2fetc%2fpasswd",
        "/docs",
    ],
)
def test_there_is_nothing_else(client, path):
    assert client.ask("GET", path)[0] == 404


def test_numbers_too_long_to_read(client):
    assert client.ask("GET", f"/image/{'9' * 5000}/1")[0] == 403


def test_an_image_is_an_image(client):
    status, headers, body = client.ask("GET", "/image/1/1")
    assert (status, headers["content-type"], body) == (200, "image/png", b"\x89PNG picture")


@pytest.mark.parametrize("path", ["/", "/label.js", "/state", "/image/1/1", "/none"])
def test_every_answer_is_sealed(client, path):
    headers = client.ask("GET", path)[1]
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert "server" not in headers


def test_refusals_are_sealed_too(outside):
    assert "content-security-policy" in outside.ask("GET", "/")[1]


def test_the_page_holds_no_code_of_its_own(client):
    """With this policy a script or style in the markup would not run anyway."""
    page = client.ask("GET", "/")[2].decode()
    for code in ("onclick", "onload", "<style", "style=", "<script>", "javascript:"):
        assert code not in page
    script = client.ask("GET", "/label.js")[2].decode()
    for sink in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert sink not in script


def test_only_loopback_is_served(client):
    others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    for address in others - {"127.0.0.1", "127.0.1.1"}:
        with pytest.raises(OSError):
            socket.create_connection((address, client.port), timeout=5).close()


# ---- nonsense

WRITES: list[str] | None = None


def _watch(event: str, arguments: tuple) -> None:
    if WRITES is None:
        return
    if event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
        flags = arguments[2]
        if isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            WRITES.append(os.fspath(arguments[0]))
    elif event in ("os.rename", "os.remove", "os.mkdir", "os.symlink", "os.link", "os.truncate"):
        WRITES.append(os.fspath(arguments[0]))


@pytest.fixture
def writes(monkeypatch):
    """Paths that this process writes to, by an audit hook, which cannot be taken out again."""
    found: list[str] = []
    if not getattr(sys, "_keel_label_watched", False):
        sys.addaudithook(_watch)
        sys._keel_label_watched = True  # type: ignore[attr-defined]
    monkeypatch.setitem(globals(), "WRITES", found)
    return found


def nonsense(rng: random.Random, client: Client, version: int, node: int) -> tuple:
    """A request that is sometimes right, and mostly wrong in one place or several."""

    def sometimes(usual, *odd):
        return usual if rng.random() < 0.7 else rng.choice(odd)

    blob = rng.randbytes(rng.randrange(60))
    method = sometimes("POST", "GET", "PUT", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE", "BREW")
    path = sometimes(
        rng.choice(["/answer", "/answer", "/answer", "/undo", "/state", f"/image/{node}/1"]),
        "/../../../../etc/passwd",
        "/answer/../../x",
        "/%2e%2e/%00",
        "//evil.example/answer",
        "/?token=" + "A" * rng.randrange(300),
        "/" + "".join(rng.choices("abc/.%~?#&=:@[]{}|^`\\'\"<>", k=rng.randrange(90))),
        f"/image/{rng.randrange(-9, 10**9)}/{rng.randrange(-9, 10**9)}",
        "/image/" + "9" * rng.randrange(1, 6000) + "/0",
    )
    value = rng.choice(
        [version, node, None, -1, 0, 1, 2, 3, 2**63, 1e9, "x", [], {}, True, 10**400]
    )
    right = {"version": version, "node": node, "label": rng.randrange(3)}
    if path == "/undo":
        right = {"version": version}
    body = sometimes(
        json.dumps(right).encode(),
        json.dumps({**right, rng.choice(["version", "node", "label", "path"]): value}).encode(),
        json.dumps(value).encode(),
        blob,
        b"[" * rng.randrange(3000),
        b'{"version":' + b"9" * 4400 + b"}",
        b"",
    )
    odd = {
        "Host": ["evil.example", "", "127.0.0.1:0", "a" * 500],
        "Origin": ["null", "http://evil.example", "file://", None],
        "Cookie": ["", "x=y", f"keel-label-{client.port}=\u00e9", "=" * 300, None],
        "Content-Type": ["text/plain", "application/json; charset=x", "multipart/form-data", None],
        "Content-Length": ["-1", "x", "99999999999", "0"],
        "Transfer-Encoding": ["chunked", "gzip"],
        "Sec-Fetch-Site": ["cross-site", "x"],
        "Expect": ["100-continue"],
        "Upgrade": ["websocket"],
        "Range": ["bytes=0-0", "bytes=9-1,,,"],
    }
    changed = {}
    for name in rng.sample(sorted(odd), k=rng.choice([0, 0, 0, 1, 1, 2])):
        changed[name.replace("-", "_")] = rng.choice(odd[name])
    return method, path, body, changed


def test_a_thousand_nonsensical_requests(client, session, tmp_path, writes, caplog):
    rng = random.Random(29)
    client.patience = 2.0  # for requests that promise more than they send
    statuses = []
    caplog.set_level(logging.WARNING)
    for _ in range(REQUESTS):
        state = session.state()
        method, path, body, changed = nonsense(rng, client, state["version"], state["task"]["node"])
        try:
            statuses.append(client.ask(method, path, body, **changed)[0])
        except (http.client.HTTPException, OSError, ValueError):
            statuses.append(0)  # refused without words, or by our own client
    TALLY["fuzz", "label requests"] += REQUESTS
    session.wait()
    assert {status for status in statuses if status >= 500} == set()
    assert statuses.count(0) < REQUESTS // 10
    assert statuses.count(200) > REQUESTS // 10  # it went deep
    assert [
        r.getMessage() for r in caplog.records if r.exc_info or r.levelno >= logging.ERROR
    ] == []
    assert session.state()["trouble"] is None
    assert session.state()["version"] > REQUESTS // 20  # many were answered
    assert read_rows(session.path) == session._rows
    own = (str(session.folder), str(session.folder.parent / "label"))
    assert any(str(path).startswith(own) for path in writes)  # the watch sees
    strays = [path for path in writes if not str(path).startswith(own)]
    assert strays == []
    assert sorted(p.name for p in tmp_path.iterdir()) == ["label", "pictures"]
    assert client.ask("GET", "/")[0] == 200  # it is still there


def test_connections_that_say_nothing(client):
    """Half a request, and none: others are served meanwhile."""
    silent = [socket.create_connection(("127.0.0.1", client.port)) for _ in range(20)]
    silent[0].sendall(b"POST /answer HTTP/1.1\r\nHost: ")
    silent[1].sendall(b"\x16\x03\x01\x02\x00")  # a TLS greeting
    assert client.ask("GET", "/state")[0] == 200
    for one in silent:
        one.close()
    assert client.ask("GET", "/state")[0] == 200


def test_the_page_is_shipped():
    page = Path(sys.modules["graphkeel.label"].__file__).parent / "page"
    assert {path.name for path in page.iterdir()} >= {"index.html", "label.css", "label.js"}
