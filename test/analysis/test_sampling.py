"""Points for controllers: efforts between them, checked by Pinocchio on dense samples."""

import re
import warnings

import numpy as np
import pinocchio
import pytest
from support.control_cases import PANDA

from hodyn_ros import RobotModel
from hodyn_ros.analysis import controller_trajectory
from hodyn_ros.errors import RequestError, TrajectoryError
from hodyn_ros.retiming import retime
from hodyn_ros.trajectory import fit_spline, jtc_motion

HOME = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.7])


@pytest.fixture(scope='module')
def model():
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        return RobotModel.from_urdf(PANDA)


@pytest.fixture(scope='module')
def motions(model):
    rng = np.random.default_rng(4)
    positions = HOME + rng.normal(size=(6, 7)) * 0.1
    times = np.array([0.0, 0.6, 1.5, 2.0, 2.9, 3.5004])
    smooth = fit_spline(times, positions)
    rows = np.zeros((6, 7))
    rows[1:-1] = 0.3 * rng.normal(size=(4, 7))
    return {
        'spline': smooth,
        'retimed': retime(model, smooth).motion,
        'jtc': jtc_motion(times, positions, rows, 3.0 * rows),
    }


def efforts(motion):
    """Efforts (N, n) of positions, velocities and accelerations (N, 3, n), by Pinocchio."""
    robot = pinocchio.buildModelFromXML(PANDA)
    data = robot.createData()
    return np.array([pinocchio.rnea(robot, data, *sample) for sample in motion])


def largest_error(points, motion):
    """Largest one of efforts interpolated linearly, along a motion of any kind."""
    looks = np.linspace(motion.start_time, motion.end_time, 4001)
    sent = np.stack(
        [np.interp(looks, points.times, column) for column in points.effort.T], axis=1
    )
    return np.abs(sent - efforts(motion(looks, 2))).max()


@pytest.mark.parametrize('kind', ['spline', 'retimed', 'jtc'])
def test_five_tolerances_are_kept_between_the_points(model, motions, kind):
    motion, counts = motions[kind], []
    for tolerance in (3.0, 1.0, 0.3, 0.1, 0.03):
        points = controller_trajectory(model, motion, tolerance)
        assert points.error <= tolerance
        executed = jtc_motion(points.times, *np.moveaxis(points.motion, 1, 0))
        assert executed.start_time == motion.start_time
        assert executed.end_time == pytest.approx(motion.end_time, abs=1e-9)
        for other in (motion, executed):
            assert largest_error(points, other) <= tolerance
        np.testing.assert_allclose(
            points.effort, efforts(points.motion), rtol=0.0, atol=1e-9
        )
        np.testing.assert_array_equal(np.round(points.times * 1e9) / 1e9, points.times)
        counts.append(len(points.times))
    assert counts == sorted(counts)
    if kind == 'spline':
        # The period goes with the root of the tolerance: 100 times as fine, 10 times as many.
        assert counts[-1] < 13 * counts[0]
    else:
        assert set(np.round(motion.times, 9)) <= set(points.times)


@pytest.mark.parametrize('most', [60, 12])
def test_tolerance_that_would_do_does(model, motions, most):
    with pytest.raises(RequestError, match=f'more points than {most}') as caught:
        controller_trajectory(model, motions['spline'], 1e-4, max_points=most)
    enough = float(re.search(r'; (\S+) would do', str(caught.value))[1])
    points = controller_trajectory(model, motions['spline'], enough, max_points=most)
    assert len(points.times) <= most


def test_waypoints_that_are_too_many_are_said(model, motions):
    with pytest.raises(RequestError, match='waypoints alone are as many'):
        controller_trajectory(model, motions['retimed'], 1.0, max_points=100)


def test_tolerance_below_rounding_is_refused(model, motions):
    with pytest.raises(RequestError, match='would do'):
        controller_trajectory(model, motions['jtc'], 1e-11)


@pytest.mark.parametrize('tolerance', [0.0, -1.0, np.nan, np.inf, 'fine'])
def test_bad_tolerances_are_refused(model, motions, tolerance):
    with pytest.raises(RequestError, match='tolerance'):
        controller_trajectory(model, motions['jtc'], tolerance)


def test_efforts_that_jump_are_refused(model):
    motion = jtc_motion([0.0, 1.0, 2.0], [HOME, HOME + 0.1, HOME])
    with pytest.raises(TrajectoryError, match='jump'):
        controller_trajectory(model, motion, 0.1)


def test_standstill_needs_two_points(model):
    motion = fit_spline([0.0, 5.0], [HOME, HOME])
    points = controller_trajectory(model, motion, 1e-3)
    assert len(points.times) == 2
