"""The soak, in short."""

import soak
from support.fault_peers import Chaos


def test_node_under_all_faults_loses_nothing():
    # A rate that a busy machine can follow; what is lost or wrong does not depend on it.
    # The planning, killed and started again, has not yet taken what it needs by then.
    # How late answers may be is for the long soak to say, on a machine that does nothing else.
    report = soak.soak(seconds=3.0, rate=200.0, allowed_growth=256.0, allowed_latency=30.0)
    assert not report.failures(), report.text()
    assert report.answered == len(report.latencies) > 100
    faults = {name[len('_fault_') :] for name in dir(Chaos) if name.startswith('_fault_')}
    assert set(report.faults['committed']) == faults, 'each one at least once'
    assert report.refusals['joint_motion'] > 0
    # None is answered if the planning is killed late.
    assert report.faults['answers'].get('not finite', 0) == 0
    report.sent = report.answered + report.left_out + 1
    assert report.failures() == ['1 samples were lost']
