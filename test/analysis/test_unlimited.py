"""What has no limit is named, with its largest value and unit."""

import numpy as np
import pytest
from support import robots
from support.motion_limits import FRANKA, PANDA, unlimited

from hodyn_ros import RobotModel, actuators, inverse_dynamics
from hodyn_ros.actuators.limits import motor_limits
from hodyn_ros.actuators.motors import motor_motion
from hodyn_ros.analysis import find_unlimited
from hodyn_ros.analysis.unlimited import kept
from hodyn_ros.model.limits import motion_limits
from hodyn_ros.trajectory.spline import fit_spline

RAIL = RobotModel.from_urdf(robots.OTHER_JOINTS)
SPRINGS = dict.fromkeys(PANDA.joint_names[:2], actuators.SeriesElastic(2000.0, 0.5))
ALL, EXTRA = PANDA.joint_names, ('acceleration', 'jerk', 'effort_dot', 'effort_ddot')
EVERYTHING = {name: {**given, 'effort_ddot': 5e4} for name, given in FRANKA.items()}


@pytest.mark.parametrize(
    ('model', 'limits', 'drives', 'expected'),
    [
        (PANDA, motion_limits(PANDA, EVERYTHING), None, []),
        (PANDA, motion_limits(PANDA, FRANKA), None, [('effort_ddot', ALL, 'N m/s^2')]),
        (
            PANDA,
            motion_limits(PANDA),
            None,
            list(zip(EXTRA, [ALL] * 4, ('rad/s^2', 'rad/s^3', 'N m/s', 'N m/s^2'))),
        ),
        (
            PANDA,
            motion_limits(PANDA, {**EVERYTHING, ALL[3]: {'jerk': 9.0, 'effort_ddot': 1.0}}),
            None,
            [('acceleration', ALL[3:4], 'rad/s^2'), ('effort_dot', ALL[3:4], 'N m/s')],
        ),
        (
            RAIL,
            unlimited(1, velocity=1.0, acceleration=1.0),
            None,
            [
                ('jerk', RAIL.joint_names, 'm/s^3'),
                ('effort', RAIL.joint_names, 'N'),
                ('effort_dot', RAIL.joint_names, 'N/s'),
                ('effort_ddot', RAIL.joint_names, 'N/s^2'),
            ],
        ),
        (
            PANDA,
            motion_limits(PANDA, EVERYTHING),
            {ALL[0]: {'motor_torque': 50.0}},
            [
                ('motor_velocity', ALL, 'rad/s'),
                ('motor_torque', ALL[1:], 'N m'),
                ('motor_torque_rate', ALL, 'N m/s'),
                ('deflection', ALL[:2], 'rad'),
            ],
        ),
    ],
)
def test_quantities_without_a_limit_are_named_with_their_largest_value(
    model, limits, drives, expected
):
    n = model.n_joints
    start = np.linspace(-0.5, -0.9, n)
    path = fit_spline([0.0, 1.0, 2.0], [start, start + 0.3 * np.arange(1, n + 1), start])
    motion = path(np.linspace(0.0, 2.0, 101), 5)
    effort = inverse_dynamics(model, motion)
    series = {
        'velocity': motion[:, 1],
        'acceleration': motion[:, 2],
        'jerk': motion[:, 3],
        'effort': effort[:, 0],
        'effort_dot': effort[:, 1],
        'effort_ddot': effort[:, 2],
    }
    given = {}
    if drives is not None:
        driven = actuators.Actuators(model, SPRINGS)
        motors = motor_motion(driven, motion, effort, order=None)
        bounds = motor_limits(driven, drives)
        given = {'actuators': driven, 'motor_limits': bounds, 'motors': motors}
        # With a motor in each joint.
        series |= {
            'motor_velocity': motors.position[:, 1],
            'motor_torque': motors.torque[:, 0],
            'motor_torque_rate': motors.torque[:, 1],
            'deflection': motors.deflection[:, 0],
        }
    found = find_unlimited(model, limits, motion, effort, **given)
    assert [(each.quantity, each.names, each.unit) for each in found] == expected
    text = kept(found, 'a file')
    known = ' known' * bool(expected)
    assert text.startswith(f'All{known} limits are kept (a file).')
    for each in found:
        columns = [model.joint_names.index(name) for name in each.names]
        peaks = np.abs(series[each.quantity][:, columns]).max(axis=0)
        assert each.largest == peaks.max()
        assert each.name == each.names[peaks.argmax()]
        assert f'{each.unit} in {each.name})' in text
    # Without a motion the same is named.
    given.pop('motors', None)
    bare = find_unlimited(model, limits, **given)
    assert [each[:3] for each in bare] == [each[:3] for each in found]
    assert all(np.isnan(each.largest) for each in bare) and '(up to' not in kept(bare)


def test_what_is_known_nowhere_has_no_largest_value():
    motion = np.full((3, 5, 7), np.nan)
    motion[:, :3] = 0.5
    motion[1, 3] = -2.0  # the jerk at one sample
    found = find_unlimited(PANDA, motion_limits(PANDA), motion)
    largest = [each.largest for each in found]
    np.testing.assert_array_equal(largest, [0.5, 2.0, np.nan, np.nan])
