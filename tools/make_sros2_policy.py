"""Writes an SROS 2 policy that lets each node do exactly what the contract says, for the cameras named.

config/sros2/policy.xml is its output for the default camera name; a test compares that file with the
topics and services that the running nodes really have.

example: .venv/bin/python tools/make_sros2_policy.py front_left front_right > policy.xml
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from xml.etree import ElementTree

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lla_fusion_ros.messages import contract

# What rclpy gives every managed node; nothing of it can be left out without breaking `ros2 param`,
# `ros2 lifecycle` or the node's own start.
NODE_TOPICS = ["rosout", "parameter_events", "~/transition_event"]
NODE_SERVICES = [
    *(f"~/{name}_parameters" for name in ("describe", "get", "list", "set")),
    "~/get_parameter_types",
    "~/set_parameters_atomically",
    "~/get_type_description",
    *(f"~/{name}" for name in ("change_state", "get_state", "get_available_states")),
    *(f"~/{name}" for name in ("get_available_transitions", "get_transition_graph")),
    "~/reset",
]
ABSOLUTE = {"rosout", "parameter_events"}


def policy(cameras: list[str], namespace: str = "/", decisions: bool = False, scores: bool = False) -> str:
    """The policy as XML: one enclave and one profile for each of the three nodes."""
    images = [
        contract.image_topic,
        contract.compressed_topic,
        contract.detections_topic,
        contract.crops_topic,
        lambda camera: f"{contract.crops_topic(camera)}/compressed",
        contract.camera_info_topic,
    ]
    if scores:
        images.append(lambda camera: contract.label_topic(contract.detections_topic(camera)))
    transforms = [contract.TRANSFORMS, contract.STATIC_TRANSFORMS]
    views = [contract.views_topic, contract.embeddings_topic, contract.views_info_topic]
    fused = [
        contract.FUSED_CLASSES,
        contract.LABELS,
        contract.OOD_WARNINGS,
        contract.TRACK_STATUS,
        contract.CLASS_SETS,
        *([contract.DECISIONS] if decisions else []),
        contract.NODE_DIAGNOSTICS,
    ]
    of_cameras = {
        "images": [topic(camera) for camera in cameras for topic in images],
        "views": [topic(camera) for camera in cameras for topic in [*views, contract.camera_info_topic]],
        "fused": [
            topic(camera)
            for camera in cameras
            for topic in (contract.camera_fused_topic, contract.annotations_topic)
        ],
        "shown": [topic(camera) for camera in cameras for topic in [*views, contract.annotated_topic]],
    }
    nodes = {
        "perception": (of_cameras["images"], [*fused, *of_cameras["fused"], *of_cameras["shown"]]),
        "crop_classifier": (of_cameras["images"], [contract.NODE_DIAGNOSTICS, *of_cameras["shown"]]),
        "class_fusion": (of_cameras["views"], [*fused, *of_cameras["fused"]]),
    }
    root = ElementTree.Element("policy", version="0.2.0")
    enclaves = ElementTree.SubElement(root, "enclaves")
    for node, (subscribed, published) in nodes.items():
        enclave = ElementTree.SubElement(enclaves, "enclave", path=f"/{node}")
        profiles = ElementTree.SubElement(enclave, "profiles")
        profile = ElementTree.SubElement(profiles, "profile", ns=namespace, node=node)
        _rules(profile, "topics", "subscribe", "topic", [*subscribed, *transforms])
        _rules(profile, "topics", "publish", "topic", [*published, *NODE_TOPICS])
        _rules(profile, "services", "reply", "service", NODE_SERVICES)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _rules(profile: ElementTree.Element, kind: str, what: str, item: str, names: list[str]) -> None:
    rules = ElementTree.SubElement(profile, kind, {what: "ALLOW"})
    for name in names:
        ElementTree.SubElement(rules, item).text = f"/{name}" if name in ABSOLUTE else name


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cameras", nargs="*", default=["camera"], help="as in the parameter `cameras`")
    parser.add_argument("--namespace", default="/", help="of the nodes (default /)")
    parser.add_argument("--decisions", action="store_true", help="nodes that have a `costs` file")
    parser.add_argument("--scores", action="store_true", help="nodes with `model:=scores`")
    args = parser.parse_args()
    sys.stdout.write(policy(args.cameras, args.namespace, args.decisions, args.scores))
    return 0


if __name__ == "__main__":
    sys.exit(main())
