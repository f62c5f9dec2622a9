"""The executor of the nodes does what that of rclpy does, but for the wait set that it keeps."""

import threading
import time

import pytest
from rcl_interfaces.srv import GetParameters
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.task import Future, Task
from std_msgs.msg import String
from support.ros_harness import IS_BEFORE_KILTED, TIMEOUT, own_domain

from hodyn_ros.ros.base import executor as module
from hodyn_ros.ros.base.executor import StreamExecutor

if not IS_BEFORE_KILTED:  # timers tell nothing
    from rclpy.timer import TimerInfo

BEST_EFFORT = ReliabilityPolicy.BEST_EFFORT
LEFT = 'The executor of rclpy is used from now on'


class Spun:
    """A node that talks to itself, and what has been called."""

    def __init__(self, context):
        self.context = context
        self.node = Node('spun', context=context)
        self.executor = StreamExecutor(context=context)
        self.executor.add_node(self.node)
        self.called = []
        self.publisher = self.node.create_publisher(String, 'topic', 100)

    def subscribe(self, callback=None, **options):
        found = self.publisher.get_subscription_count() + 1
        taken = callback or (lambda message: self.called.append(message.data))
        subscription = self.node.create_subscription(String, 'topic', taken, 100, **options)
        self.until(lambda: self.publisher.get_subscription_count() == found)
        return subscription

    def until(self, condition):
        deadline = time.monotonic() + TIMEOUT
        while not condition():
            self.executor.spin_once(0.05)
            assert time.monotonic() < deadline, self.called

    def publish(self, *texts):
        for text in texts:
            self.publisher.publish(String(data=text))

    def rest(self):
        """Spin until nothing comes any more."""
        for _ in range(20):
            self.executor.spin_once(0.005)


@pytest.fixture
def spun():
    with own_domain() as context:
        made = Spun(context)
        yield made
        made.executor.shutdown()
        made.node.destroy_node()


def calls_everything(spun):
    """Make entities of all kinds, and wait until they have been called."""
    node, called = spun.node, spun.called
    spun.subscribe()
    spun.subscribe(lambda data, info: called.append(info['source_timestamp'] > 0), raw=True)
    node.create_timer(0.01, lambda: called.append('timer'))

    if not IS_BEFORE_KILTED:

        def told(info: TimerInfo):  # rclpy looks for the class itself among the annotations
            called.append(
                'due' if info.actual_call_time >= info.expected_call_time else 'early'
            )

        node.create_timer(0.01, told)
    node.create_guard_condition(lambda: called.append('guard')).trigger()
    spun.executor.create_task(lambda: called.append('task'))

    async def later(future):
        called.append(await future)

    future = Future(executor=spun.executor)
    spun.executor.create_task(later, future)
    client = node.create_client(GetParameters, 'spun/get_parameters')
    client.wait_for_service(TIMEOUT)
    answer = client.call_async(GetParameters.Request(names=['use_sim_time']))
    spun.publish('message')
    future.set_result('awaited')
    wanted = {'message', True, 'timer', 'guard', 'task', 'awaited'}
    wanted |= set() if IS_BEFORE_KILTED else {'due'}
    spun.until(lambda: wanted <= set(called) and answer.done())
    assert answer.result().values[0].bool_value is False


def test_entities_of_all_kinds_are_called(spun):
    calls_everything(spun)


def test_what_is_always_ready_keeps_nothing_else_from_being_called(
    spun, monkeypatch, capfd
):
    spun.subscribe()
    service = next(iter(spun.node.services))

    def always(timeout_sec):
        if spun.called.count('request') > 1000:
            pytest.fail('nothing else comes')
        return Task(lambda: spun.called.append('request')), service, spun.node

    monkeypatch.setattr(spun.executor, 'wait_for_ready_callbacks', always)
    for number in range(3):
        spun.publish(f'{number}')
        spun.until(lambda expected=f'{number}': expected in spun.called)
    spun.until(lambda: 'request' in spun.called)
    assert LEFT not in capfd.readouterr().err


def test_entities_come_and_go_while_others_are_called(spun):
    events = SubscriptionEventCallbacks(message_lost=lambda info: None)
    first = spun.subscribe(event_callbacks=events)
    spun.publish('first')
    spun.until(lambda: spun.called == ['first'])
    second = []

    def exchange():
        timer.cancel()
        spun.node.destroy_subscription(first)
        second.append(
            spun.node.create_subscription(
                String,
                'topic',
                lambda message: spun.called.append(f'second {message.data}'),
                10,
            )
        )

    timer = spun.node.create_timer(0.001, exchange)
    spun.until(lambda: second)
    with pytest.raises(module.InvalidHandle):
        first.handle.__enter__()
    spun.until(lambda: spun.publisher.get_subscription_count() == 1)
    spun.publish('message')
    spun.until(lambda: len(spun.called) == 2)
    assert spun.called == ['first', 'second message']


def test_events_of_the_middleware_are_called_though_no_wait_is_for_them(spun):
    told = []
    events = SubscriptionEventCallbacks(incompatible_qos=told.append)
    spun.subscribe()
    spun.rest()
    other = Node('other', context=spun.context)
    other.create_publisher(String, 'strict', QoSProfile(depth=1, reliability=BEST_EFFORT))
    spun.node.create_subscription(String, 'strict', print, 1, event_callbacks=events)
    spun.until(lambda: told)
    assert told[0].total_count_change == 1
    other.destroy_node()


def test_changes_and_calls_from_other_threads_wake_the_executor(spun):
    thread = threading.Thread(target=spun.executor.spin)
    guard = spun.node.create_guard_condition(lambda: spun.called.append('guard'))
    thread.start()
    try:
        for number in range(200):
            spun.executor.create_task(spun.called.append, number)
            subscription = spun.node.create_subscription(
                String, f'other{number}', print, 10
            )
            guard.trigger()
            spun.node.destroy_subscription(subscription)
        deadline = time.monotonic() + TIMEOUT
        while (
            not {*range(200), 'guard'} <= set(spun.called) and time.monotonic() < deadline
        ):
            time.sleep(0.001)
    finally:
        spun.executor.shutdown()
        thread.join(TIMEOUT)
    assert not thread.is_alive()
    assert {*range(200), 'guard'} <= set(spun.called)


def test_a_callback_that_fails_is_reported_and_the_others_are_called(spun):
    def fail(message):
        raise ZeroDivisionError(message.data)

    spun.subscribe(fail)
    spun.subscribe()
    guard = spun.node.create_guard_condition(lambda: spun.called.append('guard'))
    spun.rest()
    spun.publish('message')
    guard.trigger()
    failed = []
    for _ in range(100):
        try:
            spun.executor.spin_once(0.02)
        except ZeroDivisionError as error:
            failed.append(str(error))
    assert failed == ['message']
    assert sorted(spun.called) == ['guard', 'message']


def test_nobody_enters_the_callback_group_of_a_coroutine_that_waits(spun):
    future = Future(executor=spun.executor)

    async def begin(message):
        spun.called.append(f'begin {message.data}')
        await future
        spun.called.append('end')

    spun.subscribe(begin)
    spun.publish('message')
    spun.until(lambda: spun.called)
    spun.node.create_timer(0.001, lambda: spun.called.append('timer'))
    spun.rest()
    assert spun.called == ['begin message']
    future.set_result(None)
    spun.until(lambda: 'timer' in spun.called)
    assert spun.called[:3] == ['begin message', 'end', 'timer']
