"""The benchmark of the service runs over real middleware; its tables hold what they promise."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def service(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module('benchmarks.service')


@pytest.mark.slow
def test_a_tiny_run_measures_all_ways_to_call_and_writes_the_tables(
    service, tmp_path, capsys
):
    assert service.main(['--size', 'tiny', '-o', str(tmp_path)]) == 0
    text = (tmp_path / 'service.inc').read_text()
    assert text.strip() in capsys.readouterr().out
    size = service.SIZES['tiny']
    for row in (
        f'{size.samples} samples',
        'echo',
        'node, flat arrays',
        'node, list of messages',
        f'{size.waypoints} waypoints',
        'CPU [s], to deserialise',
        'peak [MiB], the message',
    ):
        assert sum(line.startswith(row) for line in text.splitlines()) == 1, row


def test_tables_hold_medians_and_ratios(service):
    found = {'echo': [0.01, 0.02, 0.5], 'node, flat arrays': [0.03, 0.01, 0.04]}
    answer = service.Answer(cpu=3.0, unpacking=1.5, peak=90.0, size=20.0)
    text = service.tables(found, answer, service.SIZES['quick'])
    rows = [line.split() for line in text.splitlines()]
    assert ['echo', '20', '10', '1.00'] in rows
    assert ['node,', 'flat', 'arrays', '30', '10', '1.50'] in rows
    assert ['CPU', '[s],', 'to', 'deserialise', '3', '1.5', '2.0'] in rows
    assert ['peak', '[MiB],', 'the', 'message', '90', '20', '4.5'] in rows


def test_requests_hold_as_many_samples_as_they_say(service):
    times, motion = np.arange(3.0), np.arange(105.0).reshape(3, 5, 7)
    flat = service.flat_request(times, motion).motion_trajectory
    assert list(flat.time_from_start) == [0.0, 1.0, 2.0]
    assert np.array_equal(np.reshape(flat.snap, (3, 7)), motion[:, 4])
    request = service.waypoints_request(50)
    points = request.trajectory.points
    assert len(points) == 50
    first, last = (
        p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec
        for p in (points[0], points[-1])
    )
    assert request.sample_period == pytest.approx((last - first) / 49)
