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
from geometry_msgs.msg import Vector3
from hodyn_msgs.msg import MotionEstimate, WrenchMotion
from rclpy.duration import Duration
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from support import robots
from support.messages import joint_motion, joint_trajectory, stamp_of
from support.ros_harness import TIMEOUT, Harness, dict_of

NAMES = ['shoulder', 'elbow']
SECOND = 10**9


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
    assert values['left out'] == '49'
    status = harness.status('joint_motion', lambda s: 'left out' in s.message)
    assert status.message.startswith('samples were left out, newer ones had come (49 times')


def test_series_is_answered_completely_where_that_is_wanted(start):
    depth = 'qos_overrides./{namespace}/joint_motion.subscription.depth'
    harness = start(input_timeout=60.0, **{depth: 1000})  # s; the machine may be slow
    harness.forget()
    sent = [now(harness) + number for number in range(200)]
    with held_up(harness):
        for stamp in sent:
            harness.publishers['joint_motion'].publish(joint_motion(stamp=stamp))
    harness.wait(lambda: len(stamps(harness)) >= len(sent), 'all answers')
    assert stamps(harness) == sent
    assert values_of(harness, 'joint_motion', received=201)['left out'] == '0'


def test_how_late_the_node_is_stands_in_the_diagnostics(start):
    harness = start(input_timeout=60.0)
    with held_up(harness):
        harness.publishers['joint_motion'].publish(joint_motion(stamp=now(harness)))

    def late(status, share):
        return float(dict_of(status)[f'lateness p{share} [ms]'] or 0.0)

    status = harness.status('joint_motion', lambda s: late(s, 99) > 90.0)
    assert late(status, 50) <= late(status, 99) < 1e3 * TIMEOUT


# Stamps


def test_stamp_of_zero_is_the_time_of_arrival(start):
    harness = start()
    harness.forget()
    with held_up(harness):
        before = now(harness)
        harness.publishers['joint_motion'].publish(joint_motion(stamp=0))
        harness.publishers['wrench_motion'].publish(wrench_motion('tool', 1.0))
        wait_for_arrival(harness)
        after = now(harness)
        time.sleep(0.1)
    (stamp,) = [stamp_of(message) for message in harness.received('joint_effort')]
    assert before <= stamp <= after
    harness.wait(lambda: harness.wrenches.latest(), 'the wrench')
    (source,) = harness.wrenches.sources.values()
    assert before <= source.stamp <= after


def test_message_that_was_in_time_is_not_called_the_fault_of_its_sender(start):
    topic = 'joint_motion'
    harness = start(input_timeout=60.0)
    # So long that the message comes in time to a busy machine too.
    harness.node.set_parameters([Parameter('input_timeout', value=1.0)])
    with held_up(harness):
        harness.publishers[topic].publish(joint_motion(stamp=now(harness)))
        time.sleep(1.1)
    values = values_of(harness, topic, refused_as_stale=1)
    assert 'has waited for the node for' in values['last error']
    assert 'clocks' not in values['last error']
    # The one that was late when it came is.
    harness.publishers[topic].publish(joint_motion(stamp=now(harness) - 9 * SECOND))
    values = values_of(harness, topic, refused_as_stale=2)
    assert 'clocks of sender and node must agree' in values['last error']


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
    assert values['left out'] == '0'


def wrench_motion(link: str, force: float, stamp: int = 0) -> WrenchMotion:
    message = WrenchMotion()
    message.header.frame_id = link
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, SECOND)
    message.wrench.force = Vector3(x=force)
    return message


def test_wrenches_on_several_links_do_not_push_each_other_out(start):
    harness = start()
    with held_up(harness):
        for number in range(5):
            for link in ('tool', 'fore'):
                harness.publishers['wrench_motion'].publish(
                    wrench_motion(link, 1.0 + number)
                )
    harness.wait(lambda: len(harness.wrenches.latest()) == 2, 'both wrenches')
    values = values_of(harness, 'wrench_motion', received=10)
    assert (values['left out'], values['refused']) == ('0', '0')


# The log, and the stream


def test_refusals_that_are_not_logged_are_counted_in_the_log(start, capfd):
    harness = start(answer_all=True)
    message = joint_motion(stamp=now(harness))
    message.position = [np.nan, 0.0]
    for _ in range(300):
        harness.publishers['joint_motion'].publish(message)
    values_of(harness, 'joint_motion', refused=300)

    def are_counted(text):
        lines = text.splitlines()
        shown = [line for line in lines if 'joint_motion refused:' in line]
        more = [line for line in lines if 'more' in line and 'joint_motion' in line]
        counts = [
            int(line.partition(' more')[0].rpartition(' ')[2].strip('(')) for line in more
        ]
        return len(shown) + sum(counts) == 300 and len(shown) <= 10

    harness.log(capfd, are_counted)


def test_no_timer_runs_while_nothing_moves(start):
    harness = start(publish_rate=200.0)
    (timer,) = (t for t in harness.node.timers if t.timer_period_ns == SECOND // 200)
    assert timer.is_canceled()
    message = joint_trajectory(((0.0, 0.2), (0.1, 0.2), (0.2, 0.2)), (0.0, 0.25, 0.5))
    for _ in range(2):
        harness.forget()
        harness.publishers['joint_trajectory'].publish(message)
        whole = harness.received('effort_trajectory')[0]
        end = stamp_of(whole) + round(whole.time_from_start[-1] * SECOND)
        harness.wait(lambda end=end: end in stamps(harness), 'the end of the stream')
        harness.wait(timer.is_canceled, 'the timer to end')
        assert len(stamps(harness)) > 2
        # A rate that is changed meanwhile does not keep it running.
        harness.node.set_parameters([Parameter('publish_rate', value=250.0)])
        harness.wait(timer.is_canceled, 'the timer to end')


def test_limits_that_are_exceeded_are_named_with_their_number(start):
    harness = start(answer_all=True)
    message = joint_motion()
    message.velocity = [5.0, 0.0]  # 3 rad/s are allowed
    for _ in range(7):
        harness.publishers['joint_motion'].publish(message)
    values = values_of(harness, 'joint_effort', published=8)
    beyond = {key: value for key, value in values.items() if 'beyond' in key}
    assert beyond == {'samples beyond the limit of velocity of shoulder': '7'}
