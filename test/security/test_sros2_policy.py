"""The SROS 2 policy allows what the nodes do and nothing else; real DDS security where it is to be had."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

import pytest

from lla_fusion_ros.bundle import save_bundle
from lla_fusion_ros.types.resources import find_resource
from support.processes import child_environment
from support.tiny_bundle import tiny_bundle

REPOSITORY = Path(__file__).resolve().parents[2]
NODES = ("perception", "crop_classifier", "class_fusion")
WITHOUT_SECURITY = "security libraries"  # of "This Fast DDS version doesn't have the security libraries"


def allowed(node: str) -> dict[str, set[str]]:
    """What the policy lets a node do, with absolute names."""
    profile = ElementTree.parse(find_resource("config/sros2/policy.xml")).find(
        f"./enclaves/enclave[@path='/{node}']/profiles/profile[@node='{node}']"
    )
    assert profile is not None and profile.get("ns") == "/"
    rules: dict[str, set[str]] = {"publish": set(), "subscribe": set(), "reply": set(), "request": set()}
    for group in profile:
        for what, verdict in group.attrib.items():
            assert verdict == "ALLOW"
            names = [(item.text or "").strip() for item in group]
            assert not any("*" in name for name in names), "a policy of the contract names its topics"
            rules[what] |= {_absolute(name, node) for name in names}
    if find_spec("foxglove_msgs") is None:  # these topics are there with it only
        rules["publish"] -= {"/camera/annotations"}
    return rules


def _absolute(name: str, node: str) -> str:
    return name.replace("~", f"/{node}") if name.startswith("~") else f"/{name.lstrip('/')}"


def used(asker, node: str) -> dict[str, set[str]]:
    """What a node on the graph really has."""
    return {
        what: {name for name, _ in ask(node, "/")}
        for what, ask in {
            "publish": asker.get_publisher_names_and_types_by_node,
            "subscribe": asker.get_subscriber_names_and_types_by_node,
            "reply": asker.get_service_names_and_types_by_node,
            "request": asker.get_client_names_and_types_by_node,
        }.items()
    }


def test_nodes_under_the_names_of_the_policy_use_exactly_what_it_allows(
    ros_process, ros_graph, tmp_path
) -> None:
    model = tmp_path / "model.safetensors"
    save_bundle(tiny_bundle(), model)
    for node in NODES:
        ros_process(
            f"lla_fusion_ros.ros {node}",
            "--ros-args",
            "--enclave",
            f"/{node}",
            params={"model": str(model), "cameras": ["camera"]},
            name=node,
        )
    asker = ros_graph.node("asker")

    def differences() -> dict[str, object]:
        present = asker.get_node_names()
        if not set(NODES) <= set(present):
            return {"missing nodes": set(NODES) - set(present)}
        return {
            f"{node} {what}": (sorted(has - may), sorted(may - has))
            for node in NODES
            for (what, may), has in zip(allowed(node).items(), used(asker, node).values(), strict=True)
            if may != has
        }

    try:
        ros_graph.spin_until(lambda: not differences(), what="nodes that do what the policy allows")
    except AssertionError as error:
        raise AssertionError(f"used but not allowed, allowed but not used: {differences()}") from error
    enclaves = {name: enclave for name, _, enclave in asker.get_node_names_and_namespaces_with_enclaves()}
    assert all(enclaves[node] == f"/{node}" for node in NODES)


def test_the_policy_in_the_repository_is_what_the_tool_writes() -> None:
    written = subprocess.run(
        [sys.executable, REPOSITORY / "tools" / "make_sros2_policy.py"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert find_resource("config/sros2/policy.xml").read_text() == written


def under_security(keystore: Path, tmp_path: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run Python under enforced DDS security."""
    environment = child_environment(
        {
            "ROS_SECURITY_ENABLE": "true",
            "ROS_SECURITY_STRATEGY": "Enforce",
            "ROS_SECURITY_KEYSTORE": str(keystore),
            "ROS_LOG_DIR": str(tmp_path / "log"),
        }
    )
    return subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, text=True, timeout=300
    )


NODE = """
import rclpy
rclpy.init(args=["--ros-args", "--enclave", "/perception"])
rclpy.create_node("perception")
"""


def test_enforced_security_without_keys_starts_no_node(ros_domain, tmp_path) -> None:
    """Whatever Fast DDS was built with: a node that cannot be secured must not run unsecured."""
    done = under_security(tmp_path / "nothing", tmp_path, "-c", NODE)
    assert done.returncode != 0
    assert "SECURITY" in done.stderr


def test_the_nodes_run_under_real_dds_security(ros_domain, tmp_path) -> None:
    keystore = tmp_path / "keys"
    (keystore / "enclaves" / "perception").mkdir(parents=True)
    probe = under_security(keystore, tmp_path, "-c", NODE)
    if WITHOUT_SECURITY in probe.stderr:
        pytest.skip(
            "Fast DDS of the installed wheels was built without security; its own words: " + _words(probe)
        )
    if shutil.which("ros2") is None:
        pytest.skip("Fast DDS has security, but `ros2 security`, which makes the keys, is not installed")
    shutil.rmtree(keystore)
    policy = str(find_resource("config/sros2/policy.xml"))
    for words in (
        ["create_keystore", str(keystore)],
        ["create_enclave", str(keystore), "/perception"],
        ["create_permission", str(keystore), "/perception", policy],
    ):
        subprocess.run(["ros2", "security", *words], check=True, timeout=300)
    model = tmp_path / "model.safetensors"
    save_bundle(tiny_bundle(), model)
    code = (
        "import rclpy; from lla_fusion_ros.ros.perception import PerceptionNode\n"
        f"rclpy.init(args=['--ros-args', '--enclave', '/perception', '-p', 'model:={model}'])\n"
        "node = PerceptionNode(); node.start(); print('ACTIVE'); node.stop()"
    )
    done = under_security(keystore, tmp_path, "-c", code)
    assert done.returncode == 0 and "ACTIVE" in done.stdout, done.stderr


def _words(probe: subprocess.CompletedProcess[str]) -> str:
    return next(line.strip() for line in probe.stderr.splitlines() if WITHOUT_SECURITY in line)[:200]
