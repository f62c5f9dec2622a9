"""Garbage in every field of every input and of the service: refused or answered, never fatal.

After whatever is sent, the node lives, a good sample is answered rightly, and nothing that is not
finite has been published. What happens to be a valid sample must be answered rightly too.
"""

from __future__ import annotations

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from hodyn_msgs.msg import JointEffort, JointMotion, JointMotionTrajectory
from hodyn_msgs.srv import ComputeInverseDynamics
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from std_msgs.msg import String
from support import fault_tools, robots
from support.fault_tools import Pair, Stream
from support.messages import (
    EFFORTS,
    FIELDS,
    GRAVITY,
    MOTION,
    NAMES,
    joint_motion,
    motion_trajectory,
)
from support.oracles import taylor_rnea

Request, Response = ComputeInverseDynamics.Request, ComputeInverseDynamics.Response

# No shorter example is looked for: each that fails takes as long as the longest wait.
fuzz = settings(
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.generate),
)

special = st.sampled_from(
    [
        0.0,
        -0.0,
        np.nan,
        np.inf,
        -np.inf,
        5e-324,
        -5e-324,
        1e-308,
        1.7e308,
        -1.7e308,
        1e154,
        1e16,
    ]
)
ordinary = st.floats(-10.0, 10.0)
number = st.one_of(ordinary, ordinary, special, st.floats(width=64))
row = st.one_of(
    st.lists(ordinary, min_size=2, max_size=2),
    st.lists(ordinary, min_size=2, max_size=2),
    st.lists(number, min_size=2, max_size=2),
    st.lists(number, max_size=4),
)
# No lone surrogates: they cannot be encoded, so they cannot be sent.
text = st.one_of(
    st.sampled_from(
        [
            '',
            'shoulder',
            'elbow',
            'base',
            'tool',
            'Elbow',
            'elbow ',
            '\u202eelbow',
            'é' * 300,
        ]
    ),
    st.text(st.characters(exclude_categories=['Cs'], exclude_characters='\0'), max_size=20),
)
names = st.one_of(
    st.sampled_from([['shoulder', 'elbow'], ['elbow', 'shoulder']]),
    st.sampled_from([['shoulder', 'elbow'], ['elbow', 'shoulder'], ['elbow', 'elbow'], []]),
    st.lists(text, max_size=4),
)
seconds = st.one_of(st.sampled_from([0, 1, -1, 2**31 - 1, -(2**31)]), st.integers(-5, 5))
stamps = st.builds(
    Time, sec=seconds, nanosec=st.sampled_from([0, 1, 10**9 - 1, 10**9, 2**32 - 1])
)


@st.composite
def motions(draw):
    message = JointMotion(joint_names=draw(names))
    message.header.frame_id = draw(text)
    orders = draw(st.integers(0, 5))
    for field in FIELDS[:orders]:
        setattr(message, field, draw(row))
    return message


@st.composite
def motion_trajectories(draw):
    times = draw(st.sampled_from([[], [0.0], [0.0, 0.1]]) | st.lists(number, max_size=3))
    message = JointMotionTrajectory(joint_names=draw(names), time_from_start=times)
    size = 2 * len(times)
    values = st.lists(number, min_size=size, max_size=size) | st.lists(number, max_size=4)
    for field in FIELDS[: draw(st.integers(0, 5))]:
        setattr(message, field, draw(values))
    message.header.stamp = draw(stamps)
    return message


@pytest.fixture(scope='module')
def pair():
    with Pair(robots.TWO_LINK, diagnostics_period=0.02) as made:
        yield made


@pytest.fixture(autouse=True)
def health(pair):
    yield
    pair.check_health()
    assert 'Traceback' not in pair.node.log(), pair.node.log()


def expected_efforts(message):
    """Efforts that a motion message calls for; None if it is not valid."""
    rows = [list(getattr(message, field)) for field in FIELDS]
    known = next((k for k, values in enumerate(rows) if not values), len(rows))
    if known < 3 or any(rows[known:]) or sorted(message.joint_names) != sorted(NAMES):
        return None
    if (
        any(len(values) != 2 for values in rows[:known])
        or not np.isfinite(rows[:known]).all()
    ):
        return None
    order = [list(message.joint_names).index(name) for name in NAMES]
    motion = np.array(rows[:known])[:, order]
    with np.errstate(all='ignore'):
        return taylor_rnea(robots.TWO_LINK, NAMES, GRAVITY, motion)


def check_answer(message, given):
    """An answer to a valid sample is right; where power series overflow, finite is enough."""
    expected = expected_efforts(given)
    assert expected is not None, f'answered, but not valid: {given}'
    assert message.valid_order == len(expected) - 1
    if (
        np.abs(list(map(list, (given.position, given.velocity, given.acceleration)))).max()
        < 1e3
    ):
        efforts = np.array([getattr(message, f) for f in EFFORTS[: len(expected)]])
        scale = np.abs(expected).max(axis=1, keepdims=True)
        assert np.all(np.abs(efforts - expected) <= 1e-9 * scale + 1e-300), (
            efforts,
            expected,
        )


# Messages with valid structure


@fuzz
@given(message=motions())
@example(joint_motion(0.1 * MOTION[:4], names=NAMES[::-1]))
@example(joint_motion(np.full((5, 2), 1.7e308)))
@example(joint_motion(np.full((5, 2), 5e-324)))
def test_motion_of_any_content_is_answered_rightly_or_refused(pair, message):
    client = pair.client
    stamp = client.new_stamp()
    message.header.stamp = Time(sec=stamp // 10**9, nanosec=stamp % 10**9)
    client.publishers['joint_motion'].publish(message)
    # Answers come in order: with the next one, this one is decided.
    client.ask(robot=robots.TWO_LINK)
    expected = expected_efforts(message)
    if client.efforts.get(stamp):
        check_answer(client.efforts[stamp][0], message)
    elif expected is not None:
        assert not np.abs(expected).max() < 1e100, f'not answered: {message}'
    assert not client.not_finite


@fuzz
@given(flat=motion_trajectories())
@example(motion_trajectory([0.0, 1.0], [[[0.5, -0.5]] * 5] * 2))
def test_request_of_any_content_is_answered_rightly_or_refused_with_a_reason(pair, flat):
    response = pair.client.call(Request(motion_trajectory=flat))
    assert response.error_code != Response.INTERNAL_ERROR, response.message
    assert response.success == (response.error_code == Response.SUCCESS)
    if not response.success:
        assert response.message
        return
    whole = response.effort_trajectory
    assert fault_tools.is_finite(whole)
    for index in range(len(flat.time_from_start)):
        part = slice(2 * index, 2 * index + 2)
        message = JointEffort(valid_order=whole.valid_order)
        sample = JointMotion(joint_names=flat.joint_names)
        for to, source, fields in ((message, whole, EFFORTS), (sample, flat, FIELDS)):
            for field in fields:
                setattr(to, field, getattr(source, field)[part])
        check_answer(message, sample)


# Descriptions in a row


def test_flapping_descriptions_leave_the_last_valid_one_in_use_and_the_stream_whole(pair):
    client = pair.client
    publish = client.publishers['robot_description'].publish
    invalid = ('', '<robot', robots.TWO_LINK.replace('revolute', 'floating'), '\u2603')
    with Stream(client, robots.TWO_LINK):
        for number in range(60):
            publish(String(data=invalid[number % len(invalid)]))
            publish(String(data=robots.TWO_LINK))
            client.answer(client.send())
        client.wait_for_model()
    for number in range(20):
        publish(String(data=invalid[number % len(invalid)]))
        publish(String(data=robots.HEAVIER_TWO_LINK))
    client.ask_until_answered(robots.HEAVIER_TWO_LINK, is_right=True)
    client.wait(
        lambda: client.status('model')['in preparation'] == 'no', 'last description'
    )
    client.ask(robot=robots.HEAVIER_TWO_LINK)
    publish(String(data=robots.TWO_LINK))
    client.ask_until_answered(robots.TWO_LINK, is_right=True)
