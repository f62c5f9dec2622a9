"""Equations that are linear in the parameters of a robot, row by row of its recordings.

Rigid joints:    effort = Y pi + armature q'' + friction(q') + offset
elastic joints:  motor torque = B theta'' + friction(theta') + Q + offset,  Q = Y pi,
                 sensor = Q + offset,  Q = K d + K3 d^3 + D d' + offset,  d = theta - q

where the offset of Q is that of the encoders. Measured efforts may come late: tau(t + delay) is
developed into powers of the delay. Source of Y: `dynamics.regressor`; of the springs: Spong 1987.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.actuators.actuator import RigidDrive
from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.sea import SeriesElastic
from hodyn_ros.actuators.springs import CubicSpring, LinearSpring
from hodyn_ros.checks import Array
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.dynamics.matrices import mass_matrix
from hodyn_ros.dynamics.regressor import BODY_PARAMETERS, payload_in_body, regressor
from hodyn_ros.errors import IdentificationError
from hodyn_ros.identification.recording import Flags, Stretch
from hodyn_ros.kinematics.closed_loops import within_reach
from hodyn_ros.model.friction import Coulomb, JointFriction, Stribeck
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import FRICTION, GROUPS, SPRING, listed

_UNITS = {
    'mass': ('kg', 'kg'),
    'h': ('kg m', 'kg m'),
    'i': ('kg m^2', 'kg m^2'),
    'armature': ('kg m^2', 'kg'),
    'viscous': ('N m s/rad', 'N s/m'),
    'coulomb': ('N m', 'N'),
    'stribeck': ('N m', 'N'),
    'stribeck_velocity': ('rad/s', 'm/s'),
    'offset': ('N m', 'N'),
    'sensor_offset': ('N m', 'N'),
    'deflection_offset': ('N m', 'N'),
    'stiffness': ('N m/rad', 'N/m'),
    'cubic_stiffness': ('N m/rad^3', 'N/m^3'),
    'damping': ('N m s/rad', 'N s/m'),
    'gravity': ('rad', 'rad'),
    'delay': ('s', 's'),
}
_BESIDE = {
    'stribeck': ('stribeck_velocity',),
    'offset': ('sensor_offset', 'deflection_offset'),
}
"""Quantities that come with a group; the offsets only where joints are elastic."""
_RANK, _RESOLVED = 1e-9, 1e-5
STRIBECK_VELOCITIES = np.geomspace(0.005, 0.6, 9)
"""Between which friction that falls with the velocity is interpolated [rad/s] or [m/s]."""
_FIRST_STRIBECK = 0.05


class Column(NamedTuple):
    """A parameter.

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


class Rows(NamedTuple):
    """Equations y = X beta of one kind, M at even times for each of n joints."""

    kind: str
    """'effort', 'motor', 'sensor' or 'spring'."""
    X: Array
    """Shape (M, n, P)."""
    y: Array
    """Shape (M, n)."""
    is_used: Flags
    """Shape (M, n)."""
    variance: Array
    """Of what the deviations of the derivatives add, shape (M, n)."""
    signal: Array
    """Effort that they are about, shape (M, n)."""
    floor: Array
    """Variance that the noise of samples accounts for, shape (M, n)."""

    @property
    def resolved(self) -> Array:
        """The same, at least that of a sensor of 1e-5 of the largest effort, shape (M, n)."""
        least = (_RESOLVED * np.abs(self.signal).max(axis=0, initial=0.0)) ** 2 + 1e-300
        return np.asarray(np.maximum(self.floor, least))


class Nonlinear(NamedTuple):
    """Values of the parameters in which the equations are not linear; columns are of changes.

    They are made part of the equations step by step, see `Estimation`.
    """

    delay: float
    """[s]"""
    tilt: Array
    """Angles of gravity, shape (2,) [rad]."""
    level: Array
    """Of the friction that falls with the velocity, shape (n,)."""
    log_velocity: Array
    """Logarithm of the velocity with which it falls, shape (n,)."""


class Structure(NamedTuple):
    """Which combinations of the P parameters the equations determine."""

    independent: NDArray[np.intp]
    """Columns that are kept, shape (b,)."""
    mapping: Array
    """Base parameters = mapping @ parameters, shape (b, P)."""


class Equations:
    """Equations of a robot for some groups of parameters; what is not estimated is subtracted.

    Parameters
    ----------
    model : RobotModel
        Its parameters are used where they are not estimated.
    groups : sequence of str
        Of `GROUPS`.
    actuators : Actuators, optional
        Which joints are elastic; what is known of their motors and springs.
    payload_link : str, optional
        Link whose payload is meant by 'payload'.

    Attributes
    ----------
    columns : list of Column
        The P parameters.
    first : dict of str to int
        First column of each group and quantity.
    elastic : ndarray of bool, shape (n,)
        Which joints are series elastic.
    state : Nonlinear
        Where the equations are developed.

    Raises
    ------
    IdentificationError
        If a group is unknown, springs are asked for and no joint is elastic, or a spring is
        neither linear nor cubic.
    """

    def __init__(
        self,
        model: RobotModel,
        groups: Sequence[str],
        actuators: Actuators | None = None,
        payload_link: str | None = None,
    ) -> None:
        self.model, self.groups, self.actuators = model, tuple(groups), actuators
        self.payload_link = payload_link
        drives = [
            None if actuators is None else actuators[name] for name in model.joint_names
        ]
        self.elastic = np.array([isinstance(drive, SeriesElastic) for drive in drives])
        self._refuse_unknown(drives)
        self.columns: list[Column] = []
        self.first: dict[str, int] = {}
        for group in groups:
            self.first[group] = len(self.columns)
            self._add_columns(group)
        if payload_link is not None:
            self._carrier = payload_in_body(model, payload_link)
        # Two axes that are normal to the given gravity.
        g = np.asarray(model.gravity)
        normal = np.cross(g, np.eye(3)[np.argmin(np.abs(g))])
        axes = np.stack([normal, np.cross(g, normal)])
        self.tilt_axes = axes / np.maximum(np.linalg.norm(axes, axis=1), 1e-300)[:, None]
        n = model.n_joints
        start = np.full(n, np.log(_FIRST_STRIBECK))
        self.state = Nonlinear(0.0, np.zeros(2), np.ones(n), start)

    def _refuse_unknown(self, drives: Sequence[object]) -> None:
        """Refuse groups that there are not, and springs that cannot be identified."""
        if unknown := [group for group in self.groups if group not in GROUPS]:
            raise IdentificationError(
                f'{listed(unknown)} cannot be estimated, expected some of {listed(GROUPS)}.'
            )
        if not set(self.groups).isdisjoint(SPRING) and not self.elastic.any():
            raise IdentificationError(
                'Springs are asked for, but no joint is series elastic; give actuators, whose '
                'values need not be right.'
            )
        for name, drive in zip(self.model.joint_names, drives):
            springs = getattr(drive, 'spring', None)
            if springs is not None and not isinstance(springs, (LinearSpring, CubicSpring)):
                raise IdentificationError(
                    f'The spring of {name} is {springs}; linear and cubic ones can be identified.'
                )

    def _add_columns(self, group: str) -> None:
        """Append the parameters of a group."""
        model = self.model
        if group in ('bodies', 'payload'):
            owners = model.body_names if group == 'bodies' else (str(self.payload_link),)
            self.columns += [
                Column(group, name, owner, _UNITS[name if name == 'mass' else name[0]][0])
                for owner in owners
                for name in BODY_PARAMETERS
            ]
        elif group == 'gravity':
            self.columns += [
                Column(group, f'gravity tilt {axis}', '', 'rad') for axis in '12'
            ]
        elif group == 'delay':
            self.columns.append(Column(group, 'delay', '', 's'))
        else:
            more = _BESIDE.get(group, ()) if group != 'offset' or self.elastic.any() else ()
            for name in (group, *more):
                self.first[name] = len(self.columns)
                for owner, kind in zip(model.joint_names, model.joint_types):
                    unit = _UNITS[name][int(kind == 'prismatic')]
                    self.columns.append(Column(group, name, owner, unit))

    @property
    def known(self) -> Array:
        """Parameters of the model and its actuators as given, shape (P,)."""
        model, beta = self.model, np.zeros(len(self.columns))
        if 'bodies' in self.first:
            beta[self.of('bodies', 10 * model.n_bodies)] = model.inertial_parameters
        for name, values in self.known_drives.items():
            if name in self.first:
                beta[self.of(name)] = values
        return beta

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

    def of(self, name: str, width: int | None = None) -> slice:
        """Columns of a quantity, by default one for each joint.

        Parameters
        ----------
        name : str
            Of a quantity or group that is estimated.
        width : int, optional
            Number of columns.

        Returns
        -------
        slice
        """
        first = self.first[name]
        return slice(first, first + (self.model.n_joints if width is None else width))

    def rows(self, stretch: Stretch) -> Iterator[Rows]:
        """Equations along a stretch of a recording.

        Parameters
        ----------
        stretch : Stretch
            Of the same joints.

        Yields
        ------
        Rows
            'effort' of rigid joints; 'motor' and 'sensor' of elastic ones, as far as they
            are measured, then 'spring'. With P columns each.

        Raises
        ------
        IdentificationError
            If joints are elastic and the stretch has no positions of motors.
        """
        measured, n = stretch.measured, self.model.n_joints
        moving = stretch.is_used['resting'] | (not self.has_friction)
        bodies, fixed, variance = self._bodies(stretch)
        scatter = {what: stretch.noise.get(what, np.zeros(n)) ** 2 for what in measured}
        if not self.elastic.all():
            own = 'effort' if 'effort' in measured else 'motor_torque'
            block = _Block(self, stretch, ~self.elastic)
            block.X += bodies
            block.measure(own)
            block.is_used &= moving
            block.y -= fixed
            block.motor(stretch.motion)
            signal = measured[own][:, 0]
            yield block.rows('effort', variance, signal, variance + scatter[own])
        if not self.elastic.any():
            return
        if stretch.motor_motion is None:
            raise IdentificationError(
                'Joints are elastic, but the recording holds no positions of motors; record them '
                'too (columns <joint>.motor_position, or a topic of the motors).'
            )
        deflection = stretch.motor_motion - stretch.motion
        stiffness = self.known_drives['stiffness']
        noise = stiffness**2 * (stretch.deviations[1:] ** 2).sum(axis=0)
        for what, kind in (('motor_torque', 'motor'), ('effort', 'sensor')):
            if what not in measured:
                continue
            block = _Block(self, stretch, self.elastic)
            block.measure(what)
            if kind == 'motor':
                block.is_used &= moving
                block.motor(stretch.motor_motion)
            block.spring(deflection)
            if kind == 'sensor':
                block.put('sensor_offset', 1.0)
            exact = np.zeros_like(fixed)
            yield block.rows(kind, exact, measured[what][:, 0], noise + scatter[what])
        block = _Block(self, stretch, self.elastic)
        block.X -= bodies
        block.y += fixed
        block.spring(deflection)
        both = variance + noise
        yield block.rows('spring', both, stiffness * deflection[:, 0], both)

    def efforts(self, stretch: Stretch) -> Iterator[tuple[str, Array, Array, Flags]]:
        """What is measured with its kind, what is computed, and where both are used, (M, n) each.

        That of elastic joints is computed from the torque of the links, whatever their deflection
        says; torques of motors come last.

        Parameters
        ----------
        stretch : Stretch

        Yields
        ------
        kind : {'effort', 'sensor', 'motor'}
        measured : ndarray, shape (M, n)
            [N m] or [N]
        computed : ndarray, shape (M, n)
            [N m] or [N]
        is_used : ndarray of bool, shape (M, n)
        """
        every = {rows.kind: rows for rows in self.rows(stretch)}
        for kind in ('effort', 'sensor', 'motor'):
            if kind in every:
                rows = every[kind]
                links = 0.0 if kind == 'effort' else every['spring'].y
                yield kind, rows.signal, rows.signal - rows.y + links, rows.is_used

    def _bodies(self, stretch: Stretch) -> tuple[Array, Array, Array]:
        """Columns of bodies and gravity (M, n, P), efforts that are not estimated, variances."""
        model, motion = self.model, stretch.motion
        X = np.zeros((len(motion), model.n_joints, len(self.columns)))
        fixed = np.zeros((len(motion), model.n_joints))
        if 'bodies' in self.first or 'payload' in self.first:
            Y = regressor(model, motion)[:, 0]
            if 'bodies' in self.first:
                X[..., self.of('bodies', 10 * model.n_bodies)] = Y
            if 'payload' in self.first:
                own, to_body = self._carrier
                X[..., self.of('payload', 10)] = Y[..., own] @ to_body
        if 'bodies' not in self.first:
            fixed += inverse_dynamics(self._frictionless, motion)[:, 0]
        elif model.closure is not None:  # what joints without motors have
            passive = inverse_dynamics(self._frictionless, motion)[:, 0]
            fixed += passive - Y @ model.inertial_parameters
        if 'gravity' in self.first:
            still = motion * np.array([1.0, 0.0, 0.0])[:, None]
            for k, direction in enumerate(self._tilts):
                tilted = self._frictionless.changed(gravity=direction, friction={})
                X[..., self.first['gravity'] + k] = inverse_dynamics(tilted, still)[:, 0]
        if not stretch.deviations[0].any():
            return X, fixed, np.zeros_like(fixed)
        M = mass_matrix(model, motion[:, :1])[:, 0]
        return X, fixed, np.einsum('mij,mj->mi', M**2, stretch.deviations[0] ** 2)

    @property
    def is_linear(self) -> Flags:
        """Which parameters equations are linear in, shape (P,)."""
        others = 'delay', 'gravity', 'stribeck_velocity'
        return np.array([not column.name.startswith(others) for column in self.columns])

    @property
    def has_friction(self) -> bool:
        """Whether some friction is estimated."""
        return any(name in self.first for name in FRICTION)

    @cached_property
    def _frictionless(self) -> RobotModel:
        model = self.model
        driven = model.body_names if model.closure is None else model.joint_names
        model = model.with_friction(dict.fromkeys(driven))
        return model.with_armature(dict.fromkeys(driven, 0.0))

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

    @property
    def _tilts(self) -> Array:
        """Changes of gravity by rotations about `tilt_axes`, shape (2, 3)."""
        return np.cross(self.tilt_axes, self.model.gravity)

    def tilted(self, angles: Array) -> Equations:
        """The same equations with gravity turned by small angles (2,).

        Parameters
        ----------
        angles : array-like, shape (2,)
            About `tilt_axes` [rad].

        Returns
        -------
        Equations
            With gravity of the same size.
        """
        g = np.asarray(self.model.gravity) + np.asarray(angles) @ self._tilts
        g *= np.linalg.norm(self.model.gravity) / np.linalg.norm(g)
        model = self.model.changed(gravity=g)
        same = Equations(model, self.groups, self.actuators, self.payload_link)
        same.state = self.state._replace(tilt=self.state.tilt + angles)
        same.tilt_axes = self.tilt_axes
        return same

    def laws(self) -> dict[str, Callable[[Array], Array]]:
        """Friction of laws of unit size by velocities (..., n, 1), and that which is known.

        Returns
        -------
        dict of str to callable
            From velocities (..., n, 1) to efforts of this shape: 'known', and those that
            are estimated.
        """
        model, known = self.model, dict(self.model.friction)
        laws = {j: known[name] for j, name in enumerate(model.joint_names) if name in known}
        for j in np.flatnonzero(self.elastic).tolist():
            laws.pop(j, None)
            if (law := self.drive(j).friction) is not None:
                laws[j] = law
        found: dict[str, Callable[[Array], Array]] = {'known': JointFriction(laws)}
        if 'coulomb' in self.first:
            found['coulomb'] = Coulomb(1.0).effort
        if 'stribeck' in self.first:
            names = zip(stribeck_names(), STRIBECK_VELOCITIES.tolist())
            found |= {name: Stribeck(1.0, velocity).effort for name, velocity in names}
        return found

    def structure(self, kinds: Sequence[str], seed: int = 0) -> Structure:
        """Which combinations determine what is measured; `kinds` has its names.

        Source: Gautier 1991, "Numerical calculation of the base inertial parameters of robots".

        Parameters
        ----------
        kinds : sequence of str
            Such as 'effort' and 'motor_torque'.
        seed : int
            Of the random motion by which it is found.

        Returns
        -------
        Structure
        """
        from scipy.linalg import qr, solve_triangular

        rng, n = np.random.default_rng(seed), self.model.n_joints
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
            {what: rng.normal(size=(M, 2, n)) for what in kinds},
            {name: rng.normal(size=(M, n)) for name in self.laws()},
            dict.fromkeys((*kinds, 'resting'), np.ones((M, n), dtype=np.bool_)),
            np.zeros((3, M, n)),
        )
        stacked = np.concatenate([rows.X[rows.is_used] for rows in self.rows(stretch)])
        sizes = np.linalg.norm(stacked, axis=0)
        sizes[sizes < _RANK * np.median(sizes)] = 0.0  # but for rounding
        stacked[:, sizes == 0.0] = 0.0
        scale = np.where(sizes > 0.0, sizes, 1.0)
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
        return Structure(independent, mapping)


class _Block:
    """Rows of some of the joints that are being made, M of them.

    Parameters
    ----------
    equations : Equations
    stretch : Stretch
    which : ndarray of bool, shape (n,)
        Which joints have rows.

    Attributes
    ----------
    X : ndarray, shape (M, n, P)
        Columns of the parameters.
    y : ndarray, shape (M, n)
        What is measured, less what is not estimated.
    is_used : ndarray of bool, shape (M, n)
    """

    def __init__(self, equations: Equations, stretch: Stretch, which: Flags) -> None:
        self._equations, self._stretch = equations, stretch
        M, n = stretch.motion[:, 0].shape
        self.X = np.zeros((M, n, len(equations.columns)))
        self.y, self.is_used = np.zeros((M, n)), np.tile(which, (M, 1))

    def rows(self, kind: str, variance: Array, signal: Array, floor: Array) -> Rows:
        """What has been made, see `Rows`."""
        return Rows(kind, self.X, self.y, self.is_used, variance, signal, floor)

    def put(self, name: str, values: Array | float) -> None:
        """Set the columns of a quantity, if it is estimated.

        Parameters
        ----------
        name : str
            Quantity with a column for each joint.
        values : float or ndarray, shape (M, n)
        """
        first, joints = self._equations.first, np.arange(self.X.shape[1])
        if name in first:
            self.X[:, joints, first[name] + joints] = values

    def measure(self, what: str) -> None:
        """Subtract nothing from what is measured, but allow for its delay.

        Parameters
        ----------
        what : str
            'effort' or 'motor_torque'.
        """
        first, series = self._equations.first, self._stretch.measured[what]
        late = self._equations.state.delay ** np.arange(series.shape[1])
        late = late / _FACTORIALS[: series.shape[1]]
        self.y += np.einsum('mdn,d->mn', series, late)
        if 'delay' in first and series.shape[1] > 1:
            self.X[..., first['delay']] = -np.einsum('mdn,d->mn', series[:, 1:], late[:-1])
        self.is_used &= self._stretch.is_used[what]

    def motor(self, motion: Array) -> None:
        """Motor inertia, friction and offset, at rigid joints and motors alike.

        Parameters
        ----------
        motion : ndarray, shape (M, 3, n)
            Of what moves with the motor [rad/s^k] or [m/s^k].
        """
        equations, laws = self._equations, self._stretch.laws
        if 'armature' in equations.first:
            self.put('armature', motion[:, 2])
        else:
            self.y -= equations.known_drives['armature'] * motion[:, 2]
        self.put('viscous', motion[:, 1])
        if 'coulomb' in equations.first:
            self.put('coulomb', laws['coulomb'])
        if 'stribeck' in equations.first:
            self.put('stribeck', self._falling(0))
            self.put('stribeck_velocity', equations.state.level * self._falling(1))
        self.put('offset', 1.0)
        if 'known' in laws and not equations.has_friction:
            self.y -= laws['known']

    def spring(self, deflection: Array) -> None:
        """Torques of springs by their deflections (M, 3, n).

        Parameters
        ----------
        deflection : ndarray, shape (M, 3, n)
            [rad/s^k] or [m/s^k]
        """
        d = deflection[:, 0]
        for name, values in zip(SPRING, (d, d**3, deflection[:, 1])):
            if name in self._equations.first:
                self.put(name, values)
            elif (known := self._equations.known_drives[name]).any():
                self.y -= known * values
        self.put('deflection_offset', 1.0)

    def _falling(self, order: int) -> Array:
        """Unit friction that falls with the velocity (M, n), or its change with log_velocity."""
        from scipy.interpolate import CubicSpline

        known = np.stack([self._stretch.laws[name] for name in stribeck_names()])
        spline = CubicSpline(np.log(STRIBECK_VELOCITIES), known)
        every = spline(self._equations.state.log_velocity, order)
        return np.asarray(np.einsum('jmj->mj', every))


def stribeck_names() -> list[str]:
    """Names of the friction at `STRIBECK_VELOCITIES`.

    Returns
    -------
    list of str
    """
    return [f'stribeck {velocity:.6g}' for velocity in STRIBECK_VELOCITIES]


_FACTORIALS = np.array([1.0, 1.0, 2.0, 6.0])
