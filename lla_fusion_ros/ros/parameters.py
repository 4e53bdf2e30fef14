"""Declares ROS parameters from the fields of the settings classes, and keeps both in step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, fields, replace
from difflib import get_close_matches
from typing import Any, TypeVar

from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    ParameterType,
    SetParametersResult,
)
from rclpy.exceptions import (
    InvalidParameterTypeException,
    InvalidParameterValueException,
    InvalidTopicNameException,
    ParameterUninitializedException,
)
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.validate_topic_name import validate_topic_name

from lla_fusion_ros.ros.node_settings import (
    CAMERAS_DESCRIPTION,
    NODES,
    CameraSettings,
    is_changeable,
)
from lla_fusion_ros.types.errors import InputError, LlaFusionError
from lla_fusion_ros.types.settings import HALF_LIFE, PAIR, RENAMED, hazard_of

Settings = TypeVar("Settings")
FIXED = "fixed while the node is configured"
_OF_CAMERAS = {f.name: f.default for f in fields(CameraSettings)}


class Parameters:
    """The parameters of one node as settings objects.

    Args:
        apply: called with the changed settings objects before a change is accepted; an error refuses it.
        is_configured: whether a model is loaded; only then are some parameters fixed.
    """

    def __init__(
        self,
        node: Node,
        kind: str,
        apply: Callable[[Sequence[Any]], None],
        is_configured: Callable[[], bool],
    ) -> None:
        self._node = node
        self._apply = apply
        self._is_configured = is_configured
        self._settings: dict[type, Any] = {}
        self._group_of: dict[str, type] = {}
        self._take_old_names()
        self.cameras: tuple[str, ...] = self._declare_cameras()
        self._of_camera = {camera: self._declare_camera(camera) for camera in self.cameras}
        for group, names in NODES[kind]:
            self._declare_group(group, names)
        self._refuse_unknown()
        node.add_on_set_parameters_callback(self._on_set)

    def of(self, group: type[Settings]) -> Settings:
        """The current settings of one class."""
        return self._settings[group]

    def of_camera(self, camera: str) -> CameraSettings:
        return self._of_camera[camera]

    def _take_old_names(self) -> None:
        """Parameters given at the start under the name that they had in the last release."""
        given = self._node._parameter_overrides
        for old, new in RENAMED.items():
            if old in given:
                value = given.pop(old).value
                given.setdefault(new, Parameter(new, value=value))
                self._node.get_logger().warning(f"parameter '{old}' is now called '{new}': {new}: {value}")
        if HALF_LIFE in given:
            hazard, sentence = hazard_of(float(given.pop(HALF_LIFE).value))
            given.setdefault("class_hazard", Parameter("class_hazard", value=hazard))
            self._node.get_logger().warning(f"parameter {sentence}")

    def _declare_cameras(self) -> tuple[str, ...]:
        descriptor = ParameterDescriptor(
            description=CAMERAS_DESCRIPTION,
            additional_constraints=f"at least one, no name twice; {FIXED}",
            type=ParameterType.PARAMETER_STRING_ARRAY,
        )
        cameras = tuple(self._declare("cameras", ["camera"], descriptor))
        if not cameras or len(set(cameras)) < len(cameras) or not all(cameras):
            raise InputError(f"parameter 'cameras' is {list(cameras)}: name at least one camera, none twice")
        for camera in cameras:
            try:
                validate_topic_name(camera)
            except InvalidTopicNameException:
                raise InputError(f"parameter 'cameras': '{camera}' cannot be part of a topic name") from None
        return cameras

    def _declare_camera(self, camera: str) -> CameraSettings:
        values = {
            field.name: self._declare(f"{camera}.{field.name}", field.default, _descriptor(field, False))
            for field in fields(CameraSettings)
        }
        return self._camera_settings(camera, values)

    def _camera_settings(self, camera: str, values: dict[str, Any]) -> CameraSettings:
        try:
            for name in ("image_topic", "detections_topic"):
                if values[name]:
                    validate_topic_name(values[name])
            return CameraSettings(**{name: _plain(value) for name, value in values.items()})
        except InvalidTopicNameException as error:
            raise InputError(f"camera {camera}: {str(error).splitlines()[0]}") from None
        except InputError as error:
            raise InputError(f"camera {camera}: {error}") from None

    def _declare_group(self, group: type, names: tuple[str, ...] | None) -> None:
        values = {}
        for field in fields(group):
            if names is None or field.name in names:
                descriptor = _descriptor(field, is_changeable(group, field.name))
                values[field.name] = self._declare(field.name, field.default, descriptor)
                self._group_of[field.name] = group
        self._settings[group] = group(**values)

    def _declare(self, name: str, default: Any, descriptor: ParameterDescriptor) -> Any:
        try:
            return self._node.declare_parameter(name, default, descriptor).value
        except (
            InvalidParameterTypeException,
            InvalidParameterValueException,
            ParameterUninitializedException,
        ) as error:
            raise InputError(f"parameter '{name}' is refused: {error}") from None

    def _refuse_unknown(self) -> None:
        """Refuse what was given at the start and no parameter has the name of.

        One file may serve all nodes: parameters of the others, and of other cameras, are left alone.
        """
        of_all_nodes = {f.name for groups in NODES.values() for group, _ in groups for f in fields(group)}
        known = {*self._node._parameters, *of_all_nodes}
        unknown = []
        for name, parameter in self._node._parameter_overrides.items():
            if name in known or name.startswith("qos_overrides."):
                continue
            camera, _, own = name.rpartition(".")
            if not camera or own not in _OF_CAMERAS:
                unknown.append(f"there is no parameter '{name}'{_hint(name, known)}")
            elif _plain(parameter.value) != _OF_CAMERAS[own]:
                self._node.get_logger().warning(f"'{name}' is of no camera of this node: {self.cameras}")
        if unknown:
            raise InputError("; ".join(unknown))

    def _on_set(self, changes: list[Parameter]) -> SetParametersResult:
        changed: dict[type, dict[str, Any]] = {}
        for change in changes:
            group = self._group_of.get(change.name)
            if self._is_fixed(change.name, group):
                reason = f"parameter '{change.name}' cannot change while the node runs: restart the node"
                return SetParametersResult(successful=False, reason=reason)
            if group is not None:
                changed.setdefault(group, {})[change.name] = change.value
        try:
            cameras = self._changed_cameras(changes)
            updated = [replace(self._settings[group], **values) for group, values in changed.items()]
            self._apply(updated)
        except LlaFusionError as error:
            return SetParametersResult(successful=False, reason=str(error))
        self._settings.update({type(settings): settings for settings in updated})
        self._of_camera |= cameras
        return SetParametersResult(successful=True)

    def _changed_cameras(self, changes: list[Parameter]) -> dict[str, CameraSettings]:
        """Before the node is configured, what is about a camera may change as well."""
        values: dict[str, dict[str, Any]] = {}
        for change in changes:
            camera, _, name = change.name.rpartition(".")
            if camera in self._of_camera and name in _OF_CAMERAS:
                values.setdefault(camera, asdict(self._of_camera[camera]))[name] = change.value
        return {camera: self._camera_settings(camera, own) for camera, own in values.items()}

    def _is_fixed(self, name: str, group: type | None) -> bool:
        if name == "cameras":  # read once, when the node is made
            return True
        if group is None:
            return self._is_configured() and name.rpartition(".")[0] in self.cameras
        return self._is_configured() and not is_changeable(group, name)


def _plain(value: Any) -> Any:
    """Arrays as tuples."""
    return value if isinstance(value, str | float | int) else tuple(value)


def _hint(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, known, n=1)
    return f", did you mean '{close[0]}'?" if close else ""


def _descriptor(field: Any, changeable: bool) -> ParameterDescriptor:
    """The manual of one parameter, as `ros2 param describe` shows it."""
    constraints = [f"one of: {', '.join(field.metadata['choices'])}"] if field.metadata["choices"] else []
    if not changeable:
        constraints.append(FIXED)
    descriptor = ParameterDescriptor(
        description=field.metadata["description"], additional_constraints="; ".join(constraints)
    )
    low, high = field.metadata["low"], field.metadata["high"]
    if field.type == PAIR:  # a file may well say [640, 640], which are integers
        descriptor.dynamic_typing = True
    elif low is not None and field.type == "int":
        descriptor.integer_range = [IntegerRange(from_value=int(low), to_value=int(high), step=1)]
    elif low is not None:
        descriptor.floating_point_range = [FloatingPointRange(from_value=float(low), to_value=float(high))]
    return descriptor
