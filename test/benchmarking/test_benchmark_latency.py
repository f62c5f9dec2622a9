"""The latency benchmark runs over real middleware, and its tables hold what they promise.

Times are not tested, but for their order: they depend on the machine and on what else it does.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import numpy as np
import pytest
from docutils.core import publish_doctree
from docutils.nodes import entry, row

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def latency(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module('benchmarks.latency')


def rows_of(text):
    return [
        [cell.astext() for cell in line.findall(entry)]
        for line in publish_doctree(text, settings_overrides={'halt_level': 2}).findall(row)
    ]


@pytest.mark.slow
def test_a_tiny_run_measures_everything_and_writes_it(
    latency, tmp_path, monkeypatch, capsys
):
    # Every kind of load, but each of them only once.
    kinds = {kind for kinds in latency.LOADS.values() for kind in kinds}
    for beside in ('motion samples', 'busy process'):
        monkeypatch.delitem(latency.LOADS, beside)
    assert kinds == {kind for kinds in latency.LOADS.values() for kind in kinds}
    include = tmp_path / 'latency.inc'
    arguments = ['--size', 'tiny', '-o', str(tmp_path / 'bench'), '--include', str(include)]
    assert latency.main(arguments) == 0
    size = latency.SIZES['tiny']
    values = json.loads((tmp_path / 'bench' / 'latency.json').read_text())
    both = ('relay', 'node')
    everyone = (*both, latency.BEYOND)
    assert {(v['contestant'], v['rate']) for v in values['idle']} == {
        (name, rate) for name in everyone for rate in size.rates
    }
    assert set(values['resting']) == set(both)
    assert all(0.0 <= share < 1.0 for share in values['resting'].values())
    assert {(v['contestant'], v['beside'], v['rate']) for v in values['busy']} == {
        (name, beside, rate)
        for name in both
        for beside in latency.LOADS
        for rate in size.busy_rates
    }
    for v in values['idle'] + values['busy']:
        assert v['samples'] == round(v['rate'] * size.seconds)
        assert 0 <= v['lost'] < v['samples']
        # No message comes before it was sent, and the run was not longer than this.
        assert 1e-6 < v['p50'] <= v['p99'] <= v['p999'] <= v['largest'] < latency.TIMEOUT
    assert [v['contestant'] for v in values['sustained']] == list(both)
    assert all(v['rate'] in (0, 1000, 2000) and v['end'] for v in values['sustained'])
    for v in values['idle'] + values['busy']:
        # What the client misses is what the node says that it has left out.
        assert v['left_out'] == (0 if v['contestant'] == 'relay' else v['lost'])
        assert np.isnan(v['late50']) == (v['contestant'] == 'relay')
        assert not v['late50'] > v['late99']
    assert [v['beside'] for v in values['calls']] == [
        beside for beside, kinds in latency.LOADS.items() if set(kinds) - {'loop'}
    ]
    assert all(v['answered'] >= 1 and v['seconds'] > 0.0 for v in values['calls'])

    text = include.read_text()
    assert text == (tmp_path / 'bench' / 'latency.rst').read_text()
    assert text in capsys.readouterr().out
    rows = rows_of(text)
    ratios = [f'{name} / relay' for name in everyone[1:]]
    assert [line[:2] for line in rows[1:11]] == [
        [f'{rate} Hz', name] for rate in size.rates for name in (*everyone, *ratios)
    ]
    assert [line[0] for line in rows[12:14]] == list(both)
    busy = 2 * len(latency.LOADS) * len(size.busy_rates)
    assert len(rows) == 1 + 5 * len(size.rates) + 1 + 2 + 1 + busy


def test_processes_find_the_modules_that_the_benchmark_finds(
    latency, tmp_path, monkeypatch
):
    # As with colcon, where each package is in a directory of its own that a variable names.
    (tmp_path / 'elsewhere.py').write_text('print("found", flush=True)')
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv('PYTHONPATH', str(ROOT))
    with latency.process(1, 'elsewhere') as running:
        assert running.stdout.readline() == 'found\n', running.stderr.read()


def test_a_node_that_cannot_start_says_why(latency, tmp_path, monkeypatch):
    (tmp_path / 'broken.py').write_text('import no_such_module')
    monkeypatch.syspath_prepend(str(tmp_path))
    process = latency.process
    monkeypatch.setattr(latency, 'process', lambda domain, *_: process(domain, 'broken'))
    with pytest.raises(RuntimeError, match='(?s)node has ended: .*no_such_module'):
        with latency.session(1.0):
            pass


class FakeProbe:
    """Answers up to a rate; beyond it, in one of the ways in which a contestant can fail."""

    def __init__(self, stream, highest, failure):
        self._stream, self._highest, self._failure = stream, highest, failure
        self.asked = []

    def stream(self, contestant, rate, samples):
        self.asked.append((contestant, rate, samples))
        lost = 0
        reached = float(rate)
        if rate > self._highest:
            lost = samples // 4 if self._failure == 'loses' else 0
            reached = 0.5 * rate if self._failure == 'is not asked so fast' else rate
        times = np.arange(1, samples - lost + 1) * (1e-6 if contestant == 'relay' else 3e-6)
        return self._stream(times, lost, reached, cpu=1e-4 * samples)


@pytest.mark.parametrize(
    ('failure', 'end'),
    [
        ('loses', '8000 Hz: 25 % left out'),
        ('is not asked so fast', '8000 Hz: the client sends 4000 Hz at most'),
    ],
)
def test_the_climb_ends_where_the_contestant_or_the_client_fails(latency, failure, end):
    probe = FakeProbe(latency.Stream, 4000, failure)
    found = latency.sustained_rate(probe, 'node', latency.SIZES['quick'])
    assert (found.rate, found.end) == (4000, end)
    tries = latency.TRIES if failure == 'loses' else 1
    assert [rate for _, rate, _ in probe.asked] == [1000, 2000, 4000, *[8000] * tries]


def test_the_climb_ends_at_the_highest_rate(latency):
    size = latency.SIZES['quick']
    probe = FakeProbe(latency.Stream, 10**9, '')
    found = latency.sustained_rate(probe, 'relay', size)
    assert found.rate == size.highest
    assert 'not tried' in found.end


def test_figures_are_percentiles_over_all_rounds_and_ratios_to_the_relay(latency):
    probe = FakeProbe(latency.Stream, 1500, 'loses')
    everyone = (*latency.CONTESTANTS, latency.BEYOND)
    rows = latency.latencies(probe, (1000, 2000), 3, 1.0, contestants=everyone)
    assert len(probe.asked) == 18, 'all contestants in three rounds at two rates'
    found = {(row.contestant, row.rate): row for row in rows}
    relay = found['relay', 1000]
    assert (relay.samples, relay.lost) == (3000, 0)
    assert relay.p50 == pytest.approx(500.5e-6, rel=1e-3)
    assert relay.p99 == pytest.approx(990e-6, rel=1e-3)
    assert relay.p999 == pytest.approx(999e-6, rel=1e-3)
    assert relay.largest == pytest.approx(1000e-6)
    assert (found['node', 2000].samples, found['node', 2000].lost) == (6000, 1500)
    results = latency.Results(rows, [], {}, [], [])
    rows = rows_of(latency.idle_table(results))
    ratios = [line for line in rows if line[1].endswith(' / relay')]
    assert [line[2:6] for line in ratios] == [['3.00'] * 3 + ['1.00']] * 4


def test_requests_of_the_callers_are_what_the_service_takes(latency):
    peers = importlib.import_module('benchmarks.latency_peers')
    request = peers.motion_request(50)
    assert len(request.motion) == 50
    stamps = [message.header.stamp for message in request.motion]
    assert all(
        a.sec + 1e-9 * a.nanosec < b.sec + 1e-9 * b.nanosec
        for a, b in zip(stamps, stamps[1:])
    )
    trajectory = peers.trajectory_request(101)
    assert trajectory.sample_period == pytest.approx(0.1)
    assert trajectory.trajectory.points[-1].time_from_start.sec == peers.DURATION
