"""Guards around a law without memory: the judge of all other laws, with an observer beside it."""

from __future__ import annotations

import numpy as np

from hodyn_ros.control.controller import Controller, friction_of
from hodyn_ros.control.guards import Guards
from hodyn_ros.control.layouts import GIVEN
from hodyn_ros.control.observer_controller import GUARDS, ObserverController
from hodyn_ros.errors import ControlError
from hodyn_ros.typing import Array


class GuardedController(ObserverController):
    """A law without memory that is stopped, held and released as the laws with an observer.

    The law gets the measured state: positions and speeds that cannot be true are replaced by those
    that are expected.

    Parameters
    ----------
    law : Controller
        Its torque limits and lead are those of the controller.
    sample_period : float
        T [s]; `evaluate` is called as often.
    delay : float
        As of `ObserverController`; of the observer alone, since the law has its lead.
    guards : Guards

    Raises
    ------
    ControlError
        If the law is no `Controller`, or another argument cannot be used.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.actuators import Actuators, SeriesElastic
    >>> from hodyn_ros.control import GuardedController, make_controller
    >>> model = RobotModel.from_urdf('two_link')
    >>> drives = Actuators(model, {'elbow': SeriesElastic(2000.0, 0.5)})
    >>> law = make_controller(model, 'feed_forward_2', drives, bandwidth=20.0)
    >>> GuardedController(law, 0.001).guards.max_tracking_error
    0.2
    """

    estimates = False
    kind = GIVEN

    def __init__(
        self,
        law: Controller,
        sample_period: float,
        *,
        delay: float = 0.0,
        guards: Guards = GUARDS,
    ) -> None:
        if not isinstance(law, Controller):
            own = (
                ', which has guards of its own'
                if isinstance(law, ObserverController)
                else ''
            )
            raise ControlError(
                f'The law is of type {type(law).__name__}{own}; expected a law without memory, '
                'such as make_controller returns.'
            )
        limits = law.torque_limits
        super().__init__(
            law.actuators, sample_period, torque_limits=limits, delay=delay, guards=guards
        )
        self.law: Controller = law
        self.orders: int = law.orders
        self.lead: float = law.lead
        self.record.fill({'lead': law.lead})
        self.begin()

    def _demand(self, desired: Array, result: Array) -> int:
        o, speeds, too_fast = self.observer.record, [], self.record.too_fast
        for given, known, fastest in zip(
            self._speeds, (o.links[1], o.motors[1]), (too_fast, too_fast[o.joint])
        ):
            speed = known if given is None else np.asarray(given, dtype=np.float64)
            speeds.append(np.where(np.abs(speed) <= fastest, speed, known))
        qd, thetad = speeds
        result[:] = self.law.evaluate(desired, o.q, qd, o.theta, thetad).demand
        o.friction[:] = friction_of(self.law.motors, thetad)
        return 0
