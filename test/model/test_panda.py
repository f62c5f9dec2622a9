"""The descriptions of the Panda hold the published numbers.

The tables, here and of the links in support/robots.py, were typed from the sources a second time:
C. Gaz et al., IEEE RA-L 4(4), 2019, supplementary material (rev. 15 Oct 2019), Tables VIII and IX,
and https://frankaemika.github.io/docs/control_parameters.html.
"""

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml
from support import robots
from support.oracles import read_urdf

from hodyn_ros import RobotModel, forward_kinematics

ROOT = Path(__file__).resolve().parents[2]
ARM = (ROOT / 'urdf' / 'panda.urdf').read_text()
ARM_WITH_HAND = (ROOT / 'urdf' / 'panda_with_hand.urdf').read_text()
ARM_JOINTS = tuple(f'panda_joint{i}' for i in range(1, 8))

HAND_INERTIALS = {
    'panda_hand': '0.73 -0.01 0 0.03 0.001 0 0 0.0025 0 0.0017',
    'panda_leftfinger': '0.015 0 0 0 2.375e-6 0 0 2.375e-6 0 7.5e-7',
    'panda_rightfinger': '0.015 0 0 0 2.375e-6 0 0 2.375e-6 0 7.5e-7',
}
# lower, upper, velocity, effort, acceleration, jerk, effort rate
LIMITS = """
-2.8973  2.8973 2.1750 87 15.0  7500 1000
-1.7628  1.7628 2.1750 87  7.5  3750 1000
-2.8973  2.8973 2.1750 87 10.0  5000 1000
-3.0718 -0.0698 2.1750 87 12.5  6250 1000
-2.8973  2.8973 2.6100 12 15.0  7500 1000
-0.0175  3.7525 2.6100 12 20.0 10000 1000
-2.8973  2.8973 2.6100 12 20.0 10000 1000
"""
# a, d, alpha as a multiple of pi/2: modified parameters, the last row is the flange
DENAVIT_HARTENBERG = [
    (0.0, 0.333, 0),
    (0.0, 0.0, -1),
    (0.0, 0.316, 1),
    (0.0825, 0.0, 1),
    (-0.0825, 0.384, -1),
    (0.0, 0.0, 1),
    (0.088, 0.0, 1),
    (0.0, 0.107, 0),
]
CONFIGURATIONS = {
    'zero': [0, 0, 0, 0, 0, 0, 0],
    'ready': [0, -np.pi / 4, 0, -3 * np.pi / 4, 0, np.pi / 2, np.pi / 4],
    'turned': [0.3, -1.1, 2.0, -2.3, 0.7, 3.1, -2.6],
    'at lower limits': [-2.8973, -1.7628, -2.8973, -3.0718, -2.8973, -0.0175, -2.8973],
}


def rows(table):
    return [
        [float(number) for number in line.split()] for line in table.strip().splitlines()
    ]


def numbers_of_inertial(inertial):
    I = inertial.inertia  # noqa: E741
    entries = [I[0, 0], I[0, 1], I[0, 2], I[1, 1], I[1, 2], I[2, 2]]
    return [float(number) for number in (inertial.mass, *inertial.com, *entries)]


def frames_by_denavit_hartenberg(q):
    """Poses of links 1 to 8 as products of Rot_x(alpha) Trans_x(a) Rot_z(q) Trans_z(d)."""
    poses, pose = [], np.eye(4)
    for (a, d, quarter_turns), angle in zip(DENAVIT_HARTENBERG, [*q, 0.0], strict=True):
        cosine, sine = {0: (1, 0), 1: (0, 1), -1: (0, -1)}[quarter_turns]
        about_x = np.array(
            [[1, 0, 0, a], [0, cosine, -sine, 0], [0, sine, cosine, 0], [0, 0, 0, 1]]
        )
        c, s = np.cos(angle), np.sin(angle)
        about_z = np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, d], [0, 0, 0, 1]])
        pose = pose @ about_x @ about_z
        poses.append(pose)
    return np.array(poses)


@pytest.mark.parametrize('xml', [ARM, ARM_WITH_HAND], ids=['arm', 'arm with hand'])
class TestBothDescriptions:
    @pytest.mark.every_case
    def test_masses_and_inertias_are_the_identified_ones(self, xml):
        inertials = read_urdf(xml).inertials
        for i, row in enumerate(rows(robots.PANDA_INERTIALS), start=1):
            assert numbers_of_inertial(inertials[f'panda_link{i}']) == row

    def test_limits_are_those_of_the_manufacturer(self, xml):
        limits = {
            joint.get('name'): joint.find('limit')
            for joint in ElementTree.fromstring(xml).findall('joint')
        }
        for name, row in zip(ARM_JOINTS, rows(LIMITS), strict=True):
            keys = ('lower', 'upper', 'velocity', 'effort')
            assert [float(limits[name].get(key)) for key in keys] == row[:4]

    @pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')  # without the fingers
    @pytest.mark.parametrize('q', CONFIGURATIONS.values(), ids=CONFIGURATIONS)
    def test_link_frames_are_those_of_the_denavit_hartenberg_parameters(self, xml, q):
        model = RobotModel.from_urdf(xml, tip_link='panda_link8')
        links = [f'panda_link{i}' for i in range(1, 9)]
        actual = [forward_kinematics(model, [q], link).pose for link in links]
        # 1 m and 1 rad set the scale; cos(pi/2) of the nearest double is 6e-17 instead of 0.
        np.testing.assert_allclose(
            actual, frames_by_denavit_hartenberg(q), rtol=0, atol=1e-14
        )

    def test_model_reads_it_without_a_warning(self, xml, recwarn):
        model = RobotModel.from_urdf(xml)
        assert model.joint_names[:7] == ARM_JOINTS
        assert not model.warnings
        assert not recwarn.list


def test_configuration_file_holds_the_limits_that_a_urdf_cannot():
    parameters = yaml.safe_load((ROOT / 'config' / 'panda.yaml').read_text())
    limits = parameters['/**']['ros__parameters']['limits']
    assert tuple(limits) == ARM_JOINTS
    for name, row in zip(ARM_JOINTS, rows(LIMITS), strict=True):
        acceleration, jerk, effort_rate = row[4:]
        assert limits[name] == {
            'acceleration': acceleration,
            'jerk': jerk,
            'effort_dot': effort_rate,
        }
        # An integer would be an integer parameter, which a node that declared a double refuses.
        assert all(isinstance(value, float) for value in limits[name].values())


def test_hand_has_its_masses_and_inertias():
    inertials = read_urdf(ARM_WITH_HAND).inertials
    for link, row in HAND_INERTIALS.items():
        assert numbers_of_inertial(inertials[link]) == rows(row)[0]
