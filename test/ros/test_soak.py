"""The soak, in short, and that it fails when it has to."""

from __future__ import annotations

import numpy as np
import pytest
import soak
from support import robots
from support.fault_peers import Chaos
from support.messages import MOTION, NAMES
from support.oracles import taylor_rnea


@pytest.fixture(
    scope='module',
    params=[False, True],
    ids=['newest', 'complete'],
)
def report(request):
    # A rate that a busy machine can follow; what is lost or wrong does not depend on it.
    # The planning, killed and started again, has not yet taken what it needs by then.
    # How late answers may be is for the long soak to say, on a machine that does nothing else.
    found = soak.soak(
        seconds=3.0,
        rate=200.0,
        allowed_growth=256.0,
        allowed_latency=soak.QUEUE_LATENCY,
        complete=request.param,
    )
    if request.param:
        assert found.sent == found.answered
    return found


def test_node_under_all_faults_loses_nothing(report):
    assert not report.failures(), report.text()
    assert report.lost == report.unphysical == 0
    assert report.answered == len(report.latencies) > 100
    faults = {name[len('_fault_') :] for name in dir(Chaos) if name.startswith('_fault_')}
    assert set(report.faults['committed']) == faults, 'each one at least once'
    assert report.refusals['joint_motion'] > 0
    # None is answered if the planning is killed late.
    assert report.faults['answers'].get('not finite', 0) == 0
    assert len(report.memory) > 3
    assert min(report.memory_at_ends(1)) > 10.0, 'a Python process has more'


def test_power_of_right_efforts_is_that_of_the_energy():
    names, motion = NAMES, MOTION
    efforts = taylor_rnea(robots.TWO_LINK, names, soak.GRAVITY, motion)
    rates = soak.energy_rates(robots.TWO_LINK, names, motion)
    for terms, rate in zip(soak.power_terms(efforts, motion), rates):
        assert abs(terms.sum() - rate) <= 1e-8 * np.abs(terms).sum()
