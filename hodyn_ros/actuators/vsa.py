"""Variable stiffness actuators: two motors set the torque and the stiffness of one joint.

From the motion of the joint and the series of its torque Q and of its stiffness sigma follow the
motions of both motors, y_i = c_i q + d_i, with the deflections d_i of the model, and their torques

    tau_i = B_i y_i^(2) + friction(y_i^(1)) + t_i,

where t_i is what the springs exert on motor i. Motor i is meant behind its gear.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.actuators.actuator import Actuator, Motors, checked_friction, motor_torque
from hodyn_ros.actuators.finite import finite_motors
from hodyn_ros.actuators.vsa_model import Elastic, VsaModel, checked_pair, series_of
from hodyn_ros.errors import ActuatorError, MotionError
from hodyn_ros.model.friction import FrictionLaw

Array = NDArray[np.float64]


@dataclass(frozen=True)
class VariableStiffness(Actuator):
    """Two motors, and springs between them and the joint.

    Attributes
    ----------
    model : VsaModel
        The springs: `Qbmove`, `DlrBavs`, `AwasII` or a model of one's own.
    motor_inertia : tuple of float, length 2
        Reflected inertia of each motor [kg m^2], or what belongs to its coordinate; one number
        stands for both.
    friction : FrictionLaw or pair of them, optional
        Friction of each motor in terms of its velocity; one law stands for both.

    Raises
    ------
    ActuatorError
        If the inertia is not above zero, or a model or friction is none.
    """

    model: VsaModel
    motor_inertia: tuple[float, float]
    friction: FrictionLaw | tuple[FrictionLaw | None, FrictionLaw | None] | None = None

    motor_suffixes = ('_motor1', '_motor2')
    needs_stiffness = True

    def __init__(
        self,
        model: VsaModel,
        motor_inertia: float | tuple[float, float],
        friction: FrictionLaw | tuple[FrictionLaw | None, FrictionLaw | None] | None = None,
    ) -> None:
        if not isinstance(model, VsaModel):
            raise ActuatorError(
                f'VariableStiffness: model is {model!r}, expected a VsaModel such as '
                'Qbmove(a=6.7, k=0.022).'
            )
        inertia = checked_pair('VariableStiffness', 'motor_inertia', motor_inertia)
        laws = friction if isinstance(friction, (tuple, list)) else (friction, friction)
        if len(laws) != 2:
            raise ActuatorError(
                f'VariableStiffness: friction has {len(laws)} laws, expected one for each of the '
                'two motors, or one for both.'
            )
        for law in laws:
            checked_friction('VariableStiffness', law)
        object.__setattr__(self, 'model', model)
        object.__setattr__(self, 'motor_inertia', inertia)
        object.__setattr__(self, 'friction', tuple(laws))

    @property
    def motor_inertias(self) -> tuple[float, ...]:
        """Reflected inertia of both motors [kg m^2]."""
        return self.motor_inertia

    @property
    def turns_with_joint(self) -> tuple[bool, ...]:
        """Whether each motor turns with the joint; one that only sets the stiffness does not."""
        return tuple(c != 0.0 for c in self.model.link_coupling)

    def motors(
        self, q: ArrayLike, effort: ArrayLike, stiffness: ArrayLike | None = None
    ) -> Motors:
        """Motion and torque of both motors; see `Actuator.motors`.

        Parameters
        ----------
        q : array-like, shape (..., K)
        effort : array-like, shape (..., E)
        stiffness : array-like, shape (..., S)
            [N m/rad]. A constant stiffness needs its derivatives too, which are zero.

        Returns
        -------
        Motors
            Both motors, with R = min(K, E, S) orders.

        Raises
        ------
        DeflectionError
            If effort and stiffness are out of reach; the message has the reachable interval. Also
            if deflections are too large to compute with.
        ActuatorError
            If no stiffness is given, or a motor torque is too large to compute with.
        MotionError
            If shapes do not fit or values are not finite.
        """
        if stiffness is None:
            raise ActuatorError(
                'A joint with variable stiffness needs the series of its stiffness, '
                'shape (..., S) [N m/rad], beside motion and effort; none is given.'
            )
        given = {'q': q, 'effort': effort, 'stiffness': stiffness}
        series = [series_of(name, value) for name, value in given.items()]
        R = min(values.shape[-1] for values in series)
        cut = [values[..., :R] for values in series]
        if not cut[0].shape == cut[1].shape == cut[2].shape:
            try:
                cut = list(np.broadcast_arrays(*cut))
            except ValueError:
                shapes = ', '.join(f'{name} {f.shape}' for name, f in zip(given, series))
                raise MotionError(f'Leading axes do not fit: {shapes}.') from None
        with np.errstate(over='ignore', invalid='ignore', divide='ignore'):
            motors = self._motors(cut[0], self.model.deflection_series(cut[1], cut[2]))
        return finite_motors(self, motors, q=cut[0], effort=cut[1], stiffness=cut[2])

    def elastic(self, q: ArrayLike, position: ArrayLike) -> Elastic:
        """Compute what the springs do at a motion of joint and motors: the forward model.

        Parameters
        ----------
        q : array-like, shape (..., K)
            Series of the joint position [rad].
        position : array-like, shape (..., 2, K)
            Series of the positions of the motors.

        Returns
        -------
        Elastic
        """
        q, position = series_of('q', q), series_of('position', position)
        return self.model.series(position - self._carried(q))

    def stiffness_range(self, effort: ArrayLike) -> tuple[Array, Array]:
        """Interval of the stiffnesses that can be had at an effort; `VsaModel.stiffness_range`.

        Parameters
        ----------
        effort : array-like, shape (...,)
            [N m]

        Returns
        -------
        lower, upper : ndarray, shape (...,)
            [N m/rad]. NaN where the effort is out of reach.
        """
        return self.model.stiffness_range(effort)

    def _carried(self, q: Array) -> Array:
        carried: Array = q[..., None, :] * np.array(self.model.link_coupling)[:, None]
        return carried

    def _motors(self, q: Array, deflection: Array) -> Motors:
        position = deflection + self._carried(q)
        T = max(q.shape[-1] - 2, 0)
        if T == 0:
            return Motors(position, np.zeros((*position.shape[:-1], 0)))
        load = self.model.series(deflection[..., :T]).motor_effort
        laws = self.friction if isinstance(self.friction, tuple) else (None, None)
        torques = [
            motor_torque(self.motor_inertia[i], laws[i], position[..., i, :], load[..., i, :])
            for i in range(2)
        ]
        return Motors(position, np.stack(torques, axis=-2))
