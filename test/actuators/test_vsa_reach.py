"""What torques and stiffnesses variable stiffness actuators can have, and what they refuse."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import vsa_oracle
from support.vsa_oracle import MODELS, PUBLISHED

from hodyn_ros import friction
from hodyn_ros.actuators.springs import increasing_root
from hodyn_ros.actuators.vsa.mechanisms import AwasII, DlrBavs, Qbmove, vsa_model
from hodyn_ros.actuators.vsa.model import VariableStiffness
from hodyn_ros.errors import ActuatorError, DeflectionError, MotionError

every_model = pytest.mark.parametrize('model', MODELS.values(), ids=MODELS.keys())
limited = {name: m for name, m in MODELS.items() if np.isfinite(m.effort_range).all()}
every_limited_model = pytest.mark.parametrize('model', limited.values(), ids=limited.keys())

QBMOVE = PUBLISHED['qbmove/advanced_datasheet']
fractions = st.floats(0.0, 1.0)


def effort_at(model, fraction):
    """Effort inside the range, or of up to 5 N m where nothing limits it."""
    lower, upper = np.clip(model.effort_range, -5.0, 5.0)
    return lower + fraction * (upper - lower)


def stiffness_at(model, effort, fraction):
    """Stiffness inside the interval, or up to thirty times its lower end and 10 N m/rad."""
    lower, upper = model.stiffness_range(effort)
    return lower + fraction * (min(upper, 30.0 * lower + 10.0) - lower)


def limits(model):
    """Largest size of both deflections."""
    if isinstance(model, AwasII):
        travel = model.L if model.max_travel is None else model.max_travel
        return np.array([model.max_deflection, travel / model.pitch])
    return np.array(model.springs()[3])


@given(st.sampled_from(list(MODELS.values())), fractions, fractions)
def test_everything_in_the_reachable_set_is_reached(model, first, second):
    effort = effort_at(model, 0.001 + 0.998 * first)
    stiffness = stiffness_at(model, effort, second)
    d = model.deflections_for(np.asarray(effort), np.asarray(stiffness))
    y = d + 0.3 * np.array(model.link_coupling)
    tolerance = 1e-11 * (stiffness + abs(effort))
    assert abs(vsa_oracle.torque(model, np, 0.3, *y) - effort) <= tolerance
    assert abs(vsa_oracle.stiffness(model, np, 0.3, *y) - stiffness) <= tolerance
    # Near a corner of the set, rounding of the stiffness is a larger part of a deflection.
    assert np.all(np.abs(d) <= limits(model) + 1e-6)


@given(
    st.sampled_from(list(MODELS.values())), fractions, st.floats(1e-6, 10.0), st.booleans()
)
def test_what_is_outside_of_the_reachable_set_is_refused(model, first, outside, above):
    effort = effort_at(model, first)
    lower, upper = model.stiffness_range(effort)
    if (above and np.isinf(upper)) or (not above and lower == 0.0):
        return
    stiffness = upper * (1.0 + outside) if above else lower / (1.0 + outside)
    with pytest.raises(DeflectionError, match='at this effort the stiffness can be'):
        model.deflections_for(np.asarray(effort), np.asarray(stiffness))


@given(
    st.tuples(*[st.floats(1.0, 20.0)] * 2, *[st.floats(1e-3, 2.0)] * 2),
    fractions,
    fractions,
)
def test_any_pair_of_springs_is_inverted(constants, first, second):
    a, k = constants[:2], constants[2:]
    model = Qbmove(a, k)
    u = np.array([6.0 * first, 12.0 * second - 6.0])
    if a[0] * np.tanh(u[0]) <= a[1] * np.tanh(u[1]) + 1e-3:
        return
    for sign in (1.0, -1.0):
        # Turned round, the springs change their places.
        d = u / a
        if sign < 0.0:
            model, d = Qbmove(a[::-1], k[::-1]), -d[::-1]
        effort, stiffness = model.effort_and_stiffness(d)
        found = model.deflections_for(effort, stiffness)
        again = model.effort_and_stiffness(found)
        np.testing.assert_allclose(
            again, (effort, stiffness), rtol=1e-12, atol=1e-12 * stiffness
        )
        # Rounding of effort and stiffness, as the inverse of the Jacobian enlarges it.
        rounding = np.abs(np.linalg.inv(model.jacobian(d))).sum(axis=1) * stiffness
        curvature = 1e3 * rounding**2
        assert np.all(np.abs(found - d) <= 1e-13 * rounding + 1e-13 * curvature + 1e-13)


@every_limited_model
@pytest.mark.parametrize('fraction', [0.03, 0.3, 0.5, 0.9, 0.98])
def test_interval_of_the_stiffness_is_that_of_a_search(model, fraction):
    effort = effort_at(model, fraction)
    limit = limits(model)
    if isinstance(model, AwasII):
        second = np.linspace(0.0, limit[1], 200_001)[1:]
        unit = vsa_oracle.torque(model, np, 0.0, np.pi / 4, second)
        sine = effort / unit
        first = 0.5 * np.arcsin(np.clip(sine, -1.0, 1.0))
        good = (np.abs(sine) <= 1.0) & (np.abs(first) <= limit[0])
    else:
        first = np.linspace(-limit[0], limit[0], 200_001)
        # The torque of spring 2 on a grid, read backwards.
        grid = np.linspace(-limit[1], limit[1], 200_001)
        ours, theirs = (
            vsa_oracle.motor_torques(model, np, 0.0, d, d)[i]
            for i, d in ((0, first), (1, grid))
        )
        second = np.interp(effort - ours, theirs, grid)
        good = (effort - ours >= theirs[0]) & (effort - ours <= theirs[-1])
    stiffness = vsa_oracle.stiffness(model, np, 0.0, first, second)[good]
    # Along the curve the stiffness falls to its smallest and rises again; motor 1 is ahead there.
    rising = stiffness[np.argmin(stiffness) :]
    lower, upper = model.stiffness_range(effort)
    np.testing.assert_allclose(
        [lower, upper], [rising[0], rising[-1]], rtol=2e-4, atol=1e-6
    )


@every_limited_model
def test_range_of_the_effort_ends_where_the_interval_of_the_stiffness_closes(model):
    for end in model.effort_range:
        lower, upper = model.stiffness_range(0.999999 * end)
        assert 0.0 <= upper - lower < 0.02 * upper
        assert np.isfinite(model.stiffness_range(end)).all()
        assert np.isnan(model.stiffness_range(1.000001 * end)).all()
        drive = VariableStiffness(model, 0.1)
        with pytest.raises(
            DeflectionError, match='no admissible deflection gives this effort'
        ):
            drive.motors([0.0], [1.000001 * end], [upper])


@pytest.mark.parametrize('seed', range(20))
def test_interval_at_the_very_end_of_the_efforts_is_not_turned_round(seed):
    random = np.random.default_rng(seed)
    Ks, travel, deflection = random.uniform((1.0, 0.1, 0.1), (50.0, 0.9, 0.78))
    lever = AwasII(Ks, 0.05, 0.015, deflection, max_travel=0.05 * travel)
    for end in lever.effort_range:
        lower, upper = lever.stiffness_range(end)
        assert lower <= upper
        VariableStiffness(lever, 0.1).motors([0.0], [end], [lower])


@every_model
def test_ends_of_the_interval_are_reached_themselves(model):
    efforts = np.array(
        [effort_at(model, fraction) for fraction in np.linspace(0.001, 0.999, 41)]
    )
    for ends in model.stiffness_range(efforts):
        finite = np.isfinite(ends)
        d = model.deflections_for(efforts[finite], ends[finite])
        effort, stiffness = model.effort_and_stiffness(d)
        np.testing.assert_allclose(effort, efforts[finite], rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(stiffness, ends[finite], rtol=1e-11)


@every_model
def test_smallest_stiffness_has_positions_but_no_velocities(model):
    effort = 0.0 if isinstance(model, AwasII) else 0.3
    stiffness = float(model.stiffness_range(effort)[0])
    drive = VariableStiffness(model, 0.1)
    assert drive.motors([0.3], [effort], [stiffness]).position.shape == (2, 1)
    with pytest.raises(
        DeflectionError, match='does not determine the velocities of the motors'
    ):
        drive.motors([0.3, 0.0], [effort, 0.1], [stiffness, 0.0])


@every_limited_model
def test_largest_stiffness_has_velocities(model):
    effort = effort_at(model, 0.6)
    stiffness = float(model.stiffness_range(effort)[1])
    motors = VariableStiffness(model, 0.1).motors(
        [0.3, 0.0], [effort, 0.0], [stiffness, -0.5]
    )
    assert np.isfinite(motors.position).all()


@pytest.mark.parametrize('sign', [1.0, -1.0])
def test_exchanged_springs_exchange_the_motors(sign):
    one, other = Qbmove((7.0, 6.0), (0.02, 0.03)), Qbmove((6.0, 7.0), (0.03, 0.02))
    effort, stiffness = np.array([0.3, sign, 0.2]), np.array([9.0, 1.0, -2.0])
    d = one.deflection_series(effort, stiffness)
    np.testing.assert_allclose(
        -d[::-1], other.deflection_series(-effort, stiffness), rtol=1e-9
    )


def test_error_names_the_sample_what_was_given_and_what_is_possible():
    drive = VariableStiffness(QBMOVE, 0.1)
    lower, upper = drive.stiffness_range(0.5)
    effort = np.full((2, 3, 1), 0.5)
    stiffness = np.full((2, 3, 1), 10.0)
    stiffness[1, 2] = 3.0
    with pytest.raises(DeflectionError) as caught:
        drive.motors(np.zeros((2, 3, 1)), effort, stiffness)
    assert caught.value.sample == (1, 2)
    message = str(caught.value)
    for part in (
        '0.5 N m',
        '3 N m/rad',
        '(sample 1, 2)',
        f'{lower:.6g} to {upper:.6g} N m/rad',
    ):
        assert part in message
    with pytest.raises(DeflectionError) as caught:
        drive.motors([0.0], [0.5], [3.0])
    assert caught.value.sample == ()
    assert 'sample' not in str(caught.value)


def test_negative_and_zero_stiffness_are_out_of_reach():
    for model in PUBLISHED.values():
        for stiffness in (0.0, -1.0):
            with pytest.raises(DeflectionError):
                VariableStiffness(model, 0.1).motors([0.0], [0.1], [stiffness])


@pytest.mark.parametrize(
    'given, error, match',
    [
        (
            (np.zeros(3), np.zeros(3), None),
            ActuatorError,
            'needs the series of its stiffness',
        ),
        ((0.0, np.zeros(3), np.ones(3)), MotionError, 'q has shape'),
        ((np.zeros(3), np.zeros((2, 0)), np.ones(3)), MotionError, 'effort has shape'),
        (
            (np.zeros(3), np.zeros(3), [9.0, np.nan]),
            MotionError,
            'stiffness holds nan at index',
        ),
        ((np.zeros(3), [np.inf], np.ones(3)), MotionError, 'effort holds inf at index'),
        (
            (np.zeros(3), np.zeros(3), 'stiff'),
            MotionError,
            'stiffness is not an array of numbers',
        ),
        ((np.zeros((2, 3)), np.zeros((3, 3)), np.ones(3)), MotionError, r'q \(2, 3\)'),
    ],
)
def test_motions_that_do_not_fit_are_refused(given, error, match):
    with pytest.raises(error, match=match):
        VariableStiffness(QBMOVE, 0.1).motors(*given)


@pytest.mark.parametrize(
    'value', [0.0, -1.0, np.nan, np.inf, None, '1', True, (1.0, 1.0, 1.0)]
)
def test_parameters_that_are_not_positive_numbers_are_refused(value):
    for kind, parameters in (
        (Qbmove, {'a': 1.0, 'k': 1.0}),
        (DlrBavs, {'a': 1.0, 'b': 1.0, 'k': 1.0, 'ke': 1.0}),
        (AwasII, {'Ks': 1.0, 'L': 1.0, 'r_t': 1.0, 'max_deflection': 0.3, 'pitch': 1.0}),
        (VariableStiffness, {'model': QBMOVE, 'motor_inertia': 0.1}),
    ):
        for name in sorted(set(parameters) - {'model'}):
            with pytest.raises(ActuatorError, match=f'{kind.__name__}: {name} (is|has)'):
                kind(**(parameters | {name: value}))


@pytest.mark.parametrize(
    'call, match',
    [
        (lambda: AwasII(1.0, 0.1, 0.1, max_deflection=0.8), 'at most pi / 4'),
        (lambda: AwasII(1.0, 0.1, 0.1, max_travel=0.1), 'less than L'),
        (lambda: Qbmove(7.0, (0.1, -0.1)), 'k is -0.1'),
        (lambda: Qbmove(7.0, 0.1, max_deflection=0.0), 'max_deflection is 0.0'),
        (lambda: VariableStiffness('qbmove', 0.1), 'expected a VsaModel'),
        (lambda: VariableStiffness(QBMOVE, 0.1, 0.3), 'expected a friction law'),
        (lambda: VariableStiffness(QBMOVE, 0.1, (None,) * 3), 'friction has 3 laws'),
        (lambda: vsa_model('qbmov'), "model is 'qbmov', expected one of"),
        (
            lambda: vsa_model('qbmove', 'best'),
            "parameter set of qbmove is 'best', expected",
        ),
        (lambda: vsa_model('qbmove', a=7.0), r"\['k'\] are not given"),
        (lambda: vsa_model('qbmove', a=7.0, k=1.0, ke=1.0), r"no parameters \['ke'\]"),
        (lambda: vsa_model('dlr_bavs', 'nmmi', k=-1.0), 'k is -1.0'),
    ],
)
def test_unusable_descriptions_are_refused(call, match):
    with pytest.raises(ActuatorError, match=match):
        call()


def test_models_are_made_by_name():
    assert vsa_model('qbmove', 'gazebo_2015') == Qbmove(6.85, 0.022)
    assert vsa_model('qbmove', 'gazebo_2015', max_deflection=0.5) == Qbmove(
        6.85, 0.022, 0.5
    )
    assert vsa_model('qbmove', a=np.array([6.0, 7.0]), k=[0.1]) == Qbmove(
        (6.0, 7.0), (0.1, 0.1)
    )
    assert vsa_model('awas_ii', Ks=1.0, L=0.1, r_t=0.1) == AwasII(1.0, 0.1, 0.1)


@every_model
def test_actuators_are_values(model):
    drive = VariableStiffness(model, 0.1, friction.Viscous(0.1))
    model.deflections_for(np.array(0.0), np.array(stiffness_at(model, 0.0, 0.5)))
    for twin in (copy.deepcopy(drive), pickle.loads(pickle.dumps(drive))):
        assert twin == drive and hash(twin) == hash(drive)
    with pytest.raises(AttributeError):
        drive.model = QBMOVE
    assert type(model).__name__ in repr(drive)


@every_model
def test_large_and_small_numbers_give_no_warnings(model):
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        for effort in (0.0, 1e-300, 1e-12, 0.1):
            model.stiffness_range([effort, -effort])
            for fraction in (0.0, 0.01, 1.0):
                stiffness = np.asarray(stiffness_at(model, effort, fraction))
                d = model.deflections_for(np.asarray(effort), stiffness)
                assert np.isfinite(d).all()
        model.effort_range  # noqa: B018
        for stiffness in (1e-12, 1e9):
            try:
                model.deflections_for(np.zeros(2), np.full(2, stiffness))
            except DeflectionError:
                pass


def test_roots_take_few_steps_even_where_values_overflow():
    calls = []

    def function(x):
        calls.append(x)
        with np.errstate(over='ignore', invalid='ignore'):
            value = np.log(np.exp(9.0 * x) + np.exp(-9.0 * x)) - target
            return value, 9.0 * np.tanh(9.0 * x)

    roots = np.array([0.5, 2.0, 30.0])
    target = np.log(np.exp(9.0 * roots) + np.exp(-9.0 * roots))
    found = increasing_root(function, np.zeros(3), np.array([1.0, 100.0, 200.0]))
    np.testing.assert_allclose(found, roots, rtol=1e-14)
    # Bisection alone would take more than fifty.
    assert len(calls) < 15


def test_roots_outside_of_the_bracket_become_its_ends():
    roots = np.array([-1.0, 3.0])
    found = increasing_root(lambda x: (x - roots, np.ones(2)), np.zeros(2), np.ones(2))
    np.testing.assert_allclose(found, [0.0, 1.0], atol=1e-15)
