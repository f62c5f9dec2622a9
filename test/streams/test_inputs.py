"""Measurements of links and motors in pairs, stamps that go back, and references."""

import numpy as np
import pytest

from hodyn_ros.errors import StaleError
from hodyn_ros.streams import Pairs, PlannedMotion, References, Timeline
from hodyn_ros.trajectory import stop_motion

LINKS, MOTORS, MOST_WAITING = 'joint_states', 'motor_states', 64
HALVES = {
    LINKS: np.array([[0.1, 0.2], [0.3, 0.4]]),
    MOTORS: np.array([[0.5, 0.6], [0.7, 0.8]]),
}


def both(pairs, stamp, topics=(LINKS, MOTORS)):
    """What the second half of a pair gives."""
    return [pairs.take(topic, stamp, HALVES[topic]) for topic in topics][-1]


class Steady:
    """A clock that stands still until it is told."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def answered():
    """Pairs, one of which, at 5 s, has been answered; and their clock."""
    steady = Steady()
    pairs = Pairs(lambda topic: None, steady)
    pairs.answer(both(pairs, 5 * 10**9).stamp)
    return pairs, steady


def test_pairs_begin_anew_after_some_of_the_past_and_nothing_newer(answered):
    pairs, steady = answered
    found = []
    for i in range(20):
        steady.now = 0.1 * i
        found.append(
            both(pairs, 10**9 + i, topics=(LINKS, MOTORS) if i % 2 else (MOTORS, LINKS))
        )
        assert (pairs.behind > 3.9) == (0 < i < 10)
        if found[-1] is not None:
            pairs.answer(found[-1].stamp)
    assert found[:10] == [None] * 10
    assert found[10].begins_anew and found[10].stamp == 10**9 + 10
    assert not any(measured.begins_anew for measured in found[11:])


def test_the_same_sample_again_and_again_is_answered_again(answered):
    pairs, steady = answered  # as of a simulation that waits for an answer that was lost
    found = []
    for steady.now in (0.0, 0.7, 1.4):
        found.append(both(pairs, 5 * 10**9))
    assert [measured is not None for measured in found] == [False, False, True]


def test_late_pairs_and_halves_beside_newer_ones_do_not_begin_anew(answered):
    pairs, steady = answered
    for i in range(50):
        steady.now = 0.1 * i
        assert both(pairs, 10**9 + i) is None
        newer = both(pairs, 6 * 10**9 + i)
        assert not newer.begins_anew
        pairs.answer(newer.stamp)
    for i in range(50):
        steady.now += 0.1
        assert both(pairs, 2 * 10**9 + i) is None
        both(pairs, 7 * 10**9 + i, topics=(LINKS,))


@pytest.mark.every_case
@pytest.mark.parametrize('topics', [(LINKS, MOTORS), (MOTORS, LINKS)])
def test_a_pair_has_the_links_first_whichever_half_comes_first(topics):
    measured = both(Pairs(lambda topic: None), 7, topics)
    assert (measured.stamp, measured.begins_anew) == (7, False)
    np.testing.assert_array_equal(
        measured.state, np.vstack((HALVES[LINKS], HALVES[MOTORS]))
    )


def test_pairs_forget_what_waits_too_long():
    dropped = []
    pairs = Pairs(dropped.append)
    for stamp in range(1, MOST_WAITING + 3):
        assert pairs.take(LINKS, stamp, HALVES[LINKS]) is None
    assert dropped == [LINKS, LINKS]
    assert pairs.take(MOTORS, 2, HALVES[MOTORS]) is None  # its other half is gone
    assert pairs.take(MOTORS, 3, HALVES[MOTORS]).stamp == 3
    assert dropped == [LINKS, LINKS, MOTORS]


SECOND = 10**9
MOTION = np.array([[0.1, 0.2], [1.0, -1.0], [2.0, 3.0], [-4.0, 5.0], [6.0, -7.0]])


@pytest.fixture
def references():
    timeline = Timeline()
    made = References(timeline, timeline.clear)
    made.use_joints(('a', 'b'))
    return made


def test_a_stream_ends_a_trajectory_and_what_is_too_old_is_refused():
    timeline = Timeline()
    references = References(timeline, timeline.clear)
    references.use_joints(('a', 'b'))
    planned = PlannedMotion(('a', 'b'), stop_motion(MOTION, 1.0), SECOND, 4)
    timeline.add(planned)
    np.testing.assert_allclose(
        references.at(SECOND, np.zeros(2), 0.05, None), MOTION, atol=1e-12
    )
    references.take(2 * SECOND, MOTION, SECOND)
    assert timeline
    references.at(2 * SECOND, np.zeros(2), 0.05, None)
    assert not timeline and references.origin == 'stream'
    with pytest.raises(StaleError, match='older than the measurements'):
        references.take(SECOND, MOTION, SECOND + 1)


def test_a_stop_is_dragged_along_by_a_robot_that_does_not_follow(references):
    references.stop(stop_motion(MOTION, 0.5), SECOND, np.array([0.05, 0.05]))
    measured = MOTION[0]
    for time in range(SECOND, 2 * SECOND, SECOND // 100):
        wanted = references.at(time, measured, 0.05, 0.5)
        assert (np.abs(wanted[0] - measured) <= 0.05 + 1e-12).all()
    assert references.is_stopping and references.origin == 'stop'
    references.end_stop()
    np.testing.assert_allclose(
        references.at(3 * SECOND, measured, 0.05, None)[0], wanted[0]
    )
