"""Whether a robot goes on or is stopped, how, and why: measurement by measurement."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import robots

from hodyn_ros import RobotModel
from hodyn_ros.model.limits import motion_limits
from hodyn_ros.streams.guard import Guard
from hodyn_ros.streams.supervisor import (
    COMMAND,
    FLOATING,
    FOLLOWING,
    GO,
    INTERVALS,
    LEAVING,
    NO_COMMAND,
    REPEAT,
    SILENT,
    STOP,
    STOPPING,
    SUSPEND,
    SUSPENDED,
    TRANSITIONS,
    Seen,
    Supervisor,
    Watch,
)

MS = 1_000_000  # ns
WATCH = Watch(max_gap=0.05, saturation_time=0.1, violation_samples=3)
NEAR, FAR = 0.01, 0.2  # rad, beside a largest error of 0.1
MODEL = RobotModel.from_urdf(robots.TWO_LINK)


def bounds():
    return Guard(
        MODEL,
        motion_limits(MODEL),
        np.full(2, 0.1),
        np.full(2, 5.0),
        position_margin=0.05,
        velocity_margin=0.1,
        stop_duration=0.5,
    )


@pytest.fixture
def guard():
    return bounds()


def seen(stamp=0, q=0.3, error=0.0, speed=0.1, **more):
    state = np.array([[q, q], [speed, speed]])
    reference = np.zeros((5, 2))
    reference[0], reference[1] = q + error, speed
    return Seen(stamp, state, reference, np.full(2, float(error)), **more)


def stopped(guard, watch=WATCH, **what):
    supervisor = Supervisor()
    while supervisor.judge(guard, watch, seen(**what)) != STOP:
        pass
    return supervisor


def test_robot_on_its_path_goes_on(guard):
    supervisor = Supervisor()
    for stamp in range(100):
        assert supervisor.judge(guard, WATCH, seen(stamp * MS, error=NEAR)) == GO
        supervisor.note_command(stamp * MS, False)
    assert (supervisor.state, supervisor.why, supervisor.stops) == (FOLLOWING, '', 0)


def test_few_bad_measurements_repeat_the_last_command_and_more_stop(guard):
    supervisor = Supervisor()
    for _ in range(5):  # never as many one after the other
        verdicts = [supervisor.judge(guard, WATCH, seen(error=FAR)) for _ in range(2)]
        assert verdicts == [REPEAT, REPEAT]
        assert 'tracking error' in supervisor.doubt
        assert supervisor.judge(guard, WATCH, seen()) == GO
    verdicts = [supervisor.judge(guard, WATCH, seen(error=FAR)) for _ in range(3)]
    assert verdicts == [REPEAT, REPEAT, STOP]
    assert supervisor.beyond == 13
    assert supervisor.stops == 1


@pytest.mark.parametrize(
    ('what', 'watch', 'state', 'why'),
    [
        ({'error': FAR}, WATCH, LEAVING, 'tracking error'),
        ({'q': 2.5}, WATCH, LEAVING, 'position'),
        ({'external': np.array([0.0, 9.0])}, WATCH, STOPPING, 'external torque'),
        (
            {'external': np.array([0.0, 9.0])},
            WATCH._replace(floats=True),
            FLOATING,
            'external',
        ),
        ({'q': 2.5}, WATCH._replace(floats=True), LEAVING, 'position'),
    ],
)
def test_what_is_exceeded_decides_how_the_robot_is_stopped(guard, what, watch, state, why):
    supervisor = stopped(guard, watch, **what)
    assert supervisor.state == state
    assert why in supervisor.why


def test_law_that_yields_has_no_error(guard):
    supervisor = Supervisor()
    for _ in range(10):
        assert supervisor.judge(guard, WATCH, seen(error=FAR, yields=True)) == GO


def test_gap_while_the_robot_moves_stops_at_once(guard):
    supervisor = Supervisor()
    supervisor.note_interval(60 * MS)
    still = seen(speed=0.0)
    assert supervisor.judge(guard, WATCH, still) == GO
    assert supervisor.judge(guard, WATCH, seen()) == STOP
    assert supervisor.state == STOPPING
    assert 'no measurement was answered for 0.060 s' in supervisor.why


def test_motor_at_its_limit_for_long_stops(guard):
    supervisor = Supervisor()
    for stamp in range(1, 102):
        assert supervisor.judge(guard, WATCH, seen(stamp * MS)) == GO
        supervisor.note_command(stamp * MS, True)
    assert supervisor.judge(guard, WATCH, seen(102 * MS)) == STOP
    assert 'torque limit for 0.101 s' in supervisor.why


@pytest.mark.parametrize(
    ('intervals', 'verdict'),
    [
        ([1.0], GO),
        ([1.5], SUSPEND),
        ([0.5], SUSPEND),
        ([1.0, 1.0, 4.0, 1.0, 7.0], GO),  # samples are lost now and then
        ([1.0, 2.0, 2.0, 5.0, 1.0, 2.0], SUSPEND),  # most of the time
    ],
)
def test_at_another_period_than_the_law_was_made_for_nothing_is_commanded(
    guard, intervals, verdict
):
    supervisor, watch = Supervisor(), WATCH._replace(sample_period=1e-3)
    for k in range(2 * INTERVALS):
        supervisor.note_interval(round(intervals[k % len(intervals)] * MS))
    assert supervisor.judge(guard, watch, seen()) == verdict
    assert (supervisor.state == SUSPENDED) is (verdict == SUSPEND)
    assert ('sample_period is 0.001 s' in supervisor.why) is (verdict == SUSPEND)


@pytest.mark.parametrize('what', [{'error': FAR}, {'external': np.array([0.0, 9.0])}])
def test_stop_that_is_not_kept_up_ends_all_commands_until_the_robot_is_released(
    guard, what
):
    for interval, count in ((2 * MS, INTERVALS), (60 * MS, 1)):
        watch = WATCH._replace(sample_period=1e-3)
        supervisor = stopped(guard, watch, **what)
        for _ in range(count):
            supervisor.note_interval(interval)
        assert supervisor.judge(guard, watch, seen()) == SUSPEND
        supervisor.note_silence()
        assert (supervisor.state, supervisor.has_stopped) == (SUSPENDED, True)
        assert not supervisor.release()
        assert (supervisor.state, supervisor.why) == (FOLLOWING, '')


def test_robot_that_cannot_follow_its_stop_leaves_the_path(guard):
    supervisor = stopped(guard, external=np.array([0.0, 9.0]))
    assert supervisor.judge(guard, WATCH, seen(error=NEAR)) == GO
    why = supervisor.why
    assert supervisor.judge(guard, WATCH, seen(error=FAR)) == STOP
    assert (supervisor.state, supervisor.why, supervisor.stops) == (LEAVING, why, 2)
    assert supervisor.judge(guard, WATCH, seen(error=FAR)) == GO


def test_released_robot_follows_again_and_says_whether_it_has_floated(guard):
    held = stopped(guard, external=np.array([0.0, 9.0]))
    assert not held.release()
    floating = stopped(guard, WATCH._replace(floats=True), external=np.array([0.0, 9.0]))
    assert floating.release()
    assert (floating.state, floating.why) == (FOLLOWING, '')


def test_without_a_command_it_is_silent_until_there_is_one():
    supervisor = Supervisor()
    supervisor.note_silence()
    assert supervisor.state == SILENT
    supervisor.note_command(MS, False)
    assert supervisor.state == FOLLOWING


def test_after_a_jump_of_time_it_still_knows_why_the_robot_stands(guard):
    supervisor = stopped(guard, error=FAR)
    why = supervisor.why
    supervisor.begin_anew()
    assert supervisor.has_stopped and supervisor.why == why


def test_every_state_is_reached():
    states = {state for state, _ in TRANSITIONS}
    assert states == {FOLLOWING, STOPPING, LEAVING, FLOATING, SILENT, SUSPENDED}
    assert set(TRANSITIONS.values()) == states
    for state in states:
        assert (state, NO_COMMAND) in TRANSITIONS
        assert ((state, COMMAND) in TRANSITIONS) is (state != SUSPENDED)


@given(
    st.lists(
        st.sampled_from(['near', 'far', 'pushed', 'gap', 'silence', 'release', 'jump'])
    )
)
def test_in_any_order_a_stopped_robot_stays_stopped_until_it_is_released(events):
    guard = bounds()
    supervisor, stamp = Supervisor(), MS
    kinds = {
        'near': {'error': NEAR},
        'far': {'error': FAR},
        'pushed': {'external': np.array([0.0, 9.0])},
        'gap': {},
    }
    for event in events:
        before = supervisor.has_stopped
        stamp += MS
        if event == 'silence' or (event in kinds and supervisor.state == SUSPENDED):
            supervisor.note_silence()
        elif event == 'jump':
            supervisor.begin_anew()
        elif event == 'release':
            if before:
                supervisor.release()
            before = False
        else:
            supervisor.note_interval(100 * MS if event == 'gap' else MS)
            verdict = supervisor.judge(guard, WATCH, seen(stamp, **kinds[event]))
            assert verdict in (GO, REPEAT, STOP, SUSPEND)
            assert verdict not in (STOP, SUSPEND) or supervisor.has_stopped
            assert verdict != REPEAT or not supervisor.has_stopped
            if verdict != SUSPEND:
                supervisor.note_command(stamp, False)
        assert supervisor.has_stopped or not before
        assert bool(supervisor.why) is supervisor.has_stopped
