"""What `hodyn_node` can be told: its table of `hodyn_ros.ros.base.parameters`."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hodyn_ros.actuators.config import KEYS
from hodyn_ros.errors import ModelError
from hodyn_ros.model.friction import FrictionLaw, friction_from_config
from hodyn_ros.model.limits import MotionLimits
from hodyn_ros.model.margins import (
    MARGIN_NAMES,
    checked_margins,
    margins_in_words,
)
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.model.violations import motion_limits
from hodyn_ros.names import INTERPOLATIONS
from hodyn_ros.ros.base.parameters import (
    Entry,
    Names,
    Triple,
    Values,
    entry,
    family,
    group,
)
from hodyn_ros.streams.robot_in_use import actuator_problems, by_joint

_LIMIT_UNITS = {
    'acceleration': 'rad/s^2 or m/s^2',
    'jerk': 'rad/s^3 or m/s^3',
    'effort_dot': 'N m/s or N/s',
    'effort_ddot': 'N m/s^2 or N/s^2',
}
_LIMITS = {
    key: Entry(key, math.inf, f'Limit of the {key} of joint {{joint}} [{unit}].', 1e-9)
    for key, unit in _LIMIT_UNITS.items()
}
_FRICTION = {
    key: Entry(key, math.inf, f'Friction of joint {{joint}}: {text}', low)
    for key, text, low in (
        (
            'viscous',
            'coefficient of viscous friction [N m s/rad].',
            0.0,
        ),
        ('coulomb', 'Coulomb friction [N m].', -math.inf),
        ('stribeck', 'additional friction at low velocities [N m].', -math.inf),
        ('stribeck_velocity', 'velocity at which 37 % of it is left [rad/s].', 1e-9),
        (
            'smoothing',
            'velocity at which 76 % of both is reached [rad/s]; default: sign function.',
            0.0,
        ),
        ('phi1', 'parameter of the law identified on the Panda [N m].', -math.inf),
        ('phi2', 'parameter of the law identified on the Panda [s/rad].', -math.inf),
        ('phi3', 'parameter of the law identified on the Panda [rad/s].', -math.inf),
        ('offset', 'constant effort [N m].', -math.inf),
    )
}
# `checked_margins` looks at the values of all of them together.
_MARGINS = {
    name: Entry(
        name,
        None,
        f'Share of the limits of {name} that is left to feedback, such as 0.2 or 20%.',
    )
    for name in MARGIN_NAMES
}
# `actuator_problems` looks at the values of all of them together.
_ACTUATORS = {
    key.name: Entry(
        key.name,
        None,
        f'Joint {{joint}}{f" [{key.unit}]" * bool(key.unit)}: {key.description}'
        + f' One of {", ".join(key.choices)}.' * bool(key.choices),
    )
    for key in KEYS
}


def _shares(margins: Values) -> dict[str, float]:
    """Shares of limits by the quantity, of parameters."""
    return checked_margins({key: share for _, key, share in margins})


def margin_problems(margins: Values) -> list[str]:
    """What is wrong with margins.

    Parameters
    ----------
    margins : Values
        Of the parameters ``margins.<quantity>``.

    Returns
    -------
    list of str
        Empty, or the reason why they cannot be used.
    """
    try:
        _shares(margins)
    except ModelError as error:
        return [f'Parameter {error}']
    return []


@dataclass(frozen=True)
class WrenchSettings:
    """How wrenches are taken, and how a measured one (WrenchStamped) is to be read."""

    timeout: float = entry(
        0.1,
        'Age at which wrench_stale_policy applies to a wrench [s]. A wrench_motion of zeros '
        'ends the wrench.',
        1e-6,
        1e6,
        name='wrench_timeout',
    )
    stale_policy: str = entry(
        'stop',
        'With a stale wrench: stop the output, hold the last value, or fade it out.',
        choices=('stop', 'hold', 'fade'),
        name='wrench_stale_policy',
    )
    link: str = entry(
        '',
        'Link on which the measured wrench acts; empty: the frame_id of the message names it.',
    )
    acting: str = entry(
        'on_robot',
        'Wrench that the sensor reads: on_robot (pushing the tool along x reads positive x) or '
        'on_environment.',
        choices=('on_robot', 'on_environment'),
    )


@dataclass(frozen=True)
class EstimatorSettings:
    """How motions are estimated from measured joint states."""

    enabled: bool = entry(True, 'Motions are estimated from joint_states and answered.')
    delay: float = entry(
        0.1,
        'Delay of estimated motions behind the latest measurement; longer is more accurate [s].',
        0.0,
        1.0,
    )


_SPACING_TOLERANCE = 0.05  # N m, N


@dataclass(frozen=True)
class CommandSettings:
    """What is sent to controllers; limits are checked on all of the effort whatever is sent."""

    effort: str = entry(
        'full',
        'Efforts for controllers: full, or without_gravity for robots that compensate gravity.',
        choices=('full', 'without_gravity'),
    )
    friction: bool = entry(
        True,
        'Efforts for controllers contain friction; false for robots that compensate it.',
    )
    effort_tolerance: float = entry(
        _SPACING_TOLERANCE,
        'Largest error of efforts interpolated linearly between points of '
        '~/controller_trajectory [N m, N]; 0: points as for the default, without efforts.',
        0.0,
        1e6,
    )

    @property
    def spacing_tolerance(self) -> float:
        """Error of efforts by which points are spaced, whether they have efforts or not."""
        return self.effort_tolerance or _SPACING_TOLERANCE


@dataclass(frozen=True)
class ChunkSettings:
    """How chunks of positions are followed."""

    period: float = entry(
        0.02, 'Time between the points of a chunk that have no times [s].', 1e-3, 10.0
    )
    bandwidth: float = entry(
        5.0,
        'Frequency above which a chunk is smoothed [Hz].',
        0.1,
        100.0,
    )


@dataclass(frozen=True)
class IdentificationSettings:
    """What is identified from the efforts of measured joint states."""

    enabled: bool = entry(
        False,
        'Payload and friction are identified from efforts of joint_states and published on '
        '~/identified_parameters; applied on request only.',
    )
    payload_link: str = entry('', 'Link whose payload is identified; empty: none.')
    friction: Names = entry(
        ('',),
        'Joints whose viscous and Coulomb friction is identified; empty: none.',
    )


@dataclass(frozen=True)
class NodeSettings:
    """All parameters of `hodyn_node` but `robot_description`, at one instant."""

    base_link: str = entry(
        '', 'First link of the chain; empty: the root link.', read_only=True
    )
    tip_link: str = entry(
        '', 'Last link of the chain; empty: the whole tree.', read_only=True
    )
    gravity: Triple = entry(
        (0.0, 0.0, -9.81),
        'Gravitational acceleration in base link axes, with base_motion in those of the world '
        '[m/s^2].',
        read_only=True,
    )
    base_motion: bool = entry(
        False,
        'The base moves by the messages on base_motion; without them no efforts are published.',
        read_only=True,
    )
    speed_scaling: bool = entry(
        False,
        'The controller scales the speed of trajectories by the messages on speed_scaling; '
        'without them no efforts of trajectories are published.',
        read_only=True,
    )
    allow_impossible_inertia: bool = entry(
        False,
        'Inertia tensors with a negative principal moment are used as given, with a warning.',
        read_only=True,
    )
    loops: str = entry(
        '',
        'Additional loops: path or text of a YAML file with closed_loop, type and name_mot; '
        'open: only the tree; empty: those of the description.',
        read_only=True,
    )
    answer_all: bool = entry(
        False,
        'Every sample on joint_motion and joint_states is answered in order, however late; '
        'otherwise only the newest.',
        read_only=True,
    )
    diagnostics_period: float = entry(
        1.0, 'Time between two reports on /diagnostics [s].', 0.01, 3600.0, read_only=True
    )
    publish_rate: float = entry(
        100.0,
        'Rate at which a running trajectory is streamed on ~/joint_effort [Hz].',
        0.01,
        10_000.0,
    )
    trajectory_sample_period: float = entry(
        0.01,
        'Sample period of ~/effort_trajectory, and default of the service [s].',
        1e-6,
        1e3,
    )
    max_trajectory_points: int = entry(
        100_000,
        'Largest number of waypoints of a trajectory.',
        1,
        10_000_000,
    )
    interpolation: str = entry(
        'spline',
        'Motion between waypoints: spline (four times continuously differentiable), jtc '
        '(as joint_trajectory_controller) or jtc_upsampled (with its positions_upsampling).',
        choices=INTERPOLATIONS,
    )
    allow_partial_joints: bool = entry(
        False, 'A trajectory may leave joints out; they rest where they are.'
    )
    stop_duration: float = entry(
        0.5,
        'Duration of a stop [s], adapted to limits by a factor of a quarter to four; 0: the '
        'stream ends at once.',
        0.0,
        60.0,
    )
    trajectory_timeout: float = entry(
        2.0,
        'A trajectory or chunk that waits this long past its start for a robot, for others or '
        'for the planning process is dropped [s]; planning itself does not count. Without a '
        'stamp it is dropped after 10 s in any case.',
        1e-3,
        1e6,
    )
    path_tolerance: float = entry(
        0.2,
        'Largest distance of measured joints from the motion, and from the start of a '
        'trajectory without time for the way [rad, m]; beyond it the motion ends. 0: not checked.',
        0.0,
        1e6,
    )
    input_timeout: float = entry(
        0.5,
        'A motion whose stamp is older than this is rejected [s]; 0: any age.',
        0.0,
        1e6,
    )
    command: CommandSettings = group(CommandSettings)
    chunk: ChunkSettings = group(ChunkSettings)
    wrench: WrenchSettings = group(WrenchSettings)
    estimator: EstimatorSettings = group(EstimatorSettings)
    identification: IdentificationSettings = group(IdentificationSettings)
    # In place of those of the robot description.
    limits: Values = family('limits', _LIMITS)
    # Of those limits, and of the limits of motors.
    margins: Values = family('margins', _MARGINS, key='quantity')
    # The node does not use that of the robot description.
    friction: Values = family('friction', _FRICTION)
    # What is between motors and joints.
    actuators: Values = family('actuators', _ACTUATORS)

    def contradictions(self) -> list[str]:
        """Values that are valid alone but not together."""
        problems = actuator_problems(self.actuators) + margin_problems(self.margins)
        for joint, given in by_joint(self.friction).items():
            try:
                friction_from_config({joint: given})
            except ModelError as error:
                problems.append(f'Parameters {error}')
        if self.base_motion and self.identification.enabled:
            problems.append(
                'Parameters base_motion and identification.enabled exclude each other: efforts '
                'are compared with those on a base at rest.'
            )
        return problems

    def shares(self) -> dict[str, float]:
        """Shares of limits that are left to feedback, by the quantity."""
        return _shares(self.margins)

    def headroom(self) -> tuple[str, ...]:
        """What is said beside every verdict on limits: one sentence, or none without margins."""
        words = margins_in_words(self.shares())
        return (f'Limits are those of the robot{words}.',) if words else ()

    def limits_of(self, model: RobotModel) -> MotionLimits:
        """Limits of a model, completed by those of the parameters, margins included."""
        # One file of parameters serves a robot with and without its gripper.
        known = by_joint(self.limits)
        return motion_limits(
            model, {name: known[name] for name in model.joint_names if name in known}
        )

    def friction_laws(self) -> dict[str, FrictionLaw | None]:
        """Friction of the joints that have parameters of it."""
        return friction_from_config(by_joint(self.friction))
