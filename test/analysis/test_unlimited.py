"""What has no limit is named, with its largest value and unit, of motors too."""

import numpy as np
from support import robots
from support.motion_limits import PANDA

from hodyn_ros import RobotModel, actuators
from hodyn_ros.analysis import find_unlimited, motion_limits
from hodyn_ros.trajectory import fit_spline


def test_motors_without_limits_are_named_with_what_they_reach():
    springs = dict.fromkeys(PANDA.joint_names[:2], actuators.SeriesElastic(2000.0, 0.5))
    driven = actuators.Actuators(PANDA, springs)
    bounds = actuators.motor_limits(driven, {PANDA.joint_names[0]: {'motor_torque': 50.0}})
    start = np.linspace(-0.5, -0.9, 7)
    path = fit_spline([0.0, 1.0, 2.0], [start, start + 0.3 * np.arange(1, 8), start])
    motors = actuators.motor_motion(driven, path(np.linspace(0.0, 2.0, 101), 5), order=None)
    given = {'actuators': driven, 'motor_limits': bounds, 'motors': motors}
    found = {each.quantity: each for each in find_unlimited(PANDA, PANDA.limits, **given)}
    everyone = PANDA.joint_names
    for quantity, names, unit, values in (
        ('motor_velocity', everyone, 'rad/s', motors.position[:, 1]),
        ('motor_torque', everyone[1:], 'N m', motors.torque[:, 0, 1:]),
        ('motor_torque_rate', everyone, 'N m/s', motors.torque[:, 1]),
        ('deflection', everyone[:2], 'rad', motors.deflection[:, 0, :2]),
    ):
        each, peaks = found[quantity], np.abs(values).max(axis=0)
        assert (each.names, each.unit, each.largest) == (names, unit, peaks.max())
        assert each.name == names[peaks.argmax()]


def test_units_are_those_of_the_kind_of_joint_and_nothing_known_has_no_value():
    rail = RobotModel.from_urdf(robots.OTHER_JOINTS)
    found = {each.quantity: each for each in find_unlimited(rail, motion_limits(rail))}
    units = {'acceleration': 'm/s^2', 'jerk': 'm/s^3', 'effort_dot': 'N/s'}
    assert {name: found[name].unit for name in units} == units
    assert np.isnan(found['jerk'].largest)
    motion = np.full((3, 5, 7), np.nan)
    motion[:, :3] = 0.5
    motion[1, 3] = -2.0  # the jerk at one sample
    largest = [each.largest for each in find_unlimited(PANDA, motion_limits(PANDA), motion)]
    np.testing.assert_array_equal(largest, [0.5, 2.0, np.nan, np.nan])
