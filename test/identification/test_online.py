"""Payload and friction found on line, from efforts that Pinocchio and plain formulas give."""

from __future__ import annotations

import numpy as np
import pytest
from support import robots

from hodyn_ros import RobotModel, Wrench, friction
from hodyn_ros.errors import IdentificationError, JointNameError, MotionError
from hodyn_ros.identification import OnlineEstimator

pin = pytest.importorskip('pinocchio')

XML = robots.robot(
    '<link name="base"/>',
    *(robots.link(name, mass) for name, mass in (('a', 3.0), ('b', 2.0), ('c', 1.0))),
    '<link name="tool"/>',
    robots.joint('first', 'base', 'a', axis='0 0 1'),
    robots.joint('second', 'a', 'b', axis='0 1 0'),
    robots.joint('third', 'b', 'c', axis='1 0 0'),
    robots.joint('flange', 'c', 'tool', kind='fixed'),
)
MODEL = RobotModel.from_urdf(XML)
STEP = 0.02
MASS, COM, INERTIA = 1.5, np.array([0.02, -0.05, 0.12]), np.diag([0.004, 0.006, 0.003])
TRUTH = np.array([MASS, *(MASS * COM)])
NOISE = 0.2


def seconds(duration):
    return STEP * np.arange(round(duration / STEP))


def motion(times):
    """Sines of all joints with two derivatives, shape (N, 3, 3)."""
    amplitude, pulse = np.array([0.8, 0.6, 1.0]), np.array([1.3, 1.9, 2.6])
    phase = np.multiply.outer(times, pulse) + [0.1, 1.0, 2.0]
    rows = np.sin(phase), pulse * np.cos(phase), -(pulse**2) * np.sin(phase)
    return amplitude * np.stack(rows, axis=1)


def efforts(path, mass=0.0):
    """Efforts (N, 3) by Pinocchio, of a robot that carries something in its tool."""
    reference = pin.buildModelFromXML(XML)
    if mass:
        frame = reference.frames[reference.getFrameId('tool')]
        body = frame.placement.act(pin.Inertia(mass, COM, INERTIA))
        reference.inertias[frame.parentJoint] += body
    data = reference.createData()
    return np.array([pin.rnea(reference, data, *rows).copy() for rows in path])


def follow(estimator, times, path, measured):
    """Estimates, None where there was none, of all measurements."""
    return [
        estimator.update(round(1e9 * time), *rows)
        for time, *rows in zip(times.tolist(), path, measured)
    ]


def noisy(values):
    disturbed = values + np.random.default_rng(0).normal(scale=NOISE, size=values.shape)
    return np.round(disturbed / 0.05) * 0.05


def misses(estimate, truth):
    """Errors over their standard deviations."""
    return np.abs(estimate.values - truth) / estimate.std


def test_payload_that_is_attached_in_the_middle_is_found():
    times = seconds(24.0)
    path = motion(times)
    measured = np.where(times[:, None] < 10.0, efforts(path), efforts(path, MASS))
    estimator = OnlineEstimator(MODEL, link='tool')
    found = follow(estimator, times, path, noisy(measured))
    before, after = found[490], found[-1]
    assert before.names[::3] == ('payload.mass', 'payload.first_moment_z')
    assert before.units == ('kg', 'kg m', 'kg m', 'kg m')
    assert misses(before, 0.0).max() < 3.0
    assert before.std[0] < 0.2
    assert before.payload() is None
    assert misses(after, TRUTH).max() < 3.0
    assert after.std[0] < 0.2
    mass, com = after.payload()
    np.testing.assert_allclose([mass, *com], [MASS, *COM], rtol=0.1, atol=0.05)


def test_noise_that_stays_for_some_time_widens_the_deviations():
    times = seconds(8.0)
    path, rng = motion(times), np.random.default_rng(1)
    exact, found = efforts(path, MASS), []
    for _ in range(5):
        noise = rng.normal(size=exact.shape)
        for k in range(1, len(noise)):
            noise[k] = 0.9 * noise[k - 1] + np.sqrt(1.0 - 0.9**2) * noise[k]
        estimator = OnlineEstimator(MODEL, link='tool', memory=5.0, effort_noise=0.02)
        follow(estimator, times, path, exact + NOISE * noise)
        found.append((*misses(estimator.estimate, TRUTH), estimator.estimate.std[0]))
    *errors, std = np.array(found).T
    assert np.mean(np.array(errors) < 2.0) > 0.85
    white = OnlineEstimator(MODEL, link='tool', memory=5.0, effort_noise=0.02)
    follow(white, times, path, noisy(exact))
    assert std.min() > 1.4 * white.estimate.std[0]


def test_friction_that_drifts_is_followed_across_reversals():
    times = seconds(40.0)
    path = motion(times)
    rates = path[:, 1]
    level = np.interp(times, [15.0, 25.0], [1.0, 1.8])[:, None] * [1.0, 0.5, 0.2]
    added = level * np.sign(rates) + [0.6, 0.3, 0.1] * rates
    model = MODEL.with_friction({'first': friction.Viscous(0.6) + friction.Coulomb(1.0)})
    estimator = OnlineEstimator(model, friction=True, memory=5.0)
    found = follow(estimator, times, path, noisy(efforts(path) + added))
    assert found[0].names[:2] == ('friction.first.viscous', 'friction.first.coulomb')
    assert found[0].units[:2] == ('N m s/rad', 'N m')
    early, late = found[740], found[-1]
    # Of the first joint the model knows what it was.
    for estimate, levels in ((early, [0.0, 0.5, 0.2]), (late, [0.8, 0.9, 0.36])):
        truth = np.column_stack([[0.0, 0.3, 0.1], levels]).ravel()
        assert misses(estimate, truth).max() < 4.0
        assert estimate.std.max() < 0.15


def test_at_rest_for_hours_deviations_stay_finite_and_honest():
    times = seconds(10.0)
    path = motion(times)
    estimator = OnlineEstimator(MODEL, link='tool')
    follow(estimator, times, path, noisy(efforts(path, MASS)))
    rest = np.zeros((400, 3, 3))
    rest[:, 0] = 0.3, -0.4, 0.5
    exact = efforts(rest[:1], MASS)
    found = follow(
        estimator, 10.0 + 30.0 * np.arange(1, 401), rest, noisy(exact + np.zeros((400, 3)))
    )
    assert found[-1] is not None
    assert np.isfinite([*found[-1].values, *found[-1].std]).all()
    assert misses(found[-1], TRUTH).max() < 3.0
    # One position does not tell mass and first moments apart: what was known of that has faded.
    assert 0.5 < found[-1].std[0] <= 10.0
    assert found[-1].payload() is None


def test_what_a_motion_does_not_show_keeps_the_deviation_of_before():
    flat = RobotModel.from_urdf(robots.TWO_LINK)
    estimator = OnlineEstimator(flat, link='tool')
    path = np.array([[0.4, -0.7], [0.0, 0.0], [0.0, 0.0]])
    before = estimator.estimate
    for k in range(500):
        estimator.update(k * 10_000_000, path, [0.0, 0.0])
    after = estimator.estimate
    assert before.std[0] == 10.0
    assert (after.std <= before.std).all()
    assert (after.std > 0.9 * before.std).any()


def test_a_joint_that_may_stick_tells_nothing_of_its_friction():
    frictional = OnlineEstimator(RobotModel.from_urdf(robots.TWO_LINK), friction=['elbow'])
    path = np.array([[0.4, -0.7], [1.0, 0.01], [0.0, 0.0]])
    for k in range(100):
        frictional.update(k * 10_000_000, path, [0.0, 5.0])
    assert np.array_equal(frictional.estimate.values, [0.0, 0.0])
    assert np.array_equal(frictional.estimate.std, [10.0, 10.0])


def test_short_contact_is_left_out_and_counted():
    times = seconds(20.0)
    path = motion(times)
    measured = noisy(efforts(path, MASS))
    touched = (times > 15.0) & (times < 15.5)
    measured[touched] += [30.0, -40.0, 25.0]
    estimator = OnlineEstimator(MODEL, link='tool')
    found = follow(estimator, times, path, measured)
    assert all((item is None) == touch for item, touch in zip(found, touched))
    assert estimator.outliers == touched.sum()
    behind = found[np.flatnonzero(touched)[-1] + 1]
    before = found[np.flatnonzero(touched)[0] - 1]
    assert behind.std[0] > 10.0 * before.std[0]
    assert misses(found[-1], TRUTH).max() < 3.0


def test_what_does_not_fit_for_long_makes_it_begin_anew():
    times = seconds(20.0)
    path = motion(times)
    measured = np.where(times[:, None] < 10.0, efforts(path), efforts(path, 4.0 * MASS))
    estimator = OnlineEstimator(MODEL, link='tool')
    found = follow(estimator, times, path, noisy(measured))
    assert all(item is None for item in found[505:540])
    assert estimator.samples < 460
    assert misses(found[-1], 4.0 * TRUTH).max() < 3.0


def test_known_wrench_is_no_contact():
    times = seconds(10.0)
    path = motion(times)
    wrench = Wrench('tool', np.array([[1.0, -2.0, 0.5, 20.0, -10.0, 30.0]]))
    measured = []
    reference = pin.buildModelFromXML(XML)
    data, frame = reference.createData(), reference.getFrameId('tool')
    for rows in path:
        tau = pin.rnea(reference, data, *rows).copy()
        J = pin.computeFrameJacobian(reference, data, rows[0], frame, pin.LOCAL)
        # Pinocchio has forces first.
        measured.append(tau + J.T @ [20.0, -10.0, 30.0, 1.0, -2.0, 0.5])
    estimator = OnlineEstimator(MODEL, link='tool')
    for time, rows, tau in zip(times, path, noisy(np.array(measured))):
        estimator.update(round(1e9 * time), rows, tau, wrench=wrench)
    assert estimator.outliers == 0
    assert misses(estimator.estimate, 0.0).max() < 3.0


def test_late_measurements_are_dropped_and_a_reset_forgets():
    times = seconds(5.0)
    path = motion(times)
    estimator = OnlineEstimator(MODEL, link='tool')
    follow(estimator, times, path, efforts(path, MASS))
    assert estimator.update(10**9, path[0], np.zeros(3)) is None
    assert estimator.samples == len(times)
    estimator.reset()
    assert estimator.samples == 0
    assert np.array_equal(estimator.estimate.values, np.zeros(4))
    assert estimator.update(10**9, path[0], np.zeros(3)) is not None


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('options', 'error', 'why'),
    [
        ({}, IdentificationError, 'link or friction'),
        ({'link': 'base'}, IdentificationError, 'never moves'),
        ({'friction': ['fourth']}, JointNameError, 'first, second, third'),
        ({'friction': 'first'}, JointNameError, 'sequence'),
        ({'friction': True, 'memory': 0.0}, IdentificationError, 'memory is 0'),
    ],
)
def test_options_that_cannot_be_used_are_refused(options, error, why):
    with pytest.raises(error, match=why):
        OnlineEstimator(MODEL, **options)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('rows', 'effort'),
    [
        (np.zeros((2, 3)), np.zeros(3)),
        (np.zeros((3, 3)), np.zeros(2)),
        (np.zeros((3, 3)), [0.0, np.nan, 0.0]),
        (np.full((3, 3), np.inf), np.zeros(3)),
    ],
)
def test_measurement_that_cannot_be_used_is_refused_and_changes_nothing(rows, effort):
    estimator = OnlineEstimator(MODEL, link='tool')
    with pytest.raises(MotionError):
        estimator.update(0, rows, effort)
    assert estimator.samples == 0
    assert estimator.update(0, np.zeros((3, 3)), np.zeros(3)) is not None
