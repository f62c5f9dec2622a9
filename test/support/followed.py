"""A robot with encoders, springs and motors that a law moves, whatever happens to it."""

import numpy as np
from support.control_cases import (
    HOME,
    LINK_STEP,
    MOTION,
    MOTOR_STEP,
    TORQUE_LIMITS,
    Condition,
)
from support.control_simulation import drives

from hodyn_ros.control import TrackingController

T = 1e-3


FLOATING = dict.fromkeys(
    (
        'position_margin',
        'velocity_margin',
        'max_tracking_error',
        'max_external_torque',
        'max_drive_error',
        'measurements',
        'saturation_time',
        'max_gap',
    ),
    'float',
)


def law(model, kind=TrackingController, inertia=1.0, **options):
    options = {'torque_limits': TORQUE_LIMITS, **options}
    return kind(drives(model, inertia=inertia), T, **options)


class Followed:
    """A robot with encoders that follows a motion, whatever happens to it.

    `act(robot)` is called before every sample and may change `q`, `theta`, the speeds `qd` and
    `thetad` of one sample, `elapsed` (None: the sample is not taken) and `torque`; `locks` says
    whether the brakes are closed.
    """

    def __init__(self, controller, motion=MOTION, condition=Condition()):  # noqa: B008
        self.law, self.motion, self.plant = controller, motion, condition.plant()
        self.state = self.plant.at_rest(motion([0.0])[0, 0])
        self.torque = self.plant.torque
        self.k, self.missing, self.late, self.locks = 0, 0, 0.0, False
        self.errors, self.speeds, self.rates, self.reasons = [], [], [], []

    def run(self, seconds, act=None):
        for _ in range(round(seconds / T)):
            self.q = np.round(self.state[0] / LINK_STEP) * LINK_STEP
            self.theta = np.round(self.state[2] / MOTOR_STEP) * MOTOR_STEP
            self.qd, self.thetad, self.elapsed = None, None, T
            if act is not None:
                act(self)
            self._answer()
            before = self.state
            self.state = self.plant.hold(before, self.torque, T, 1)
            if self.locks:
                self.state[2], self.state[3] = before[2], 0.0
            self.k += 1
            wanted = self.motion([self.k * T])[0, 0]
            self.errors.append(np.abs(self.state[0] - wanted).max())
            self.speeds.append(np.abs(self.state[1] / self.law.model.limits.velocity).max())
        return self

    def _answer(self):
        if self.elapsed is None:
            self.missing += 1
            return
        desired = self.motion([self.k * T + self.late + self.law.lead])[0]
        elapsed = self.elapsed + T * self.missing
        command = self.law.evaluate(
            desired, self.q, self.qd, self.theta, self.thetad, elapsed=elapsed
        )
        self.missing = 0
        self.rates.append(np.abs(command.torque - self.torque).max() / T)
        self.torque = command.torque
        self.reasons.append(command.reason)

    @property
    def rms(self):
        return 1e3 * float(np.sqrt(np.mean(np.square(self.errors))))

    @property
    def speed(self):
        """Largest speed by its limit."""
        return max(self.speeds)


AT_REST = np.zeros((5, 7))
AT_REST[0] = HOME


def resting(times):
    return np.zeros((len(times), 5, 7)) + AT_REST


def growth(controller, motor=1, gain=1.0, delay=0):
    """Factor of the error in half a run at rest if one motor is not as the law thinks.

    `gain` is on what its torque differs from the one at rest; it comes `delay` samples later.
    """
    plant = Condition().plant()
    plant.limits = np.inf
    state = plant.at_rest(AT_REST[0])
    rest, errors = plant.torque.copy(), []
    rows = [rest] * (delay + 1)
    for k in range(1000):
        state[1, motor] += 1e-5 * (k == 1)
        torque = controller.command(AT_REST, state[0], None, state[2], None)
        rows.append(rest + np.where(np.arange(7) == motor, gain, 1.0) * (torque - rest))
        applied = rows[-1].copy()
        applied[motor] = rows[-1 - delay][motor]
        state = plant.hold(state, applied, T, 1)
        errors.append(np.abs(state[0] - HOME).max())
        if errors[-1] > 1e-4:  # Far more than the push; torque limits would bound it.
            return np.inf
    return max(errors[-200:]) / max(errors[300:500])
