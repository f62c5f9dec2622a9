"""New timings of a motion: what they share with their parts, what they keep, what they refuse."""

import numpy as np
import pytest
from support import robots
from support.records import changed

from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.analysis import motion_limits
from hodyn_ros.errors import RequestError, ScalingError, TrajectoryError, UnlimitedError
from hodyn_ros.retiming import new_timing, uniform_scaling
from hodyn_ros.trajectory import fit_spline

MODEL = RobotModel.from_urdf(robots.TWO_LINK)
POSITIONS = np.array([[0.0, 0.0], [0.4, 0.5], [0.4, 0.5], [0.4, 0.5], [-0.3, 0.2]])
LIMITS = motion_limits(MODEL, {'elbow': {'effort_dot': 300.0}, 'shoulder': {'jerk': 400.0}})


def path(step):
    return fit_spline(2.0 + step * np.arange(len(POSITIONS)), POSITIONS)


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
