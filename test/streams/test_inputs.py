"""Measurements of links and motors in pairs, stamps that go back, and references."""

import numpy as np
import pytest

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


def test_a_stream_ends_a_trajectory_once_it_begins():
    timeline, rest = Timeline(), np.zeros((5, 1))
    references = References(timeline, timeline.clear)
    references.use_joints(('a',))
    timeline.add(PlannedMotion(('a',), stop_motion(rest, 1e-8), 5, 4))
    references.take(9, rest + 1.0, 0)
    for time, origin in ((7, 'trajectory'), (9, 'stream')):
        assert references.at(time, np.zeros(1), 0.0, None)[0] == (origin == 'stream')
        assert references.origin == origin
    assert not timeline
