"""Workers survive whatever their jobs raise, and whoever waits for an outcome gets one."""

import threading
import time

import pytest
from support.ros_harness import TIMEOUT  # noqa: E402

from hodyn_ros.errors import HodynError  # noqa: E402
from hodyn_ros.ros.base.worker import Worker  # noqa: E402

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
