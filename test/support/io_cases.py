"""Small motions and results for the tests of files."""

from __future__ import annotations

import numpy as np
from support.robots import TWO_LINK

from hodyn_ros import RobotModel, Wrench
from hodyn_ros.files import Samples

START = 1_700_000_000_123_456_789
"""Instant in nanoseconds that no float64 of seconds can hold."""


def model() -> RobotModel:
    return RobotModel.from_urdf(TWO_LINK)


def swing(times, n=2, orders=5):
    """Sines with all their derivatives, (N, orders, n)."""
    w = np.arange(1, n + 1)
    phase = np.outer(times, w)
    return 0.4 * np.stack(
        [w**k * np.sin(phase + k * np.pi / 2) for k in range(orders)], axis=1
    )


def samples(count=200, orders=5, **changes) -> Samples:
    """A swing of the two joints of the model, 100 times a second."""
    times = 0.01 * np.arange(count)
    robot = model()
    return Samples(robot.joint_names, times, swing(times, orders=orders), **changes)


def results(count=40, seed=0, wrenches=True, motors=True) -> Samples:
    """Results with random numbers in all fields."""
    random = np.random.default_rng(seed)
    times = np.sort(random.uniform(0.0, 2.0, count))
    links = (('tool', 'hybrid', 'on_robot'), ('fore arm', 'body', 'on_environment'))
    of_motors = {
        'motor_position': random.normal(size=(count, 3, 3)),
        'motor_torque': random.normal(size=(count, 1, 3)),
        'deflection': random.normal(size=(count, 3, 2)),
        'motor_names': ('shoulder', 'elbow_motor1', 'elbow_motor2'),
        'motor_joints': ('shoulder', 'elbow', 'elbow'),
    }
    return Samples(
        joint_names=('shoulder', 'elbow'),
        times=times,
        motion=random.normal(size=(count, 5, 2))
        * 10.0 ** random.integers(-9, 9, (count, 5, 2)),
        effort=random.normal(size=(count, 3, 2)),
        **(of_motors if motors else {}),
        start=START,
        source='given',
        base_link='base',
        wrenches=tuple(
            Wrench(link, random.normal(size=(count, 3, 6)), expressed_in, acting)
            for link, expressed_in, acting in links
        )
        if wrenches
        else (),
    )
