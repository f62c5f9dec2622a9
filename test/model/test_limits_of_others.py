"""Limits of followers, of zero, and of velocities that fall towards the limits of positions."""

import numpy as np
import pytest
from support.records import changed
from support.robots import TWO_LINK

from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.analysis import with_margins
from hodyn_ros.errors import ModelError, ScalingError
from hodyn_ros.model import (
    LimitCheck,
    find_violations,
    motion_limits,
)
from hodyn_ros.model.limits import velocity_range
from hodyn_ros.model.violations import LimitedJoints
from hodyn_ros.resources import share_file
from hodyn_ros.retiming import retime, uniform_scaling
from hodyn_ros.trajectory import fit_spline

FR3 = RobotModel.from_urdf('fr3')
HOME = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.7])


def finger(limit, more=''):
    """An arm of one joint, and a finger that follows it."""
    inertial = (
        '<inertial><origin xyz="0.1 0 0"/><mass value="1"/>'
        '<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial>'
    )
    return RobotModel.from_urdf(
        '<robot name="hand" version="1.2"><link name="base"/>'
        f'<link name="a">{inertial}</link><link name="b">{inertial}</link>'
        '<joint name="lead" type="revolute"><parent link="base"/><child link="a"/>'
        '<axis xyz="0 0 1"/><limit lower="-3" upper="3" velocity="9" effort="50"/>'
        f'{more}</joint>'
        '<joint name="tip" type="revolute"><parent link="a"/><child link="b"/>'
        f'<axis xyz="0 0 1"/><limit {limit}/>'
        '<mimic joint="lead" multiplier="-2" offset="0.3"/></joint></robot>'
    )


WIDE = 'lower="-9" upper="9"'


def test_efforts_of_followers_have_no_limit():
    model, motion = finger(f'{WIDE} velocity="9" effort="0"'), np.ones((1, 5, 1))
    effort = inverse_dynamics(model, motion)
    assert find_violations(model, model.limits, motion, effort) == ()


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


def test_margins_hold_for_joints_that_follow():
    model = finger(f'{WIDE} velocity="0.8" acceleration="3" jerk="40"')
    less = with_margins(model.limits, {'velocity': 0.25, 'jerk': 0.5})
    motion, still = np.zeros((1, 4, 1)), np.zeros((1, 2, 1))
    for speed, is_less, is_whole in ((0.29, False, False), (0.31, True, False)):
        motion[0, 1] = speed  # the finger is twice as fast
        assert bool(find_violations(model, less, motion, still)) is is_less
        assert bool(find_violations(model, model.limits, motion, still)) is is_whole
    (found,) = find_violations(model, less, motion, still)
    assert (found.joint_name, found.limit) == ('tip', pytest.approx(-0.6))
    path = fit_spline(np.linspace(0.0, 4.0, 5), [[0.0], [0.4], [-0.3], [0.5], [0.0]])
    timing = retime(model, path, less)
    t = np.linspace(0.0, timing.duration, 5001)
    used = 2.0 * np.abs(timing.motion(t, 3)[:, 1:, 0]).max(axis=0) / [0.6, 3.0, 20.0]
    assert used.max() == pytest.approx(1.0, abs=0.01) and (used < 1.0 + 1e-6).all()


def test_margins_are_taken_off_once_more_by_those_who_ask_again():
    model = finger(f'{WIDE} velocity="0.8"')
    once = with_margins(model.limits, {'velocity': 0.5})
    twice = LimitedJoints(model, with_margins(once, {'velocity': 0.5}))
    np.testing.assert_allclose(twice.limits.velocity, [0.25 * 9.0, 0.25 * 0.8])


def test_margins_hold_for_joints_that_loops_move():
    description = share_file('urdf/five_bar.urdf').read_text()
    knee = '<joint name="knee_front" type="{}">'
    limit = '<limit lower="-3.1" upper="3.1" velocity="2" effort="9"/>'
    given = knee.format('continuous'), knee.format('revolute') + limit
    assert given[0] in description
    model = RobotModel.from_urdf(description.replace(*given))
    motion = np.zeros((1, 3, 2))
    motion[0, 0], motion[0, 1] = [0.4, -0.3], [1.0, -1.0]
    whole = LimitedJoints(model, model.limits)
    place = whole.names.index('knee_front')
    motion[0, 1] *= 1.5 / np.abs(whole.motion(motion)[0, 1, place])  # of 2 rad/s
    assert find_violations(model, model.limits, motion, motion[:, 2:]) == ()
    less = with_margins(model.limits, {'velocity': 0.3})
    found = find_violations(model, less, motion, motion[:, 2:])
    assert [(x.joint_name, abs(x.limit)) for x in found] == [
        ('knee_front', pytest.approx(1.4))
    ]


# Limits of zero


@pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')
def test_a_joint_at_rest_keeps_a_limit_of_zero_and_costs_nothing():
    path = fit_spline([0.0, 1.0, 2.0], [[0.5, 0.0], [0.5, 1.0], [0.5, 0.3]])
    model, other = (
        RobotModel.from_urdf(TWO_LINK.replace('velocity="3"', f'velocity="{v}"', 1))
        for v in (0, 1)
    )
    still = retime(model, path)
    assert still.duration == pytest.approx(retime(other, path).duration, rel=1e-9)
    assert still.limiting.name == uniform_scaling(model, path).limiting.name == 'elbow'
    check, motion = LimitCheck(model, model.limits), np.zeros((5, 2))
    assert not check.look(motion, inverse_dynamics(model, motion))


# Limits of velocities that fall towards the limits of positions


def allowed(joint, position, sign):
    """The rule of libfranka for one joint of the FR3, written once more."""
    names = 'upper', 'lower', 'deceleration_limit', 'velocity', 'velocity_offset'
    limits = {what: float(getattr(FR3.limits, what)[joint]) for what in names}
    room = limits['upper'] - position if sign > 0 else position - limits['lower']
    root = (2.0 * limits['deceleration_limit'] * max(room, 0.0)) ** 0.5
    return min(limits['velocity'], max(0.0, root - limits['velocity_offset']))


@pytest.mark.parametrize(('joint', 'end'), [(1, 'lower'), (0, 'upper'), (5, 'upper')])
def test_a_joint_that_approaches_its_limit_too_fast_is_found(joint, end):
    sign = 1.0 if end == 'upper' else -1.0
    position = float(getattr(FR3.limits, end)[joint]) - 0.1 * sign
    most = allowed(joint, position, sign)
    check, effort = LimitCheck(FR3, FR3.limits), np.zeros((3, 7))
    motion = np.zeros((1, 5, 7))
    motion[0, 0] = HOME
    for factor in (0.999, -1.01, 1.01):
        motion[0, :2, joint] = position, sign * factor * most
        found = find_violations(FR3, FR3.limits, motion, effort[None])
        assert check.look(motion[0], effort) is (factor == 1.01)
        assert len(found) == (factor == 1.01)
    assert (found[0].quantity, found[0].joint_name) == ('velocity', FR3.joint_names[joint])
    assert found[0].value == pytest.approx(sign * 1.01 * most)
    assert found[0].limit == pytest.approx(sign * most, abs=1e-12)


def test_retime_keeps_velocities_that_fall_towards_the_limit():
    """A path of the FR3 whose first joint ends 0.05 rad before its limit."""
    ways = HOME * np.ones((3, 1))
    ways[:, 0] = 0.0, 1.5, float(FR3.limits.upper[0]) - 0.05
    path = fit_spline([0.0, 1.0, 1.8], ways)
    other = {'acceleration': 10.0, 'jerk': 5000.0, 'effort_dot': 1000.0}
    limits = motion_limits(FR3, dict.fromkeys(FR3.joint_names, other))
    # Without the rule it arrives faster than the robot lets it.
    blind = changed(limits, deceleration_limit=np.full(7, np.inf))
    shares = []
    for given in (limits, blind):
        found = retime(FR3, path, given)
        t = np.linspace(0.0, found.duration, 20001)[1:-1]
        q, v = np.moveaxis(found.motion(t, 1)[..., 0], 1, 0)
        shares.append(max(speed / allowed(0, x, 1) for x, speed in zip(q, v) if speed > 0))
    assert 0.99 < shares[0] < 1.0 + 1e-6 and shares[1] > 1.1


def test_margins_hold_for_velocities_that_fall_towards_the_limit():
    less, effort = with_margins(FR3.limits, {'velocity': 0.2}), np.zeros((1, 3, 7))
    motion = np.zeros((1, 5, 7))
    for room in (0.02, 0.05, 0.1, 0.5, 1.0):
        motion[0, 0] = HOME
        motion[0, 0, 0] = position = float(FR3.limits.upper[0]) - room
        most = allowed(0, position, 1)
        lower, upper = velocity_range(less, motion[0, 0])
        assert upper[0] == pytest.approx(0.8 * most, abs=1e-12)
        assert lower[0] == pytest.approx(-0.8 * allowed(0, position, -1), abs=1e-12)
        motion[0, 1, 0] = 0.9 * most
        assert find_violations(FR3, FR3.limits, motion, effort) == ()
        assert bool(find_violations(FR3, less, motion, effort)) is (most > 0.0)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('wrong', 'reason'),
    [
        ('deceleration_limit="-1" velocity_offset="0"', 'must not be negative'),
        ('deceleration_limit="1"', 'velocity_offset'),
        ('deceleration_limit="1" velocity_offset="inf"', 'velocity_offset is infinite'),
    ],
)
def test_falling_limits_are_checked(wrong, reason):
    with pytest.raises(ModelError, match=reason):
        finger(WIDE, f'<position_based_velocity_limits {wrong}/>')
