"""The benchmark of the estimator runs and its parts do what they say."""

import numpy as np
import pytest


def test_benchmark_writes_its_tables(benchmark_module, tmp_path, capsys):
    core = pytest.importorskip('docutils.core')
    path = tmp_path / 'folder' / 'estimation.inc'
    assert benchmark_module.main(['--size', 'tiny', '-o', str(path)]) == 0
    text = path.read_text()
    assert text in capsys.readouterr().out
    document = core.publish_doctree(text, settings_overrides={'report_level': 5})
    assert document.parse_messages == []
    assert 'estimator, delay 0.1 s' in text and 'vouched' in text and 'largest' in text


def test_benchmark_finds_the_estimator_better_than_the_best_filter_of_its_delay(
    benchmark_module,
):
    rows, honesty = benchmark_module.measure(
        benchmark_module.SIZES['tiny'], say=lambda text: None
    )
    errors = {row.method: row.errors for row in rows}
    ours = errors['estimator, delay 0.1 s']
    assert np.all(ours < errors['Savitzky-Golay, in the middle'])
    assert np.all(ours < errors['differences'])
    assert np.all(honesty[0].coverage[:3] > 0.88)


def test_benchmark_finds_the_estimator_honest_about_encoders(benchmark_module):
    full = benchmark_module.SIZES['full']
    cases = [case for case in full.streams if case.rate == 100]
    table = benchmark_module.measure_streams(full._replace(duration=8.0, streams=cases))
    covered = [row[5:] for row in table if 'covered' in row]
    assert len(covered) == len(cases)
    for row in covered:
        assert all(float(text.split()[0]) >= 90.0 for text in row if text != '-')


def test_motions_of_the_benchmark_are_derivatives_of_each_other(benchmark_module):
    t = np.linspace(0.0, 6.0, 6001)
    motion = benchmark_module.motions(t)
    found = (motion[2:, :4] - motion[:-2, :4]) / 2e-3
    scale = np.abs(motion[:, 1:]).max(axis=0)
    np.testing.assert_allclose((found - motion[1:-1, 1:]) / scale, 0.0, atol=1e-2)


def test_savitzky_golay_of_the_benchmark_is_that_of_scipy(benchmark_module):
    """Without noise the best filter of degree 7 reproduces a polynomial of degree 4."""
    t = np.arange(400) / 100
    truth = np.repeat(
        np.stack([t**4, 4.0 * t**3, 12.0 * t**2, 24.0 * t, 24.0 + 0.0 * t], axis=1)[
            ..., None
        ],
        6,
        axis=2,
    )
    for centred in (False, True):
        errors, delay = benchmark_module.savitzky_golay(
            100, truth[:, 0], truth, 0.2, centred
        )
        assert errors.max() < 1e-5
        assert (delay > 0.0) is centred
