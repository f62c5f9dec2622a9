"""Elastic joints in the node: motor references on the topic and in answers, and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from hodyn_msgs.msg import StiffnessMotion
from hodyn_msgs.srv import ComputeInverseDynamics
from support import robots
from support.messages import (
    GRAVITY,
    MOTION,
    NAMES,
    joint_motion,
    joint_trajectory,
)
from support.oracles import taylor_rnea
from support.ros_harness import Harness, dict_of
from trajectory_msgs.msg import JointTrajectory

Request, Response = ComputeInverseDynamics.Request, ComputeInverseDynamics.Response

K, B = np.array([800.0, 300.0]), np.array([0.4, 0.1])
ELASTIC = {
    f'actuators.{name}.{key}': value
    for name, stiffness, inertia in zip(NAMES, K, B)
    for key, value in (
        ('type', 'sea'),
        ('stiffness', stiffness),
        ('motor_inertia', inertia),
    )
}
# The elbow has two motors; constants of no real actuator, strong enough for the arm.
a, k = 6.0, 0.5
SIGMA = np.array([120.0, 40.0, -300.0])
MIXED = {
    'actuators.shoulder.type': 'rigid',
    'actuators.shoulder.motor_inertia': 0.2,
    'actuators.elbow.type': 'vsa',
    'actuators.elbow.model': 'qbmove',
    'actuators.elbow.a': a,
    'actuators.elbow.k': k,
    'actuators.elbow.motor_inertia': [0.01, 0.02],
    'actuators.elbow.stiffness': 150.0,
}


@pytest.fixture(scope='module')
def nodes():
    """Nodes with the two-link arm by their actuators, for tests that leave no motion behind."""
    made = {}

    def node_with(parameters):
        key = repr(sorted(parameters.items()))
        if key not in made:
            made[key] = Harness({'input_timeout': 60.0, 'answer_all': True, **parameters})
            made[key].describe_and_wait(robots.TWO_LINK)
        made[key].forget()
        return made[key]

    yield node_with
    for harness in made.values():
        harness.close()


def stiffness_motion(values=SIGMA, names=('elbow',), **fields):
    message = StiffnessMotion(joint_names=list(names))
    message.stiffness, message.stiffness_dot, message.stiffness_ddot = (
        [float(value)] for value in values
    )
    for field, value in fields.items():
        setattr(message, field, value)
    return message


def trajectory():
    return joint_trajectory(((0.0, 0.0), (0.9, -0.4), (0.2, 0.5)), (0.0, 1.0, 2.0))


def effort(motion=MOTION):
    return taylor_rnea(robots.TWO_LINK, NAMES, GRAVITY, motion)


def answered(harness, message):
    harness.publishers['joint_motion'].publish(message)
    return harness.received('motor_reference')[-1]


def rows(trajectory, field):
    values = np.array(getattr(trajectory, field))
    return values.reshape(len(trajectory.time_from_start), len(trajectory.motor_names))


# The topic


def test_stiffness_goes_on_by_its_derivatives_and_comes_to_rest_without_news(nodes):
    harness = nodes(MIXED)
    total = harness.node.diagnostics.input('stiffness_motion').total

    def found(seconds):
        begin, count = harness.node.get_clock().now().nanoseconds, total['received']
        message = stiffness_motion()
        message.header.stamp = Time(sec=begin // 10**9, nanosec=begin % 10**9)
        harness.publishers['stiffness_motion'].publish(message)
        harness.wait(lambda: total['received'] > count, 'stiffness taken')
        harness.forget()
        motor = answered(harness, joint_motion(stamp=begin + round(1e9 * seconds)))
        d = MOTION[0, 1] - np.array(motor.position[1:])
        dd = MOTION[1, 1] - np.array(motor.velocity[1:])
        rate = (a**2 * k * np.sinh(a * d) * dd).sum()
        return (a * k * np.cosh(a * d)).sum(), rate

    t = 0.08
    assert found(t) == pytest.approx(
        (SIGMA[0] + t * SIGMA[1] + t * t / 2 * SIGMA[2], SIGMA[1] + t * SIGMA[2])
    )
    assert found(5.0)[1] == pytest.approx(0.0, abs=1e-6)


def test_spring_out_of_its_range_holds_the_reference_back_but_not_the_efforts(nodes):
    harness = nodes({**ELASTIC, 'actuators.elbow.max_deflection': 1e-4})
    harness.publishers['joint_motion'].publish(joint_motion())
    harness.received('joint_effort')
    status = harness.status('motor_reference', lambda s: dict_of(s)['held back'] != '0')
    assert 'elbow' in dict_of(status)['held back because']
    assert not harness.messages['hodyn_node/motor_reference']
    response = harness.call(Request(motion=[joint_motion()]))
    assert response.error_code == Response.INVALID_ACTUATION
    assert 'elbow' in response.message
    # A trajectory that the springs cannot bear never starts.
    harness.forget()
    harness.publishers['joint_trajectory'].publish(trajectory())
    assert 'elbow' in harness.refusal('joint_trajectory')
    assert not harness.messages['hodyn_node/joint_effort']


def test_joint_with_a_damper_follows_the_slow_motion_along_the_stream(nodes):
    harness, D = nodes(DAMPED), DAMPED['actuators.elbow.damping']
    begin = harness.node.get_clock().now().nanoseconds
    step = 5_000_000
    t = np.arange(200) * step / 1e9
    w = 12.0
    amplitudes = np.array([0.2, 0.5])
    motions = np.stack(
        [amplitudes * w**m * np.sin(w * t[:, None] + 0.5 * np.pi * m) for m in range(5)],
        axis=1,
    )
    for i, motion in enumerate(motions):
        harness.publishers['joint_motion'].publish(
            joint_motion(motion, NAMES, begin + i * step)
        )
    found = harness.received('motor_reference', len(t))
    Q = np.array([effort(motion) for motion in motions])
    delta = np.array([message.deflection[1] for message in found])
    velocity = np.array([message.velocity[1] for message in found])
    # The deflection of a slow motion, by as many derivatives of the torque as there are.
    time_constant = D / K[1]
    series = (-time_constant) ** np.arange(3) * Q[:, :, 1] / K[1]
    np.testing.assert_allclose(delta, series.sum(axis=1), rtol=1e-9, atol=1e-12)
    rate = series[:, 1:].sum(axis=1) / -time_constant
    np.testing.assert_allclose(velocity - motions[:, 1, 1], rate, rtol=1e-9, atol=1e-9)
    assert np.abs(delta - Q[:, 0, 1] / K[1]).max() > 0.1 * np.abs(delta).max()


# The service and whole answers


DAMPED = {**ELASTIC, 'actuators.shoulder.damping': 800.0, 'actuators.elbow.damping': 40.0}


def test_service_answers_with_the_motors_along_a_trajectory(nodes):
    harness = nodes(ELASTIC)
    response = harness.call(Request(trajectory=trajectory(), sample_period=1e-3))
    assert response.success, response.message
    answer = response.effort_trajectory
    motors = answer.motors
    t = np.array(motors.time_from_start)
    n = len(NAMES)
    q = np.array(answer.position).reshape(-1, n)
    Q = np.array(answer.effort).reshape(-1, n)
    theta, tau = rows(motors, 'position'), rows(motors, 'torque')
    np.testing.assert_allclose(K * (theta - q), Q, atol=1e-9)
    np.testing.assert_allclose(B * rows(motors, 'acceleration') + Q, tau, atol=1e-9)
    np.testing.assert_allclose(rows(motors, 'deflection'), Q / K, atol=1e-12)
    for value, rate in (
        ('position', 'velocity'),
        ('velocity', 'acceleration'),
        ('torque', 'torque_dot'),
    ):
        differences = np.diff(rows(motors, value), axis=0) / np.diff(t)[:, None]
        means = (rows(motors, rate)[1:] + rows(motors, rate)[:-1]) / 2
        # The fifth derivative of the motion, and so the rate of the torque, jumps at waypoints.
        atol = 2e-3 * np.abs(means).max()
        assert np.sum(np.any(np.abs(differences - means) > atol, axis=1)) <= 2


def test_motors_beyond_their_limits_are_reported_with_time(nodes):
    limits = {
        'actuators.shoulder.max_motor_velocity': 0.5,
        'actuators.shoulder.max_motor_torque_rate': 1.0,
        'actuators.elbow.deflection_limit': 1e-3,
    }
    harness = nodes({**ELASTIC, **limits})
    answered(harness, joint_motion())
    key = 'samples beyond the limit of motor_velocity of shoulder'
    harness.status('motor_reference', lambda s: dict_of(s).get(key) == '1')
    response = harness.call(Request(trajectory=trajectory(), sample_period=1e-3))
    motors = response.effort_trajectory.motors
    found = {
        (item.quantity, item.joint_name): item
        for item in response.effort_trajectory.limit_violations
    }
    for quantity, name, field, limit in (
        ('motor_velocity', 'shoulder', 'velocity', 0.5),
        ('motor_torque_rate', 'shoulder', 'torque_dot', 1.0),
        ('deflection', 'elbow', 'deflection', 1e-3),
    ):
        values = rows(motors, field)[:, NAMES.index(name)]
        worst = int(np.abs(values).argmax())
        item = found[quantity, name]
        assert item.value == pytest.approx(values[worst])
        assert abs(item.limit) == limit
        assert item.time_from_start == pytest.approx(motors.time_from_start[worst])
    # So it is on the topic.
    harness.publishers['joint_trajectory'].publish(trajectory())
    whole = harness.received('effort_trajectory')[0]
    assert whole.motors.motor_names == list(NAMES)
    assert len(whole.motors.torque) == len(whole.effort)
    harness.publishers['joint_trajectory'].publish(JointTrajectory())
    harness.wait(lambda: not harness.node.stream.timeline, 'the end of the motion')


def test_service_says_why_the_actuators_cannot_do_it(nodes):
    harness = nodes(MIXED)
    samples = [joint_motion(stamp=10**9 + i * 10**8) for i in range(3)]
    for stiffness, code, reason in (
        ([stiffness_motion((1e-3, 0.0, 0.0))], Response.INVALID_ACTUATION, 'elbow'),
        ([stiffness_motion()] * 2, Response.INVALID_ACTUATION, '2 entries of stiffness'),
        ([stiffness_motion(names=('x',))], Response.INVALID_JOINTS, 'has x'),
    ):
        response = harness.call(Request(motion=samples, stiffness=stiffness))
        assert (response.success, response.error_code) == (False, code)
        assert reason in response.message
