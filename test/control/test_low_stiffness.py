"""Joints that are to be softer than their torque permits, on equations of motion written here.

Two links in the plane of gravity, each with two motors and springs k sinh(a d) as of a qbmove.
"""

import numpy as np
import pytest

from hodyn_ros import RobotModel
from hodyn_ros.actuators import Actuators, Qbmove, VariableStiffness
from hodyn_ros.control import tracking_controller
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


def constant(value):
    return {name: np.array([value, 0.0, 0.0]) for name in ('to upper', 'to lower')}


def followed(stiffness):
    """Law, largest error, largest speed by its limit, and remarks of an arm that moves."""
    drive = VariableStiffness(Qbmove(A, K, max_deflection=0.8), B)
    model = RobotModel.from_urdf(ARM)
    actuators = Actuators(model, dict.fromkeys(model.joint_names, drive))
    law = tracking_controller(actuators, T, torque_limits=MOST)
    start = MOTION(0.0)[0]
    x = np.zeros(12)
    x[:2], x[4:8] = start, law.resting(start, stiffness(0.0))
    error, fastest, remarks = 0.0, 0.0, set()
    for k in range(1200):
        wanted = MOTION(min(k * T + law.lead, 1.0))
        command = law.evaluate(
            wanted, x[:2], None, x[4:8], None, stiffness=stiffness(k * T)
        )
        remarks.add(command.remark)
        x = step(x, command.torque)
        error = max(error, *np.abs(x[:2] - MOTION(min((k + 1) * T, 1.0))[0]))
        fastest = max(fastest, *np.abs(x[2:4]) / 6.0)
        if fastest > 50.0:
            break
    return law, error, fastest, remarks - {''}


@pytest.mark.parametrize('asked', [1.2, 2.0, 2.5])
def test_arm_that_is_to_be_too_soft_is_as_soft_as_its_motors_can_follow(asked):
    law, error, fastest, remarks = followed(lambda time: constant(asked))
    assert not law.reason
    assert fastest < 0.7
    assert error < 0.1
    assert any(f'is to be {asked:g}, but can be' in remark for remark in remarks)


def test_stiffness_that_is_possible_is_left_as_it_is():
    law, error, _, remarks = followed(lambda time: constant(8.0))
    assert not (law.reason or remarks)
    assert error < 1e-3


def test_stiffness_that_is_no_number_is_that_before():
    law, error, _, remarks = followed(lambda time: constant(8.0 if time < 0.5 else np.nan))
    assert not law.reason
    assert error < 1e-3
    assert all('is to be nan' in remark for remark in remarks)
    assert remarks
