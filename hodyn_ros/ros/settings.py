"""What the node can be told: every parameter with its default, range and meaning, and a snapshot.

Nothing here needs ROS: `Settings` is a complete and consistent set of values that any thread may
hold on to and that can be sent to another process. `hodyn_ros.ros.parameters` fills it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.actuators.config import check_config
from hodyn_ros.analysis.limits import EXTRA_QUANTITIES, MotionLimits, motion_limits
from hodyn_ros.errors import ActuatorError
from hodyn_ros.lie import se3, so3
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.ros.drives import START, Drives, actuator_entry, config_of, drives_of

INTERPOLATIONS = ('spline', 'jtc')
STALE_POLICIES = ('stop', 'hold', 'fade')
ACTINGS = ('on_robot', 'on_environment')
LIMIT_UNITS = {
    'acceleration': 'rad/s^2 or m/s^2',
    'jerk': 'rad/s^3 or m/s^3',
    'effort_dot': 'N m/s or N/s',
}

Triple = tuple[float, float, float]


@dataclass(frozen=True)
class WrenchSettings:
    """How wrenches are taken, and how a measured one (WrenchStamped) is to be read."""

    link: str
    """Link on which a measured one acts; empty: the frame_id of the message names the link."""
    acting: str
    """'on_robot' or 'on_environment'."""
    sensor_xyz: Triple
    """Origin of the sensor in the link that frame_id names [m]."""
    sensor_rpy: Triple
    """Roll, pitch and yaw of the sensor in the same link [rad]."""
    tool_mass: float
    """Mass beyond the sensor, whose weight the sensor reads as well [kg]."""
    tool_center_of_mass: Triple
    """Its centre of mass in the axes of the sensor [m]."""
    delay: float
    """[s]"""
    noise: float
    """[N] and [N m]; 0: identified."""
    bandwidth: float
    """[Hz]; 0: adapted."""
    timeout: float
    """Longest time between a wrench and its use [s]."""
    stale_policy: str
    """What becomes of it after that: 'stop', 'hold' or 'fade'."""
    fade_time: float
    """Time in which a stale one comes to rest [s]."""

    @cached_property
    def sensor_pose(self) -> NDArray[np.float64]:
        """Pose of the sensor in its link, shape (4, 4)."""
        return se3.pose(so3.from_rpy(self.sensor_rpy), self.sensor_xyz)


@dataclass(frozen=True)
class EstimatorSettings:
    """How motions are estimated from measured joint states."""

    enabled: bool
    delay: float
    """[s]"""
    noise: float
    """[rad] or [m]; 0: identified."""
    bandwidth: float
    """[Hz]; 0: adapted."""
    max_gap: float
    """[s]"""
    highest_order: int
    """Highest derivative of the effort: 0 to 2."""


@dataclass(frozen=True)
class Settings:
    """All parameters at one instant. Units and meanings are those of `ENTRIES`."""

    base_link: str | None
    tip_link: str | None
    gravity: Triple
    allow_impossible_inertia: bool
    planning_process: bool
    mirror_efforts: bool
    answer_all: bool
    diagnostics_period: float
    max_waiting_requests: int
    publish_rate: float
    trajectory_sample_period: float
    max_samples: int
    max_trajectory_points: int
    max_message_size: int
    interpolation: str
    allow_partial_joints: bool
    stop_duration: float
    input_timeout: float
    stiffness_timeout: float
    stiffness_rest_time: float
    wrench: WrenchSettings
    estimator: EstimatorSettings
    limits: tuple[tuple[str, str, float], ...] = field(default=())
    """Joint, quantity and value of every limit that is given beside the robot description."""
    actuators: tuple[tuple[str, str, Any], ...] = field(default=())
    """Joint, key and value of everything that is said of actuators."""

    def limits_of(self, model: RobotModel) -> MotionLimits:
        """Limits of a model, completed by those of the parameters."""
        extra: dict[str, dict[str, float]] = {}
        for joint, quantity, value in self.limits:
            extra.setdefault(joint, {})[quantity] = value
        return motion_limits(model, extra)

    def drives_of(self, model: RobotModel) -> Drives | None:
        """Assemble what moves the joints of a model, see `hodyn_ros.ros.drives.drives_of`."""
        return drives_of(model, self.actuators)


class Entry(NamedTuple):
    """A parameter. Its type is that of the default; whole numbers are numbers too."""

    name: str
    default: bool | int | float | str | Triple
    description: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    read_only: bool = False

    @property
    def constraints(self) -> str:
        """What a range cannot say, in words."""
        if self.choices:
            return f'one of {_quoted(self.choices)}'
        if isinstance(self.default, tuple):
            return 'three finite numbers'
        return ''

    def expectation(self, value: Any) -> str:
        """Say what is expected instead of a value; empty if it fits."""
        default = self.default
        if isinstance(default, bool):
            return '' if isinstance(value, bool) else 'true or false'
        if isinstance(default, str):
            if self.choices:
                return '' if value in self.choices else self.constraints
            return '' if isinstance(value, str) else 'text'
        if isinstance(default, tuple):
            return '' if _is_triple(value) else self.constraints
        whole = isinstance(default, int)
        if (
            not _is_number(value)
            or (whole and not isinstance(value, int))
            or not self.low <= value <= self.high
        ):
            return f'a {"whole " * whole}number from {self.low:.12g} to {self.high:.12g}'
        return ''


ENTRIES = (
    Entry('base_link', '', 'First link of the chain; empty: the root link.', read_only=True),
    Entry('tip_link', '', 'Last link of the chain; empty: the whole tree.', read_only=True),
    Entry(
        'gravity',
        (0.0, 0.0, -9.81),
        'Gravitational acceleration in base link axes [m/s^2].',
        read_only=True,
    ),
    Entry(
        'allow_impossible_inertia',
        False,
        'Inertia tensors with a negative principal moment are used as given, with a warning.',
        read_only=True,
    ),
    Entry(
        'planning_process',
        True,
        'Trajectories and the service are computed in a process of their own, so that large '
        'messages do not hold the stream up.',
        read_only=True,
    ),
    Entry(
        'mirror_efforts',
        False,
        'Efforts are published once more as sensor_msgs/JointState, one topic for each '
        'derivative, for plotting tools.',
        read_only=True,
    ),
    Entry(
        'answer_all',
        False,
        'Every sample on joint_motion and joint_states is answered, in order, however late. '
        'Otherwise only the newest is, where several wait.',
        read_only=True,
    ),
    Entry(
        'diagnostics_period',
        1.0,
        'Time between two reports on /diagnostics [s].',
        0.01,
        3600.0,
        read_only=True,
    ),
    Entry(
        'max_waiting_requests',
        8,
        'Largest number of service requests that wait; those beyond it are refused as busy.',
        1,
        1000,
        read_only=True,
    ),
    Entry(
        'publish_rate',
        100.0,
        'Rate at which a running trajectory is streamed on ~/joint_effort [Hz].',
        0.01,
        10_000.0,
    ),
    Entry(
        'trajectory_sample_period',
        0.01,
        'Distance of the samples on ~/effort_trajectory, and default of the service [s].',
        1e-6,
        1e3,
    ),
    Entry(
        'max_samples',
        100_000,
        'Largest number of samples in one answer to a trajectory.',
        2,
        10_000_000,
    ),
    Entry(
        'max_trajectory_points',
        100_000,
        'Largest number of waypoints of a trajectory; a larger one is refused unread.',
        1,
        10_000_000,
    ),
    Entry(
        'max_message_size',
        64 * 2**20,
        'Largest size of a message on any input [bytes]; a larger one is refused unread.',
        1024,
        2**31 - 1,
    ),
    Entry(
        'interpolation',
        'spline',
        'Motion between waypoints: spline (four times continuously differentiable) or jtc (as '
        'joint_trajectory_controller moves).',
        choices=INTERPOLATIONS,
    ),
    Entry(
        'allow_partial_joints',
        False,
        'A trajectory may leave joints out; they rest where they are.',
    ),
    Entry(
        'stop_duration',
        0.5,
        'Time in which an empty trajectory brings the motion to rest [s]; 0: the stream ends at '
        'once.',
        0.0,
        60.0,
    ),
    Entry(
        'input_timeout',
        0.5,
        'A motion whose stamp is older than this is refused [s]; 0: any age is taken.',
        0.0,
        1e6,
    ),
    Entry(
        'wrench_timeout',
        0.1,
        'Without a new wrench for this time on a link that carries one, wrench_stale_policy '
        'applies [s]. A wrench_motion of zeros ends the wrench.',
        1e-6,
        1e6,
    ),
    Entry(
        'wrench_stale_policy',
        'stop',
        'When a wrench is older than wrench_timeout: stop the output, hold its last value, or '
        'fade it out.',
        choices=STALE_POLICIES,
    ),
    Entry(
        'wrench_fade_time',
        0.5,
        'Time in which a stale wrench comes to rest: at its value with the policy hold, at zero '
        'with fade [s].',
        1e-3,
        60.0,
    ),
    Entry(
        'stiffness_timeout',
        0.1,
        'Without a new stiffness_motion for this time, the stiffness stops changing [s].',
        1e-6,
        1e6,
    ),
    Entry(
        'stiffness_rest_time',
        0.5,
        'Time in which it does so, smoothly; less if it would change by more than a tenth [s].',
        1e-3,
        60.0,
    ),
    Entry(
        'wrench.link',
        '',
        'Link on which the measured wrench acts; empty: the frame_id of the message names it.',
    ),
    Entry(
        'wrench.acting',
        'on_robot',
        'What the sensor reads: the wrench that the environment exerts on_robot (pushing the tool '
        'along x reads positive x), or the one that the robot exerts on_environment.',
        choices=ACTINGS,
    ),
    Entry(
        'wrench.sensor_xyz',
        (0.0, 0.0, 0.0),
        'Origin of the sensor in the link that frame_id names [m].',
    ),
    Entry(
        'wrench.sensor_rpy',
        (0.0, 0.0, 0.0),
        'Roll, pitch and yaw of the sensor in the link that frame_id names, as in a URDF [rad].',
    ),
    Entry(
        'wrench.tool_mass',
        0.0,
        'Mass that is attached beyond the sensor and is part of the robot description; its weight '
        'is taken out of what the sensor reads [kg]; 0: nothing is taken out.',
        0.0,
        1e4,
    ),
    Entry(
        'wrench.tool_center_of_mass',
        (0.0, 0.0, 0.0),
        'Centre of mass of the same, in the sensor frame [m]. It needs wrench.tool_mass.',
    ),
    Entry(
        'wrench.delay',
        0.1,
        'How far behind the latest measurement later ones improve the estimate [s].',
        0.0,
        1.0,
    ),
    Entry(
        'wrench.noise',
        0.0,
        'Standard deviation of the noise of the measured components [N, N m]; 0: identified.',
        0.0,
        1e6,
    ),
    Entry(
        'wrench.bandwidth',
        0.0,
        'Frequency at which a change as strong as the noise is cut off [Hz]; 0: adapted.',
        0.0,
        1e4,
    ),
    Entry('estimator.enabled', True, 'Motions are estimated from joint_states and answered.'),
    Entry(
        'estimator.delay',
        0.1,
        'How far estimated motions lie behind the latest measurement; the longer, the better [s].',
        0.0,
        1.0,
    ),
    Entry(
        'estimator.noise',
        0.0,
        'Standard deviation of the noise of measured positions [rad, m]; 0: identified.',
        0.0,
        10.0,
    ),
    Entry(
        'estimator.bandwidth',
        0.0,
        'Frequency at which a motion as strong as the noise is cut off [Hz]; 0: adapted.',
        0.0,
        1e4,
    ),
    Entry(
        'estimator.max_gap',
        0.1,
        'After a longer time without joint_states the estimate starts anew [s].',
        1e-4,
        60.0,
    ),
    Entry(
        'estimator.highest_order',
        2,
        'Highest derivative of the effort that is published from joint_states.',
        0,
        2,
    ),
)

_BY_NAME = {entry.name: entry for entry in ENTRIES}


def read_entries(
    entries: Iterable[Entry], values: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Values of all entries, with the defaults of those left out, and what is wrong with them."""
    found, problems = {}, []
    for entry in entries:
        value = values.get(entry.name, entry.default)
        expected = entry.expectation(value)
        if expected:
            problems.append(unfit(entry.name, value, expected))
        else:
            found[entry.name] = _converted(entry, value)
    return found, problems


def unfit(name: str, value: Any, expected: str) -> str:
    """Sentence on a parameter that has another value than expected."""
    return f'Parameter {name} is {_shown(value)}, expected {expected}.'


def find_problems(values: Mapping[str, Any]) -> list[str]:
    """Everything that is wrong with a set of values.

    Parameters
    ----------
    values : mapping of str to object
        Names of `ENTRIES`, of limits, ``limits.<joint>.<quantity>``, and of what is said of
        actuators, ``actuators.<joint>.<key>``, with their values.

    Returns
    -------
    list of str
        Sentences that name the parameter, its value and what was expected; empty if all fits.
    """
    problems = []
    for name, value in values.items():
        if is_actuator(name):
            continue
        expected = _expectation(name, value)
        if expected:
            problems.append(unfit(name, value, expected))
    problems += _actuator_problems(values)
    if not problems:
        problems = _contradictions(values)
    return problems


def make_settings(values: Mapping[str, Any]) -> Settings:
    """Make settings from values of parameters; those that are left out have their defaults.

    Parameters
    ----------
    values : mapping of str to object
        As for `find_problems`.

    Raises
    ------
    ValueError
        If values are invalid or contradict each other. The message names all of them.
    """
    problems = find_problems(values)
    if problems:
        raise ValueError(' '.join(problems))
    top: dict[str, Any] = {}
    groups: dict[str, dict[str, Any]] = {'wrench': {}, 'estimator': {}}
    for name, value in read_entries(ENTRIES, values)[0].items():
        group, dot, key = name.partition('.')
        if dot:
            groups[group][key] = value
        else:
            top[name] = value
    top['base_link'] = top['base_link'] or None
    top['tip_link'] = top['tip_link'] or None
    for key in ('timeout', 'stale_policy', 'fade_time'):
        groups['wrench'][key] = top.pop(f'wrench_{key}')
    limits = []
    for name, value in sorted(values.items()):
        if is_limit(name) and math.isfinite(value):
            joint, _, quantity = name.partition('.')[2].rpartition('.')
            limits.append((joint, quantity, float(value)))
    return Settings(
        **top,
        wrench=WrenchSettings(**groups['wrench']),
        estimator=EstimatorSettings(**groups['estimator']),
        limits=tuple(limits),
        actuators=tuple(_actuator_entries(values)),
    )


def is_limit(name: str) -> bool:
    """Whether a parameter limits a joint: ``limits.<joint>.<quantity>``."""
    start, _, rest = name.partition('.')
    joint, _, quantity = rest.rpartition('.')
    return start == 'limits' and bool(joint) and quantity in EXTRA_QUANTITIES


def is_actuator(name: str) -> bool:
    """Whether a parameter says something of actuators: ``actuators.<joint>.<key>``."""
    return name.startswith(START)


def limit_names(model: RobotModel) -> list[str]:
    """Names of all limits that a model has beside those of its description."""
    return [
        f'limits.{joint}.{quantity}'
        for joint in model.joint_names
        for quantity in EXTRA_QUANTITIES
    ]


def _expectation(name: str, value: Any) -> str:
    """Say what is expected instead of a value; empty if it fits."""
    if name not in _BY_NAME:
        return '' if _is_number(value) and value > 0.0 else 'a number above 0 (.inf: no limit)'
    return _BY_NAME[name].expectation(value)


def _actuator_entries(values: Mapping[str, Any]) -> list[tuple[str, str, Any]]:
    return [
        actuator_entry(name, value) for name, value in sorted(values.items()) if is_actuator(name)
    ]


def _actuator_problems(values: Mapping[str, Any]) -> list[str]:
    """Find what is wrong with actuators whatever the robot; the first problem."""
    entries = _actuator_entries(values)
    nameless = next((key for joint, key, _ in entries if not joint), None)
    if nameless is not None:
        return [f'Parameter {START}{nameless} is unknown, expected {START}<joint>.<key>.']
    try:
        check_config(config_of(entries))
    except ActuatorError as error:
        return [f'Parameter {error}']
    return []


def _contradictions(values: Mapping[str, Any]) -> list[str]:
    """Find values that are valid alone but not together."""

    def value(name: str) -> Any:
        return values.get(name, _BY_NAME[name].default)

    center = value('wrench.tool_center_of_mass')
    if any(center) and not value('wrench.tool_mass') > 0.0:
        return [
            f'Parameter wrench.tool_center_of_mass is {_shown(center)} but wrench.tool_mass is 0, '
            'so no weight would be taken out; set the mass first, or both at once.'
        ]
    return []


def _converted(entry: Entry, value: Any) -> Any:
    if isinstance(entry.default, tuple):
        return tuple(float(number) for number in value)
    if isinstance(entry.default, float):
        return float(value)
    return value


def _is_number(value: Any) -> bool:
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) < 2**63
    return isinstance(value, float)


def _is_triple(value: Any) -> bool:
    if isinstance(value, (str, bytes)) or not hasattr(value, '__len__') or len(value) != 3:
        return False
    return all(_is_number(number) and math.isfinite(number) for number in value)


def _quoted(names: tuple[str, ...]) -> str:
    return ', '.join(f"'{name}'" for name in names)


def _shown(value: Any) -> str:
    """Value as a message shows it: as it would be written, and never long."""
    if value is None:
        return 'not set'
    if not isinstance(value, (str, int, float)):
        value = list(value)
    text = repr(value)
    return text if len(text) <= 80 else f'{text[:77]}...'
