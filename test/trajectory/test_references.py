"""The reference motion of the demonstration: exact derivatives, and feasible for the Panda."""

from pathlib import Path

import numpy as np
import yaml

from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.model.limits import find_violations, motion_limits
from hodyn_ros.trajectory.references import panda_sinusoids

ROOT = Path(__file__).resolve().parents[2]


def test_derivatives_are_those_of_the_positions():
    reference = panda_sinusoids()
    h = 1e-3
    times = np.linspace(0.05, reference.duration - 0.05, 301)
    stencil = np.array(
        [1 / 280, -4 / 105, 1 / 5, -4 / 5, 0, 4 / 5, -1 / 5, 4 / 105, -1 / 280]
    )
    shifted = np.stack([reference.motion(times + k * h) for k in range(-4, 5)])
    motion = reference.motion(times)
    # The windows meet the plateau with continuous derivatives up to the fourth only.
    smooth = np.abs(
        times[:, None] - [reference.ramp, reference.duration - reference.ramp]
    ).min(1)
    inner = smooth > 5 * h
    for k in range(4):
        derivative = np.tensordot(stencil, shifted[:, :, k], axes=1) / h
        np.testing.assert_allclose(
            derivative[inner],
            motion[inner, k + 1],
            atol=1e-9 * np.abs(motion[:, k + 1]).max(),
        )


def test_motion_starts_and_ends_in_standstill():
    reference = panda_sinusoids()
    for time in (-1.0, 0.0, reference.duration, reference.duration + 1.0):
        motion = reference.motion([time])[0]
        np.testing.assert_allclose(motion[0], reference.centre, atol=1e-12)
        np.testing.assert_allclose(motion[1:], 0.0, atol=1e-9)


def test_motion_keeps_all_limits_of_the_panda():
    model = RobotModel.from_urdf(ROOT / 'urdf' / 'panda.urdf')
    parameters = yaml.safe_load((ROOT / 'config' / 'panda.yaml').read_text())
    limits = motion_limits(model, parameters['/**']['ros__parameters']['limits'])
    stated = limits[
        : limits._fields.index('effort_ddot')
    ]  # nobody states that, or what is behind
    assert np.all(np.isfinite(stated))
    reference = panda_sinusoids()
    motion = reference.motion(np.linspace(0.0, reference.duration, 2001))
    assert find_violations(model, limits, motion, inverse_dynamics(model, motion)) == ()
    # Not a motion that is feasible because hardly anything moves.
    assert np.all(np.abs(motion[:, 1]).max(axis=0) > 0.4 * limits.velocity)
