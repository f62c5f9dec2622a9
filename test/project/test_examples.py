"""The examples of the papers run, and their numbers are right.

What an example compares itself is checked through its return value; what it computes is compared
once more with the power series of oracles.py, which no example uses.
"""

import importlib
import re
from pathlib import Path

import numpy as np
import pytest
from support.oracles import taylor_rnea
from support.random_trees import WrenchCase
from support.records import changed

from hodyn_ros.dynamics.inverse import FORMULATIONS

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ('two_link_arm', 'iiwa', 'panda_second_order', 'panda_higher_order')
SAMPLES = 9


@pytest.fixture(autouse=True)
def examples_are_importable(monkeypatch):
    # As when they are run: the directory of a script is the first in which it looks for modules.
    monkeypatch.syspath_prepend(str(ROOT / 'examples'))


def example(name):
    return importlib.import_module(name)


@pytest.mark.parametrize('name', EXAMPLES)
def test_example_agrees_with_what_it_is_compared_with(name, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    assert example(name).main(['--samples', str(SAMPLES)]) == 0
    assert re.search(r'\de-1\d', capsys.readouterr().out)
    # No picture unless one is asked for.
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize('name', EXAMPLES)
def test_example_draws_a_picture_where_it_is_told_to(name, tmp_path, capsys):
    pytest.importorskip('matplotlib', reason='matplotlib is not installed')
    picture = tmp_path / 'some' / 'where' / f'{name}.png'
    assert example(name).main(['--samples', str(SAMPLES), '--picture', str(picture)]) == 0
    assert picture.read_bytes()[:4] == b'\x89PNG'
    assert str(picture) in capsys.readouterr().out


@pytest.mark.parametrize('name', EXAMPLES)
def test_example_fails_if_a_result_is_off(name, monkeypatch):
    module = example(name)
    compute = module.compute

    def wrong(samples):
        result = compute(samples)
        for field in ('printed', 'numerical', 'interpolated'):
            if (values := getattr(result, field, None)) is not None:
                values[:, 1] *= 1.0 + 1e-6
                return changed(result, **{field: values})
        raise AssertionError('nothing to compare with')

    monkeypatch.setattr(module, 'compute', wrong)
    assert module.main(['--samples', str(SAMPLES)]) == 1


def test_make_and_the_pages_list_every_example():
    (made,) = re.findall(
        r'^EXAMPLES := (.*)$', (ROOT / 'Makefile').read_text(), re.MULTILINE
    )
    assert tuple(made.split()) == EXAMPLES
    page = (ROOT / 'doc' / 'formulations' / 'index.rst').read_text(encoding='utf-8')
    assert set(re.findall(r'`examples/(\w+)\.py`', page)) == set(EXAMPLES)


def assert_orders_match(actual, expected, tolerance):
    """Each order within a tolerance of its largest value; shape (N, orders, n)."""
    assert actual.shape == expected.shape
    scale = np.abs(expected).max(axis=(0, 2), keepdims=True)
    assert np.all(np.abs(actual - expected) <= tolerance * scale)


def power_series(urdf, joint_prefix, link, times, orders):
    tools = example('example_tools')
    wrench = WrenchCase(link, tools.validation_wrench(times, orders))
    names = tuple(f'{joint_prefix}{i}' for i in range(1, 8))
    motion = tools.validation_motion(times, orders + 2)
    xml = (ROOT / 'urdf' / urdf).read_text()
    return taylor_rnea(xml, names, tools.GRAVITY, motion, [wrench])


def test_iiwa_matches_power_series():
    result = example('iiwa').compute(SAMPLES)
    expected = power_series('iiwa14.urdf', 'iiwa_joint_', 'iiwa_link_7', result.times, 3)
    assert_orders_match(result.computed, expected, 1e-13)
    # Differences are what the paper compares with; they are worth a comparison, not a digit more.
    assert_orders_match(result.differences, expected, 1e-5)


def test_every_formulation_on_the_panda_matches_power_series():
    result = example('panda_second_order').compute(SAMPLES)
    expected = power_series('panda.urdf', 'panda_joint', 'panda_link7', result.times, 3)
    assert tuple(result.efforts) == tuple(FORMULATIONS)
    for name, efforts in result.efforts.items():
        highest = FORMULATIONS[name].highest_order
        assert efforts.shape[1] == (3 if highest is None else min(3, highest + 1))
        assert_orders_match(efforts, expected[:, : efforts.shape[1]], 1e-13)


def test_six_derivatives_on_the_panda_match_power_series():
    result = example('panda_higher_order').compute(SAMPLES)
    expected = power_series('panda.urdf', 'panda_joint', 'panda_link7', result.times, 7)
    assert set(result.others) >= {'closed_form', 'lagrange'}
    for efforts in (result.computed, *result.others.values()):
        assert_orders_match(efforts, expected, 1e-12)


def test_two_link_arm_at_rest_holds_its_weight():
    """Stretched out along x, both masses pull at their full lever arms."""
    module = example('two_link_arm')
    motion = np.zeros((1, 5, 2))
    reach = module.L1 + module.L2
    torque = [
        module.G * (module.M1 * module.L1 + module.M2 * reach),
        module.G * module.M2 * module.L2,
    ]
    expected = np.array([torque, [0, 0], [0, 0]])
    arm = module.two_link_arm()
    np.testing.assert_allclose(
        module.inverse_dynamics(arm, motion)[0], expected, rtol=1e-14
    )
    np.testing.assert_allclose(module.printed_expressions(motion)[0], expected, rtol=1e-14)


class TestValidationMotion:
    # As in the example code of Kumar and Mueller: q = POSITION cos(OMEGA t) and its fourth
    # derivative SNAP cos(OMEGA t).
    OMEGA = [
        *(1.7073873117335832, 3.079992797637052, 2.1084514453622774, 3.5903916041026207),
        *(1.4183262544423447, 2.285625793808507, 5.927533308659986),
    ]
    POSITION = [
        *(-1.2943753211777664, 0.7175341454355011, -0.5691380764966176, 0.5848944158627155),
        *(1.6216297151633214, -0.9187855709752027, 0.4217605991935227),
    ]
    SNAP = [
        *(-10.999892040114684, 64.57157452965167, -11.247915858545515, 97.19518567538881),
        *(6.562302747826879, -25.074638485300277, 520.6693559162899),
    ]

    def test_it_has_the_published_coefficients(self):
        motion = example('example_tools').validation_motion(np.array([0.0, 0.83]), 5)
        np.testing.assert_allclose(motion[0, 0], self.POSITION, rtol=1e-14)
        np.testing.assert_allclose(motion[0, 4], self.SNAP, rtol=1e-14)
        cosine = np.cos(np.array(self.OMEGA) * 0.83)
        np.testing.assert_allclose(motion[1, 0], self.POSITION * cosine, atol=1e-14)
        np.testing.assert_allclose(motion[1, 4], self.SNAP * cosine, atol=1e-11)

    def test_motion_and_wrench_have_their_derivatives(self):
        tools = example('example_tools')
        times = np.array([0.1, 1.7, 4.4])
        for series in (tools.validation_motion, tools.validation_wrench):
            values = series(times, 6)
            for k in range(5):
                derivative = tools.differentiated(
                    lambda t, k=k, series=series: series(t, 6)[:, k], times, 2
                )[:, 1]
                scale = np.abs(values[:, k + 1]).max()
                np.testing.assert_allclose(values[:, k + 1], derivative, atol=1e-11 * scale)


def test_numerical_differentiation_matches_known_derivatives():
    times = np.linspace(-2.0, 2.0, 23)
    omega = np.array([15.0, 20.0])
    actual = example('example_tools').differentiated(
        lambda t: np.cos(t[:, None] * omega), times, 5
    )
    k = np.arange(5)[:, None]
    expected = omega**k * np.cos(times[:, None, None] * omega + 0.5 * np.pi * k)
    assert np.all(np.abs(actual - expected) <= omega**k * 10.0 ** (k - 13.0))
