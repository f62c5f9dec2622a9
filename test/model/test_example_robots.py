"""Robots that people own: those of the PyPI package example-robot-data, against Pinocchio."""

import re
import warnings
from importlib import metadata
from pathlib import Path

import pytest
from support import example_robots

from hodyn_ros import ModelWarning

ROOT = Path(__file__).resolve().parents[2]

pytest.importorskip('pinocchio', reason='Pinocchio (PyPI: pin) is the reference')
try:
    ROBOTS = example_robots.descriptions()
except metadata.PackageNotFoundError:
    pytest.skip('example-robot-data is not installed', allow_module_level=True)
pytestmark = pytest.mark.needs()  # that package, which is no module

# Descriptions that are refused, and why.
REFUSED = {
    'alex_description/urdf/alex_psyonic_hands.urdf': "mimics 'index_q1', which does not exist",
    'hector_description/robots/quadrotor_base.urdf': 'no moving joints',
    'iris_description/robots/iris_simple.urdf': 'no moving joints',
    'romeo_description/urdf/romeo_laas_small.urdf': "'LHipPitch_link' has an inertia",
    'ur_description/urdf/ur3.urdf': 'no links',
}

TOLERANCE = 1e-12  # relative to the largest effort of the order


@pytest.mark.parametrize('name', ROBOTS)
def test_robot_agrees_with_pinocchio_or_is_refused_with_the_reason(name):
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        outcome = example_robots.compare(ROBOTS[name])
    if name in REFUSED:
        assert REFUSED[name] in outcome.reason
    else:
        assert outcome.reason == ''
        assert outcome.errors[0] <= TOLERANCE
        assert outcome.errors[1] <= TOLERANCE


@pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')
def test_inertias_that_no_body_has_give_the_same_efforts_on_request():
    (name,) = [name for name, reason in REFUSED.items() if 'has an inertia' in reason]
    with pytest.warns(ModelWarning, match='not positive semi-definite'):
        outcome = example_robots.compare(ROBOTS[name], allow_impossible_inertia=True)
    assert outcome.reason == ''
    assert max(outcome.errors) <= TOLERANCE


def test_there_are_many_robots():
    assert len(ROBOTS) >= 60
    assert len(REFUSED) <= 5


def test_table_in_the_documentation_is_complete():
    page = (ROOT / 'doc' / 'benchmarks' / 'example_robots.inc').read_text(encoding='utf-8')
    listed = set(re.findall(r'^   \* - ``(.+)``$', page, flags=re.MULTILINE))
    assert listed == set(ROBOTS)
    if metadata.version(example_robots.PACKAGE) in page:
        # All but the last digits of the differences, which depend on the machine.
        assert _without_differences(page) == _without_differences(example_robots.page())


def _without_differences(page):
    return re.sub(
        r'^     - \d(\.\d+)?e[-+]\d+$', '     - difference', page, flags=re.MULTILINE
    )
