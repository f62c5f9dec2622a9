"""Inputs of one instant on real middleware: the newest is answered, the others are counted.

The node is held up by a callback that waits, so that what arrives meanwhile waits in its queues.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from hodyn_msgs.msg import MotionEstimate
from rclpy.duration import Duration
from sensor_msgs.msg import JointState
from support import robots
from support.messages import joint_motion, stamp_of
from support.ros_harness import IS_BEFORE_KILTED, TIMEOUT, Harness, dict_of

NAMES = ['shoulder', 'elbow']
SECOND = 10**9
NOT_KNOWN = 'not known: the middleware does not number messages'


@pytest.fixture
def start():
    """Make a node of its own with parameters and a client that sends joint states too."""
    made = []

    def make(**parameters):
        harness = Harness({'robot_description': robots.TWO_LINK, **parameters})
        made.append(harness)
        harness.joint_states = harness.advertise(JointState, 'joint_states')
        harness.listen(MotionEstimate, 'hodyn_node/motion_estimate')
        answered(harness)
        return harness

    yield make
    for harness in made:
        harness.close()


@contextmanager
def held_up(harness: Harness) -> Iterator[None]:
    """Hold the thread of the node up, and let what has been sent arrive before it goes on."""
    begun, released = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        assert released.wait(TIMEOUT)

    harness.node.soon(hold)
    assert begun.wait(TIMEOUT)
    try:
        yield
        wait_for_arrival(harness)
    finally:
        released.set()


def wait_for_arrival(harness: Harness) -> None:
    """Wait until all that has been sent waits in the queues of the node."""
    for publisher in harness.publishers.values():
        assert publisher.wait_for_all_acked(Duration(seconds=TIMEOUT))
    time.sleep(0.1)  # more than joint states need, which nobody acknowledges


def joint_state(stamp: int) -> JointState:
    seconds = stamp / SECOND
    message = JointState(name=NAMES, position=[np.sin(seconds), 0.1])
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, SECOND)
    return message


def stamps(harness: Harness, topic: str = 'joint_effort') -> list[int]:
    return [stamp_of(message) for message in harness.messages[f'hodyn_node/{topic}']]


def now(harness: Harness) -> int:
    return harness.client.get_clock().now().nanoseconds


def answered(harness: Harness, stamp: int | None = None) -> int:
    """Send a motion and wait for its answer: all that was sent before has been taken."""
    stamp = now(harness) if stamp is None else stamp
    harness.publishers['joint_motion'].publish(joint_motion(stamp=stamp))
    harness.wait(lambda: stamp in stamps(harness), 'the answer')
    return stamp


def values_of(harness: Harness, topic: str, **expected: object) -> dict[str, str]:
    """Wait for diagnostics of an input with these values and return all of them."""
    wanted = {name.replace('_', ' '): str(value) for name, value in expected.items()}
    return dict_of(harness.status(topic, lambda s: wanted.items() <= dict_of(s).items()))


# Motions


def test_newest_of_the_motions_that_wait_is_answered_and_the_others_are_counted(start):
    harness = start(input_timeout=60.0)  # s; the machine may be slow
    harness.forget()
    sent = [now(harness) + number for number in range(50)]
    with held_up(harness):
        for stamp in sent:
            harness.publishers['joint_motion'].publish(joint_motion(stamp=stamp))
    harness.wait(lambda: sent[-1] in stamps(harness), 'the newest')
    answered(harness)
    assert stamps(harness)[:-1] == sent[-1:]
    values = values_of(harness, 'joint_motion', received=3)
    if IS_BEFORE_KILTED:
        assert values['left out'] == NOT_KNOWN
        return
    assert values['left out'] == '49'
    status = harness.status('joint_motion', lambda s: 'left out' in s.message)
    assert status.message.startswith('samples were left out, newer ones had come (49 times')


# Stamps


# Measurements and wrenches


def test_all_joint_states_that_wait_are_used_and_the_newest_is_answered(start):
    harness = start(input_timeout=0.0)
    period, count = 5_000_000, 15

    def taken():
        return harness.node.diagnostics.input('joint_states').total['received']

    for number in range(200):
        harness.joint_states.publish(joint_state(SECOND + number * period))
        if number % 10 == 9:
            harness.wait(lambda n=number: taken() > n, 'joint states taken')

    def is_answered(number):
        """Whether the latest on both topics are of this measurement."""
        found = [
            harness.messages[f'hodyn_node/{t}'] for t in ('motion_estimate', 'joint_effort')
        ]
        newest = SECOND + number * period
        return all(
            messages
            and abs(stamp_of(messages[-1]) + messages[-1].delay * SECOND - newest)
            < period / 2
            for messages in found
        )

    harness.wait(lambda: is_answered(199), 'the answers')
    harness.forget()
    with held_up(harness):
        for number in range(200, 200 + count):
            harness.joint_states.publish(joint_state(SECOND + number * period))
    harness.wait(lambda: is_answered(199 + count), 'the answer to the newest')
    assert len(stamps(harness)) == len(stamps(harness, 'motion_estimate')) == 1
    values = values_of(harness, 'joint_states', received=200 + count)
    assert values['left out'] == (NOT_KNOWN if IS_BEFORE_KILTED else '0')


# The log, and the stream
