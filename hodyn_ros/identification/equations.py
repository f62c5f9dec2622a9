"""Equations that are linear in the parameters of a robot, row by row of its recordings.

Rigid joints:    effort = Y pi + armature q'' + friction(q') + offset
elastic joints:  motor torque = B theta'' + friction(theta') + Q + offset,  Q = Y pi,
                 sensor = Q + offset,  Q = K d + K3 d^3 + D d' + offset,  d = theta - q

where the offset of Q is that of the encoders. Measured efforts may come late: tau(t + delay) is
developed into powers of the delay. Each measured series of a joint is a channel, and every
parameter has a column: what is asked for, what may explain the rest and what is known are columns
of the same rows. Source of Y: `dynamics.regressor`; of the springs: Spong 1987.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.drives import RigidDrive, SeriesElastic
from hodyn_ros.actuators.springs import CubicSpring, LinearSpring
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.dynamics.matrices import gravity_effort, mass_matrix
from hodyn_ros.dynamics.regressor import BODY_PARAMETERS, payload_in_body, regressor
from hodyn_ros.errors import IdentificationError
from hodyn_ros.identification.recording import Flags, Stretch
from hodyn_ros.kinematics.closed_loops import within_reach
from hodyn_ros.model.friction import Coulomb, JointFriction
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import GROUPS, SPRING, did_you_mean, listed
from hodyn_ros.typing import Array

Places = NDArray[np.intp]

_OF_BODIES = dict(zip(BODY_PARAMETERS, ('kg', *['kg m'] * 3, *['kg m^2'] * 6)))
# Quantities of a joint with units of joints that turn and that slide, by their groups.
_OF_JOINTS = {
    'armature': {'armature': ('kg m^2', 'kg')},
    'viscous': {'viscous': ('N m s/rad', 'N s/m')},
    'coulomb': {'coulomb': ('N m', 'N')},
    'stribeck': {'stribeck': ('N m', 'N'), 'stribeck_velocity': ('rad/s', 'm/s')},
    'offset': {'offset': ('N m', 'N')},
}
_OF_ELASTIC = {
    'offset': dict.fromkeys(('sensor_offset', 'deflection_offset'), ('N m', 'N')),
    'stiffness': {'stiffness': ('N m/rad', 'N/m')},
    'cubic_stiffness': {'cubic_stiffness': ('N m/rad^3', 'N/m^3')},
    'damping': {'damping': ('N m s/rad', 'N s/m')},
}
_OF_ROBOT = {
    'gravity': {'gravity tilt 1': 'rad', 'gravity tilt 2': 'rad'},
    'delay': {'delay': 's'},
}
_SEVERAL = 'bodies', 'payload', 'gravity'
_OF_MOTORS = 'effort', 'motor'
_SIDES = {'effort': 1.0, 'spring': -1.0}  # on which side of the equations bodies are
_RANK, _RESOLVED = 1e-9, 1e-5


class Parameter(NamedTuple):
    """A parameter of the robot, and its column in the equations.

    Attributes
    ----------
    group : str
        One of `GROUPS`.
    unit : str
        SI, of the kind of joint.
    """

    group: str
    name: str
    """Such as 'viscous'."""
    owner: str
    """The joint, body or link; empty for the whole robot."""
    unit: str

    def __str__(self) -> str:
        return f'{self.owner} {self.name}'.strip()


class Channels(NamedTuple):
    """What is measured of which joints, C channels."""

    kinds: NDArray[np.str_]
    """'effort', 'motor', 'sensor' or 'spring', shape (C,)."""
    joints: Places
    """Index of the joint, shape (C,)."""

    def by_joint(self, values: Array, n: int) -> Array:
        """Sums of values (C, ...) of the channels of each of n joints, (n, ...)."""
        found = np.zeros((n, *np.shape(values)[1:]))
        np.add.at(found, self.joints, values)
        return found


class Nonlinear(NamedTuple):
    """How a parameter is searched in which equations are not linear; its column is of changes."""

    start: float = 0.0
    largest_step: float = np.inf
    lower: float = -np.inf
    upper: float = np.inf
    is_logarithm: bool = False
    """Whether these are logarithms of its values."""


NONLINEAR = {
    'delay': Nonlinear(),
    'gravity tilt 1': Nonlinear(),
    'gravity tilt 2': Nonlinear(),
    'stribeck_velocity': Nonlinear(
        math.log(0.05), 0.5, math.log(0.005), math.log(0.6), True
    ),
}
"""Kinds of parameters in which equations are not linear: [s], [rad], and log [rad/s] or [m/s]."""


class Structure(NamedTuple):
    """Which combinations of the parameters that are asked for the equations determine."""

    independent: Places
    """Columns that are kept, shape (b,)."""
    mapping: Array
    """Base parameters = mapping @ parameters that are asked for, shape (b, P)."""


class Rows(NamedTuple):
    """Equations series = X beta + fixed of C channels at M times, of all P parameters."""

    stretch: Stretch
    """Of which they are."""
    X: Array
    """Shape (M, C, P)."""
    series: Array
    """What is measured with three derivatives, zero where they are not known, (M, C, 4)."""
    fixed: Array
    """What no parameter is responsible for, shape (M, C)."""
    friction: Array
    """Known friction, shape (M, C)."""
    is_used: Flags
    """Shape (M, C)."""
    is_moving: Flags
    """Where something tells of friction, shape (M, C)."""
    variance: Array
    """Of what the deviations of the derivatives add, shape (M, C)."""
    signal: Array
    """Effort that the equations are about, shape (M, C)."""
    floor: Array
    """Variance that the noise of samples accounts for, shape (M, C)."""

    @property
    def resolved(self) -> Array:
        """The same, at least that of a sensor of 1e-5 of the largest effort, shape (M, C)."""
        least = (_RESOLVED * np.abs(self.signal).max(axis=0, initial=0.0)) ** 2 + 1e-300
        return np.asarray(np.maximum(self.floor, least))

    def delayed(self, delay: float, order: int = 0) -> Array:
        """What is measured, or a derivative of it, at a later time [s], shape (M, C)."""
        known = self.series[..., order:]
        return np.asarray(known @ (delay ** np.arange(4) / _FACTORIALS)[: 4 - order])


class Equations:
    """Equations of a robot for all its parameters.

    Parameters
    ----------
    model : RobotModel
    actuators : Actuators, optional
        Which joints are elastic; what is known of their motors and springs.
    link : str, optional
        Link whose payload is meant by 'payload'.
    groups : sequence of str
        Which parameters there are; all but for rows of which the columns alone matter.

    Attributes
    ----------
    columns : list of Parameter
        All parameters.
    places : dict of str to ndarray of int
        Columns of 'bodies', 'payload', 'gravity', 'delay' and of each quantity of the joints.
    known : ndarray
        Parameters as model and actuators have them; start of those that are searched.
    elastic : ndarray of bool, shape (n,)
        Which joints are series elastic.

    Raises
    ------
    IdentificationError
        If a spring is neither linear nor cubic, or the link never moves.
    """

    def __init__(
        self,
        model: RobotModel,
        actuators: Actuators | None = None,
        link: str | None = None,
        groups: Sequence[str] = GROUPS,
    ) -> None:
        self.model: RobotModel = model
        self.actuators: Actuators | None = actuators
        self.link: str | None = link
        self.groups: Sequence[str] = groups
        drives = [None if actuators is None else actuators[j] for j in model.joint_names]
        self.elastic: Flags = np.array(
            [isinstance(drive, SeriesElastic) for drive in drives]
        )
        for name, drive in zip(model.joint_names, drives):
            spring = getattr(drive, 'spring', None)
            if spring is not None and not isinstance(spring, (LinearSpring, CubicSpring)):
                raise IdentificationError(
                    f'The spring of {name} is {spring}; linear and cubic ones can be identified.'
                )
        self._carrier = None if link is None else payload_in_body(model, link)
        self.columns: list[Parameter] = list(self._columns())
        names = [c.group if c.group in _SEVERAL else c.name for c in self.columns]
        self.places: defaultdict[str, Places] = defaultdict(lambda: np.zeros(0, np.intp))
        for k, name in enumerate(names):
            self.places[name] = np.append(self.places[name], k)
        self.known: Array = np.array(
            [NONLINEAR.get(c.name, Nonlinear()).start for c in self.columns]
        )
        for name, values in (
            ('bodies', model.inertial_parameters),
            *self.known_drives.items(),
        ):
            if name in names:
                self.known[self.places[name]] = values
        self._random: dict[tuple[str, ...], Array] = {}
        # Two axes that are normal to the given gravity.
        g = np.asarray(model.gravity)
        normal = np.cross(g, np.eye(3)[np.argmin(np.abs(g))])
        axes = np.stack([normal, np.cross(g, normal)])
        self._axes = axes / np.maximum(np.linalg.norm(axes, axis=1), 1e-300)[:, None]

    def _columns(self) -> Iterable[Parameter]:
        """All parameters, group by group."""
        model = self.model
        owners = {'bodies': model.body_names, 'payload': (self.link,) * bool(self.link)}
        kinds = [int(kind == 'prismatic') for kind in model.joint_types]
        for group in self.groups:
            for owner in owners.get(group, ()):
                yield from (
                    Parameter(group, n, str(owner), u) for n, u in _OF_BODIES.items()
                )
            quantities = dict(_OF_JOINTS.get(group, {}))
            if self.elastic.any():
                quantities |= _OF_ELASTIC.get(group, {})
            for name, units in quantities.items():
                for joint, kind in zip(model.joint_names, kinds):
                    yield Parameter(group, name, joint, units[kind])
            for name, unit in _OF_ROBOT.get(group, {}).items():
                yield Parameter(group, name, '', unit)

    def asked(self, groups: Sequence[str]) -> Places:
        """Columns of groups, in their order.

        Parameters
        ----------
        groups : sequence of str
            Of `GROUPS`.

        Returns
        -------
        ndarray of int

        Raises
        ------
        IdentificationError
            If a group is unknown, or springs are asked for and no joint is elastic.
        """
        if unknown := [group for group in groups if group not in GROUPS]:
            raise IdentificationError(
                f'{listed(group + did_you_mean(group, GROUPS) for group in unknown)} cannot be '
                f'estimated, expected some of {listed(GROUPS)}.'
            )
        if not set(groups).isdisjoint(SPRING) and not self.elastic.any():
            raise IdentificationError(
                'Springs are asked for, but no joint is series elastic; give actuators, whose '
                'values need not be right.'
            )
        order = [
            (groups.index(c.group), k)
            for k, c in enumerate(self.columns)
            if c.group in groups
        ]
        return np.array([k for _, k in sorted(order)], np.intp)

    @cached_property
    def is_linear(self) -> Flags:
        """Which parameters equations are linear in."""
        return np.array([column.name not in NONLINEAR for column in self.columns])

    def drive(self, j: int) -> SeriesElastic:
        """Elastic drive of a joint.

        Parameters
        ----------
        j : int
            Index of an elastic joint.

        Returns
        -------
        SeriesElastic
        """
        assert self.actuators is not None
        found = self.actuators[self.model.joint_names[j]]
        assert isinstance(found, SeriesElastic)
        return found

    @cached_property
    def known_drives(self) -> dict[str, Array]:
        """Motor inertias and constants of springs as they are given, shape (n,) each.

        Returns
        -------
        dict of str to ndarray, shape (n,)
            'armature', 'stiffness', 'cubic_stiffness' and 'damping' in SI units; zero where
            there is none.
        """
        model = self.model
        known = {name: np.zeros(model.n_joints) for name in ('armature', *SPRING)}
        known['armature'] += [
            model.armature[model.body_names.index(name)] for name in model.joint_names
        ]
        for name, drive in (self.actuators.by_joint if self.actuators else {}).items():
            if isinstance(drive, RigidDrive):
                known['armature'][model.joint_names.index(name)] += drive.motor_inertia
        for j in np.flatnonzero(self.elastic).tolist():
            drive, spring = self.drive(j), vars(self.drive(j).spring)
            constants = drive.motor_inertia, spring['stiffness'], drive.damping
            for name, value in zip(('armature', 'stiffness', 'damping'), constants):
                known[name][j] = value
            known['cubic_stiffness'][j] = spring.get('cubic', 0.0)
        return known

    @cached_property
    def _known_friction(self) -> JointFriction:
        """Friction as it is known, at motors where joints are elastic."""
        model, known = self.model, dict(self.model.friction)
        laws = {j: known[name] for j, name in enumerate(model.joint_names) if name in known}
        for j in np.flatnonzero(self.elastic).tolist():
            laws.pop(j, None)
            if (law := self.drive(j).friction) is not None:
                laws[j] = law
        return JointFriction(laws)

    def channels(self, measured: Iterable[str]) -> Channels:
        """Channels of what is measured.

        Parameters
        ----------
        measured : iterable of str
            'effort', 'motor_torque' or both.

        Returns
        -------
        Channels
        """
        of = {'motor_torque': 'motor', 'effort': 'sensor'}
        kinds = ['effort', *(of[what] for what in of if what in measured), 'spring']
        pairs = [
            (kind, j)
            for kind in kinds
            for j in np.flatnonzero(self.elastic == (kind != 'effort')).tolist()
        ]
        return Channels(*(np.array(item) for item in zip(*pairs)))

    def rows(self, stretch: Stretch, channels: Channels) -> Rows:
        """Equations along a stretch of a recording, at the nonlinear parameters zero.

        Parameters
        ----------
        stretch : Stretch
            Of the same joints.
        channels : Channels
            Those without measurements in this stretch are not used.

        Returns
        -------
        Rows

        Raises
        ------
        IdentificationError
            If joints are elastic and the stretch has no positions of motors.
        """
        if self.elastic.any() and stretch.motor_motion is None:
            raise IdentificationError(
                'Joints are elastic, but the recording holds no positions of motors; record them '
                'too (columns <joint>.motor_position, or a topic of the motors).'
            )
        model, motion = self.model, stretch.motion
        M, n = motion[:, 0].shape
        bodies = self.of_bodies(motion)
        passive, variance = np.zeros((2, M, n))
        if model.closure is not None:
            passive = inverse_dynamics(self._unmoved, motion)[:, 0]
            passive -= bodies[..., self.places['bodies']] @ model.inertial_parameters
        if stretch.deviations[0].any():
            inertia = mass_matrix(model, motion[:, :1])[:, 0]
            variance = np.einsum('mij,mj->mi', inertia**2, stretch.deviations[0] ** 2)
        stiffness = self.known_drives['stiffness']
        springs = stiffness**2 * (stretch.deviations[1:] ** 2).sum(axis=0)
        parts = []
        for kind in dict.fromkeys(channels.kinds.tolist()):
            own, side = channels.joints[channels.kinds == kind], _SIDES.get(kind, 0.0)
            X = self.columns_of(kind, stretch, bodies)
            series, is_used, scatter = self._measured(kind, stretch)
            X[..., self.places['delay']] = -series[..., 1:2]
            signal = series[..., 0]
            if kind == 'spring':
                signal = stiffness * (stretch.motor_motion - motion)[:, 0]  # type: ignore[operator]
            friction, is_moving = np.zeros((M, n)), np.ones((M, n), np.bool_)
            if kind in _OF_MOTORS:
                friction = stretch.friction('known', self._known_friction)
                is_moving = stretch.is_used['resting']
            added = variance * abs(side) + springs * (kind == 'spring')
            floor = scatter + variance * abs(side) + springs * (kind != 'effort')
            every = (
                X,
                series,
                side * passive,
                friction,
                is_used,
                is_moving,
                added,
                signal,
                floor,
            )
            parts.append([values[:, own] for values in every])
        return Rows(stretch, *(np.concatenate(items, axis=1) for items in zip(*parts)))

    def of_bodies(self, motion: Array) -> Array:
        """Columns of bodies, payload and gravity, shape (M, n, P), the others being zero.

        Parameters
        ----------
        motion : ndarray, shape (M, 3, n)
            [rad/s^k] or [m/s^k]

        Returns
        -------
        ndarray, shape (M, n, P)
        """
        X = np.zeros((*motion[:, 0].shape, len(self.columns)))
        if not {'bodies', 'payload'}.isdisjoint(self.groups):
            Y = regressor(self.model, motion)[:, 0]
            X[..., self.places['bodies']] = Y[..., : len(self.places['bodies'])]
            if self._carrier is not None:
                own, to_body = self._carrier
                X[..., self.places['payload']] = Y[..., own] @ to_body
        for k, turned in zip(self.places['gravity'], self._turned):
            X[..., k] = gravity_effort(turned, motion[:, :1])[:, 0]
        return X

    def columns_of(self, kind: str, stretch: Stretch, bodies: Array) -> Array:
        """Columns of all parameters but the delay, shape (M, n, P).

        Parameters
        ----------
        kind : {'effort', 'motor', 'sensor', 'spring'}
            Of the channels of all joints.
        stretch : Stretch
        bodies : ndarray, shape (M, n, P)
            See `of_bodies`.

        Returns
        -------
        ndarray, shape (M, n, P)
        """
        X, joints = _SIDES.get(kind, 0.0) * bodies, np.arange(bodies.shape[1])

        def put(name: str, values: Array | float) -> None:
            if len(own := self.places[name]):
                X[:, joints, own] = values

        if kind in _OF_MOTORS:
            moved = stretch.motion if kind == 'effort' else stretch.motor_motion
            put('armature', moved[:, 2])  # type: ignore[index]
            put('viscous', moved[:, 1])  # type: ignore[index]
            put('coulomb', stretch.friction('coulomb', Coulomb(1.0).effort))
            put('offset', 1.0)
            self._fall(X, stretch, self.known, joints)
        if kind != 'effort':
            deflection = stretch.motor_motion - stretch.motion  # type: ignore[operator]
            d, rate = deflection[:, 0], deflection[:, 1]
            for name, values in zip(SPRING, (d, d**3, rate)):
                put(name, values)
            put('deflection_offset', 1.0)
        if kind == 'sensor':
            put('sensor_offset', 1.0)
        return X

    def _measured(self, kind: str, stretch: Stretch) -> tuple[Array, Flags, Array]:
        """Series (M, n, 4), where they are used (M, n), and the variance of their noise (n,)."""
        M, n = stretch.motion[:, 0].shape
        what = 'motor_torque' if kind == 'motor' else 'effort'
        if kind == 'effort' and what not in stretch.measured:
            what = 'motor_torque'
        series, none = np.zeros((M, n, 4)), np.zeros(n)
        if kind == 'spring' or what not in stretch.measured:
            return series, np.full((M, n), kind == 'spring'), none
        given = np.swapaxes(stretch.measured[what], 1, 2)
        series[..., : given.shape[2]] = given
        return series, stretch.is_used[what], stretch.noise.get(what, none) ** 2

    def linearize(self, rows: Rows, beta: Array, channels: Channels) -> None:
        """Make the columns of nonlinear parameters those of changes from their values.

        Parameters
        ----------
        rows : Rows
            Changed in place.
        beta : ndarray, shape (P,)
            All parameters.
        channels : Channels
            Of the rows.
        """
        rows.X[..., self.places['delay']] = -rows.delayed(self.delay(beta), 1)[..., None]
        own = np.isin(channels.kinds, _OF_MOTORS).sum()  # which come first
        self._fall(rows.X[:, :own], rows.stretch, beta, channels.joints[:own])

    def delay(self, beta: Array) -> float:
        """Time by which efforts are late [s], of all parameters (P,)."""
        return float(beta[self.places['delay']].sum())

    def left(self, rows: Rows, beta: Array, has_friction: bool = False) -> Array:
        """What parameters leave of rows, shape (M, C).

        Parameters
        ----------
        rows : Rows
            Of these equations, linearized at the parameters.
        beta : ndarray, shape (P,)
            All parameters.
        has_friction : bool
            Whether the friction is theirs instead of the known one.

        Returns
        -------
        ndarray, shape (M, C)
        """
        rest = rows.delayed(self.delay(beta)) - rows.fixed
        rest -= rows.X @ np.where(self.is_linear, beta, 0.0)
        return rest if has_friction else rest - rows.friction

    def _fall(self, X: Array, stretch: Stretch, beta: Array, joints: Places) -> None:
        """Set the columns of friction that falls with the velocity, of channels of joints."""
        if not len(self.places['stribeck']):
            return
        level, log_velocity = (
            beta[self.places[k]] for k in ('stribeck', 'stribeck_velocity')
        )
        level = np.where(level == 0.0, 1.0, level)  # else no velocity would be seen
        width = np.exp(log_velocity)[:, None]

        def share(v: Array) -> Array:
            return np.asarray((v / width) ** 2)

        at = log_velocity.tobytes()
        unit = stretch.friction(('stribeck', at), lambda v: np.exp(-share(v)) * np.sign(v))
        change = stretch.friction(
            ('change', at), lambda v: 2.0 * share(v) * np.exp(-share(v)) * np.sign(v)
        )
        for name, values in (
            ('stribeck', unit),
            ('stribeck_velocity', level * change),
        ):
            X[:, np.arange(len(joints)), self.places[name][joints]] = values[:, joints]

    @cached_property
    def _turned(self) -> list[RobotModel]:
        """Robots whose gravity is its change by a rotation about an axis."""
        return [self.model.changed(gravity=change) for change in self._tilts]

    @cached_property
    def _unmoved(self) -> RobotModel:
        """The robot without friction and armature of the joints that have motors."""
        model = self.model.with_friction(dict.fromkeys(self.model.joint_names))
        return model.with_armature(dict.fromkeys(self.model.joint_names, 0.0))

    @property
    def _tilts(self) -> Array:
        """Changes of gravity by rotations about two axes, shape (2, 3)."""
        return np.cross(self._axes, self.model.gravity)

    def tilted(self, angles: Array) -> Equations:
        """The same equations with gravity turned by small angles (2,).

        Parameters
        ----------
        angles : array-like, shape (2,)
            About two axes that are normal to the given gravity [rad].

        Returns
        -------
        Equations
            With gravity of the same size.
        """
        g = np.asarray(self.model.gravity) + np.asarray(angles) @ self._tilts
        g *= np.linalg.norm(self.model.gravity) / np.linalg.norm(g)
        same = Equations(self.model.changed(gravity=g), self.actuators, self.link)
        same._axes = self._axes
        return same

    def structure(self, asked: Places, measured: Iterable[str]) -> Structure:
        """Which combinations determine what is measured.

        Source: Gautier 1991, "Numerical calculation of the base inertial parameters of robots".

        Parameters
        ----------
        asked : ndarray of int, shape (P,)
            Columns.
        measured : iterable of str
            Such as 'effort' and 'motor_torque'.

        Returns
        -------
        Structure
        """
        from scipy.linalg import qr, solve_triangular

        key = tuple(measured)
        if key not in self._random:
            self._random[key] = qr(self._at_random(key), mode='r')[0]
        stacked = self._random[key][:, asked]
        sizes = np.linalg.norm(stacked, axis=0)
        sizes[sizes < _RANK * np.median(sizes)] = 0.0  # but for rounding
        stacked[:, sizes == 0.0] = 0.0
        # Of columns that are worth the same the first one counts, whatever rounding says.
        scale = np.where(sizes > 0.0, sizes, 1.0) * (1.0 + 1e-6 * np.arange(len(asked)))
        R, order = qr(stacked / scale, mode='r', pivoting=True)
        diagonal = np.abs(np.diag(R))
        b = int(np.count_nonzero(diagonal > _RANK * diagonal[0]))
        mapping = np.zeros((b, len(order)))
        mapping[:, order] = solve_triangular(R[:b, :b], R[:b])
        mapping *= scale / scale[order[:b], None]
        mapping[np.abs(mapping) < 1e-8] = 0.0
        ranks = np.argsort(order[:b])
        independent = order[:b][ranks]
        mapping = mapping[ranks]
        mapping[:, independent] = np.eye(b)
        return Structure(asked[independent], mapping)

    def _at_random(self, measured: Sequence[str]) -> Array:
        """Rows of a random motion, shape (rows, columns)."""
        rng, n = np.random.default_rng(0), self.model.n_joints
        M = 10 + 2 * -(-len(self.columns) // n) * 3
        low, high = self.model.limits.lower, self.model.limits.upper
        bounded = np.isfinite(low) & np.isfinite(high)
        motion = rng.normal(size=(M, 3, n))
        low, high = np.where(bounded, [low, high], [[-np.pi], [np.pi]])
        motion[:, 0] = within_reach(self.model, rng.uniform(low, high, (M, n)))
        stretch = Stretch(
            np.arange(float(M)),
            motion,
            motion + rng.normal(size=motion.shape),
            {what: rng.normal(size=(M, 2, n)) for what in measured},
            0.1 * rng.normal(size=(M, n)),
            dict.fromkeys((*measured, 'resting'), np.ones((M, n), dtype=np.bool_)),
            np.zeros((3, M, n)),
        )
        rows = self.rows(stretch, self.channels(measured))
        return rows.X[rows.is_used]


_FACTORIALS = np.array([1.0, 1.0, 2.0, 6.0])
