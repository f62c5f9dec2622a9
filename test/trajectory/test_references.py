"""The reference motion of the demonstration: exact derivatives, and feasible for the Panda."""

from pathlib import Path

import numpy as np
import yaml

from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.analysis import find_violations, motion_limits
from hodyn_ros.trajectory import Sinusoids, fit_spline, panda_sinusoids

CONFIG = Path(__file__).resolve().parents[2] / 'config' / 'panda.yaml'


def test_the_reference_keeps_all_limits_of_the_panda_from_rest_to_rest():
    model, reference = RobotModel.from_urdf('panda'), panda_sinusoids()
    parameters = yaml.safe_load(CONFIG.read_text())['/**']['ros__parameters']
    limits = motion_limits(model, parameters['limits'])
    assert np.isfinite([limits.acceleration, limits.jerk, limits.effort_dot]).all()
    times = np.linspace(0.0, reference.duration, 20_001)
    motion = reference.motion(times)
    assert find_violations(model, limits, motion, inverse_dynamics(model, motion)) == ()
    # Not a motion that is feasible because hardly anything moves.
    assert np.all(np.abs(motion[:, 1]).max(axis=0) > 0.4 * limits.velocity)
    slopes = np.gradient(motion[:, :4], times, axis=0)[2:-2]
    size = np.abs(motion[:, 1:]).max(axis=0)
    assert np.all(np.abs(slopes - motion[2:-2, 1:]) <= 2e-3 * size)
    for time in (-1.0, 0.0, reference.duration, reference.duration + 1.0):
        rest = reference.motion([time])[0]
        np.testing.assert_allclose(rest[0], reference.centre, atol=1e-12)
        np.testing.assert_allclose(rest[1:], 0.0, atol=1e-9)


def test_sinusoids_take_lists():
    given = np.array([0.1, 0.2]), np.array([2.0, 3.0]), np.array([0.0, 0.5])
    wanted = Sinusoids(*given, 1.0, 10.0).motion([1.0, 2.0])
    listed = Sinusoids(*(x.tolist() for x in given), 1.0, 10.0).motion([1.0, 2.0])
    np.testing.assert_array_equal(listed, wanted)


def test_motion_within_segments_takes_lists():
    motion = fit_spline([0.0, 1.0, 3.0], [[0.0], [1.0], [0.5]])
    wanted = motion.within(np.array([0, 1]), np.array([0.1, 0.7]))
    np.testing.assert_array_equal(motion.within([0, 1], [0.1, 0.7]), wanted)
