"""Two links in the plane of gravity, each with two motors and springs k sinh(a d), under a law.

The equations of motion are written here.
"""

from typing import NamedTuple

import numpy as np

from hodyn_ros import RobotModel
from hodyn_ros.actuators import Actuators, Qbmove, VariableStiffness
from hodyn_ros.control import Law, tracking_controller
from hodyn_ros.trajectory import fit_spline

T, A, K, B = 1e-3, 8.9992, 0.0019, 0.0233
MASS, LENGTH, CENTRE, TURN = 0.15, 0.2, 0.1, 5e-4
LINK = """<link name="{0}"><inertial><origin xyz="0.1 0 0"/><mass value="0.15"/>
<inertia ixx="1e-6" iyy="5e-4" izz="5e-4" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="to {0}" type="revolute"><parent link="{1}"/><child link="{0}"/>
<origin xyz="{2} 0 0"/><axis xyz="0 -1 0"/>
<limit lower="-3" upper="3" effort="6" velocity="6"/></joint>"""
ARM = (
    f'<robot name="arm"><link name="base"/>{LINK.format("upper", "base", 0)}'
    f'{LINK.format("lower", "upper", LENGTH)}</robot>'
)
MOTION = fit_spline([0.0, 1.0], [[1.3, 0.2], [0.2, -0.4]])
MOST = 3.0  # N m


def rates(x, torque):
    q, v, theta, w = x[:2], x[2:4], x[4:8], x[8:]
    pull = K * np.sinh(A * (theta - np.repeat(q, 2)))
    s, c, own = np.sin(q[1]), np.cos(q[1]), TURN + MASS * CENTRE**2
    both = MASS * LENGTH * CENTRE
    M = [
        [2 * own + MASS * LENGTH**2 + 2 * both * c, own + both * c],
        [own + both * c, own],
    ]
    h = both * s * np.array([-(2 * v[0] + v[1]) * v[1], v[0] ** 2])
    far = MASS * CENTRE * np.cos(q.sum())
    g = 9.81 * np.array([MASS * (CENTRE + LENGTH) * np.cos(q[0]) + far, far])
    a = np.linalg.solve(M, pull.reshape(2, 2).sum(1) - h - g)
    return np.concatenate([v, a, w, (torque - pull) / B])


def step(x, torque, h=T):
    a = rates(x, torque)
    b = rates(x + 0.5 * h * a, torque)
    c = rates(x + 0.5 * h * b, torque)
    return x + h / 6 * (a + 2 * b + 2 * c + rates(x + h * c, torque))


class Run(NamedTuple):
    """An arm that was moved."""

    law: Law
    error: float
    """Largest of a joint [rad]."""
    speed: float
    """Largest by its limit."""
    remarks: set
    state: np.ndarray
    """At the end: q, q', theta, theta'; two motors a joint."""


def followed(stiffness, mass=1.0):
    """Let the arm move with the stiffness(time) -> (3,) in both joints.

    The law takes the masses for so many times what they are.
    """
    drive = VariableStiffness(Qbmove(A, K, max_deflection=0.8), B)
    model = RobotModel.from_urdf(ARM.replace('"0.15"', f'"{0.15 * mass}"'))
    actuators = Actuators(model, dict.fromkeys(model.joint_names, drive))
    law = tracking_controller(actuators, T, torque_limits=MOST)
    start, x = MOTION(0.0)[0], np.zeros(12)
    x[:2] = start
    x[4:8] = law.resting(start, dict.fromkeys(model.joint_names, stiffness(0.0)))
    error, speed, remarks = 0.0, 0.0, set()
    for k in range(1200):
        wanted = MOTION(min(k * T + law.lead, 1.0))
        asked = dict.fromkeys(model.joint_names, stiffness(k * T))
        command = law.evaluate(wanted, x[:2], None, x[4:8], None, stiffness=asked)
        remarks.add(command.remark)
        x = step(x, command.torque)
        error = max(error, *np.abs(x[:2] - MOTION(min((k + 1) * T, 1.0))[0]))
        speed = max(speed, *np.abs(x[2:4]) / 6.0)
        if speed > 50.0:
            break
    return Run(law, error, speed, remarks - {''}, x)
