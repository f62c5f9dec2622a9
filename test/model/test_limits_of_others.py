"""Limits of followers, of zero, and of velocities that fall towards the limits of positions."""

import warnings

import numpy as np
import pytest
from support.records import changed

from hodyn_ros import ModelWarning, RobotModel, inverse_dynamics
from hodyn_ros.errors import ModelError, ScalingError
from hodyn_ros.model import (
    LimitCheck,
    find_violations,
    motion_limits,
    to_urdf,
)
from hodyn_ros.retiming import retime, uniform_scaling
from hodyn_ros.trajectory import fit_spline

FR3 = RobotModel.from_urdf('fr3')


def finger(limit, mimic='multiplier="-2" offset="0.3"', lead='', more=''):
    """An arm of one joint, and a finger that follows it."""
    inertial = (
        '<inertial><origin xyz="0.1 0 0"/><mass value="1"/>'
        '<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial>'
    )
    return RobotModel.from_urdf(
        '<robot name="hand" version="1.2"><link name="base"/>'
        f'<link name="a">{inertial}</link><link name="b">{inertial}</link>'
        '<joint name="lead" type="revolute"><parent link="base"/><child link="a"/>'
        '<axis xyz="0 0 1"/><limit lower="-3" upper="3" velocity="9" effort="50" '
        f'{lead}/>{more}</joint>'
        '<joint name="tip" type="revolute"><parent link="a"/><child link="b"/>'
        f'<axis xyz="0 0 1"/><limit {limit}/><mimic joint="lead" {mimic}/></joint></robot>'
    )


def swing(size, N=201):
    """Motion (N, 5, 1) of size * sin(t)."""
    t = np.linspace(0.0, 2.0 * np.pi, N)[:, None]
    return size * np.sin(t + 0.5 * np.pi * np.arange(5))[..., None]


def found_in(model, motion):
    effort = inverse_dynamics(model, motion)
    return find_violations(model, model.limits, motion, effort)


WIDE = 'lower="-9" upper="9"'


def test_efforts_of_followers_have_no_limit():
    assert found_in(finger(f'{WIDE} velocity="9" effort="0"'), swing(0.5)) == ()


def test_retime_keeps_the_limits_of_followers():
    model = finger(f'{WIDE} velocity="0.8" acceleration="3" jerk="40"')
    path = fit_spline(np.linspace(0.0, 4.0, 5), [[0.0], [0.4], [-0.3], [0.5], [0.0]])
    found = retime(model, path)
    t = np.linspace(0.0, found.duration, 5001)
    tip = -2.0 * found.motion(t, 3)[..., 0]
    used = np.abs(tip[:, 1:]).max(axis=0) / [0.8, 3.0, 40.0]
    assert (used < 1.0 + 1e-6).all()
    # The law knows of them: nothing is slowed down afterwards.
    assert found.repair < 1.01
    assert found.limiting.name == 'tip'
    with pytest.raises(ScalingError, match="Joint 'tip' has the position .* limit 0.8:"):
        retime(finger('lower="-9" upper="0.8" velocity="0.8"'), path)


# Limits of zero


STILL = '<robot name="pair"><link name="base"/>{}</robot>'.format(
    ''.join(
        f'<link name="l{i}"><inertial><origin xyz="0.1 0 0"/><mass value="1"/>'
        '<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial></link>'
        f'<joint name="j{i}" type="revolute"><parent link="{parent}"/><child link="l{i}"/>'
        f'<axis xyz="0 0 1"/><limit lower="-3" upper="3" effort="50" velocity="{{}}"/></joint>'
        for i, parent in enumerate(('base', 'l0'))
    )
)


def pair(velocity):
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        return RobotModel.from_urdf(STILL.format(velocity, 2))


def test_a_joint_at_rest_keeps_a_limit_of_zero_and_costs_nothing():
    path = fit_spline([0.0, 1.0, 2.0], [[0.5, 0.0], [0.5, 1.0], [0.5, 0.3]])
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        still, other = retime(pair(0), path), retime(pair(1), path)
        scaled = uniform_scaling(pair(0), path)
    assert still.duration == pytest.approx(other.duration, rel=1e-9)
    assert still.limiting.name == scaled.limiting.name == 'j1'
    motion = np.zeros((2, 5, 2))
    check = LimitCheck(pair(0), pair(0).limits)
    assert not check.look(motion[0], inverse_dynamics(pair(0), motion[0]))


# Limits of velocities that fall towards the limits of positions


def allowed(joint, position, sign):
    """The rule of libfranka for one joint of the FR3, written once more."""
    names = 'upper', 'lower', 'deceleration_limit', 'velocity', 'velocity_offset'
    limits = {what: float(getattr(FR3.limits, what)[joint]) for what in names}
    room = limits['upper'] - position if sign > 0 else position - limits['lower']
    root = (2.0 * limits['deceleration_limit'] * max(room, 0.0)) ** 0.5
    return min(limits['velocity'], max(0.0, root - limits['velocity_offset']))


def approach(joint, position, velocity):
    """A sample (1, 5, 7) of the FR3."""
    motion = np.zeros((1, 5, 7))
    motion[0, 0] = [0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.7]
    motion[0, :2, joint] = position, velocity
    return motion


@pytest.mark.parametrize(('joint', 'end'), [(0, 'upper'), (1, 'lower'), (5, 'upper')])
def test_a_joint_that_approaches_its_limit_too_fast_is_found(joint, end):
    sign = 1.0 if end == 'upper' else -1.0
    position = float(getattr(FR3.limits, end)[joint]) - 0.1 * sign
    most = allowed(joint, position, sign)
    check = LimitCheck(FR3, FR3.limits)
    for factor, is_kept in ((0.999, True), (1.01, False), (-1.01, True)):
        motion = approach(joint, position, sign * factor * most)
        effort = 0.0 * motion[:, 2:]
        found = find_violations(FR3, FR3.limits, motion, effort)
        assert check.look(motion[0], effort[0]) is not is_kept
        if is_kept:
            assert not found
            continue
        name = FR3.joint_names[joint]
        assert (found[0].quantity, found[0].joint_name) == ('velocity', name)
        assert found[0].value == pytest.approx(sign * factor * most)
        assert found[0].limit == pytest.approx(sign * most, abs=1e-12)
    # After the last one, the constant limit of all others holds as before.
    assert check.look(approach(2, 0.0, 2.7)[0], np.zeros((3, 7)))


def towards_the_limit(last):
    """Path of the FR3 whose joint 1 ends so near to its limit."""
    ways = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.7]) * np.ones((3, 1))
    ways[:, 0] = 0.0, 1.5, float(FR3.limits.upper[0]) - last
    return fit_spline([0.0, 1.0, 1.8], ways)


def test_retime_keeps_velocities_that_fall_towards_the_limit():
    limits = motion_limits(
        FR3,
        {
            name: {'acceleration': 10.0, 'jerk': 5000.0, 'effort_dot': 1000.0}
            for name in FR3.joint_names
        },
    )
    found = retime(FR3, towards_the_limit(0.05), limits)
    t = np.linspace(0.0, found.duration, 20001)
    q, v = np.moveaxis(found.motion(t, 1)[..., 0], 1, 0)
    share = np.array(
        [speed / allowed(0, x, np.sign(speed)) for x, speed in zip(q, v) if speed]
    )
    assert 0.99 < share.max() < 1.0 + 1e-6
    # Without the rule it arrives faster than the robot lets it.
    blind = changed(limits, deceleration_limit=np.full(7, np.inf))
    faster = retime(FR3, towards_the_limit(0.05), blind)
    assert faster.duration < found.duration
    q, v = np.moveaxis(faster.motion(t[t < faster.duration], 1)[..., 0], 1, 0)
    assert max(speed / allowed(0, x, 1) for x, speed in zip(q, v) if speed > 0.0) > 1.1
    tool = uniform_scaling(FR3, found.motion, limits)
    assert tool.is_kept and tool.limiting.limit > 0.0


def test_falling_limits_survive_urdf_and_are_checked():
    again = RobotModel.from_urdf(to_urdf(FR3))
    for what in ('deceleration_limit', 'velocity_offset'):
        np.testing.assert_array_equal(
            getattr(again.limits, what), getattr(FR3.limits, what)
        )
    for wrong, reason in (
        ('deceleration_limit="-1" velocity_offset="0"', 'must not be negative'),
        ('deceleration_limit="1"', "'velocity_offset'|velocity_offset"),
        ('deceleration_limit="1" velocity_offset="inf"', 'velocity_offset is infinite'),
    ):
        with pytest.raises(ModelError, match=reason):
            finger(WIDE, more=f'<position_based_velocity_limits {wrong}/>')
