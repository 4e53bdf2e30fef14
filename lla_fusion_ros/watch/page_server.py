"""`watch --web`: the scene as one page over HTTP, for reading only; server-sent events keep it live."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable
from dataclasses import astuple
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from threading import BoundedSemaphore, Lock
from typing import Any
from urllib.parse import parse_qs

import cv2
import numpy as np

from lla_fusion_ros.images.drawing import to_bgr8
from lla_fusion_ros.messages.images import parse_image
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.watch.scene import Scene

EVERY = 0.2  # seconds between two states of the page
MOST_PAGES = 16  # open at the same time
_PATIENCE = 10.0  # seconds for a page to take what it is sent
_WIDEST = 960  # pixels of a picture
_FILES = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
}
# The page runs its own script and nothing else, whatever an id or a class name holds.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",  # no other page can show the cameras' images
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_LOCAL_HOST = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d+)?", re.IGNORECASE)  # without port: port 80


class PageServer(ThreadingHTTPServer):
    """Serves the page at `host:port`; port 0 takes a free one. `look_at` is told whose picture is wanted."""

    daemon_threads = True

    def __init__(self, scene: Scene, look_at: Callable[[str], None], host: str, port: int) -> None:
        self.scene, self.look_at = scene, look_at
        self.local = host.lower() in ("127.0.0.1", "localhost", "::1")
        self.pages = BoundedSemaphore(MOST_PAGES)
        self.closing = False
        self._lock = Lock()
        self._state, self._state_at = b"", -EVERY
        self._jpegs: dict[str, tuple[int, bytes]] = {}
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            raise InputError(
                f"the page cannot be served at {host}:{port}: {error}; choose with --port"
            ) from None

    @property
    def address(self) -> str:
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}/"

    def state(self) -> bytes:
        """The scene as JSON, made once for all pages."""
        with self._lock:
            if time.monotonic() - self._state_at >= EVERY * 0.9:
                self._state = json.dumps(self.scene.snapshot(), separators=(",", ":")).encode()
                self._state_at = time.monotonic()
            return self._state

    def jpeg(self, camera: str) -> bytes | None:
        """The newest annotated image, encoded once."""
        self.look_at(camera)
        newest = self.scene.picture(camera)
        if newest is None:
            return None
        with self._lock:
            number, jpeg = self._jpegs.get(camera, (0, b""))
            if number != newest[0]:
                image = to_bgr8(parse_image(newest[1]).pixels())
                shrink = min(_WIDEST / image.shape[1], 1.0)
                image = cv2.resize(image, None, fx=shrink, fy=shrink, interpolation=cv2.INTER_AREA)
                jpeg = np.asarray(cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, 80])[1]).tobytes()
                self._jpegs[camera] = newest[0], jpeg
            return jpeg

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], OSError):  # a page that was closed amid an answer is no news
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    server_version, sys_version = "lla_fusion_watch", ""
    timeout = _PATIENCE

    def do_GET(self) -> None:
        if self.server.local and not self._asked_for_this_computer():
            self.send_error(HTTPStatus.FORBIDDEN, "Another name than localhost: see --host")
            return
        path, _, query = self.path.partition("?")  # `urlsplit` would keep the last 128
        if path != "/" and not self._asked_by_the_page():  # a link to the page may stand anywhere
            self.send_error(HTTPStatus.FORBIDDEN, "Asked by a page of another site")
            return
        asked = {key: values[0] for key, values in parse_qs(query).items()}
        if path in _FILES:
            name, kind = _FILES[path]
            self._send(resources.files("lla_fusion_ros.watch").joinpath(name).read_bytes(), kind)
        elif path == "/events":
            self._events()
        elif path == "/history" and asked.get("n", "").isdecimal():
            points = self.server.scene.history(int(asked["n"][:18]))
            self._send(json.dumps([astuple(point) for point in points]).encode(), "application/json")
        elif path == "/picture":
            self._picture(asked.get("camera", ""))
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def _asked_for_this_computer(self) -> bool:
        """Else a page of another site could have its own name point here, and read along."""
        return _LOCAL_HOST.fullmatch(self.headers.get("Host", "")) is not None

    def _asked_by_the_page(self) -> bool:
        """Or by the user; browsers say who asks, other programs do not."""
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        own = origin is None or origin.rpartition("://")[2].lower() == host.lower()
        return own and self.headers.get("Sec-Fetch-Site", "none") in ("same-origin", "none")

    def _picture(self, camera: str) -> None:
        try:
            jpeg = self.server.jpeg(camera)
        except InputError:
            jpeg = None
        if jpeg is None:
            self._send(b"", "text/plain", HTTPStatus.NO_CONTENT)
        else:
            self._send(jpeg, "image/jpeg")

    def _events(self) -> None:
        if not self.server.pages.acquire(blocking=False):
            self.send_error(HTTPStatus.SERVICE_UNAVAILABLE, f"{MOST_PAGES} pages are open already")
            return
        try:
            self._begin(HTTPStatus.OK, "text/event-stream")
            while not self.server.closing:
                self.wfile.write(b"data: " + self.server.state() + b"\n\n")
                time.sleep(EVERY)
        finally:
            self.server.pages.release()

    def _send(self, data: bytes, kind: str, status: HTTPStatus = HTTPStatus.OK) -> None:
        self._begin(status, kind, len(data))
        self.wfile.write(data)

    def _begin(self, status: HTTPStatus, kind: str, length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.end_headers()

    def end_headers(self) -> None:
        for key, value in _HEADERS.items():
            self.send_header(key, value)
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nobody reads who asked for what."""
