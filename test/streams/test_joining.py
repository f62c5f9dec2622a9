"""Whether a robot can get from where it is to the waypoints, or is told why not."""

import numpy as np
import pytest
from support import robots
from support.motion_limits import unlimited

from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.errors import JointNameError, TrajectoryError
from hodyn_ros.model import motion_limits
from hodyn_ros.streams import PlannedMotion, Timeline, plan_from_state
from hodyn_ros.trajectory import StartState, Waypoints, fit_spline, plan_motion, stop_motion

NAMES = ('shoulder', 'elbow')
# What a way may ask for without a limit: so many times what is asked for anyway, or this stop.
MULTIPLE, STOP = 10.0, 0.5
WAYPOINTS = Waypoints(NAMES, [0.0, 1.0, 2.0], [[0.0, 0.0], [0.4, 0.2], [0.6, 0.6]])


@pytest.fixture(scope='module')
def model():
    return RobotModel.from_urdf(robots.TWO_LINK)


def at(time, position=(0.0, 0.0), in_progress=False, velocity=(0.0, 0.0)):
    motion = np.zeros((5, 2))
    motion[:2] = position, velocity
    return StartState(time, motion, in_progress)


def planned(model, start, waypoints=WAYPOINTS, tolerance=0.2, limits=None, **options):
    limits = motion_limits(model) if limits is None else limits
    return plan_from_state(
        model, limits, waypoints, start=start, tolerance=tolerance, **options
    )


def efforts(model, motion, begin, end):
    """Largest effort and effort rate, from fine samples."""
    found = inverse_dynamics(model, motion(np.linspace(begin, end, 4001)))
    return np.abs(found[:, :2]).max(axis=0)


def test_without_a_known_state_the_motion_is_that_of_the_waypoints(model):
    expected = plan_motion(WAYPOINTS, NAMES)
    np.testing.assert_array_equal(
        planned(model, None).motion.states, expected.motion.states
    )


@pytest.mark.parametrize('time', [0.0, 0.03])
def test_robot_near_the_first_waypoint_begins_where_it_is_without_a_jump(model, time):
    plan = planned(model, at(time, (0.01, -0.02)))
    assert plan.motion.start_time == time
    np.testing.assert_allclose(
        plan.motion(time), at(time, (0.01, -0.02)).motion, atol=1e-12
    )
    np.testing.assert_allclose(plan.motion(1.0)[0], [0.4, 0.2], atol=1e-12)
    assert not plan.warnings


def test_robot_that_is_elsewhere_is_told_where_and_how_far(model):
    with pytest.raises(
        TrajectoryError, match=r'elbow at 0 rad, the robot is 0\.3 rad away'
    ):
        planned(model, at(0.0, (0.0, 0.3)))
    assert planned(model, at(0.0, (0.0, 0.3)), tolerance=np.inf)


def test_robot_that_is_elsewhere_is_told_where_it_is_known_from(model):
    names, motion = model.joint_names, plan_motion(WAYPOINTS, NAMES).motion
    last = Timeline()
    last.add(PlannedMotion(names, motion, 0, 4))
    told = at(0.0, (0.6, 0.6))
    with pytest.raises(TrajectoryError, match='rest where its last motion has ended'):
        planned(model, told, origin=last.state(3 * 10**9).origin)
    with pytest.raises(JointNameError, match='missing: elbow'):  # before places
        planned(model, told, Waypoints(('shoulder', 'elbo'), [0.0], [[2.0, 2.0]]))


@pytest.mark.parametrize(('period', 'digits'), [(4e-3, 6), (1e-3, 17)])
def test_dense_waypoints_that_replace_a_motion_are_joined_in_their_midst(
    model, period, digits
):
    """The motion in progress goes another way: 4 ms do not suffice to turn it."""
    current = fit_spline([0.0, 4.0], [[0.0, 0.0], [0.5, 0.5]])
    start = StartState(0.4, current(1.9), True)
    path = fit_spline([0.0, 3.0], [current(1.5)[0], current(1.5)[0] + 0.2])
    times = np.linspace(0.0, 3.0, round(3.0 / period) + 1)
    dense = Waypoints(NAMES, times, path(times, 0)[:, 0].round(digits))
    plan = planned(model, start, dense, limits=unlimited(2))
    np.testing.assert_allclose(plan.motion(0.4), start.motion, atol=1e-12)
    (remark,) = [text for text in plan.remarks if 'passed over' in text]
    joined = float(remark.rsplit('at ', 1)[1].removesuffix(' s.'))
    assert 0.4 < joined <= 0.4 + STOP + 1e-9
    # Behind that it is the motion of the waypoints, to the rounding of their numbers.
    behind = np.linspace(joined, 3.0, 400)
    found, asked = plan.motion(behind), path(behind)
    assert np.abs(found[:, 0] - asked[:, 0]).max() < 3e-6
    stop = efforts(model, stop_motion(start.motion, STOP), 0.0, STOP)
    easy = fit_spline([0.0, STOP], [start.motion[0], path(joined, 0)[0]])
    own = np.max(
        [stop, efforts(model, path, 0.0, 3.0), efforts(model, easy, 0.0, STOP)], axis=0
    )
    found = efforts(model, plan.motion, 0.4, 3.0)
    assert (found <= 1.05 * MULTIPLE * own + [[0.1], [10.0]]).all()


def test_what_is_taken_asks_for_no_more_than_a_multiple_of_the_motions_own(model):
    """Whatever is accepted, for waypoints ever closer behind a state that moves."""
    own = efforts(model, plan_motion(WAYPOINTS, NAMES).motion, 0.0, 2.0)
    taken = refused = 0
    for time in np.linspace(0.1, 0.985, 30):
        start = at(time, (0.1, 0.0), True, (0.3, -0.2))
        stop = efforts(model, stop_motion(start.motion, STOP), 0.0, STOP)
        easy = fit_spline([0.0, max(2.0 - time, STOP)], [start.motion[0], [0.6, 0.6]])
        sooner = fit_spline([0.0, max(1.0 - time, STOP)], [start.motion[0], [0.4, 0.2]])
        try:
            motion = planned(model, start, limits=unlimited(2)).motion
        except TrajectoryError:
            refused += 1
            continue
        taken += 1
        way = efforts(model, motion, time, motion.times[1])
        # The bound is looked at in between, up to what lies between the looks.
        straight = sooner if motion.times[1] == 1.0 else easy
        own_way = efforts(model, straight, 0.0, straight.end_time)
        assert (way <= 1.05 * MULTIPLE * np.max([own, stop, own_way], axis=0)).all()
    assert taken and refused


def test_known_limit_counts_before_the_multiple(model):
    start = at(0.8, (0.1, 0.05), True)
    own = efforts(model, plan_motion(WAYPOINTS, NAMES).motion, 0.0, 2.0)[0]
    assert planned(model, start, limits=unlimited(2, effort=1e9, effort_dot=1e9))
    with pytest.raises(TrajectoryError, match=r'effort of .*its limit'):
        planned(model, start, limits=unlimited(2, effort=1.01 * own, effort_dot=1e9))


@pytest.mark.every_case
@pytest.mark.parametrize(('time', 'is_taken'), [(0.4, True), (0.05, False)])
def test_way_to_waypoints_that_stand_still_needs_its_time(model, time, is_taken):
    hold = Waypoints(NAMES, [time, time + 0.1], [[0.6, -0.5]] * 2)
    limits = unlimited(2)
    if is_taken:
        assert planned(model, at(0.0), hold, limits=limits)
    else:
        with pytest.raises(TrajectoryError, match='it has no limit'):
            planned(model, at(0.0), hold, limits=limits)


def test_joints_that_are_left_out_are_held(model):
    part = Waypoints(NAMES[:1], [0.0, 1.0, 2.0], [[0.0], [0.4], [0.6]])
    plan = planned(model, at(0.0, (0.05, 0.7)), part, allow_partial_joints=True)
    np.testing.assert_allclose(plan.motion(1.5)[0, 1], 0.7)
