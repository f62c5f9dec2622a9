"""Motion and torque of all motors of a robot along a motion of its joints."""

from __future__ import annotations

import reprlib
import warnings
from collections.abc import Mapping, Sequence
from typing import NamedTuple, NoReturn, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.actuators.assignment import Actuators, check_mapping
from hodyn_ros.actuators.drives import in_units_of
from hodyn_ros.checks import MOST_DERIVATIVES, checked_number, finite_array
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import ActuatorError, MotionError
from hodyn_ros.kinematics.motions import checked_motion
from hodyn_ros.model.robot import ModelWarning
from hodyn_ros.names import listed
from hodyn_ros.typing import Array

# Part of a deflection that the series of a damper may be wrong by without a warning.
_DAMPED_ERROR = 1e-4


class MotorMotion(NamedTuple):
    """Motion and torque of all m motors, in the order of `Actuators.motor_names`.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.actuators import Actuators, SeriesElastic, motor_motion
    >>> model = RobotModel.from_urdf('two_link')
    >>> drives = Actuators(model, {'elbow': SeriesElastic(1000.0, 0.1)})
    >>> motors = motor_motion(drives, np.zeros((5, 2)))
    >>> motors.position.shape, motors.torque.round(2), motors.deflection[0].round(4)
    ((3, 2), array([[44.14,  9.81]]), array([0.    , 0.0098]))
    """

    position: Array
    """`[..., r, :]` is the r-th time derivative of the positions, shape (..., R, m)."""
    torque: Array
    """Motor torques and their derivatives, shape (..., T, m); T = R - 2, or 0 if that is less."""
    deflection: Array
    """Deflections of the n joints and their derivatives, (..., R, n); zero for rigid joints.

    For a joint with two motors it is the mean of both springs; `spring_deflections` has each.
    """


def motor_motion(
    actuators: Actuators,
    motion: ArrayLike,
    effort: ArrayLike | None = None,
    wrench: Wrench | Sequence[Wrench] | None = None,
    stiffness: Mapping[str, ArrayLike] | None = None,
    order: int | None = 0,
) -> MotorMotion:
    """Motion and torque of all motors that make the joints move so.

    Parameters
    ----------
    actuators : Actuators
    motion : array-like, shape (..., K, n)
        Joint motion in model order, see `inverse_dynamics`.
    effort : array-like, shape (..., E, n), optional
        Joint torques and their derivatives; by default those of `inverse_dynamics`, E = K - 2.
    wrench : Wrench or sequence of Wrench, optional
        For `inverse_dynamics`, if the effort is not given.
    stiffness : mapping of joint name to array-like, shape (..., S), optional
        Series of the stiffness of each joint that can choose it [N m/rad].
    order : int, optional
        Highest derivative of the motor torque that is needed, by default the torque itself; a
        motion or a stiffness of too low an order for it is refused. None: the result has what they
        determine, be it only positions.

    Returns
    -------
    MotorMotion
        R is the number of orders that all motors have: E for springs, K if all joints are rigid.
        K = 5 gives motor positions to accelerations and the torque.

    Raises
    ------
    DeflectionError
        If a spring cannot have the torque or stiffness, or is deflected too far; its attributes
        say which joint and sample.
    MotionError
        If motion or effort have wrong shapes or values, or the order is too low.
    JointNameError
        If a joint is unknown.
    ActuatorError
        If something is missing or given for a joint that cannot use it.

    Examples
    --------
    Positions to accelerations of the motors of an arm that is held, and their torques:

    >>> import numpy as np
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.actuators import Actuators, SeriesElastic, motor_motion
    >>> model = RobotModel.from_urdf('two_link')
    >>> drives = Actuators(model, {name: SeriesElastic(1000.0, 0.1) for name in model.joint_names})
    >>> motors = motor_motion(drives, np.zeros((5, 2)))
    >>> motors.position.round(3) + 0.0, motors.torque.round(2)
    (array([[0.044, 0.01 ],
           [0.   , 0.   ],
           [0.   , 0.   ]]), array([[44.14,  9.81]]))
    """
    arrays = actuators.arrays
    q, Q = _motion_and_effort(actuators, motion, effort, wrench)
    S = _stiffness(actuators, stiffness)
    if order or order is False:
        checked_number('The order', order, MotionError, least=0, whole=True)
    given = [q, Q] if S is None else [q, Q, S]
    if not q.shape[:-2] == Q.shape[:-2] == given[-1].shape[:-2]:
        given = _broadcast(given)
    moved = MotorMotion(*arrays.move(*given))
    if order is not None and moved.torque.shape[-2] <= order:
        _refuse_low_order(moved.position.shape[-2], order, q, Q, stiffness)
    if arrays.damping.any():
        _warn_of_dampers(actuators, Q)
    return moved


def _motion_and_effort(
    actuators: Actuators,
    motion: ArrayLike,
    effort: ArrayLike | None,
    wrench: Wrench | Sequence[Wrench] | None,
) -> tuple[Array, Array]:
    """Motion (..., K, n) and effort (..., E, n); whether they are finite `move` looks at."""
    model = actuators.model
    if effort is None:
        # It checks the motion and what comes out.
        Q = inverse_dynamics(model, motion, wrench)
        return np.asarray(motion, dtype=np.float64), Q
    if wrench is not None:
        raise ActuatorError('Both effort and wrench are given; the effort must include it.')
    q = motion if _is_plain(motion) else finite_array('The motion', motion, MotionError)
    Q = effort if _is_plain(effort) else finite_array('The effort', effort, MotionError)
    if (
        q.ndim < 2
        or q.shape[-1] != model.n_joints
        or not 0 < q.shape[-2] <= MOST_DERIVATIVES
    ):
        checked_motion(model, motion, lowest_K=1)
    if Q.ndim < 2 or Q.shape[-1] != model.n_joints or Q.shape[-2] < 1:
        raise MotionError(
            f'The effort has shape {Q.shape}, expected (..., E, {model.n_joints}) with E >= 1.'
        )
    return q, Q


def _is_plain(values: ArrayLike) -> TypeGuard[Array]:
    """Whether values are an array that needs no conversion."""
    return type(values) is np.ndarray and values.dtype == np.float64


def _stiffness(actuators: Actuators, given: Mapping[str, ArrayLike] | None) -> Array | None:
    """Series (..., S, v) of the stiffness of the joints that can choose it; None without any."""
    names = [item.name for item in actuators.variable]
    if given is None and not names:
        return None
    if not isinstance(given, Mapping) or [*given] != names:
        given = _checked_names(actuators, given)
    found = [_stiffness_of(name, given[name]) for name in names]
    if not found:
        return None
    if len({series.shape for series in found}) > 1:
        S = min(series.shape[-1] for series in found)
        found = [x[..., 0] for x in _broadcast([x[..., :S, None] for x in found])]
    return np.stack(found, axis=-1)


def _stiffness_of(name: str, values: ArrayLike) -> Array:
    """Series (..., S) of the stiffness of a joint."""
    what = f'Joint {name!r}: the stiffness'
    series = values if _is_plain(values) else finite_array(what, values, ActuatorError)
    if not series.shape or not series.shape[-1]:
        raise ActuatorError(
            f'{what} is {reprlib.repr(values)}, expected finite numbers of shape (..., S), '
            'with its derivatives along the last axis.'
        )
    return series


def _checked_names(
    actuators: Actuators, given: Mapping[str, ArrayLike] | None
) -> Mapping[str, ArrayLike]:
    """Stiffness of all joints that can choose it, and no others; else it is refused."""
    given = {} if given is None else given
    kind = 'joint names to series, shape (..., S)'
    check_mapping('The stiffness is', given, kind, actuators.model)
    able = {item.name: item.joint for item in actuators.variable}
    if unused := [name for name in given if name not in able]:
        raise ActuatorError(
            f'A stiffness is given for {listed(unused)}, whose actuators cannot choose it.'
        )
    if missing := [name for name in able if name not in given]:
        units = {in_units_of(actuators.model, able[name], 'N m/rad') for name in missing}
        raise ActuatorError(
            f'The stiffness of {listed(missing)} is missing; expected its series, shape (..., S) '
            f'[{" or ".join(sorted(units))}].'
        )
    return given


def _broadcast(arrays: Sequence[Array]) -> list[Array]:
    """Arrays with the same axes before the last two; a `MotionError` if they do not fit."""
    leading = [x.shape[:-2] for x in arrays]
    try:
        batch = np.broadcast_shapes(*leading)
    except ValueError:
        raise MotionError(
            f'The leading axes {listed(leading)} of motion, effort and stiffness do not fit.'
        ) from None
    return [np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in arrays]


def _warn_of_dampers(actuators: Actuators, Q: Array) -> None:
    """Warn of the damper that is slowest for its torques (..., E, n), if its error matters.

    The series of the slow motion has terms T^m x^(m), T = D / k. The first one that is left out
    follows from how much smaller the last one is than the largest.
    """
    E = Q.shape[-2]
    if E == 1 or not Q.size:
        return
    slowness = actuators.arrays.damping / actuators.arrays.stiffness
    sizes = np.abs(Q).reshape(-1, *Q.shape[-2:]).max(axis=0)
    terms = sizes * slowness ** np.arange(E)[:, None]
    largest = terms[:-1].max(axis=0)
    share = np.divide(terms[-1], largest, out=np.zeros(len(largest)), where=largest > 0.0)
    errors = share ** (E / (E - 1))
    worst = int(errors.argmax())
    if errors[worst] > _DAMPED_ERROR:
        # To a power of ten, so that a stream does not say it anew with every sample.
        most = min(10.0 ** np.ceil(np.log10(errors[worst])), 1.0)
        warnings.warn(
            f'Joint {actuators.driven[worst].name!r}: its damper follows within '
            f'{slowness[worst]:.2g} s, which is slow for this motion: the deflection is wrong by '
            f'up to {100 * most:.2g} %. Expected less damping, a stiffer spring, a slower motion '
            'or more of its derivatives.',
            ModelWarning,
            stacklevel=3,
        )


def _refuse_low_order(
    R: int,
    order: int,
    q: Array,
    Q: Array,
    stiffness: Mapping[str, ArrayLike] | None,
) -> NoReturn:
    """Refuse input that does not determine the derivative of the motor torques that is needed."""
    what = f'Derivative {order} of the motor torques' if order else 'The motor torques'
    given = [f'a motion with K = {q.shape[-2]}']
    for name, series in (stiffness or {}).items():
        S = np.shape(series)[-1]
        given += (
            [f'a stiffness of joint {name!r} with S = {S}'] if S == R < Q.shape[-2] else []
        )
    more = order + 3 - R
    raise MotionError(
        f'{what} cannot be computed: {listed(given)} (and what else is given) determines the '
        f'motor positions up to derivative {R - 1} only; expected K >= {q.shape[-2] + more}, and '
        f'effort and stiffness (S = {order + 3}, zeros where it is constant) to match where they '
        'are given. With order=None there are positions alone.'
    )
