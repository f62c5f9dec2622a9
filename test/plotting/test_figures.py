"""Figures show the numbers of the results, the limits and where they are exceeded."""

from dataclasses import replace

import numpy as np
import pytest
from support import robots
from support.plotting_tools import comparison_of, results_of
from support.processes import run_python

from hodyn_ros import RobotModel, friction
from hodyn_ros.actuators import (
    Actuators,
    SeriesElastic,
    motor_limits,
)
from hodyn_ros.analysis import Recorded, find_stop_causes
from hodyn_ros.dynamics import kinetic_energy
from hodyn_ros.errors import JointNameError, MotionError
from hodyn_ros.model.violations import find_violations, motion_limits
from hodyn_ros.plotting import (
    plot_comparison,
    plot_efforts,
    plot_energy,
    plot_joint,
    plot_motion,
    plot_motors,
    plot_portraits,
    plot_stop,
)

pytest.importorskip('matplotlib', reason='matplotlib is not installed')

PNG = b'\x89PNG\r\n\x1a\n'
MODEL = RobotModel.from_urdf(robots.TWO_LINK)  # |q| <= 2, |qd| <= 3, |Q| <= 50
ACTUATORS = Actuators(MODEL, {'elbow': SeriesElastic(80.0, 0.2)})
RESULTS = results_of(MODEL, ACTUATORS)


def test_a_notebook_shows_a_figure_without_pyplot():
    # What IPython asks an object for that it has no formatter of its own for.
    assert plot_joint(MODEL, RESULTS, 'elbow')._repr_png_().startswith(PNG)
    code = 'import hodyn_ros.plotting.shown, sys; print("matplotlib.pyplot" in sys.modules)'
    assert run_python(code) == ('False\n', '')


def curves(axes):
    """Lines with more than one point that are no limits, as (x, y)."""
    return [line.get_xydata().T for line in axes.lines if len(line.get_xdata()) > 2]


def drawn(figure):
    """Axes that show something."""
    return [axes for axes in figure.axes if axes.axison]


def limits_drawn(axes):
    """Heights of the horizontal lines."""
    heights = [line.get_ydata() for line in axes.lines if len(line.get_xdata()) == 2]
    return sorted(float(y[0]) for y in heights if y[0] == y[1])


def crosses(axes):
    return [tuple(line.get_xydata()[0]) for line in axes.lines if line.get_marker() == 'x']


def test_axes_say_quantity_and_unit():
    axes = drawn(plot_joint(MODEL, RESULTS, 'elbow'))
    assert [place.get_ylabel() for place in axes] == [
        'q [rad]',
        'q′ [rad/s]',
        'q″ [rad/s²]',
        'q‴ [rad/s³]',
        'q⁽⁴⁾ [rad/s⁴]',
        'Q [N m]',
        'Q′ [N m/s]',
        'Q″ [N m/s²]',
    ]
    assert {place.get_xlabel() for place in axes} == {'time [s]'}
    assert axes[1].get_title() == 'Velocity q′'


def test_prismatic_joints_have_units_of_their_own():
    model = RobotModel.from_urdf(robots.OTHER_JOINTS)
    figure = plot_efforts(model, results_of(model))
    assert figure.get_suptitle() == 'swing.csv: joint efforts: rail'
    axes = drawn(figure)
    assert [place.get_ylabel() for place in axes] == ['Q [N]', 'Q′ [N/s]', 'Q″ [N/s²]']
    assert axes[1].get_title() == 'Force rate Q′'


def test_limits_are_drawn_and_the_worst_place_is_marked():
    bounds = motion_limits(MODEL, {'elbow': {'acceleration': 1.5}})
    violations = find_violations(MODEL, bounds, RESULTS.motion, RESULTS.effort)
    (worst,) = [v for v in violations if v.quantity == 'acceleration']
    figure = plot_joint(MODEL, RESULTS, 'elbow', bounds)
    assert figure.get_suptitle() == 'swing.csv: elbow'
    axes = drawn(figure)
    assert limits_drawn(axes[0]) == [-2.0, 2.0]
    assert limits_drawn(axes[2]) == [-1.5, 1.5]
    assert limits_drawn(axes[3]) == []
    assert crosses(axes[2]) == [(RESULTS.times[worst.sample], worst.value)]
    assert [crosses(place) for place in axes[:2]] == [[], []]


def test_portrait_shows_the_effort_over_its_rate_in_the_box_of_the_limits():
    bounds = motion_limits(MODEL, {'elbow': {'effort_dot': 0.5}})
    _, elbow = drawn(plot_portraits(MODEL, RESULTS, bounds))
    ((x, y),) = curves(elbow)
    np.testing.assert_array_equal(x, RESULTS.effort[:, 1, 1])
    np.testing.assert_array_equal(y, RESULTS.effort[:, 0, 1])
    assert limits_drawn(elbow) == [-50.0, 50.0]
    walls = [line.get_xdata()[0] for line in elbow.lines if len(line.get_xdata()) == 2]
    assert {-0.5, 0.5} <= set(walls)
    worst = np.abs(RESULTS.effort[:, 1, 1]).argmax()
    assert crosses(elbow) == [(RESULTS.effort[worst, 1, 1], RESULTS.effort[worst, 0, 1])]


def test_motor_side_shows_deflections_and_motors_with_their_limits():
    bounds = motor_limits(ACTUATORS, {'elbow': {'motor_velocity': 0.9, 'deflection': 0.01}})
    figure = plot_motors(MODEL, RESULTS, bounds)
    axes = {place.get_title(): place for place in drawn(figure)}
    # The shoulder is rigid, so it has no deflection.
    assert sorted(title for title in axes if 'Deflection' in title) == [
        'elbow: Deflection θ − q'
    ]
    ((_, theta),) = curves(axes['elbow: Motor position θ'])
    ((_, delta),) = curves(axes['elbow: Deflection θ − q'])
    np.testing.assert_allclose(theta - RESULTS.motion[:, 0, 1], delta, atol=1e-12)
    np.testing.assert_allclose(delta, RESULTS.effort[:, 0, 1] / 80.0, rtol=1e-12)
    assert limits_drawn(axes['elbow: Motor velocity θ′']) == [-0.9, 0.9]
    assert limits_drawn(axes['elbow: Deflection θ − q']) == [-0.01, 0.01]
    assert len(crosses(axes['elbow: Deflection θ − q'])) == 1


def test_energy_closes_without_friction_and_shows_what_friction_takes():
    _, balance = drawn(plot_energy(MODEL, RESULTS))
    (_, power), (_, rate), (_, other) = curves(balance)
    np.testing.assert_array_equal(other, power - rate)
    assert np.abs(other).max() < 1e-12 * np.abs(power).max()
    rubbing = MODEL.with_friction({'elbow': friction.Viscous(0.7)})
    results = results_of(rubbing)
    energy, balance = drawn(plot_energy(rubbing, results))
    _, _, (_, other) = curves(balance)
    np.testing.assert_allclose(other, 0.7 * results.motion[:, 1, 1] ** 2, atol=1e-12)
    (_, kinetic), (_, potential), (_, total) = curves(energy)
    np.testing.assert_allclose(kinetic, kinetic_energy(MODEL, results.motion)[:, 0])
    np.testing.assert_array_equal(total, kinetic + potential)


def test_what_is_unknown_is_a_gap_and_an_order_that_is_unknown_is_left_out():
    motion, effort = RESULTS.motion.copy(), RESULTS.effort.copy()
    motion[50:60, 2:] = effort[50:60] = np.nan
    motion[:, 4] = effort[:, 2] = np.nan
    axes = drawn(plot_joint(MODEL, replace(RESULTS, motion=motion, effort=effort), 'elbow'))
    assert len(axes) == 4 + 2
    np.testing.assert_array_equal(
        np.isnan(curves(axes[4])[0][1]).nonzero()[0], range(50, 60)
    )
    _, power = drawn(plot_energy(MODEL, replace(RESULTS, motion=motion, effort=effort)))
    _, (_, rate), _ = curves(power)
    np.testing.assert_array_equal(np.isnan(rate).nonzero()[0], range(50, 60))


def test_names_are_no_mathematics(tmp_path):
    results = results_of(MODEL, name='$\\frac{broken$')
    plot_energy(MODEL, results).savefig(tmp_path / 'name.png')


def test_limits_far_away_leave_the_curve_visible():
    # Of the elbow at most 0.5 rad, 1 rad/s and 2 rad/s^2.
    def ranges(**limits):
        bounds = motion_limits(MODEL, {'elbow': limits})
        return [
            axes.get_ylim() for axes in drawn(plot_joint(MODEL, RESULTS, 'elbow', bounds))
        ]

    near, far = ranges(acceleration=4.0, jerk=9.0), ranges(acceleration=100.0)
    assert near[:2] == far[:2]
    assert near[2][0] < -4.0 and near[2][1] > 4.0 and near[3][1] > 9.0
    assert -2.5 < far[2][0] < -2.0
    still = results_of(MODEL, amplitude=0.0)
    low, high = drawn(plot_joint(MODEL, still, 'elbow'))[0].get_ylim()
    assert low < 0.0 < high


@pytest.mark.parametrize(
    ('change', 'what'),
    [
        ({'times': RESULTS.times[::-1]}, 'times decrease'),
        ({'motion': np.full((201, 3, 2), np.nan)}, "position of joint 'shoulder' is nan"),
    ],
)
def test_results_that_cannot_be_drawn_are_refused(change, what):
    changed = replace(RESULTS, **change)
    with pytest.raises(MotionError, match=what):
        plot_motion(MODEL, changed)


def test_a_comparison_shows_both_efforts_their_difference_and_its_frequencies():
    found = comparison_of(MODEL)
    figure = plot_comparison(found)
    assert 'payload of 1.5 kg at tool would explain 75 %' in figure.get_suptitle()
    assert len(figure.axes) == 6
    for j, (both, difference, spectrum) in enumerate([figure.axes[:3], figure.axes[3:]]):
        (x, measured), (_, computed) = curves(both)
        first, second = found.stretches
        breaks = np.flatnonzero(np.isnan(computed))
        assert breaks.tolist() == [200, 301]  # behind each stretch
        np.testing.assert_array_equal(computed[:200], first.computed[:, j])
        np.testing.assert_array_equal(measured[201:301], second.measured[:, j])
        np.testing.assert_array_equal(x[201:301], second.times)
        ((x, rest),) = curves(difference)
        size, known = 0.5 * (j + 1), np.isfinite(rest)
        np.testing.assert_allclose(
            rest[known], size * np.sin(2 * np.pi * x[known]), atol=1e-12
        )
        ((frequencies, amplitude),) = curves(spectrum)
        # Of one sine: its frequency and its amplitude.
        assert frequencies[amplitude.argmax()] == pytest.approx(1.0)
        assert amplitude.max() == pytest.approx(size, rel=1e-2)
        assert amplitude[frequencies > 3.0].max() < 1e-2 * size


def test_unknown_joints_are_refused():
    with pytest.raises(JointNameError, match='knee.*shoulder, elbow'):
        plot_joint(MODEL, RESULTS, 'knee')


def test_picture_of_a_stop_shows_commands_measurements_limits_and_the_excess():
    times = 0.001 * np.arange(1000)
    q = 0.3 * np.sin(2.0 * times)[:, None] ** 2 * np.ones(2)
    q[500] = q[499]
    limits = motion_limits(MODEL, {'shoulder': {'acceleration': 15.0}})
    measured = Recorded(times[::2] - 0.0003, q[::2])
    analysis = find_stop_causes(MODEL, limits, Recorded(times, q), measured)
    figure = plot_stop(MODEL, analysis)
    position, velocity, acceleration, jerk = drawn(figure)
    assert all(len(curves(axes)) == 2 for axes in (position, velocity))
    x, y = curves(acceleration)[0]
    expected = np.diff(q[:, 0], 2) / 1e-6
    np.testing.assert_allclose(y, expected[np.rint(1000.0 * x).astype(int) - 2], rtol=1e-6)
    assert limits_drawn(acceleration) == [-15.0, 15.0] and limits_drawn(jerk) == []
    (cross,) = crosses(acceleration)
    assert cross == pytest.approx((0.501, expected[499]))
    with pytest.raises(MotionError, match='no cause'):
        plot_stop(MODEL, find_stop_causes(MODEL, limits, None, measured))
