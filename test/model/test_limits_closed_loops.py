"""Limits of joints that closed loops move, which no motion of the independent joints states."""

import numpy as np
import pytest
from support.loop_robots import description

from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.kinematics import complete_motion
from hodyn_ros.model import (
    LimitCheck,
    find_violations,
    motion_limits,
)
from hodyn_ros.retiming import retime, uniform_scaling
from hodyn_ros.trajectory import fit_spline


def limited_leg(limit):
    """The five-bar with limits of the front knee."""
    start = '<joint name="knee_front" type='
    before, after = description('five_bar').split(start + '"continuous">')
    xml = f'{before}{start}"revolute"><limit {limit}/>{after}'
    return RobotModel.from_urdf(xml.replace('<robot ', '<robot version="1.2" '))


def folding(times, size, speed):
    """Motion (N, 5, 2) of the leg whose toe stays below the hip."""
    phase = speed * times[:, None] + 0.5 * np.pi * np.arange(5)
    front = size * speed ** np.arange(5) * np.sin(phase)
    return front[..., None] * [1.0, -1.0]


def knee(front):
    """Position of the front knee, in closed form: the toe is below the hip."""
    return np.arcsin(0.5 * np.cos(front)) - np.pi / 6.0 - front


def knee_speed(front, speed):
    shank = -0.5 * np.sin(front) / np.sqrt(1.0 - 0.25 * np.cos(front) ** 2)
    return (shank - 1.0) * speed


def found_in(model, motion):
    effort = inverse_dynamics(model, motion)
    return find_violations(model, motion_limits(model), motion, effort)


TIMES = np.linspace(0.0, 1.0, 101)
FOLDING = folding(TIMES, 0.5, 2.0)
FRONT = FOLDING[:, :2, 0].T


def test_accelerations_and_jerks_are_limited_too():
    model = limited_leg('lower="-3" upper="3" acceleration="0.5" jerk="0.4"')
    knees = complete_motion(model, FOLDING)[..., 1]
    np.testing.assert_allclose(knees[:, 0], knee(FRONT[0]), atol=1e-12)
    found = {item.quantity: item for item in found_in(model, FOLDING)}
    assert {*found} == {'acceleration', 'jerk'}
    for k, quantity in ((2, 'acceleration'), (3, 'jerk')):
        largest = np.abs(knees[:, k]).max()
        assert abs(found[quantity].value) == pytest.approx(largest, rel=1e-12)


def test_samples_of_a_stream_are_counted():
    model = limited_leg('lower="-3" upper="3" velocity="0.9"')
    check = LimitCheck(model, model.limits)
    for motion, effort in zip(FOLDING, inverse_dynamics(model, FOLDING)):
        check.look(motion, effort)
    beyond = int((np.abs(knee_speed(*FRONT)) > 0.9).sum())
    assert check.take_hits() == {'velocity of knee_front': beyond}


LEG_LINE = fit_spline([0.0, 1.0], [[-0.6, 0.6], [0.6, -0.6]])


def test_a_new_time_law_keeps_their_velocity():
    model = limited_leg('lower="-3" upper="3" velocity="4"')
    found = retime(model, LEG_LINE, motion_limits(model))
    motion = found.motion(found.motion.times)
    fastest = np.abs(knee_speed(motion[:, 0, 0], motion[:, 1, 0])).max()
    assert 0.95 * 4.0 < fastest <= 4.0 * (1.0 + 1e-6)
    assert found.limiting[:2] == ('velocity', 'knee_front')


@pytest.mark.parametrize('quantity', ['velocity', 'acceleration', 'jerk'])
def test_a_time_factor_keeps_them(quantity):
    order = 1 + ('velocity', 'acceleration', 'jerk').index(quantity)
    model = limited_leg(f'lower="-3" upper="3" {quantity}="0.2"')
    found = uniform_scaling(model, FOLDING)
    assert (found.limiting.quantity, found.limiting.name) == (quantity, 'knee_front')
    slowed = FOLDING / found.factor ** np.arange(5)[:, None]
    knees = complete_motion(model, slowed)[:, order, 1]
    assert np.abs(knees).max() == pytest.approx(0.2, rel=1e-6)
