"""The page of `watch --web`: for this computer and for reading only, safe with any name."""

from __future__ import annotations

import json
import time
from http.client import HTTPConnection
from threading import Thread

import numpy as np
import pytest
from watch.test_scene import NASTY, state

from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.messages.images import write_image
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.watch.page_server import PageServer
from lla_fusion_ros.watch.scene import Scene
from support.browser import browser, needs_chromium


@pytest.fixture
def server():
    scene, looked = Scene(), []
    with PageServer(scene, looked.append, "127.0.0.1", 0) as server:
        server.looked = looked
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.closing = True
        server.shutdown()


def ask(server, path: str, method: str = "GET", host: str | None = None):
    connection = HTTPConnection("127.0.0.1", server.server_address[1], timeout=10)
    connection.request(method, path, headers={"Host": host} if host else {})
    return connection.getresponse()


def test_it_answers_only_reads_asked_of_this_computer(server):
    assert ask(server, "/").status == 200
    assert "default-src 'none'" in ask(server, "/").headers["Content-Security-Policy"]
    assert ask(server, "/", host="evil.example:80").status == 403
    assert ask(server, "/", method="POST").status == 501
    for path in ("/../setup.py", "/page.py", "/history?n=x", "/%2e%2e/scene.py"):
        assert ask(server, path).status == 404
    assert json.loads(ask(server, "/history?n=99999999999999999999999").read()) == []
    with pytest.raises(InputError, match="--port"):
        PageServer(Scene(), print, "127.0.0.1", server.server_address[1])


def test_pictures_are_jpeg_and_asking_says_that_somebody_looks(server):
    assert ask(server, "/picture?camera=front%2F1").status == 204
    assert server.looked == ["front/1"]
    server.scene.take_picture("front/1", write_image(Header(0, ""), np.zeros((9, 2000, 3), np.uint8), "bgr8"))
    answer = ask(server, "/picture?camera=front%2F1")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "image/jpeg")
    assert answer.read()[:2] == b"\xff\xd8"
    server.scene.take_picture("front/1", b"no image")
    assert ask(server, "/picture?camera=front%2F1").status == 204


@needs_chromium
def test_any_name_is_text_in_the_browser_and_keys_and_filters_work(server, tmp_path):
    over = []

    def feed() -> None:
        while not over:
            rows = [state(name, label=name) for name in NASTY] + [state("5", answer="cannot tell")]
            server.scene.take_states("", Header(time.time_ns(), "f"), rows)
            time.sleep(0.1)

    Thread(target=feed, daemon=True).start()
    with browser(tmp_path / "profile") as page:
        for dark, phone in ((False, False), (True, True)):
            page.look(dark, phone)
            page.open(server.address)
            page.wait(f"document.querySelectorAll('#rows tr').length === {len(NASTY) + 1}")
            assert page.run("document.documentElement.scrollWidth <= innerWidth")
            assert page.pale_texts() == []
        text = page.run("document.body.innerText")
        assert "<img src=x onerror=alert(1)>" in text and "\\u202eevil" in text
        page.run("which.value = 'look'; which.dispatchEvent(new Event('change'))")
        assert page.run("document.querySelectorAll('#rows tr').length") == 1
        page.run("document.querySelector('#rows button').click()")
        page.wait("document.querySelectorAll('#chart rect').length > 2")
        page.run("document.body.dispatchEvent(new KeyboardEvent('keydown', {key: ' ', bubbles: true}))")
        assert page.run("$('pause').getAttribute('aria-pressed')") == "true"
        over.append(True)
        assert page.console == []
