"""Goals of the proxy: where they are, and when nothing more will be heard of them."""

import pytest

from hodyn_ros.streams import goals
from hodyn_ros.streams.goals import (
    ACCEPTED,
    ENDED,
    EXECUTED,
    OVER,
    READY,
    REPLACED,
    RETIMED,
    SENT,
    TIMED,
    TRANSITIONS,
    WAITS,
    Goal,
)

WAY = [(WAITS, READY), (RETIMED, TIMED), (SENT, ACCEPTED), (EXECUTED, OVER)]


def goal_in(state, arrival=10.0):
    made = Goal(arrival)
    for before, event in WAY:
        if before == state:
            break
        made.on(event)
    assert made.state == state
    return made


def lost(goal, now, lacking='', planner='', timeout=60.0):
    return goal.why_lost(now, lacking, 'hodyn_node/retime', planner, timeout)


@pytest.mark.every_case
@pytest.mark.parametrize('state', [WAITS, RETIMED, SENT, EXECUTED])
def test_goal_can_end_at_any_time_and_a_newer_one_ends_what_no_controller_has(state):
    goal = goal_in(state)
    assert goal.on(OVER) and goal.state == ENDED
    assert (ENDED, OVER) not in TRANSITIONS
    goal = goal_in(state)
    assert goal.on(REPLACED) is (state in (WAITS, RETIMED))
    assert goal.is_replaced


def test_goal_waits_a_while_for_what_is_not_there():
    goal = goal_in(WAITS)
    assert not lost(goal, 10.0 + goals.GRACE, 'no service')
    assert lost(goal, 10.1 + goals.GRACE, 'no service') == 'no service'
    assert lost(goal_in(EXECUTED), 10.0, 'no controller') == 'no controller'


def test_timing_that_does_not_come_is_named():
    goal = goal_in(RETIMED)
    assert not lost(goal, 70.0)
    assert 'not answered within 60 s' in lost(goal, 70.1)
    assert not lost(goal, 20.0, planner='7')
    assert 'has ended while it retimed' in lost(goal, 20.0, planner='8')


def test_request_of_which_a_process_that_ended_may_have_been_asked_is_repeated_once():
    goal = goal_in(RETIMED)
    goal.asked = 50.0
    late, early = 50.1 + goals.GRACE, 50.0 + goals.GRACE
    assert goal.is_unheard(late, since=50.0)
    assert not goal.is_unheard(early, since=50.0)  # it may only not be answered yet
    assert not goal.is_unheard(late, since=50.0 - goals.GRACE)
    goal.on(READY)
    goal.asked = late
    assert not goal.is_unheard(late + 10.0, since=50.0)
    assert not lost(goal, late, planner='7')
    assert not lost(goal, late, planner='')  # nothing is heard of it now


def test_controller_that_falls_silent_is_noticed_and_one_that_never_speaks_is_not():
    goal = goal_in(EXECUTED)
    assert not lost(goal, 100.0)
    goal.heard = 100.0
    assert not lost(goal, 100.0 + goals.SILENCE)
    assert 'has not told for 1.1 s' in lost(goal, 100.1 + goals.SILENCE)
