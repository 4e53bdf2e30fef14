"""`lla-fusion watch` beside a running node."""

from __future__ import annotations

import json
import time
import tracemalloc
from http.client import HTTPConnection
from threading import Event, Thread

from lla_fusion_ros.cli.main import main
from lla_fusion_ros.ros.watcher import Watcher
from lla_fusion_ros.watch.page_server import PageServer
from lla_fusion_ros.watch.scene import Scene
from support.browser import browser, needs_chromium
from support.camera import BOXES, CameraOnGraph, scene
from support.rerun import Recording


@needs_chromium
def test_a_browser_shows_what_a_running_node_fuses(ros_graph, ros_process, model, listener, tmp_path):
    ros_process("lla_fusion_ros.ros perception", params={"model": model, "cameras": ["front"]})
    camera, over = CameraOnGraph(listener, "front"), Event()
    ros_graph.wait_for_subscribers(camera.images)
    ros_graph.wait_for_subscribers(camera.detections)

    def send() -> None:
        while not over.wait(0.1):
            camera.send(time.time_ns(), scene(1), ("7", "<b>8</b>"), BOXES)

    Thread(target=send, daemon=True).start()
    seen = Scene()
    try:
        with Watcher(seen) as watcher, PageServer(seen, watcher.look_at, "127.0.0.1", 0) as server:
            Thread(target=server.serve_forever, daemon=True).start()
            with browser(tmp_path / "profile") as page:
                page.look()
                page.open(server.address)
                page.wait("document.querySelectorAll('#rows tr').length === 2", 120)
                page.wait("[...document.images].some(image => image.naturalWidth > 0)")
                page.wait("cameras.innerText.includes('Hz') && nodes.innerText.includes('fuser')")
                page.wait("rows.get(1).seen.size === 1")  # what the last frame of the camera alone says
                text = page.run("document.body.innerText")
                assert "<b>8</b>" in text and page.console == []
            server.closing = True
            server.shutdown()
    finally:
        over.set()


def test_names_of_cameras_that_do_not_exist_are_not_kept(ros_domain):
    seen = Scene()
    with Watcher(seen) as watcher, PageServer(seen, watcher.look_at, "127.0.0.1", 0) as server:
        Thread(target=server.serve_forever, daemon=True).start()

        def ask(count: int) -> None:
            for number in range(count):
                connection = HTTPConnection(*server.server_address[:2], timeout=10)
                connection.request("GET", f"/picture?camera={number}{'x' * 50_000}")
                assert connection.getresponse().status == 204
                connection.close()

        ask(2)
        tracemalloc.start()
        ask(100)
        kept, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        server.closing = True
        server.shutdown()
    assert kept < 2_000_000


def test_a_recording_for_rerun_has_what_a_running_node_sees(
    ros_graph, ros_process, model, listener, tmp_path
):
    ros_process("lla_fusion_ros.ros perception", params={"model": model, "cameras": ["front"]})
    camera, over = CameraOnGraph(listener, "front", compressed="jpeg"), Event()
    ros_graph.wait_for_subscribers(camera.images)
    ros_graph.wait_for_subscribers(camera.detections)

    def send() -> None:
        while not over.wait(0.1):
            camera.send(time.time_ns(), scene(1), ("7", "\x1b[2J"), BOXES)

    Thread(target=send, daemon=True).start()
    file = tmp_path / "live.rrd"
    try:
        assert main(["watch", "--rerun", str(file), "--seconds", "8"]) == 0
    finally:
        over.set()
    recording = Recording(file)
    stamps = set(recording.times("/cameras/front/image")) & set(recording.times("/pmf/front\\/7"))
    assert len(stamps) > 5  # images and what was fused of them
    assert set(recording.times("/cameras/front/image/objects")) & stamps
    for row in recording.column("/pmf/front\\/7", "Scalars:scalars"):
        assert sum(row) > 0.99
    (labels, *_) = recording.column("/cameras/front/image/objects", "Boxes2D:labels")
    assert len(labels) == 2 and "class" in labels[0] and all(label.isprintable() for label in labels)
    assert main(["watch", "--rerun", str(file), "--seconds", "1"]) == 1  # a recording is not overwritten


def test_without_a_terminal_it_prints_a_line_a_second(ros_domain, capsys):
    assert main(["watch", "--seconds", "2.5"]) == 0
    assert "0 objects in view" in capsys.readouterr().out
    assert main(["watch", "--seconds", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["objects"] == []
    assert main(["watch", "--host", "0.0.0.0"]) == 1
    assert "add --web" in capsys.readouterr().err
