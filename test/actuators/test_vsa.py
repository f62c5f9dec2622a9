"""Variable stiffness: published constants, what can be reached, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import vsa_oracle
from support.vsa_oracle import LIMITED, MODELS

from hodyn_ros.actuators import AwasII, DlrBavs, Qbmove, VariableStiffness, vsa_model
from hodyn_ros.errors import ActuatorError, DeflectionError, MotionError

QBMOVE = vsa_model('qbmove', 'advanced_datasheet')
fractions = st.floats(0.0, 1.0)
models = st.sampled_from(list(MODELS.values()))


def effort_at(model, fraction):
    """Effort inside the range, or of up to 5 N m where nothing limits it."""
    lower, upper = np.clip(model.effort_range, -5.0, 5.0)
    return lower + fraction * (upper - lower)


def positions(model, effort, stiffness):
    """Of both motors of a joint at 0.3 rad."""
    found = VariableStiffness(model, 1.0).motors([0.3], [effort], [stiffness])
    return found.position[:, 0]


@given(models, fractions, fractions)
def test_everything_in_the_reachable_set_is_reached(model, first, second):
    effort = effort_at(model, 0.001 + 0.998 * first)
    lower, upper = model.stiffness_range(effort)
    stiffness = lower + second * (min(upper, 30.0 * lower + 10.0) - lower)
    y = positions(model, effort, stiffness)
    tolerance = 1e-11 * (stiffness + abs(effort))
    assert abs(vsa_oracle.torque(model, np, 0.3, *y) - effort) <= tolerance
    assert abs(vsa_oracle.stiffness(model, np, 0.3, *y) - stiffness) <= tolerance


@pytest.mark.every_case
@pytest.mark.parametrize('model', LIMITED.values(), ids=LIMITED)
def test_interval_of_the_stiffness_is_that_of_a_search(model):
    for fraction in (0.03, 0.5, 0.98):
        effort = effort_at(model, fraction)
        limit = vsa_oracle.limits(model)
        if isinstance(model, AwasII):
            second = np.linspace(0.0, limit[1], 200_001)[1:]
            sine = effort / vsa_oracle.torque(model, np, 0.0, np.pi / 4, second)
            first = 0.5 * np.arcsin(np.clip(sine, -1.0, 1.0))
            good = (np.abs(sine) <= 1.0) & (np.abs(first) <= limit[0])
        else:
            # The torque of spring 2 on a grid, read backwards.
            first, grid = (np.linspace(-end, end, 200_001) for end in limit)
            ours = vsa_oracle.motor_torques(model, np, 0.0, first, first)[0]
            theirs = vsa_oracle.motor_torques(model, np, 0.0, grid, grid)[1]
            second = np.interp(effort - ours, theirs, grid)
            good = (effort - ours >= theirs[0]) & (effort - ours <= theirs[-1])
        found = vsa_oracle.stiffness(model, np, 0.0, first, second)[good]
        # It falls to its smallest and rises again; motor 1 is ahead there.
        rising = found[np.argmin(found) :]
        expected = [rising[0], rising[-1]]
        np.testing.assert_allclose(
            model.stiffness_range(effort), expected, rtol=2e-4, atol=1e-6
        )


@pytest.mark.every_case
@pytest.mark.parametrize('model', LIMITED.values(), ids=LIMITED)
def test_range_of_the_effort_ends_where_the_interval_of_the_stiffness_closes(model):
    for end in model.effort_range:
        lower, upper = model.stiffness_range(0.999999 * end)
        assert 0.0 <= upper - lower < 0.02 * upper
        assert np.isnan(model.stiffness_range(1.000001 * end)).all()
        with pytest.raises(DeflectionError, match='no admissible deflection gives this'):
            positions(model, 1.000001 * end, upper)


@pytest.mark.parametrize('model', MODELS.values(), ids=MODELS)
def test_smallest_stiffness_has_positions_but_no_velocities(model):
    effort = 0.0 if isinstance(model, AwasII) else 0.3
    stiffness = float(model.stiffness_range(effort)[0])
    assert np.isfinite(positions(model, effort, stiffness)).all()
    with pytest.raises(
        DeflectionError, match='does not determine the velocities of the mo'
    ):
        VariableStiffness(model, 0.1).motors([0.3, 0.0], [effort, 0.1], [stiffness, 0.0])


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('stiffness', 'kind'), [(1e155, 'qbmove'), (1e300, 'qbmove'), (5e-324, 'awas_ii')]
)
def test_stiffness_out_of_proportion_is_refused(stiffness, kind):
    name = {'qbmove': 'gazebo_2015', 'awas_ii': 'nmmi'}[kind]
    drive = VariableStiffness(vsa_model(kind, name), 0.05)
    with pytest.raises(DeflectionError) as caught:
        drive.motors([0.0] * 3, [0.0] * 3, [stiffness, 0.0, 0.0])
    assert len(str(caught.value)) < 500


def test_constants_are_the_published_ones():
    assert vsa_model('qbmove', 'nmmi_maker_pro') == Qbmove(8.9992, 0.0019, 0.8)
    assert QBMOVE == Qbmove(6.7328, 0.0222, 0.8)
    bavs = vsa_model('dlr_bavs', 'nmmi')
    assert bavs == DlrBavs(a=1.21e-6, b=2.38e-6, k=1.6e5, ke=8.71, max_deflection=0.27)
    assert vsa_model('awas_ii', 'nmmi') == AwasII(10.0, 0.05, 0.015, max_deflection=0.3)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('given', 'error', 'match'),
    [
        (([0.0], [0.0], None), ActuatorError, 'needs the series of its stiffness'),
        (([0.0], [np.inf], [9.0]), MotionError, 'effort holds inf at index'),
        (([0.0], [0.0], [np.nan]), MotionError, 'stiffness holds nan at index'),
        ((np.zeros((2, 3)), np.zeros((3, 3)), np.ones(3)), MotionError, r'q \(2, 3\)'),
    ],
)
def test_motions_that_do_not_fit_are_refused(given, error, match):
    with pytest.raises(error, match=match):
        VariableStiffness(QBMOVE, 0.1).motors(*given)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('call', 'match'),
    [
        (lambda: Qbmove(7.0, 0.0), 'Qbmove: k is 0.0'),
        (lambda: Qbmove(7.0, (0.1, 0.2)), r'k is \(0.1, 0.2\), expected a finite number'),
        (lambda: AwasII(1.0, 0.1, 0.1, max_deflection=0.8), 'at most pi / 4'),
        (lambda: AwasII(1.0, 0.1, 0.1, max_travel=0.1), 'less than L'),
        (lambda: VariableStiffness('qbmove', 0.1), 'expected a VsaModel'),
        (lambda: VariableStiffness(QBMOVE, 0.1, (None,) * 3), 'friction has 3 values'),
        (lambda: vsa_model('qbmove', 'best'), "set of qbmove is 'best', expected"),
        (lambda: vsa_model('qbmove', a=7.0), r"\['k'\] are not given"),
    ],
)
def test_unusable_descriptions_are_refused(call, match):
    with pytest.raises(ActuatorError, match=match):
        call()
