"""Parameters of a robot from recordings, with standard deviations.

Weighted least squares on the base parameters: rows are whitened by an autoregression of their
residuals, scaled by these and by what the deviations of the derivatives add, and left out where
they miss by far; this is repeated until it settles. Sources: Gautier and Khalil 1990; Janot,
Vandanjon and Gautier 2014, "A generic instrumental variable approach for industrial robot
identification", on the noise; Golub and Pereyra 1973 on the parameters that are not linear.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from hodyn_ros.actuators import (
    Actuator,
    Actuators,
    CubicSpring,
    RigidDrive,
    SeriesElastic,
)
from hodyn_ros.checks import Array, checked_number
from hodyn_ros.errors import IdentificationError
from hodyn_ros.identification.consistency import body_scale, consistent
from hodyn_ros.identification.equations import (
    FRICTION,
    SPRING,
    Column,
    Equations,
    Rows,
    Structure,
)
from hodyn_ros.identification.recording import Flags, Preparation, Recording, Stretch
from hodyn_ros.model.friction import Coulomb, FrictionLaw, JointFriction, Offset, Sum, Viscous
from hodyn_ros.model.inertia import inertia_parts, parametric_inertia
from hodyn_ros.model.robot import ModelWarning, RobotModel
from hodyn_ros.names import listed

DEFAULT = ('bodies', 'armature', 'viscous', 'coulomb', 'offset', 'delay')
DEFAULT_OF_SPRINGS = ('stiffness', 'damping')

_PASSES, _SETTLED = 8, 0.02  # of all rows; last step in standard deviations
_MEMORY = 3  # rows that the noise of a row depends on
_OUTLIER = 6.0  # standard deviations
_MEDIAN = 1.4826  # standard deviation over the median magnitude
_ROUNDING = 1e-13  # noise over the largest effort that counts as rounding
_RANK = 1e-6  # of directions that recordings show at all, over the best one
_UNSEEN = 1e-3  # share of a parameter in the others
_LONGEST_DELAY, _LATE = 0.1, 2e-4  # s
_FLAT = 1e3  # prior of what recordings determine, over its deviation
_MUCH, _FEW = 0.01, 1e-4  # shares that are worth a remark: of rows, of samples


class Payload(NamedTuple):
    """A rigid body that a link carries, as `RobotModel.with_payload` takes it."""

    link: str
    mass: float
    """[kg]"""
    com: Array
    """In the link frame, shape (3,) [m]."""
    inertia_com: Array
    """About that, in link axes, shape (3, 3) [kg m^2]."""


class IdentifiedParameter(NamedTuple):
    """A base parameter: one of the robot's parameters, or a combination named after one."""

    group: str
    """Such as 'bodies' or 'viscous'."""
    name: str
    """Of the parameter that it is named after, such as 'panda_joint2 ixx'."""
    value: float
    std: float
    """Infinite where the recordings do not show it."""
    unit: str
    is_alone: bool
    """Whether it is that parameter itself; otherwise others are in it, see `mapping`."""
    share: float
    """RMS of its part of the efforts, relative to that of the efforts."""


class Residual(NamedTuple):
    """What efforts of a recording miss."""

    name: str
    kind: str
    """'effort', 'motor' (torques), 'sensor' or 'spring' (link side against spring)."""
    size: Array
    """RMS of what was measured, shape (n,); NaN for other joints."""
    before: Array
    """RMS of what the given model leaves."""
    after: Array
    """RMS of what the identified one leaves."""


@dataclass(frozen=True, eq=False)
class Identification:
    """What recordings say about a robot; see `identify`."""

    model: RobotModel
    """With identified bodies, friction, armature and gravity."""
    actuators: Actuators | None
    """With identified motors and springs."""
    payload: Payload | None
    """If it was asked for."""
    parameters: tuple[IdentifiedParameter, ...]
    """The b base parameters."""
    columns: tuple[Column, ...]
    """The P parameters that they combine."""
    mapping: Array
    """Base parameters = mapping @ parameters, shape (b, P)."""
    full: Array
    """Physically consistent parameters that the model holds, shape (P,)."""
    covariance: Array
    """Of the base parameters, shape (b, b)."""
    residuals: tuple[Residual, ...]
    """Of the recordings."""
    validation: tuple[Residual, ...]
    """Of recordings that were not used."""
    remarks: tuple[str, ...]

    def __getitem__(self, name: str) -> IdentifiedParameter:
        """Base parameter of a name."""
        for item in self.parameters:
            if item.name == name:
                return item
        raise KeyError(name)


def identify(
    model: RobotModel,
    recordings: Recording | Sequence[Recording],
    parameters: Sequence[str] | None = None,
    *,
    actuators: Actuators | None = None,
    payload_link: str | None = None,
    validation: Recording | Sequence[Recording] = (),
    smoothing: float = 0.01,
    bandwidth: float | None = None,
    fixed: Array | None = None,
) -> Identification:
    """Identify parameters of a robot from recordings of its motion and efforts.

    Parameters
    ----------
    model : RobotModel
        What is known. It decides where the recordings say nothing.
    recordings : Samples, path, or sequence of them
        With `effort`, or `motor_position` and `motor_torque` of elastic joints, at even times but
        for gaps and jitter. Derivatives are estimated from the positions, unless samples that are
        no measurements have accelerations.
    parameters : sequence of str, optional
        Groups of `GROUPS`. By default 'bodies' (or 'payload' with `payload_link`), 'armature',
        'viscous', 'coulomb', 'offset' and 'delay', with elastic joints 'stiffness' and 'damping'.
    actuators : Actuators, optional
        Says which joints are elastic; the values are a first guess.
    payload_link : str, optional
        Link that carries what 'payload' stands for.
    validation : Samples, path, or sequence of them
        Recordings that are not used but compared with.
    smoothing : float
        Of the identified `Coulomb` friction [rad/s] or [m/s].
    bandwidth : float, optional
        Pass band of the filter [Hz]; by default from the noise and motion of the recordings.
    fixed : ndarray, shape (n_bodies, 10), optional
        Share of each body of links that keep their parameters, so that the rest is physical too.

    Returns
    -------
    Identification

    Raises
    ------
    IdentificationError
        If the recordings lack efforts or excitation, are clipped, in other units or of another
        robot, or lead to parameters that no robot has.
    JointNameError, FileError, MotionError
        If a recording lacks joints or cannot be read.
    """
    if parameters is None:
        parameters = DEFAULT if payload_link is None else ('payload', *DEFAULT[2:])
        if actuators is not None and any(
            isinstance(drive, SeriesElastic) for drive in actuators.by_joint.values()
        ):
            parameters = (*parameters, *DEFAULT_OF_SPRINGS)
    if 'payload' in parameters and payload_link is None:
        raise IdentificationError('A payload is asked for: name the link that carries it.')
    if {'bodies', 'payload'} <= set(parameters):
        raise IdentificationError('A payload is part of its body: ask for one of the two.')
    checked_number('smoothing', smoothing, IdentificationError, least=0.0)
    equations = Equations(model, parameters, actuators, payload_link)
    given = _several(recordings)
    if not given:
        raise IdentificationError('There are no recordings.')
    laws = _laws(model, actuators, equations.elastic, smoothing)
    preparation = Preparation(model, laws, equations.elastic, bandwidth)
    stretches = _prepared(preparation, given)
    kinds = _measured([stretch for found in stretches.values() for stretch in found])
    structure = equations.structure(kinds, tuple(laws))
    every = [stretch for found in stretches.values() for stretch in found]
    found = _Estimation(equations, structure, every)
    full, remarks = _physical(found, fixed)
    result, drives, payload = _updated(found.equations, full, smoothing, payload_link)
    known = Equations(model, (), actuators)
    residuals = _residuals(found.equations, full, known, stretches)
    held = _prepared(preparation, _several(validation))
    unseen = _residuals(found.equations, full, known, held)
    return Identification(
        result, drives, payload, found.parameters(), tuple(equations.columns), structure.mapping,
        full, found.covariance, residuals, unseen,
        (*_remarks(preparation), *found.remarks(), *remarks),
    )  # fmt: skip


def _several(recordings: Recording | Sequence[Recording]) -> list[Any]:
    return list(recordings) if isinstance(recordings, (list, tuple)) else [recordings]


def _prepared(
    preparation: Preparation, recordings: Sequence[Recording]
) -> dict[str, list[Stretch]]:
    return {
        f'{number}: {getattr(item, "name", item)}': preparation.stretches(item)
        for number, item in enumerate(recordings)
    }


def _measured(stretches: Sequence[Stretch]) -> tuple[str, ...]:
    """What all stretches hold."""
    kinds = set.intersection(*(set(stretch.measured) for stretch in stretches))
    if not kinds:
        raise IdentificationError(
            'The recordings hold no efforts; record them too (columns <joint>.effort or '
            '<joint>.motor_torque, JointState.effort).'
        )
    return tuple(sorted(kinds))


def _laws(
    model: RobotModel, actuators: Actuators | None, elastic: Flags, smoothing: float
) -> dict[str, Callable[[Array], Array]]:
    """Friction of a unit Coulomb law, and that which is known."""
    known = dict(model.friction)
    laws = {j: known[name] for j, name in enumerate(model.joint_names) if name in known}
    for j in np.flatnonzero(elastic).tolist():
        laws.pop(j, None)
        drive = None if actuators is None else actuators[model.joint_names[j]]
        if isinstance(drive, SeriesElastic) and drive.friction is not None:
            laws[j] = drive.friction
    return {'coulomb': Coulomb(1.0, smoothing).effort, 'known': JointFriction(laws)}


def _remarks(preparation: Preparation) -> list[str]:
    names, remarks = preparation.model.joint_names, []
    for count, what in (
        (preparation.clipped, 'are clipped (at a limit, or at their largest value on end) and not '
         'used; record a gentler motion'),
        (preparation.spikes, 'were spikes, replaced by their neighbours'),
    ):  # fmt: skip
        share = count / max(preparation.samples, 1)
        shown = [f'{names[j]} {100.0 * share[j]:.2g} %' for j in np.flatnonzero(share > _FEW)]
        if shown:
            remarks.append(f'Some samples {what}: {listed(shown)}.')
        if share.max(initial=0.0) > 0.5:
            raise IdentificationError(remarks[-1])
    return remarks


class _Noise(NamedTuple):
    """Noise of rows of one kind, of n joints."""

    size: Array
    """Standard deviation, shape (n,)."""
    memory: Array
    """How it follows from that of the rows before, shape (n, _MEMORY)."""
    gain: Array
    """Part of the standard deviation that is new in each row, shape (n,)."""


class _Estimation:
    """Base parameters z of equations along stretches."""

    def __init__(
        self, equations: Equations, structure: Structure, stretches: Sequence[Stretch]
    ) -> None:
        self.equations, self.structure, self.stretches = equations, structure, stretches
        self.z = structure.mapping @ equations.known
        self.columns = [equations.columns[i] for i in structure.independent]
        self.noise: dict[str, _Noise] = {}
        self.dropped = self.used = 0
        for number in range(_PASSES):
            if number:
                self.noise = self._judged()
            largest = self._step()
            self._move()
            if number > 2 and largest < _SETTLED:
                break

    def _rows(self) -> Iterator[tuple[Rows, Array]]:
        """Rows of all stretches, by the base parameters, with what these leave."""
        for stretch in self.stretches:
            for rows in self.equations.rows(stretch):
                X = rows.X[..., self.structure.independent]
                yield rows._replace(X=X), rows.y - X @ self.z

    def _judged(self) -> dict[str, _Noise]:
        """Noise of each kind of rows, from what the parameters leave."""
        left: dict[str, list[tuple[Rows, Array]]] = {}
        for rows, rest in self._rows():
            left.setdefault(rows.kind, []).append((rows._replace(X=rest[..., None]), rest))
        found = {}
        for kind, parts in left.items():
            n = parts[0][1].shape[1]
            size, memory, gain = np.full(n, np.inf), np.zeros((n, _MEMORY)), np.ones(n)
            for j in range(n):
                used = [rows.is_used[:, j] for rows, _ in parts]
                values = np.concatenate([rest[u, j] for u, (_, rest) in zip(used, parts)])
                if len(values) < 10 * _MEMORY:
                    continue
                added = np.concatenate([rows.variance[u, j] for u, (rows, _) in zip(used, parts)])
                signal = np.concatenate([rows.signal[u, j] for u, (rows, _) in zip(used, parts)])
                typical = (_MEDIAN * np.median(np.abs(values))) ** 2
                least = (_ROUNDING * np.abs(signal).max()) ** 2 + 1e-300
                size[j] = np.sqrt(max(typical - np.median(added), 0.04 * typical, least))
                series = []
                for u, (rows, rest) in zip(used, parts):
                    relative = rest[:, j] / np.sqrt(size[j] ** 2 + rows.variance[:, j])
                    series.append(np.where(u, np.clip(relative, -_OUTLIER, _OUTLIER), np.nan))
                memory[j], gain[j] = _autoregression(series)
            found[kind] = _Noise(size, memory, gain)
        return found

    def _weighted(self, rows: Rows, rest: Array) -> Array:
        """White rows with what is left of them, shape (count, b + 1)."""
        both = np.concatenate([rows.X, rest[..., None]], axis=2)
        if rows.kind not in self.noise:
            power = (np.where(rows.is_used, rows.signal, 0.0) ** 2).sum(axis=0)
            spread = np.sqrt(power / np.maximum(rows.is_used.sum(axis=0), 1))
            weights = 1.0 / np.sqrt(np.where(spread > 0.0, spread, 1.0) ** 2 + rows.variance)
            return np.asarray((both * weights[..., None])[rows.is_used])
        noise = self.noise[rows.kind]
        spread = np.sqrt(noise.size**2 + rows.variance)
        used = rows.is_used & (np.abs(rest) < _OUTLIER * spread)
        self.used += int(rows.is_used.sum())
        self.dropped += int(rows.is_used.sum() - used.sum())
        both /= spread[..., None]
        white, fine = both.copy(), used.copy()
        for k in range(1, _MEMORY + 1):
            white[k:] -= noise.memory[:, k - 1, None] * both[:-k]
            fine[k:] &= used[:-k]
        fine[:_MEMORY] = False
        return np.asarray((white / noise.gain[:, None])[fine])

    def _step(self) -> float:
        """Take a step of least squares; the largest one over its standard deviation."""
        b, count = len(self.z), 0
        gram = np.zeros((b + 1, b + 1))
        self.dropped = self.used = 0
        for rows, rest in self._rows():
            weighted = self._weighted(rows, rest)
            gram += weighted.T @ weighted
            count += len(weighted)
        if count < 2 * b:
            raise IdentificationError(
                f'After filtering there are {count} rows for {b} parameters; record longer (with '
                'joints that move: friction is not seen at rest), or estimate fewer parameters.'
            )
        # What the normal equations lose of the digits, the next step finds again.
        sizes = np.sqrt(np.diag(gram)[:b])
        scale = np.where(sizes > 0.0, sizes, 1.0)
        values, vectors = np.linalg.eigh(gram[:b, :b] / np.outer(scale, scale))
        good = values > _RANK**2 * values[-1]
        s, V = np.sqrt(values[good]), vectors[:, good]
        half = V / s / scale[:, None]
        along = half.T @ gram[:b, b]
        step = half @ along
        left = max(float(gram[b, b] - along @ along), 1e-300)
        factor = left / max(count - len(s), 1)
        self.covariance = factor * half @ half.T
        self.information = (V * s).T * scale / np.sqrt(factor)
        unseen = np.abs(vectors[:, ~good]).max(axis=1, initial=0.0)
        self.is_shown = (sizes > 0.0) & (unseen < _UNSEEN)
        self.condition = float(s[-1] / s[0])
        self.z = self.z + step
        std = np.sqrt(np.diag(self.covariance))[self.is_shown]
        return float((np.abs(step[self.is_shown]) / np.maximum(std, 1e-300)).max(initial=0.0))

    def _move(self) -> None:
        """Make delay and tilt, in which equations are not linear, part of the equations."""
        for place, column in enumerate(self.columns):
            if column.group not in ('delay', 'gravity') or not self.is_shown[place]:
                continue
            if column.group == 'delay':
                self.equations.delay += float(self.z[place])
                if abs(self.equations.delay) > _LONGEST_DELAY:
                    raise IdentificationError(
                        f'Efforts seem to be {self.equations.delay:.3g} s behind the positions, '
                        f'expected at most {_LONGEST_DELAY} s. Are both stamped by the same '
                        'clock, and is this a recording of this robot?'
                    )
            elif column.name.endswith('1'):
                self.equations = self.equations.tilted(self.z[place : place + 2])
        moved = np.array([c.group in ('delay', 'gravity') for c in self.columns])
        self.z = np.where(moved, 0.0, self.z)

    @property
    def estimates(self) -> Array:
        """Base parameters with delay and tilt, shape (b,)."""
        z = self.z.copy()
        for place, column in enumerate(self.columns):
            if column.group == 'delay':
                z[place] = self.equations.delay
            elif column.group == 'gravity':
                z[place] = self.equations.tilt[int(column.name[-1]) - 1]
        return z

    def shares(self) -> Array:
        """RMS of the part of each base parameter in some row, over that of the effort there."""
        parts: dict[str, Array] = {}
        sizes: dict[str, Array] = {}
        for rows, _ in self._rows():
            used = rows.is_used[..., None]
            part = (np.where(used, rows.X, 0.0) ** 2).sum(axis=0)
            size = (np.where(rows.is_used, rows.signal, 0.0) ** 2).sum(axis=0)
            parts[rows.kind] = parts.get(rows.kind, 0.0) + part
            sizes[rows.kind] = sizes.get(rows.kind, 0.0) + size
        found = [parts[kind] / np.maximum(sizes[kind], 1e-300)[:, None] for kind in parts]
        result: Array = np.sqrt(np.max(found, axis=(0, 1))) * np.abs(self.estimates)
        return result

    def parameters(self) -> tuple[IdentifiedParameter, ...]:
        """Estimates with their deviations."""
        std = np.where(self.is_shown, np.sqrt(np.diag(self.covariance)), np.inf)
        lumped = np.abs(self.structure.mapping).sum(axis=1) > 1.0 + 1e-6
        return tuple(
            IdentifiedParameter(c.group, str(c), value, s, c.unit, not several, share)
            for c, value, s, several, share in zip(
                self.columns, self.estimates.tolist(), std.tolist(), lumped.tolist(),
                self.shares().tolist(),
            )
        )  # fmt: skip

    def remarks(self) -> list[str]:
        """What one should know of how it went."""
        remarks = []
        if self.dropped > _MUCH * self.used:
            remarks.append(
                f'{100.0 * self.dropped / self.used:.2g} % of the rows miss by more than '
                f'{_OUTLIER:.0f} standard deviations and were left out: contact, or friction that '
                'the laws do not describe.'
            )
        for place, column in enumerate(self.columns):
            std = np.sqrt(self.covariance[place, place])
            late = self.equations.delay
            if column.group == 'delay' and abs(late) > max(5.0 * std, _LATE):
                remarks.append(
                    f'Efforts are {1e3 * late:.3g} ms (+- {1e3 * std:.2g}) behind the positions; '
                    'that is taken into account.'
                )
        hidden = [str(c) for c, shown in zip(self.columns, self.is_shown) if not shown]
        if hidden:
            remarks.append(
                f'The recordings do not show {listed(hidden)}: record a motion that does '
                '(hodyn excite).'
            )
        return remarks


def _autoregression(series: Sequence[Array]) -> tuple[Array, float]:
    """Weights (_MEMORY,) of values before in series with gaps (NaN); the deviation that is new."""
    from scipy.linalg import solve_toeplitz

    lags = []
    for k in range(_MEMORY + 1):
        products = [s[k:] * s[: len(s) - k] for s in series]
        lags.append(float(np.nanmean(np.concatenate(products))))
    gamma = np.array(lags)
    gamma[1:] *= 1.0 - 1e-3  # nothing follows exactly
    weights = np.asarray(solve_toeplitz(gamma[:-1], gamma[1:]))
    left = float(gamma[0] - weights @ gamma[1:])
    if not 1e-6 * gamma[0] < left <= gamma[0]:  # too few values
        return np.zeros(_MEMORY), float(np.sqrt(gamma[0]))
    return weights, float(np.sqrt(left))


def _physical(found: _Estimation, fixed: Array | None) -> tuple[Array, list[str]]:
    """Parameters (P,) that a robot can have, and remarks."""
    equations, mapping = found.equations, found.structure.mapping
    columns, model = equations.columns, equations.model
    given, estimates = equations.known, found.estimates
    std = np.where(found.is_shown, np.sqrt(np.diag(found.covariance)), np.inf)
    alone = {int(i): k for k, i in enumerate(found.structure.independent)
             if np.abs(mapping[k]).sum() <= 1.0 + 1e-6 and found.is_shown[k]}  # fmt: skip
    prior, least = np.ones(len(columns)), np.full(len(columns), -np.inf)
    for i, column in enumerate(columns):
        if i in alone and column.group not in ('bodies', 'payload'):
            k = alone[i]
            given[i], prior[i] = estimates[k], _FLAT * std[k] + 1e-12
            if column.name in ('stiffness', 'armature') and estimates[k] < 2.0 * std[k]:
                raise IdentificationError(
                    f'{column.owner}: the {column.name} comes out as {estimates[k]:.4g} +- '
                    f'{std[k]:.2g} {column.unit}, expected a positive value. Check signs and '
                    'units of positions and torques of the motors, and which joint is which.'
                )
        elif column.group not in ('bodies', 'payload'):
            prior[i] = max(abs(given[i]), 1.0)
        if column.name in ('armature', *FRICTION, 'stiffness', 'damping'):
            least[i] = 0.0
            given[i] = max(given[i], 0.0)
    bodies, scales = [], []
    if equations.payload_link is not None and 'payload' in equations.first:
        first = equations.first['payload']
        place = next((k for i, k in alone.items() if i == first), None)
        mass = estimates[place] if place is not None else 1.0
        if place is not None and mass < -3.0 * std[place]:
            raise IdentificationError(
                f'The payload of {equations.payload_link!r} comes out as {mass:.4g} +- '
                f'{std[place]:.2g} kg: does the given model hold it already?'
            )
        bodies, scales = [first], [(max(mass, 0.1), 0.1)]
        fixed = None
    elif 'bodies' in equations.first:
        first = equations.first['bodies']
        bodies = [first + 10 * k for k in range(model.n_bodies)]
        whole = given[first : first + 10 * model.n_bodies].reshape(-1, 10)
        scales = [body_scale(own, whole) for own in whole]
    for first, (mass, radius) in zip(bodies, scales):
        prior[first : first + 10] = mass * np.array([1.0, *[radius] * 3, *[radius**2] * 6])
    shares = np.zeros((len(bodies), 10)) if fixed is None else np.asarray(fixed)
    target = found.information @ estimates
    beta, edge = consistent(
        found.information @ mapping, target, given, prior, bodies, scales, shares, least
    )
    remarks = []
    if edge and 'bodies' in equations.first:
        names = listed(model.body_names[k] for k in edge)
        remarks.append(f'At the boundary of what bodies can have: those behind {names}.')
    moved = found.information @ (mapping @ beta - estimates)
    if float(moved @ moved) > 2.0 * len(moved) + 20.0:
        remarks.append(
            'No parameters that bodies can have fit as well as the estimated ones: they miss by '
            f'{np.sqrt(float(moved @ moved) / len(moved)):.2g} standard deviations. Something '
            'that is not in the equations takes part.'
        )
    return beta, remarks


def _updated(
    equations: Equations, beta: Array, smoothing: float, payload_link: str | None
) -> tuple[RobotModel, Actuators | None, Payload | None]:
    """Robot, drives and payload with the parameters."""
    model, actuators, first = equations.model, equations.actuators, equations.first
    names, payload = model.joint_names, None
    values = {name: beta[equations.of(name)] for name in (*FRICTION, 'armature', 'offset', *SPRING)
              if name in first}  # fmt: skip
    has_friction = any(name in first for name in FRICTION)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        if 'bodies' in first:
            own = equations.of('bodies', 10 * model.n_bodies)
            model = model.with_inertial_parameters(beta[own])
        if 'payload' in first and payload_link is not None:
            _, com, inertia = inertia_parts(
                payload_link, parametric_inertia(beta[equations.of('payload', 10)])
            )
            mass, com, inertia = float(beta[first['payload']]), np.array(com), np.array(inertia)
            payload = Payload(payload_link, mass, com, inertia)
            model = model.with_payload(*payload)
    drives: dict[str, Actuator] = {} if actuators is None else dict(actuators.by_joint)
    for j, name in enumerate(names):
        terms: list[FrictionLaw] = []
        if 'viscous' in values and values['viscous'][j] > 0.0:
            terms.append(Viscous(values['viscous'][j]))
        if 'coulomb' in values and values['coulomb'][j] > 0.0:
            terms.append(Coulomb(values['coulomb'][j], smoothing))
        if equations.elastic[j]:
            drive = equations.drive(j)
            changes: dict[str, Any] = {}
            if 'armature' in values:
                changes['motor_inertia'] = values['armature'][j]
            if 'damping' in values:
                changes['damping'] = values['damping'][j]
            spring = {k: v[j] for k, v in values.items() if k in SPRING[:2]}
            kind = CubicSpring if 'cubic_stiffness' in spring else type(drive.spring)
            law: Any = drive.spring
            before = {f.name: getattr(law, f.name) for f in fields(law)}
            changes['spring'] = kind(**{**before, **spring})
            if has_friction:
                changes['friction'] = Sum(tuple(terms)) if terms else None
            drives[name] = replace(drive, **changes)
            continue
        if 'offset' in values:
            terms.append(Offset(values['offset'][j]))
        if has_friction or terms:
            model = model.with_friction({name: Sum(tuple(terms)) if terms else None})
        if 'armature' in values:
            rigid = drives.get(name)
            if isinstance(rigid, RigidDrive):
                drives[name] = replace(rigid, motor_inertia=values['armature'][j])
            else:
                model = model.with_armature({name: values['armature'][j]})
    return model, None if actuators is None else Actuators(model, drives), payload


def _residuals(
    equations: Equations, beta: Array, known: Equations,
    recordings: Mapping[str, Sequence[Stretch]],
) -> tuple[Residual, ...]:  # fmt: skip
    """What the given and the identified parameters leave of recordings."""
    found = []
    for name, stretches in recordings.items():
        sums: dict[str, list[Array]] = {}
        for stretch in stretches:
            pairs = zip(equations.rows(stretch), known.rows(stretch))
            for rows, plain in pairs:
                after, before = rows.y - rows.X @ beta, plain.y
                part = [np.where(rows.is_used, v, 0.0) ** 2 for v in (rows.signal, before, after)]
                sums.setdefault(rows.kind, []).append(
                    np.stack([rows.is_used.sum(axis=0), *(v.sum(axis=0) for v in part)])
                )
        for kind, parts in sums.items():
            count, *squares = np.sum(parts, axis=0)
            with np.errstate(invalid='ignore', divide='ignore'):
                found.append(Residual(name, kind, *(np.sqrt(v / count) for v in squares)))
    return tuple(found)
