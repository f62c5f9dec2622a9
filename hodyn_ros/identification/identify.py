"""A robot as recordings show it: from base parameters to a model with drives that can be."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.drives import Actuator, RigidDrive, SeriesElastic
from hodyn_ros.actuators.springs import CubicSpring, LinearSpring
from hodyn_ros.checks import checked_number
from hodyn_ros.errors import IdentificationError
from hodyn_ros.identification.consistency import body_scale, consistent, solver_library
from hodyn_ros.identification.doubt import Doubt, doubted
from hodyn_ros.identification.equations import Equations, Parameter
from hodyn_ros.identification.estimation import (
    Estimation,
    scale_remarks,
)
from hodyn_ros.identification.hypotheses import last_link
from hodyn_ros.identification.recording import (
    Preparation,
    Recording,
    Stretch,
    held_out,
    measured_in,
    prepared,
    several,
)
from hodyn_ros.identification.results import Identification, Residual
from hodyn_ros.model.friction import (
    Coulomb,
    FrictionLaw,
    Offset,
    Stribeck,
    Sum,
    Viscous,
)
from hodyn_ros.model.inertia import Payload, inertia_parts, parametric_inertia
from hodyn_ros.model.robot import ModelWarning, RobotModel
from hodyn_ros.names import FRICTION, SPRING
from hodyn_ros.typing import Array

DEFAULT = ('bodies', 'armature', 'viscous', 'coulomb', 'offset', 'delay')
DEFAULT_OF_SPRINGS = ('stiffness', 'damping')

_WORSE = 4.0
_FLAT = 1e3  # prior of what recordings determine, over its deviation


def identify(
    model: RobotModel,
    recordings: Recording | Sequence[Recording],
    parameters: Sequence[str] | None = None,
    *,
    actuators: Actuators | None = None,
    link: str | None = None,
    validation: Recording | Sequence[Recording] | None = None,
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
        Groups of `GROUPS`. By default 'bodies' (or 'payload' with `link`), 'armature',
        'viscous', 'coulomb', 'offset' and 'delay', with elastic joints 'stiffness' and 'damping'.
    actuators : Actuators, optional
        Says which joints are elastic; the values are a first guess.
    link : str, optional
        Link that carries what 'payload' stands for.
    validation : Samples, path, or sequence of them
        Recordings that are not used but compared with; by default a fifth of `recordings`, in
        pieces of a tenth. Empty: nothing is.
    smoothing : float
        Of `Coulomb` and `Stribeck` friction in the result, which torque rates need [rad/s] or
        [m/s]; identified are the laws without it.
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
        robot, or lead to parameters that no robot has; if a swap of encoders or another time
        explains them better, a stiffness is not larger than its deviation, or what was held out
        is met worse than by the given model.
    JointNameError, FileError, MotionError
        If a recording lacks joints or cannot be read.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.identification import identify, simulated_recording
    >>> from hodyn_ros.trajectory import fit_spline
    >>> model = RobotModel.from_urdf('two_link')
    >>> swing = fit_spline(range(5), [[0, 0], [1, -1], [-1, 1], [1, 0], [0, 0]])
    >>> recording = simulated_recording(model.with_payload('tool', 0.5), swing)
    >>> found = identify(model, recording, ['payload'], link='tool')
    >>> print(f'{found.payload.mass:.3f} kg at {found.payload.link}')
    0.500 kg at tool
    """
    parameters = _asked_for(parameters, actuators, link)
    checked_number('smoothing', smoothing, IdentificationError, least=0.0)
    solver_library()
    equations = Equations(model, actuators, link or last_link(model))
    asked = equations.asked(parameters)
    preparation = Preparation(model, equations.elastic, bandwidth)
    used, held, flaws = _used_and_held(preparation, recordings, validation)
    measured = measured_in([stretch for found in used.values() for stretch in found])
    channels = equations.channels(measured)
    rows = [
        equations.rows(stretch, channels) for found in used.values() for stretch in found
    ]
    scales = scale_remarks(equations, measured, rows)
    found = Estimation(equations, parameters, measured, rows)
    doubt = _fitting_doubt(found, equations.link)
    try:
        full, remarks = _physical(found, fixed)
    except IdentificationError as error:
        reasons = [str(error), *scales, doubt.sentence]
        raise IdentificationError(' '.join(filter(None, reasons))) from None
    result, drives, payload = _updated(found, full, smoothing)
    residuals = _residuals(found, full, equations, used)
    unseen = _residuals(found, full, equations, held)
    _refuse_worse(unseen, len(found.z) / max(found.used, 1), doubt)
    return Identification(
        result,
        drives,
        payload,
        found.parameters(),
        tuple(equations.columns[k] for k in asked),
        found.structure.mapping,
        full,
        found.covariance,
        residuals,
        unseen,
        doubt,
        (*flaws, *scales, *filter(None, [doubt.sentence]), *found.remarks(), *remarks),
    )


def _used_and_held(
    preparation: Preparation,
    recordings: Recording | Sequence[Recording],
    validation: Recording | Sequence[Recording] | None,
) -> tuple[dict[str, list[Stretch]], dict[str, list[Stretch]], list[str]]:
    """Stretches that are used and those to compare with, by recordings, and remarks."""
    given = several(recordings)
    if not given:
        raise IdentificationError('There are no recordings.')
    used, flaws = prepared(preparation, given), preparation.remarks()
    if validation is None:
        return *held_out(used), flaws
    held = prepared(preparation, several(validation))
    if held:
        measured_in([stretch for each in held.values() for stretch in each])
    return used, held, flaws


def _fitting_doubt(found: Estimation, link: str | None) -> Doubt:
    """Doubt of an estimation, whose covariance then holds what is left and has a cause, or none.

    Raises
    ------
    IdentificationError
        If it is a mistake in the recordings.
    """
    doubt = doubted(found, link)
    if doubt.is_fault:
        raise IdentificationError(f'{doubt.sentence} Correct the recordings.')
    wider = found.covariance * np.outer(doubt.factors, doubt.factors)
    found.covariance = wider + np.outer(doubt.shift, doubt.shift)
    return doubt


def _asked_for(
    parameters: Sequence[str] | None, actuators: Actuators | None, link: str | None
) -> Sequence[str]:
    """Groups of parameters, by default those that fit the robot."""
    if parameters is None:
        parameters = DEFAULT if link is None else ('payload', *DEFAULT[2:])
        drives = () if actuators is None else actuators.by_joint.values()
        if any(isinstance(drive, SeriesElastic) for drive in drives):
            parameters = (*parameters, *DEFAULT_OF_SPRINGS)
    if 'payload' in parameters and link is None:
        raise IdentificationError('A payload is asked for: name the link that carries it.')
    if {'bodies', 'payload'} <= set(parameters):
        raise IdentificationError('A payload is part of its body: ask for one of the two.')
    return parameters


def _refuse_impossible(column: Parameter, value: float, std: float) -> None:
    """Refuse a stiffness or an inertia that is negative, and a stiffness that is not known."""
    told = f'{column.owner}: the {column.name} comes out as {value:.4g} +- {std:.2g} {column.unit}'
    if column.name in ('stiffness', 'armature') and value < -3.0 * std:
        raise IdentificationError(
            f'{told}, which no joint has. Check signs and units of positions and torques of the '
            'motors, and which joint is which.'
        )
    if column.name == 'stiffness' and std >= value:
        raise IdentificationError(
            f'{told}, which is not known to be any. Record a motion that turns this joint quickly '
            '(hodyn excite --target springs), or do not ask for it.'
        )


def _physical(found: Estimation, fixed: Array | None) -> tuple[Array, list[str]]:
    """Parameters (P,) that a robot can have, and remarks.

    Parameters
    ----------
    found : Estimation
    fixed : ndarray, shape (n_bodies, 10), or None
        See `identify`.

    Returns
    -------
    parameters : ndarray, shape (P,)
    remarks : list of str

    Raises
    ------
    IdentificationError
        If a parameter comes out as no robot has it, or the solver finds none.
    """
    mapping = found.structure.mapping
    given, prior, least, alone = _centre(found)
    bodies, scales = found.of('bodies')[::10].tolist(), []
    if bodies:
        whole = given[found.of('bodies')].reshape(-1, 10)
        scales = [body_scale(own, whole) for own in whole]
    elif bodies := found.of('payload')[::10].tolist():
        scales, fixed = [_payload_scale(found, alone.get(bodies[0]))], None
    for first, (mass, radius) in zip(bodies, scales):
        prior[first : first + 10] = mass * np.array([1.0, *[radius] * 3, *[radius**2] * 6])
    shares = np.zeros((len(bodies), 10)) if fixed is None else np.asarray(fixed)
    target = found.information @ found.estimates
    beta, missed = consistent(
        found.information @ mapping, target, given, prior, bodies, scales, shares, least
    )
    remarks = []
    if missed**2 > 2.0 * len(mapping) + 20.0:
        remarks.append(
            'No parameters that bodies can have fit as well as the estimated ones: they miss by '
            f'{missed / np.sqrt(len(mapping)):.2g} standard deviations. Something that is not in '
            'the equations takes part.'
        )
    return np.maximum(beta, least), remarks


def _centre(found: Estimation) -> tuple[Array, Array, Array, dict[int, int]]:
    """Centre, deviations and lower bounds (P,) of a prior of the parameters but for bodies.

    Estimates of parameters that are shown alone are its centre; the last is their places among
    the base parameters.
    """
    columns, mapping = found.asked_columns, found.structure.mapping
    given, estimates, std = found.equations.known[found.asked], found.estimates, found.std
    alone = {
        int(i): k
        for k, i in enumerate(found.places)
        if np.abs(mapping[k]).sum() <= 1.0 + 1e-6 and found.is_shown[k]
    }
    prior, least = np.ones(len(columns)), np.full(len(columns), -np.inf)
    for i, column in enumerate(columns):
        if i in alone and column.group not in ('bodies', 'payload'):
            k = alone[i]
            if std[k] < max(abs(estimates[k]), abs(given[i]), 1.0):
                given[i], prior[i] = estimates[k], _FLAT * std[k] + 1e-12
            _refuse_impossible(column, float(estimates[k]), float(std[k]))
        elif column.group not in ('bodies', 'payload'):
            prior[i] = max(abs(given[i]), 1.0)
        if column.name in ('armature', *FRICTION, *SPRING):
            least[i] = 0.0
            given[i] = max(given[i], 0.0)
    return given, prior, least, alone


def _payload_scale(found: Estimation, place: int | None) -> tuple[float, float]:
    """Mass [kg] and radius [m] by which a payload is measured; `place` is that of its mass."""
    if place is None:
        return 1.0, 0.1
    mass, std = found.estimates[place], found.std[place]
    if mass < -3.0 * std:
        raise IdentificationError(
            f'The payload of {found.equations.link!r} comes out as {mass:.4g} +- '
            f'{std:.2g} kg: does the given model hold it already?'
        )
    return max(mass, 0.1), 0.1


def _updated(
    found: Estimation, beta: Array, smoothing: float
) -> tuple[RobotModel, Actuators | None, Payload | None]:
    """Robot, drives and payload with the parameters."""
    equations, actuators = found.equations, found.equations.actuators
    model, payload = _with_bodies(found, beta)
    values = {
        name: beta[found.of(name)]
        for name in (*FRICTION, 'armature', 'offset', *SPRING)
        if len(found.of(name))
    }
    drives: dict[str, Actuator] = {} if actuators is None else dict(actuators.by_joint)
    velocity = np.exp(found.of_base(found.z)[equations.places['stribeck_velocity']])
    for j, name in enumerate(model.joint_names):
        own = {what: each[j] for what, each in values.items()}
        terms = _terms(own, velocity[j], smoothing)
        law = Sum(tuple(terms)) if terms else None
        is_new = found.has_friction or law is not None
        rigid = drives.get(name)
        if equations.elastic[j]:
            drive = _elastic(equations.drive(j), own)
            drives[name] = replace(drive, friction=law) if is_new else drive
            continue
        if is_new:
            model = model.with_friction({name: law})
        if 'armature' in own and isinstance(rigid, RigidDrive):
            drives[name] = replace(rigid, motor_inertia=own['armature'])
        elif 'armature' in own:
            model = model.with_armature({name: own['armature']})
    return model, None if actuators is None else Actuators(model, drives), payload


def _with_bodies(found: Estimation, beta: Array) -> tuple[RobotModel, Payload | None]:
    """Robot with bodies or a payload of the parameters, and the payload."""
    model, link = found.equations.model, found.equations.link
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        if len(own := found.of('bodies')):
            model = model.with_inertial_parameters(beta[own])
        if link is None or not len(own := found.of('payload')):
            return model, None
        mass, com, inertia = inertia_parts(link, parametric_inertia(beta[own]))
        rows = tuple(map(tuple, np.asarray(inertia).tolist()))
        payload = Payload(link, mass, tuple(np.asarray(com).tolist()), rows)
        return model.with_payload(*payload), payload


def _terms(
    own: Mapping[str, float], stribeck_velocity: float, smoothing: float
) -> list[FrictionLaw]:
    """Laws of friction with parameters of a joint, those above zero and the offset."""
    terms: list[FrictionLaw] = []
    if own.get('viscous', 0.0) > 0.0:
        terms.append(Viscous(own['viscous']))
    if own.get('coulomb', 0.0) > 0.0:
        terms.append(Coulomb(own['coulomb'], smoothing))
    if own.get('stribeck', 0.0) > 0.0:
        terms.append(Stribeck(own['stribeck'], float(stribeck_velocity), smoothing))
    if 'offset' in own:
        terms.append(Offset(own['offset']))
    return terms


def _elastic(drive: SeriesElastic, own: Mapping[str, float]) -> SeriesElastic:
    """Drive of a joint with parameters of its own."""
    law: Any = drive.spring
    constants = {f.name: getattr(law, f.name) for f in fields(law)}
    for name, constant in (('stiffness', 'stiffness'), ('cubic_stiffness', 'cubic')):
        if name in own:
            constants[constant] = own[name]
    kind = CubicSpring if 'cubic' in constants else LinearSpring
    changes = {'motor_inertia': 'armature', 'damping': 'damping'}
    known: dict[str, Any] = {
        field: own[name] for field, name in changes.items() if name in own
    }
    if kind is not LinearSpring:
        known['damping'] = 0.0  # drives have dampers beside linear springs
    return replace(drive, spring=kind(**constants), **known)


def _refuse_worse(unseen: Sequence[Residual], taken: float, doubt: Doubt) -> None:
    """Refuse a result that meets what was held out worse than the given model.

    `taken` is the number of parameters over that of rows, by which even a right one may be worse.
    """
    known = [(r.before, r.after) for r in unseen if r.kind != 'spring']
    before, after = (
        (np.sqrt(np.nansum(np.square(v))) for v in zip(*known)) if known else (0, 0)
    )
    if after > before * (1.0 + _WORSE * taken):
        raise IdentificationError(
            f'What was held out is met worse than by the given model: {after:.3g} beside '
            f'{before:.3g} N m of torques are left, all joints together. Ask for other '
            'parameters, or record a motion that shows them (hodyn excite). '
            f'{doubt.sentence}'.rstrip()
        )


def _residuals(
    found: Estimation,
    full: Array,
    given: Equations,
    recordings: Mapping[str, Sequence[Stretch]],
) -> tuple[Residual, ...]:
    """What the given and the identified parameters leave of recordings.

    Parameters
    ----------
    found : Estimation
    full : ndarray, shape (P,)
        Identified parameters.
    given : Equations
        Of the given model.
    recordings : mapping of str to sequence of Stretch

    Returns
    -------
    tuple of Residual
        One for each recording and kind of rows.
    """
    residuals, channels = [], found.channels
    beta = found.of_base(found.z)
    beta[found.asked] = np.where(given.is_linear[found.asked], full, beta[found.asked])
    for name, stretches in recordings.items():
        count, squares = np.zeros(len(channels.kinds)), np.zeros((4, len(channels.kinds)))
        for stretch in stretches:
            rows = found.rows_of(stretch)
            plain = rows if given is found.equations else given.rows(stretch, channels)
            every = (
                rows.signal,
                given.left(plain, given.known),
                found.left(rows, beta),
                np.sqrt(rows.resolved),
            )
            used = found.is_used(rows)
            squares += (np.where(used, every, 0.0) ** 2).sum(axis=1)
            count += used.sum(axis=0)
        with np.errstate(invalid='ignore', divide='ignore'):
            sizes = np.sqrt(squares / count)
        for kind in dict.fromkeys(channels.kinds.tolist()):
            own = channels.kinds == kind
            table = np.full((4, given.model.n_joints), np.nan)
            table[:, channels.joints[own]] = sizes[:, own]
            residuals.append(Residual(name, kind, *table))
    return tuple(residuals)
