"""Workers survive whatever their jobs raise, and whoever waits for an outcome gets one."""

import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

rclpy = pytest.importorskip('rclpy')

from rclpy.context import Context  # noqa: E402
from rclpy.serialization import serialize_message  # noqa: E402
from support.robots import TWO_LINK  # noqa: E402
from support.ros_harness import TIMEOUT, next_domain  # noqa: E402
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint  # noqa: E402

from hodyn_ros.errors import HodynError  # noqa: E402
from hodyn_ros.ros.base.node_settings import NodeSettings  # noqa: E402
from hodyn_ros.ros.base.parameters import make_settings  # noqa: E402
from hodyn_ros.ros.base.worker import Worker  # noqa: E402
from hodyn_ros.ros.planner import process  # noqa: E402
from hodyn_ros.ros.planner.messages import Begin  # noqa: E402
from hodyn_ros.streams import preparation as robot  # noqa: E402
from hodyn_ros.streams.motion_stream import Task  # noqa: E402

# A fault of ours, memory that is used up, and what a library raises that wants to end the process.
FAULTS = [ZeroDivisionError('a fault of ours'), MemoryError(), SystemExit(3)]


class Outcomes(list):
    """Keeps what it is called with, in whatever thread."""

    def __init__(self):
        super().__init__()
        self._arrived = threading.Condition()

    def __call__(self, *arguments):
        with self._arrived:
            self.append(arguments[0] if len(arguments) == 1 else arguments)
            self._arrived.notify_all()

    def wait(self, count):
        with self._arrived:
            assert self._arrived.wait_for(lambda: len(self) >= count, TIMEOUT)
        return self[count - 1]


class Fault:
    """Raises an error the first time, and then does what it stands for."""

    def __init__(self, error, call):
        self._error, self._call = error, call

    def __call__(self, *arguments, **options):
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        return self._call(*arguments, **options)


def raiser(error):
    return Fault(error, None)


@pytest.mark.parametrize('error', [*FAULTS, HodynError('given and expected')])
def test_a_worker_reports_every_error_and_goes_on(error):
    log, outcomes = Outcomes(), Outcomes()
    worker = Worker('test', log)
    worker.put(raiser(error), outcomes)
    worker.put(lambda: outcomes('next'))
    assert outcomes.wait(2) == 'next'
    assert outcomes[0] is error
    # What a user gives is answered; faults of ours are for the log.
    assert [type(error).__name__ in text for text in log] == [True] * (
        not isinstance(error, HodynError)
    )
    worker.close()


def test_a_worker_survives_those_whom_it_tells(caplog):
    log, outcomes = Outcomes(), Outcomes()
    worker = Worker('test', log)
    worker.put(raiser(KeyError('job')), raiser(ValueError('told')))
    worker.put(lambda: outcomes('next'))
    outcomes.wait(1)
    worker.close()
    assert 'told' in caplog.text


def test_a_worker_ends_with_the_job_under_way():
    log, outcomes, begun, go_on = (
        Outcomes(),
        Outcomes(),
        threading.Event(),
        threading.Event(),
    )
    worker = Worker('test', log)

    def job():
        begun.set()
        assert go_on.wait(TIMEOUT)
        outcomes('done')

    worker.put(job)
    worker.put(lambda: outcomes('never begun'))
    assert begun.wait(TIMEOUT)
    closing = threading.Thread(target=worker.close)
    closing.start()
    deadline = time.monotonic() + TIMEOUT
    while not worker.is_closed:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    go_on.set()
    closing.join(TIMEOUT)
    assert outcomes == ['done']
    assert not closing.is_alive()


def test_a_worker_that_is_closed_drops_what_waits_and_what_comes_in_silence(caplog):
    log, begun, go_on = Outcomes(), threading.Event(), threading.Event()
    worker = Worker('test', log)
    worker.put(lambda: begun.set() or go_on.wait(TIMEOUT))
    worker.put(lambda: None)
    assert begun.wait(TIMEOUT)
    worker.close(timeout=0.0)
    worker.put(lambda: None)
    go_on.set()
    assert (caplog.text, log) == ('', [])


def trajectory():
    message = JointTrajectory(joint_names=['shoulder', 'elbow'])
    for k in range(2):
        point = JointTrajectoryPoint(positions=[0.1 * k, 0.2 * k])
        point.time_from_start.sec = k
        message.points.append(point)
    return message


@pytest.mark.parametrize('grace', [0.0, 1e9])
def test_a_robot_is_awaited_for_some_seconds_from_the_start(monkeypatch, grace):
    monkeypatch.setattr(robot, 'START_GRACE', grace)
    node = SimpleNamespace(
        diagnostics=SimpleNamespace(refused=lambda *_: None),
        get_logger=lambda: SimpleNamespace(error=lambda _: None),
    )
    made = robot.RobotPreparation(node, None, None, None, None)
    assert made.is_awaited is (grace > 0.0)
    made.refuse('no robot')
    assert not made.is_awaited


@pytest.mark.parametrize('error', FAULTS[2:])
def test_the_planning_refuses_what_fails_and_goes_on(monkeypatch, error):
    context, reported = Context(), Outcomes()
    rclpy.init(context=context, domain_id=next_domain())
    settings = make_settings(NodeSettings, {})
    names = ('/compute', '/retime'), '/efforts'
    begin = Begin('hodyn_node', '/', 0, '/', *names, (), settings)
    planner = process.Planner(begin, reported, context)
    try:
        planner.use(TWO_LINK, False, settings, ())
        fault = Fault(error, process.plan_trajectory)
        monkeypatch.setattr(process, 'plan_trajectory', fault)
        data = serialize_message(trajectory())
        for number in (1, 2):
            planner.plan(Task(number, data, 10**9, 10**9, None, 10**9))
            # Behind `Ready`, and the points for a controller.
            plan = reported.wait({1: 2, 2: 4}[number])
            assert plan.number == number
            assert plan.error == (f'Internal error: {error!r}' if number == 1 else '')
            assert plan.kind == ('internal' if number == 1 else 'invalid')
        np.testing.assert_array_equal(plan.planned.at(10**9)[0], [0.0, 0.0])
    finally:
        planner.close(process.GRACE)
        rclpy.shutdown(context=context)
