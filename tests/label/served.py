"""The page served by a thread, as `keel label` serves it, and a plain client."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from graphkeel.label import Session
from graphkeel.label.server import LOOPBACK, ServerSettings, application, server_of
from threads import PATIENCE

SETTINGS = ServerSettings(patience=0.3)  # nobody is slow here


@dataclass
class Client:
    """Sends what a browser would send, unless told otherwise."""

    port: int
    address: str
    cookie: str = ""
    patience: float = PATIENCE

    def ask(
        self, method: str, path: str, body: bytes | None = None, **changed: str | None
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body; headers by name with _ for -, None leaves one out."""
        usual: dict[str, str | None] = {
            "Host": f"{LOOPBACK}:{self.port}",
            "Origin": f"http://{LOOPBACK}:{self.port}" if method == "POST" else None,
            "Cookie": self.cookie or None,
            "Content-Type": "application/json" if method == "POST" else None,
        }
        given = {name.replace("_", "-"): value for name, value in changed.items()}
        merged = {k: v for k, v in {**usual, **given}.items() if v is not None}
        connection = http.client.HTTPConnection(LOOPBACK, self.port, timeout=self.patience)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in merged.items():
                connection.putheader(name, value)
            if body is not None and not {"Content-Length", "Transfer-Encoding"} & set(merged):
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def enter(self) -> None:
        status, headers, _ = self.ask("GET", self.address.partition(str(self.port))[2])
        assert status == 303 and headers["location"] == "/"
        self.cookie = headers["set-cookie"].partition(";")[0]

    def post(self, path: str, **values: Any) -> tuple[int, Any]:
        status, _, body = self.ask("POST", path, json.dumps(values).encode())
        return status, json.loads(body)

    def state(self) -> Any:
        return json.loads(self.ask("GET", "/state")[2])


@contextmanager
def served(session: Session, settings: ServerSettings = SETTINGS) -> Iterator[Client]:
    with socket.create_server((LOOPBACK, 0)) as listening:
        port = listening.getsockname()[1]
        door = application(session, port, settings)
        server = server_of(door, settings)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield Client(port, door.address)
        finally:
            server.should_exit = True
            thread.join(PATIENCE)
