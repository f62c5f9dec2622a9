"""Descriptions of the FR3, the UR5e and the UR10e hold the figures of their makers.

Torques and poses are those of Pinocchio 4.1.0 with what xacro makes of franka_description 1.0.1
and Universal_Robots_ROS2_Description 2.4.5. Limits were typed from libfranka and these packages.
"""

import numpy as np
import pytest
import yaml

from hodyn_ros import RobotModel, forward_kinematics, inverse_dynamics
from hodyn_ros.resources import share_file

POSE = {
    'fr3': [0, -0.5, 0, -2, 0, 1.6, 0.7],
    'fr3_with_hand': [0, -0.5, 0, -2, 0, 1.6, 0.7, 0.01],
    'ur5e': [0.2, -1.2, 1.4, -0.9, -1.5, 0.4],
    'ur10e': [0.2, -1.2, 1.4, -0.9, -1.5, 0.4],
}
# The torque of the joint that the second finger follows has that of both fingers.
TORQUES = {
    'fr3': [
        *(1.268895336948, -21.054491878871, 1.079537602971, 18.702637690389),
        *(0.478493624994, 0.962505815677, 0.029925102443),
    ],
    'fr3_with_hand': [
        *(1.421466839051, -24.17713103704, 1.291948076721, 21.59257801814),
        *(0.1107743240492, 0.9801752461873, 0.004302030107715, -0.021510783125979),
    ],
    'ur5e': [
        *(3.126424141021, -44.50414125232, -15.84915042628, -0.3595731819251),
        *(-0.03768579283106, -0.0001067048543393),
    ],
    'ur10e': [
        *(9.656441040315, -93.93276415654, -32.98704319470, -0.5492504027775),
        *(-0.02729657532024, -0.0002878141651353),
    ],
}
PLACES = {
    'fr3': ('fr3_link8', [0.4135560356, 0.0930798744, 0.4434814064]),
    'fr3_with_hand': ('fr3_hand_tcp', [0.3779265766, 0.0508284951, 0.3560919185]),
    'ur5e': ('tool0', [0.4673296145, 0.3515373815, 0.171780658]),
    'ur10e': ('tool0', [0.6909620469, 0.5016029264, 0.22577311]),
}
# lower, upper, velocity, effort, deceleration_limit, velocity_offset
FR3 = [
    (-2.7501, 2.7501, 2.62, 87, 6.0, 0.30),
    (-1.7918, 1.7918, 2.62, 87, 2.585, 0.20),
    (-2.9065, 2.9065, 2.62, 87, 3.50, 0.20),
    (-3.0481, -0.1458, 2.62, 87, 4.00, 0.30),
    (-2.8101, 2.8101, 5.26, 12, 17.0, 0.35),
    (0.54092, 4.5205, 4.18, 12, 5.5, 0.35),
    (-3.0196, 3.0196, 5.26, 12, 17.0, 0.35),
]


@pytest.mark.parametrize('name', POSE)
def test_torques_and_places_are_those_of_the_description_of_the_maker(name):
    model = RobotModel.from_urdf(name)
    assert model.warnings == ()
    k = np.arange(model.n_joints)
    q = 0.3 * np.sin(1.0 + k) + POSE[name]
    motion = np.stack((q, np.cos(2.0 + k), 2.0 * np.sin(3.0 * k + 0.5)))
    # The maker writes half a turn with ten digits.
    np.testing.assert_allclose(inverse_dynamics(model, motion)[0], TORQUES[name], atol=2e-8)
    link, place = PLACES[name]
    pose = forward_kinematics(model, q[None], link).pose
    np.testing.assert_allclose(pose[:3, 3], place, atol=2e-9)


@pytest.mark.parametrize('name', ['fr3', 'fr3_with_hand'])
def test_limits_of_the_fr3_are_those_of_the_maker(name):
    limits = RobotModel.from_urdf(name).limits
    names = 'lower', 'upper', 'velocity', 'effort', 'deceleration_limit', 'velocity_offset'
    found = [getattr(limits, what)[:7] for what in names]
    np.testing.assert_array_equal(np.transpose(found), FR3)
    assert np.isinf(limits.deceleration_limit[7:]).all()


@pytest.mark.parametrize(
    ('name', 'velocities', 'efforts'),
    [
        ('ur5e', [180] * 6, [150, 150, 150, 28, 28, 28]),
        ('ur10e', [120, 120, 180, 180, 180, 180], [330, 330, 150, 54, 54, 54]),
    ],
)
def test_limits_of_universal_robots_are_those_of_the_maker(name, velocities, efforts):
    limits = RobotModel.from_urdf(name).limits
    turns = np.array([360, 360, 180, 360, 360, 360])
    found = np.degrees([limits.velocity, -limits.lower, limits.upper])
    np.testing.assert_allclose(found, [velocities, turns, turns], rtol=1e-14)
    np.testing.assert_array_equal(limits.effort, efforts)


def test_the_fr3_has_the_acceleration_jerk_and_torque_rate_of_libfranka():
    content = yaml.safe_load(share_file('config/fr3.yaml').read_text())
    given = content['/**']['ros__parameters']['limits']
    expected = {'acceleration': 10.0, 'jerk': 5000.0, 'effort_dot': 1000.0}
    assert given == {name: expected for name in RobotModel.from_urdf('fr3').joint_names}
