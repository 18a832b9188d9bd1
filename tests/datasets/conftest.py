"""A server of this machine that misbehaves on demand, and a data home that starts empty."""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from nonneg.datasets import acquisition, catalog, download


@dataclass
class Page:
    """What the server answers on a path."""

    body: bytes = b""
    ranges: bool = True
    cut: list[int] = field(default_factory=list)  # so many bytes a connection, one entry each; then all
    status: list[int] = field(default_factory=list)  # errors first, one a connection
    pause: float = 0.0
    to: str | None = None
    etag: bool = True
    length: bool = True
    shift: int = 0
    silent: float = 0.0  # seconds before the first byte of the answer


class Server:
    """Pages by path, and the requests that came, as (path, range)."""

    def __init__(self) -> None:
        self.pages: dict[str, Page] = {}
        self.requests: list[tuple[str, str | None]] = []
        self.agents: set[str] = set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.0"

            def do_GET(self):
                outer.requests.append((self.path, self.headers.get("Range")))
                outer.agents.add(self.headers["User-Agent"])
                with contextlib.suppress(ConnectionError):  # the other side has hung up
                    outer.answer(self, outer.pages.get(self.path, Page(status=[404] * 99)))

            def log_message(self, *details):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.address = f"http://127.0.0.1:{self.http.server_port}"

    def answer(self, handler, page: Page) -> None:
        time.sleep(page.silent)
        if page.status:
            handler.send_error(page.status.pop(0))
            return
        if page.to is not None:
            handler.send_response(302)
            handler.send_header("Location", page.to)
            handler.end_headers()
            return
        tag, start = f'"{hashlib.md5(page.body).hexdigest()}"', 0
        asked, unless = handler.headers.get("Range"), handler.headers.get("If-Range")
        if asked and page.ranges and unless in (None, tag):
            start = int(asked.removeprefix("bytes=").removesuffix("-")) + page.shift
            if start >= len(page.body):
                handler.send_error(416)
                return
            handler.send_response(206)
            handler.send_header("Content-Range", f"bytes {start}-{len(page.body) - 1}/{len(page.body)}")
        else:
            handler.send_response(200)
        rest = page.body[start:]
        if page.length:
            handler.send_header("Content-Length", str(len(rest)))
        if page.etag:
            handler.send_header("ETag", tag)
        handler.end_headers()
        if page.cut:
            rest = rest[: page.cut.pop(0)]
        for at in range(0, len(rest), max(1, len(rest) // 4)):
            handler.wfile.write(rest[at : at + max(1, len(rest) // 4)])
            handler.wfile.flush()
            time.sleep(page.pause)


@pytest.fixture(scope="session")
def one_server():
    server = Server()
    thread = threading.Thread(target=server.http.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield server
    server.http.shutdown()
    server.http.server_close()
    thread.join()


@pytest.fixture
def server(one_server, monkeypatch):
    """The server with no pages, and transfers that do not wait long."""
    one_server.pages.clear()
    one_server.requests.clear()
    monkeypatch.setattr(download, "PAUSE", 0.001)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(
        acquisition,
        "HOSTS",
        {
            "github": f"{one_server.address}/raw",
            "github-names": f"{one_server.address}/names",
            "pypi": f"{one_server.address}/index",
        },
    )
    return one_server


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache of the user, no data home, and permission to fetch."""
    monkeypatch.delenv(catalog.ENVIRONMENT_VARIABLE, raising=False)
    monkeypatch.delenv(catalog.DOWNLOAD_VARIABLE, raising=False)
    monkeypatch.setattr(catalog, "user_cache", lambda: tmp_path / "cache")
    return tmp_path / "cache"
