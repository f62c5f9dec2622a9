"""When a process that is looked after is silent, and when it is to be started again."""

import numpy as np

from hodyn_ros.streams.process_watch import (
    LONGEST_WORK,
    LOOK_PERIOD,
    SILENT_KILLED,
    SILENT_SAID,
    ProcessWatch,
)


def looked(watch, begin, end, works=False):
    """State and reason to kill a process at the end of a time in which it was looked after."""
    for now in (*np.arange(begin, end, LOOK_PERIOD), end):
        watch.look(now, 0.1 * now * works)
    return watch.state, bool(watch.overdue)


def test_a_process_is_silent_after_a_while_and_then_overdue():
    watch = ProcessWatch()
    assert looked(watch, 0.0, 9.0) == ('ended', False)
    watch.begin(10.0, 5.0)
    assert looked(watch, 10.0, 14.9) == ('starting', False)
    watch.hear(15.0)
    assert looked(watch, 15.0, 15.0 + SILENT_SAID) == ('running', False)
    assert looked(watch, 16.0, 15.1 + SILENT_SAID) == ('silent', False)
    watch.hear(18.0)
    assert looked(watch, 18.0, 18.9) == ('running', False)
    assert looked(watch, 19.0, 18.1 + SILENT_KILLED) == ('silent', True)
    watch.end('it has ended')
    assert (watch.state, watch.silence, watch.fault) == (
        'ended',
        0.0,
        'the process has ended',
    )
    assert (watch.last_exit[:20], watch.restarts) == ('it did not answer fo', 0)
    watch.begin(30.0, 5.0, pid=7)
    assert (watch.pid, watch.restarts) == (7, 1)
    assert looked(watch, 30.0, 35.1) == ('starting', True)
    assert watch.overdue == 'it was not ready within 5 s'


def test_a_process_that_computes_may_be_silent_for_long():
    watch = ProcessWatch()
    watch.begin(0.0, 5.0)
    watch.hear(0.1)
    assert looked(watch, 0.2, 0.1 + LONGEST_WORK, works=True) == ('running', False)
    assert looked(watch, 0.2 + LONGEST_WORK, 0.3 + LONGEST_WORK, works=True) == (
        'silent',
        True,
    )


def test_a_process_does_not_pay_for_a_node_that_was_held_up():
    watch = ProcessWatch()
    watch.begin(0.0, 5.0)
    watch.hear(0.1)
    watch.look(0.2, 0.0)
    watch.look(60.0, 0.0)
    assert not watch.overdue
    watch.hear(60.0)
    watch.look(60.2, 0.0)
    assert watch.state == 'running'
