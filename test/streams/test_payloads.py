"""What a robot carries in time: shares of the robots before and after, with their derivatives."""

import numpy as np
import pytest

from hodyn_ros.errors import RequestError
from hodyn_ros.streams import Transitions

SECOND = 10**9


def shares(transitions, time):
    before, after, transition = transitions.at(time, 'latest')
    if transition is None:
        assert before == after
        return before
    return transition.weights(time, 3)


def test_load_is_taken_up_smoothly_between_the_robots_of_before_and_after():
    transitions = Transitions()
    assert shares(transitions, 0) == 'latest'
    transitions.add('empty', 'latest', 10 * SECOND, 2.0)
    assert [shares(transitions, t * SECOND) for t in (9, 12)] == ['empty', 'latest']
    times = np.linspace(10.0, 12.0 - 1e-9, 2001)
    found = np.array([shares(transitions, round(t * 1e9)) for t in times])
    np.testing.assert_allclose(found[[0, -1]], [(0, 0, 0), (1, 0, 0)], atol=1e-7)
    assert (np.diff(found[:, 0]) > 0.0).all()
    for k in (0, 1):
        slope = np.gradient(found[:, k], times)[1:-1]
        np.testing.assert_allclose(slope, found[1:-1, k + 1], atol=1e-5)


def test_changes_wait_for_one_another_and_too_many_are_refused():
    transitions, begin = Transitions(), 5 * SECOND
    for number in range(16):
        assert transitions.start(begin) == (5 + number) * SECOND
        transitions.add(number, number + 1, (5 + number) * SECOND, 1.0)
    with pytest.raises(RequestError, match='wait already'):
        transitions.start(begin)
    assert transitions.start(30 * SECOND) == 30 * SECOND
    assert shares(transitions, 4 * SECOND) == 0
    transitions.clear()
    assert shares(transitions, 4 * SECOND) == 'latest'
