"""The soak, in short, and that it fails when it has to."""

from __future__ import annotations

import os

import numpy as np
import pytest
import soak
from support import robots
from support.fault_peers import Chaos
from support.messages import MOTION, NAMES
from support.oracles import taylor_rnea


@pytest.fixture(
    scope='module',
    params=[
        pytest.param(False, marks=pytest.mark.slow, id='newest'),
        pytest.param(True, marks=pytest.mark.slow, id='complete'),
    ],
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


def test_report_tells_what_a_reader_wants_to_know(report):
    text = report.text()
    for what in (
        f'{report.sent} sent',
        f'{report.answered} answered',
        '0 lost',
        'left out',
        'p99',
        'largest',
        '0 unphysical',
        'clock_jumps',
        'refusals',
        'MB after warm-up',
        'MB/h',
        'passed',
    ):
        assert what in text


GOOD = {'sent': 10, 'answered': 10, 'faults': {'committed': {'x': 1}}}


@pytest.mark.parametrize(
    ('change', 'reason'),
    [
        ({'answered': 9}, '1 samples were lost'),
        ({'answered': 6, 'left_out': 3}, '1 samples were lost'),
        ({'wrong': 1}, '1 answers were wrong'),
        ({'unphysical': 1}, '1 answers have another power'),
        ({'latencies': [0.6], 'late': [(5.0, 0.6)]}, 'an answer came after 0.600 s'),
        (
            {'latencies': [0.9], 'late': [(5.0, 0.9)], 'pauses': [(4.0, 1.2), (9.0, 1.0)]},
            'an answer came after 0.700 s',
        ),
        ({'not_finite': 2}, '2 messages were not finite'),
        ({'node_died': True}, 'the node died'),
        ({'memory': [(float(t), 100.0 + 10.0 * t, 0.0) for t in range(20)]}, 'grew by 145'),
        ({'memory': [(float(t), 9.0, 80.0 * (t > 9)) for t in range(20)]}, 'grew by 80'),
        ({'sent': 0, 'answered': 0}, 'no sample was answered'),
        ({'faults': {}}, 'no fault was committed'),
    ],
)
def test_soak_fails_for_each_reason(monkeypatch, capsys, change, reason):
    bad = soak.Report(**{**GOOD, **change})
    monkeypatch.setattr(soak, 'soak', lambda *_, **__: bad)
    assert soak.main(['--seconds', '1']) == 1
    assert reason in capsys.readouterr().out


def test_soak_passes_otherwise(monkeypatch, capsys):
    memory = [(float(t), 100.0, 200.0 * (t > 2)) for t in range(20)]
    good = {**GOOD, 'answered': 8, 'left_out': 3, 'latencies': [0.001] * 7 + [0.9]}
    # The machine stood still for half a second of it.
    good.update(late=[(5.0, 0.9)], pauses=[(5.1, 0.3), (5.6, 0.2)])
    monkeypatch.setattr(soak, 'soak', lambda *_, **__: soak.Report(**good, memory=memory))
    assert soak.main([]) == 0
    output = capsys.readouterr().out
    assert '10 sent, 8 answered, 2 left out, 0 lost' in output
    assert 'p50 1.0 ms' in output
    assert 'largest 900.0 ms, 400.0 ms without' in output
    assert 'passed' in output


class Forgetful(soak.Checker):
    """Changes an answer and hides another one, as a broken node would."""

    def _check(self, message, open_samples, now):
        number = message.header.stamp.nanosec
        if number == 20:
            return False
        if number == 30:
            message.effort_ddot[0] *= 1.0 + 1e-6
        if number == 40:
            message.effort_dot[0] = float('nan')
        if number == 50:
            message.effort[0] *= 1.001
        return super()._check(message, open_samples, now)


def test_stream_of_the_soak_notices_what_is_lost_wrong_or_not_finite(monkeypatch):
    monkeypatch.setattr(soak, 'QUIET', 0.5)
    urdf = os.path.dirname(soak.__file__) + '/../urdf/panda.urdf'
    with open(urdf, encoding='utf-8') as file:
        text = file.read()
    pair = soak.fault_tools.Pair(text, diagnostics_period=0.05)
    try:
        found = soak.Report()
        checker = Forgetful(pair.client, text, 200.0, found)
        checker.run(lambda: found.sent < 60)
        checker.close()
    finally:
        pair.close()
    assert (found.sent, found.answered, found.wrong, found.not_finite) == (60, 59, 3, 1)
    assert found.unphysical == 2, 'the one that is not finite, and one of another power'
    assert found.lost == 1


def test_power_of_right_efforts_is_that_of_the_energy():
    names, motion = NAMES, MOTION
    efforts = taylor_rnea(robots.TWO_LINK, names, soak.GRAVITY, motion)
    rates = soak.energy_rates(robots.TWO_LINK, names, motion)
    for terms, rate in zip(soak.power_terms(efforts, motion), rates):
        assert abs(terms.sum() - rate) <= 1e-8 * np.abs(terms).sum()
