"""Stamps of measurements that go back, and references."""

import numpy as np
import pytest

from hodyn_ros.streams import PlannedMotion, References, Stamps, Timeline
from hodyn_ros.trajectory import stop_motion

SECOND = 10**9  # ns


class Steady:
    """A clock that stands still until it is told."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def answered():
    """Stamps, one of which, at 5 s, has been answered; and their clock."""
    steady = Steady()
    stamps = Stamps(steady)
    assert stamps.judge(5 * SECOND) == 'newer'
    stamps.answer(5 * SECOND)
    return stamps, steady


def test_a_clock_was_reset_after_some_stamps_of_the_past_and_nothing_newer(answered):
    stamps, steady = answered
    found = []
    for i in range(20):
        steady.now = 0.1 * i
        found.append(stamps.judge(SECOND + i))
        assert (stamps.behind > 3.9) == (0 < i < 10)
        if found[-1] != 'late':
            stamps.answer(SECOND + i)
    assert found == ['late'] * 10 + ['reset'] + ['newer'] * 9


def test_the_same_sample_again_and_again_is_answered_again(answered):
    stamps, steady = answered  # as of a simulation that waits for an answer that was lost
    found = []
    for steady.now in (0.0, 0.7, 1.4):
        found.append(stamps.judge(5 * SECOND))
    assert found == ['late', 'late', 'reset']


def test_late_stamps_beside_newer_ones_are_no_reset(answered):
    stamps, steady = answered
    for i in range(50):
        steady.now = 0.1 * i
        assert stamps.judge(SECOND + i) == 'late'
        assert stamps.judge(6 * SECOND + i) == 'newer'
        stamps.answer(6 * SECOND + i)
    assert not stamps.behind


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
