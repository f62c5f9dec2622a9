"""Workers survive whatever their jobs raise, and whoever waits for an outcome gets one."""

import threading
import time

import numpy as np
import pytest

rclpy = pytest.importorskip('rclpy')

from hodyn_msgs.msg import JointMotion  # noqa: E402
from hodyn_msgs.srv import ComputeInverseDynamics  # noqa: E402
from rclpy.serialization import serialize_message  # noqa: E402
from robots import TWO_LINK  # noqa: E402
from ros_harness import TIMEOUT, Harness, dict_of  # noqa: E402
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint  # noqa: E402

from hodyn_ros import RobotModel  # noqa: E402
from hodyn_ros.errors import HodynError  # noqa: E402
from hodyn_ros.ros import flatness_controller_worker, planning, preparation  # noqa: E402
from hodyn_ros.ros.flatness_controller_settings import make_settings  # noqa: E402
from hodyn_ros.ros.planner import Task  # noqa: E402
from hodyn_ros.ros.worker import Worker  # noqa: E402

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


def test_a_worker_survives_those_whom_it_tells(capfd):
    log, outcomes = Outcomes(), Outcomes()
    worker = Worker('test', log)
    worker.put(raiser(KeyError('job')), raiser(ValueError('told')))
    worker.put(lambda: outcomes('next'))
    outcomes.wait(1)
    worker.close()
    assert 'told' in capfd.readouterr().err


def test_a_worker_ends_with_the_job_under_way():
    log, outcomes, begun, go_on = Outcomes(), Outcomes(), threading.Event(), threading.Event()
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
    while not worker._closed:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    go_on.set()
    closing.join(TIMEOUT)
    assert outcomes == ['done']
    assert not closing.is_alive() and not worker._thread.is_alive()


def trajectory():
    message = JointTrajectory(joint_names=['shoulder', 'elbow'])
    for k in range(2):
        point = JointTrajectoryPoint(positions=[0.1 * k, 0.2 * k])
        point.time_from_start.sec = k
        message.points.append(point)
    return message


def task(number):
    return Task(number, serialize_message(trajectory()), 0, 0, None, 0)


DRIVES = {
    joint: {'type': 'sea', 'stiffness': 200.0, 'motor_inertia': 0.3}
    for joint in ('shoulder', 'elbow')
}


@pytest.fixture
def background():
    """The worker of the flatness controller, with what it reports and logs."""
    reports, log = Outcomes(), Outcomes()
    worker = flatness_controller_worker.Background(lambda: make_settings({}), reports, log)
    yield worker, reports, log
    worker.close()


@pytest.mark.parametrize('error', FAULTS)
def test_the_flatness_controller_refuses_what_fails_and_goes_on(background, monkeypatch, error):
    worker, reports, log = background
    for name in ('parse_urdf', 'plan_trajectory'):
        whole = getattr(flatness_controller_worker, name)
        monkeypatch.setattr(flatness_controller_worker, name, Fault(error, whole))
    worker.build(TWO_LINK, DRIVES)
    worker.build(TWO_LINK, DRIVES)
    failed, built = reports.wait(1), reports.wait(2)
    assert failed.robot is None and failed.error == f'Internal error: {error!r}'
    assert built.robot.model.joint_names == ('shoulder', 'elbow')
    worker.set_robot(built.robot)
    worker.plan(task(1))
    worker.plan(task(2))
    refused, planned = reports.wait(3), reports.wait(4)
    assert (refused.number, refused.planned, refused.kind) == (1, None, 'internal')
    assert refused.error == f'Internal error: {error!r}'
    assert planned.number == 2 and planned.planned is not None
    assert len(log) == 2 and all(type(error).__name__ in text for text in log)


@pytest.mark.parametrize('error', FAULTS)
def test_the_preparation_refuses_what_fails_and_goes_on(monkeypatch, error):
    # Within what was not guarded: the kernels that are missing.
    monkeypatch.setattr(preparation, '_missing', Fault(error, preparation._missing))
    outcomes = Outcomes()
    made = preparation.Preparation(lambda xml: RobotModel.from_urdf(xml), outcomes)
    try:
        made.request(TWO_LINK)
        failed = outcomes.wait(1)
        assert failed.model is None and failed.error == f'Internal error: {error!r}'
        made.request(TWO_LINK)
        assert outcomes.wait(2).model.joint_names == ('shoulder', 'elbow')
    finally:
        made.close()


def test_a_description_comes_before_kernels_that_wait(monkeypatch):
    begun, go_on, order = threading.Event(), threading.Event(), Outcomes()

    def assembled(xml):
        begun.set()
        assert go_on.wait(TIMEOUT)
        return RobotModel.from_urdf(TWO_LINK)

    made = preparation.Preparation(assembled, lambda outcome: order(outcome.description))
    monkeypatch.setattr(
        preparation.Preparation, '_compile', lambda self, model, *_, **__: order(model.name)
    )
    monkeypatch.setattr(preparation, '_missing', lambda model, wrenches: ('a kernel',))
    monkeypatch.setattr(
        preparation.Preparation,
        '_outcome',
        lambda self, item: preparation.Outcome(item.text, self._assemble(item.text), '', ''),
    )
    try:
        made.request('first')
        assert begun.wait(TIMEOUT)
        made.request_wrenches(RobotModel.from_urdf(TWO_LINK), ())
        made.request('replaced')
        made.request('second')
        go_on.set()
        order.wait(3)
        assert order == ['first', 'second', 'arm']
    finally:
        made.close()


@pytest.mark.parametrize('error', FAULTS)
def test_the_planning_refuses_what_fails_and_goes_on(monkeypatch, error):
    harness = Harness({'robot_description': TWO_LINK})
    try:
        whole = planning.plan_trajectory
        monkeypatch.setattr(planning, 'plan_trajectory', Fault(error, whole))
        for count in (1, 2):
            harness.publishers['joint_trajectory'].publish(trajectory())
            if count == 1:
                assert f'Internal error: {error!r}' in harness.refusal('joint_trajectory')
        (answer,) = harness.received('effort_trajectory')
        np.testing.assert_array_equal(answer.time_from_start[:1], [0.0])
        status = harness.status(
            'joint_trajectory', lambda s: dict_of(s)['refused as internal'] == '1'
        )
        assert dict_of(status)['refused'] == '1'
    finally:
        harness.close()


@pytest.mark.parametrize('error', FAULTS)
@pytest.mark.parametrize('place', ['computing', 'sending'])
def test_the_service_answers_what_fails_and_goes_on(monkeypatch, error, place):
    harness = Harness({'robot_description': TWO_LINK})
    try:
        request = ComputeInverseDynamics.Request(
            motion=[
                JointMotion(
                    joint_names=['shoulder', 'elbow'],
                    position=[0.1, 0.2],
                    velocity=[0.0, 0.0],
                    acceleration=[0.0, 0.0],
                )
            ]
        )
        if place == 'computing':
            monkeypatch.setattr(planning, 'answer', Fault(error, planning.answer))
        else:
            service = harness.node._planner._service
            monkeypatch.setattr(service, '_send', Fault(error, service._send))
        refused = harness.call(request)
        assert refused.error_code == ComputeInverseDynamics.Response.INTERNAL_ERROR
        assert refused.message == f'Internal error: {error!r}'
        assert harness.call(request).success
    finally:
        harness.close()
