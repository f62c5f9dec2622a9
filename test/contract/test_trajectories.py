"""Motions from waypoints and measurements, against SciPy, known functions and the controller."""

import numpy as np
import pytest
from scipy.interpolate import BPoly, make_interp_spline
from support import robots
from support.jtc_model import SECOND, Point, between
from support.streams import coverage, errors, robot_motion, run, stream

from hodyn_ros import RobotModel
from hodyn_ros.errors import HodynError, TrajectoryError
from hodyn_ros.files import Samples, compute, read_motion
from hodyn_ros.trajectory import (
    DerivativeEstimator,
    StartState,
    Waypoints,
    deviation_from_jtc,
    fit_spline,
    fit_waypoints,
    jtc_motion,
    plan_motion,
    position_extremes,
    smooth,
    stop_motion,
)

RANDOM = np.random.default_rng(4)
TIMES = np.cumsum(RANDOM.uniform(0.4, 1.5, 10))
ROWS = RANDOM.uniform(-2.0, 2.0, (3, 10, 3))
DENSE = np.linspace(TIMES[0], TIMES[-1], 2001)
NAMES = 'a', 'b', 'c'


def assert_close(found, expected, tolerance):
    """Every derivative relative to its largest value."""
    scale = np.abs(expected).max(axis=(0, 2), keepdims=True)
    assert (np.abs(found - expected) / np.where(scale > 0.0, scale, 1.0)).max() <= tolerance


def wave(t, rate=1.0, highest=4):
    """Sines of three joints with derivatives, (N, highest + 1, 3)."""
    k = np.arange(highest + 1)[:, None]
    phase = rate * np.asarray(t)[:, None, None] + np.arange(3) + 0.5 * np.pi * k
    return rate**k * np.sin(phase)


@pytest.mark.parametrize('ends', ['rest', 'free'])
def test_the_spline_is_that_of_scipy_from_rest_and_with_free_ends(ends):
    orders = range(1, 5) if ends == 'rest' else range(5, 9)
    bc = [(k, np.zeros(3)) for k in orders]
    oracle = make_interp_spline(TIMES, ROWS[0], k=9, bc_type=(bc, bc))
    given = None if ends == 'rest' else np.full((4, 3), np.nan)
    spline = fit_spline(TIMES, ROWS[0], start=given, end=given)
    expected = np.stack([oracle(DENSE, k) for k in range(5)], axis=1)
    assert_close(spline(DENSE), expected, 1e-8)


def test_the_spline_meets_what_is_given_and_is_of_class_c4_there():
    spline = fit_spline(TIMES, *ROWS)
    np.testing.assert_array_equal(spline(TIMES, 2)[1:-1], np.swapaxes(ROWS, 0, 1)[1:-1])
    before, behind = spline(np.nextafter(TIMES[1:-1], 0.0)), spline(TIMES[1:-1])
    assert_close(before, behind, 1e-9)
    polynomial = np.polynomial.Polynomial(RANDOM.uniform(-1.0, 1.0, 10))
    exact = np.stack([polynomial.deriv(k)(DENSE / 5.0) / 5.0**k for k in range(5)], axis=1)
    ends = exact[[0, -1], 1:, None]
    through = polynomial(TIMES / 5.0)[:, None]
    found = fit_spline(TIMES, through, start=ends[0], end=ends[1])(DENSE)
    assert_close(found, exact[..., None], 1e-8)


def test_derivatives_of_dense_samples_are_those_of_the_function():
    t = np.linspace(0.0, 6.0, 61)
    ends = wave(t[[0, -1]])[:, 1:]
    found = fit_spline(t, wave(t)[:, 0], start=ends[0], end=ends[1])
    fine = np.linspace(0.0, 6.0, 997)
    assert_close(found(fine), wave(fine), 1e-7)


def test_the_controller_moves_as_its_documented_rule_says():
    velocities, accelerations = ROWS[1].copy(), ROWS[2].copy()
    velocities[6:], accelerations[3:] = np.nan, np.nan  # points of all three kinds
    motion = jtc_motion(TIMES, ROWS[0], velocities, accelerations)
    rows = (
        [None if np.isnan(x[0]) else x for x in each]
        for each in (velocities, accelerations)
    )
    points = [
        Point(round(SECOND * t), *row) for t, *row in zip(TIMES.tolist(), ROWS[0], *rows)
    ]
    for a, b in zip(points, points[1:]):
        for share in (0.2, 0.7):
            time = round(a.time + share * (b.time - a.time))
            expected = between(a, b, time)
            found = motion(time / SECOND, 2)
            for k, name in enumerate(('positions', 'velocities', 'accelerations')):
                np.testing.assert_allclose(found[k], getattr(expected, name), atol=1e-6)


def test_the_told_deviation_from_the_controller_is_the_largest_at_any_time():
    spline, played = fit_spline(TIMES, ROWS[0]), jtc_motion(TIMES, ROWS[0])
    t = np.linspace(TIMES[0], TIMES[-1], 40_001)
    largest = np.abs(spline(t, 0) - played(t, 0)).max(axis=(0, 1))
    told = deviation_from_jtc(spline, Waypoints(NAMES, TIMES, ROWS[0]))
    np.testing.assert_allclose(told, largest, rtol=1e-5)


def test_extremes_between_waypoints_are_those_of_dense_samples():
    for make in (fit_spline, jtc_motion):
        motion = make(TIMES, *ROWS)
        found = position_extremes(motion)
        q = motion(np.linspace(TIMES[0], TIMES[-1], 100_001), 0)[:, 0]
        for value, at, most in (
            (found.highest, found.highest_time, q.max(axis=0)),
            (-found.lowest, found.lowest_time, -q.min(axis=0)),
        ):
            np.testing.assert_allclose(value, most, rtol=1e-7)
            assert np.all(value >= most - 1e-12)
            there = motion(at, 0)[[0, 1, 2], 0, [0, 1, 2]]
            np.testing.assert_allclose(np.abs(there), np.abs(value), atol=1e-12)


def test_a_stop_is_the_hermite_polynomial_to_rest():
    state = RANDOM.normal(size=(5, 3))
    found = stop_motion(state, 0.7, start_time=2.0)
    velocity = BPoly.from_derivatives([0.0, 0.7], np.stack([state[1:], np.zeros((4, 3))]))
    position = velocity.antiderivative()
    t = np.linspace(0.0, found.end_time - 2.0, 101)
    rows = [state[0] + position(t), *(velocity(t, k) for k in range(4))]
    assert_close(found(2.0 + t), np.stack(rows, axis=1), 1e-9)


def test_a_plan_continues_a_moving_robot_with_the_joints_by_name():
    moving = fit_spline([0.0, 2.0], [[0.0, 0.0, 0.0], [1.0, -1.0, 0.5]])
    start = StartState(1.0, moving(1.0), True)
    times, points = np.array([1.5, 2.5, 3.0]), ROWS[0, :3]
    plan = plan_motion(Waypoints(NAMES, times, points), ('c', 'a', 'b'), start=start)
    np.testing.assert_allclose(plan.motion(1.0), moving(1.0), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(plan.motion(times, 0)[:, 0], points[:, [2, 0, 1]])
    assert not plan.motion(3.0)[1:].any()
    assert np.abs(plan.motion(np.nextafter(1.5, 0)) - plan.motion(1.5)).max() < 1e-6


def as_text(values, digits):
    return np.vectorize(lambda x: float(f'{x:{digits}}'))(values)


@pytest.mark.parametrize(
    ('rounded', 'miss'),
    [
        (lambda q: as_text(q, '.6f'), 2.1e-6),
        (lambda q: np.deg2rad(as_text(np.rad2deg(q), '.4f')), 4e-6),
        (lambda q: as_text(q, '.6g'), 2.1e-5),
        (lambda q: q.astype(np.float32).astype(float), 2.1e-7),
        (lambda q: q, 1e-15),
    ],
    ids=['decimals', 'degrees', 'digits', 'single', 'exact'],
)
def test_waypoints_whose_numbers_are_rounded_give_the_motion_and_not_the_rounding(
    rounded, miss
):
    path = fit_spline(
        [0.0, 0.7, 1.1, 1.9], [[0.3, 0.0], [0.5, -0.4], [0.2, -0.3], [0.3, 0.2]]
    )
    t = np.linspace(0.0, 1.9, 1901)
    given = rounded(path(t)[:, 0])
    found = fit_waypoints(t, given)
    assert np.abs(found.motion(t, 0)[:, 0] - given).max() <= miss + 5e-9
    fine = np.linspace(0.0, 1.9, 5000)
    snap = [np.abs(motion(fine)[:, 4]).max() for motion in (path, found.motion)]
    assert snap[1] < 1.3 * snap[0] + 1.0
    assert bool(found.remarks) == (miss > 1e-15) == (len(found.kept) < len(t))


def test_a_file_with_wrapped_angles_gives_the_derivatives_of_its_function(tmp_path):
    turning = robots.TWO_LINK.replace(
        '"elbow" type="revolute"', '"elbow" type="continuous"'
    )
    model = RobotModel.from_urdf(turning)
    t = np.arange(0.0, 6.0, 4e-3)
    exact = wave(t)[..., :2]
    exact[:, 0, 1] += 2.0 * t
    exact[:, 1, 1] += 2.0
    path = tmp_path / 'motion.csv'
    elbow = (exact[:, 0, 1] + np.pi) % (2.0 * np.pi) - np.pi
    table = np.column_stack([t, elbow, exact[:, 0, 0]])
    titles = 'time,elbow.position,shoulder.position'
    np.savetxt(path, table, '%.7f', ',', header=titles, comments='')
    results = compute(model, read_motion(path), derivatives='spline')
    np.testing.assert_allclose(results.times, t, atol=1e-9)
    found = results.motion
    inside = slice(150, -150)
    assert_close(found[inside, :4], exact[inside, :4], 3e-3)
    assert_close(found[inside], exact[inside], 5e-2)
    samples = Samples(model.joint_names, t, np.rad2deg(exact[:, :1]))
    with pytest.raises(HodynError, match='degrees'):
        compute(model, samples)


def test_estimated_derivatives_are_within_their_deviations_as_often_as_told():
    found = [], []
    for seed in range(2):
        estimator = DerivativeEstimator(6)
        estimates = run(estimator, *stream(robot_motion, 200, 4.0, 1e-4, seed))
        for order in range(4):
            for kept, part in zip(found, errors(estimates, robot_motion, order)):
                kept.append((part, order))
    for order in range(4):
        error, std = (
            np.concatenate([part for part, k in each if k == order]) for each in found
        )
        assert len(error) > 200 and coverage(error, std) >= 0.88
        truth = robot_motion(np.linspace(0.0, 4.0, 999))[:, order]
        assert np.sqrt(np.mean(std**2)) < 0.3 * truth.std() < np.inf


def test_smoothed_recordings_are_within_their_deviations_as_often_as_told():
    t = np.arange(1500) / 250.0
    truth = np.concatenate([wave(t, 1.3), wave(t, 4.0)], axis=2)
    values = truth[:, 0] + 1e-4 * np.random.default_rng(2).standard_normal((1500, 6))
    found = smooth(np.rint(1e9 * t).astype(np.int64), values)
    std = np.sqrt(np.einsum('nckk->nkc', found.covariance))
    inside = np.abs(found.motion - truth) < 1.96 * std
    assert (inside.mean(axis=(0, 2)) > 0.9).all()
    assert (np.median(std[:, :3], axis=0) < 0.05 * truth[:, :3].std(axis=0)).all()


@pytest.mark.parametrize(
    ('times', 'positions', 'words'),
    [
        ([0.0, 1.0, 1.0], [[0.0], [1.0], [1.0]], 'increase'),
        ([0.0, 1.0, 0.5], [[0.0], [1.0], [1.0]], 'increase'),
        ([0.0, np.nan], [[0.0], [1.0]], 'nan'),
        ([0.0, 1.0], [[0.0], [np.inf]], 'inf'),
        ([0.0, 1.0], [[0.0]], 'shape'),
        ([0.0], [[0.0]], 'waypoint'),
    ],
)
def test_waypoints_that_make_no_motion_are_refused_with_the_reason(times, positions, words):
    for make in (fit_spline, jtc_motion):
        with pytest.raises(TrajectoryError, match=words):
            make(times, positions)
