"""The page of a result file on the loopback address: `cdyn view`.

Only this machine reaches it, and only who knows the random word in its address; it hands out the page, the index and
the boxes of the one file that was opened, by names that are no paths. The file is opened anew when it has changed, so
that the frames of a run that goes on appear.
"""

import hmac
import json
import secrets
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

from ..errors import InputError
from ..files import hdf5 as storage
from . import page

HOST = "127.0.0.1"


class Opened:
    """The file, with the parts of its page; one thread at a time reads it."""

    def __init__(self, path):
        self.lock, self.path, self.stamp, self.pieces = threading.Lock(), path, None, None
        self._boxes = {}
        storage.open(path).close()  # that it can be opened is told before anything is served
        self.refresh()

    def refresh(self) -> None:
        """Open the file again if it has changed."""
        try:
            told = self.path.stat()
        except OSError as error:
            raise InputError(f"{self.path.name} cannot be read ({error.strerror}); is it still there?") from None
        stamp = (told.st_mtime_ns, told.st_size, told.st_ino)
        if stamp == self.stamp:
            return
        before, self.stamp = self.pieces, None  # a file that cannot be opened is tried again
        if before is not None:
            before.source.close()  # first: HDF5 takes a file that is open for the same one
        self.pieces = page.Pieces(storage.open(self.path))
        now, self.stamp = self.pieces, stamp
        same = before is not None and np.array_equal(before.shapes.frame.identities, now.shapes.frame.identities)
        grown = same and np.array_equal(before.source.times, now.source.times[: len(before.source)])
        self._boxes = {k: v for k, v in self._boxes.items() if grown and k[0] != "shapes"}

    def index(self) -> bytes:
        """The index, as JSON; ``stamp`` changes when another run has taken the file's place."""
        with self.lock:
            self.refresh()
            first = f"{self.pieces.source.times[0]!r}/{self.pieces.shapes.frame.identities[0]}"
            return json.dumps(self.pieces.index() | {"stamp": first}, allow_nan=False).encode()

    def box(self, name: str, g: int = 0) -> bytes | None:
        """The box of the shapes or of group ``g``; None where there is none. The last ones are kept."""
        with self.lock:
            if name == "group" and not 0 <= g < self.pieces.groups:
                return None
            key = (name, g, len(self.pieces.frames) if name == "shapes" or g == self.pieces.groups - 1 else 0)
            if key not in self._boxes:
                self._boxes[key] = self.pieces.shapes_box() if name == "shapes" else self.pieces.group_box(g)
                while len(self._boxes) > 1 and sum(map(len, self._boxes.values())) > 2e8:
                    del self._boxes[next(iter(self._boxes))]
            return self._boxes[key]

    def close(self) -> None:
        """Close the file."""
        with self.lock:
            self.pieces.source.close()


class Handler(BaseHTTPRequestHandler):
    """Answers GET of the few names there are; all else is "not found"."""

    server_version, sys_version = "contactdynamics", ""
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        served = self.server
        port = served.server_address[1]
        if self.headers.get("Host", "") not in (f"{HOST}:{port}", f"localhost:{port}"):  # another site's name for us
            return self._send(403, b"This page is for this machine alone.", "text/plain")
        head, _, name = self.path.removeprefix("/").partition("?")[0].partition("/")
        if not hmac.compare_digest(head.encode(), served.token.encode()):
            return self._send(404, b"Not found.", "text/plain")
        try:
            answer = self._answer(name, served.opened)
        except InputError as error:
            return self._send(500, str(error).encode(), "text/plain; charset=utf-8")
        if answer is None:
            return self._send(404, b"Not found.", "text/plain")
        return self._send(200, *answer)

    def _answer(self, name: str, opened: Opened):
        if name == "":
            return page.served().encode(), "text/html; charset=utf-8"
        if name == "viewer.js":
            return page.program().encode(), "text/javascript; charset=utf-8"
        if name == "index":
            return opened.index(), "application/json"
        if name == "shapes":
            return opened.box("shapes"), "application/octet-stream"
        kind, _, number = name.partition("/")
        if kind == "group" and number.isascii() and number.isdigit() and len(number) < 9:
            data = opened.box("group", int(number))
            return None if data is None else (data, "application/octet-stream")
        return None

    def _send(self, code: int, data: bytes, kind: str) -> None:
        self.send_response(code)
        for name, value in (("Content-Type", kind), ("Content-Length", str(len(data))), ("Cache-Control", "no-store"),
                            ("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"),
                            ("X-Frame-Options", "DENY"), ("Cross-Origin-Resource-Policy", "same-origin")):  # fmt: skip
            self.send_header(name, value)
        self.end_headers()
        try:
            self.wfile.write(data)
        except (BrokenPipeError, ConnectionResetError):  # the reader has gone
            self.close_connection = True

    def log_message(self, *_):
        """Say nothing of each request."""


class Server(ThreadingHTTPServer):
    """Serves the page of one result file on the loopback address; ``address`` has the random word."""

    daemon_threads = True

    def __init__(self, path, port: int = 0):
        self.opened = Opened(path)
        self.token = secrets.token_urlsafe(24)
        try:
            super().__init__((HOST, port), Handler)
        except (OSError, OverflowError) as error:
            self.opened.close()
            raise InputError(
                f"The port {port} cannot be used ({getattr(error, 'strerror', None) or error}); give another --port, "
                "or none to have a free one chosen."
            ) from None

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://{HOST}:{self.server_address[1]}/{self.token}/"

    def server_close(self) -> None:
        """End, and close the file."""
        super().server_close()
        self.opened.close()
