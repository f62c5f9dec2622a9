"""New timings of a motion: what they share with their parts, what they keep, what they refuse."""

import numpy as np
import pytest
from support import robots
from support.random_trees import random_robot
from support.records import changed

from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.analysis import find_violations, motion_limits
from hodyn_ros.errors import RequestError, ScalingError, TrajectoryError, UnlimitedError
from hodyn_ros.retiming import Retimed, UniformScaling, new_timing, retime, uniform_scaling
from hodyn_ros.trajectory import Waypoints, fit_spline, jtc_motion, plan_motion

MODEL = RobotModel.from_urdf(robots.TWO_LINK)
POSITIONS = np.array([[0.0, 0.0], [0.4, 0.5], [0.4, 0.5], [0.4, 0.5], [-0.3, 0.2]])
LIMITS = motion_limits(MODEL, {'elbow': {'effort_dot': 300.0}, 'shoulder': {'jerk': 400.0}})


def path(step):
    return fit_spline(2.0 + step * np.arange(len(POSITIONS)), POSITIONS)


def violations(model, limits, motion):
    times = np.linspace(motion.start_time, motion.end_time, 10_001)
    slack = {
        name: getattr(limits, name) * (1.0 + 1e-7)
        for name in ('velocity', 'acceleration', 'jerk', 'effort', 'effort_dot')
    }
    executed = motion(times)
    efforts = inverse_dynamics(model, executed)
    return find_violations(model, changed(limits, **slack), executed, efforts)


@pytest.mark.parametrize('timing', ['path', 'uniform'])
@pytest.mark.parametrize('slower_only', [True, False])
@pytest.mark.parametrize('step', [0.05, 1.0])
def test_limits_are_kept_and_slower_only_makes_nothing_shorter(timing, slower_only, step):
    found = new_timing(MODEL, path(step), LIMITS, timing=timing, slower_only=slower_only)
    assert violations(MODEL, LIMITS, found.motion) == ()
    assert found.duration == pytest.approx(found.motion.duration, rel=1e-12)
    assert found.duration == pytest.approx(found.times[-1] - found.times[0], rel=1e-12)
    assert found.duration_before == pytest.approx(4.0 * step)
    np.testing.assert_allclose(found.samples[-1, 0], POSITIONS[-1], rtol=0.0, atol=1e-12)
    if slower_only:
        assert found.duration >= found.duration_before * (1.0 - 1e-12)
    if slower_only and step == 1.0:
        assert (found.factor, found.is_fastest) == (1.0, False)
        np.testing.assert_array_equal(found.samples, path(step)(found.times))
        assert set(path(step).times) <= set(found.times)
    elif timing == 'path':
        assert found.factor is None
        assert isinstance(found.found, Retimed)
        assert 0.0 < found.deviation < 1e-3
        assert found.is_fastest != slower_only
    else:
        assert isinstance(found.found, UniformScaling)
        assert found.duration == pytest.approx(found.factor * found.duration_before)
        # No faster: with a thousandth less it would not keep them.
        faster = jtc_motion(
            found.times / 1.001, *(found.samples[:, k] * 1.001**k for k in range(3))
        )
        assert violations(MODEL, LIMITS, faster) != ()
        assert found.is_fastest
        assert abs(found.limiting.value) == pytest.approx(
            abs(found.limiting.limit), rel=1e-6
        )


def test_new_law_along_the_path_is_that_of_retime():
    found = new_timing(MODEL, path(0.1), LIMITS, keep_standstills=False, intervals=32)
    expected = retime(MODEL, path(0.1), LIMITS, keep_standstills=False, intervals=32)
    assert found.duration == pytest.approx(expected.duration, rel=1e-9)
    assert found.standstill == expected.standstill == 0.0
    kept = new_timing(MODEL, path(0.1), LIMITS, intervals=32)
    assert kept.standstill == pytest.approx(0.2, abs=1e-3)


@pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')
@pytest.mark.parametrize('seed', range(3))
def test_random_robots_are_stretched_by_what_a_search_finds(seed):
    model = RobotModel.from_urdf(random_robot(seed).xml)
    rng = np.random.default_rng(seed)
    positions = rng.uniform(-0.5, 0.5, (4, model.n_joints))
    names = model.joint_names
    plan = plan_motion(Waypoints(names, 0.3 * np.arange(4), positions), names)
    still = np.zeros((4, 3, model.n_joints))
    still[:, 0] = positions
    weight = np.abs(inverse_dynamics(model, still)[:, 0]).max(axis=0)
    limits = changed(
        motion_limits(model),
        lower=np.full(model.n_joints, -9.0),
        upper=np.full(model.n_joints, 9.0),
        velocity=np.full(model.n_joints, 2.0),
        effort=3.0 * weight + 1.0,
    )
    found = new_timing(model, plan.motion, limits, timing='uniform')

    def is_kept(factor):
        times, samples = (
            found.times * factor,
            [found.samples[:, k] / factor**k for k in range(3)],
        )
        return not violations(model, limits, jtc_motion(times, *samples))

    assert is_kept(1.0001)
    assert not is_kept(0.999)


def test_samples_that_are_not_executed_are_judged_alone():
    times = np.linspace(0.0, 1.0, 41)
    samples = path(0.25)(2.0 + times)
    found = new_timing(
        MODEL, None, LIMITS, timing='uniform', given=(times, samples), is_executed=False
    )
    assert found.motion is None
    assert found.factor == uniform_scaling(MODEL, samples, LIMITS).factor
    np.testing.assert_allclose(
        found.samples[:, 1], samples[:, 1] / found.factor, rtol=1e-12
    )


@pytest.mark.parametrize('timing', ['path', 'uniform'])
@pytest.mark.parametrize(
    ('changes', 'positions', 'quantity', 'value'),
    [
        ({'effort': np.array([1.0, 1e3])}, POSITIONS + 0.9, 'effort', None),
        ({'upper': np.array([0.2, 3.0])}, POSITIONS, 'position', 0.4),
    ],
)
def test_what_no_timing_saves_says_which_limit_it_is(
    timing, changes, positions, quantity, value
):
    motion = fit_spline(2.0 + np.arange(5.0), positions)
    with pytest.raises(ScalingError) as caught:
        new_timing(MODEL, motion, changed(LIMITS, **changes), timing=timing)
    exceeded = caught.value.limiting
    assert (exceeded.quantity, exceeded.name) == (quantity, 'shoulder')
    assert abs(exceeded.value) > abs(exceeded.limit)
    still = np.zeros((3, 2))
    still[0] = motion(exceeded.time)[0]
    expected = still[0, 0] if value else inverse_dynamics(MODEL, still)[0, 0]
    assert exceeded.value == pytest.approx(expected, abs=1e-6)
    assert not isinstance(caught.value, UnlimitedError)


@pytest.mark.parametrize('timing', ['path', 'uniform'])
def test_speed_that_nothing_limits_is_an_error_unless_slower_only(timing):
    free = changed(
        LIMITS,
        **{
            name: np.full(2, np.inf)
            for name in ('velocity', 'jerk', 'effort', 'effort_dot')
        },
    )
    with pytest.raises(UnlimitedError, match='Nothing limits the speed'):
        new_timing(MODEL, path(1.0), free, timing=timing)
    found = new_timing(MODEL, path(1.0), free, timing=timing, slower_only=True)
    assert (found.factor, found.limiting) == (1.0, None)


def test_unusable_options_are_refused():
    with pytest.raises(
        RequestError, match="timing is 'fast', expected one of path, uniform"
    ):
        new_timing(MODEL, path(1.0), timing='fast')
    with pytest.raises(TrajectoryError, match='cut it into parts'):
        new_timing(MODEL, path(1e6), timing='uniform')
