"""The page of `watch --web`: for this computer and for reading only, safe with any name."""

from __future__ import annotations

import json
import time
from functools import partial
from http.client import HTTPConnection
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
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


def ask(server, path: str, method: str = "GET", **headers: str):
    connection = HTTPConnection("127.0.0.1", server.server_address[1], timeout=10)
    connection.request(method, path, headers={name.replace("_", "-"): said for name, said in headers.items()})
    return connection.getresponse()


def test_it_answers_only_reads_asked_of_this_computer(server):
    assert ask(server, "/").status == 200
    assert "default-src 'none'" in ask(server, "/").headers["Content-Security-Policy"]
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


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "LocalHost:{port}", "localhost", "127.0.0.1", "[::1]"])
def test_this_computer_is_named_with_any_letters_and_without_a_port_on_port_80(server, host):
    assert ask(server, "/", Host=host.format(port=server.server_address[1])).status == 200


@pytest.mark.parametrize(
    "host", ["evil.example:80", "evil.example", "localhost.evil.example", "localhost:", ""]
)
def test_names_of_other_computers_are_refused(server, host):
    assert ask(server, "/", Host=host).status == 403


def test_answers_are_for_the_page_and_not_for_pages_of_other_sites(server):
    own = f"127.0.0.1:{server.server_address[1]}"
    for other in (
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},  # another port of this computer
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "null"},
    ):
        for path in ("/picture?camera=a", "/history?n=1", "/events", "/page.js"):
            answer = ask(server, path, **other)
            assert (answer.status, answer.headers["Cross-Origin-Resource-Policy"]) == (403, "same-origin")
        assert ask(server, "/", **other).status == 200  # a link
    assert server.looked == []
    for user in (
        {},
        {"Sec_Fetch_Site": "none"},
        {"Sec_Fetch_Site": "same-origin"},
        {"Origin": f"http://{own}"},
    ):
        answer = ask(server, "/history?n=1", **user)
        assert (answer.status, answer.headers["Cross-Origin-Resource-Policy"]) == (200, "same-origin")


@needs_chromium
def test_a_page_of_another_site_neither_sees_nor_asks_for_pictures(server, tmp_path):
    server.scene.take_picture("front", write_image(Header(0, ""), np.zeros((9, 9, 3), np.uint8), "bgr8"))
    image = "http://{host}:" + str(server.server_address[1]) + "/picture?camera=front"
    images = "".join(f"<img src='{image.format(host=host)}'>" for host in ("127.0.0.1", "localhost"))
    (tmp_path / "evil.html").write_text(f"<p>{images}</p>")
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as evil, browser(tmp_path / "profile") as page:
        Thread(target=evil.serve_forever, daemon=True).start()
        page.open(f"http://127.0.0.1:{evil.server_address[1]}/evil.html")
        page.wait("document.images.length === 2 && [...document.images].every(image => image.complete)")
        assert page.run("[...document.images].map(image => image.naturalWidth)") == [0, 0]
        assert server.looked == []
        page.open(image.format(host="127.0.0.1"))  # the user, with the address typed
        page.wait("document.images.length === 1 && document.images[0].naturalWidth === 9")
        evil.shutdown()


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
