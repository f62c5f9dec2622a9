"""The descriptions of the Panda and of the KUKA LBR iiwa 14 hold the published numbers.

The tables, here and of the Panda's links in support/robots.py, were typed from the sources again.
Panda: C. Gaz et al., IEEE RA-L 4(4), 2019, supplementary material (rev. 15 Oct 2019), Tables
VIII and IX, and https://frankaemika.github.io/docs/control_parameters.html. iiwa: Stuerz, Affolter
and Smith, IFAC-PapersOnLine 50-1, 2017, Tables 1 and 3, as the example code of Mueller and Kumar
2021 prints them, too.
"""

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml
from support.oracles import read_urdf
from support.robots import PANDA_INERTIALS

from hodyn_ros import RobotModel, forward_kinematics

ROOT = Path(__file__).resolve().parents[2]

# mass; centre of mass x, y, z; inertia about it xx, xy, xz, yy, yz, zz
IIWA_INERTIALS = """
3.94781 -0.00351  0.00160 -0.03139 0.00455  0.00000  0.00000 0.00454  0.00001 0.00029
4.50275 -0.00767  0.16669 -0.00355 0.00032  0.00000  0.00000 0.00010  0.00000 0.00042
2.45520 -0.00225 -0.03492 -0.02652 0.00223 -0.00005  0.00007 0.00219  0.00007 0.00073
2.61155  0.00020 -0.05268  0.03818 0.03844  0.00088 -0.00112 0.01144 -0.00111 0.04988
3.41000  0.00005 -0.00237 -0.21134 0.00277 -0.00001  0.00001 0.00284  0.00000 0.00012
3.38795  0.00049  0.02019 -0.02750 0.00050 -0.00005 -0.00003 0.00281 -0.00004 0.00232
0.35432 -0.03466 -0.02324  0.07138 0.00795  0.00022 -0.00029 0.01089 -0.00029 0.00294
"""
HAND_INERTIALS = """
0.73  -0.01 0 0.03 0.001    0 0 0.0025   0 0.0017
0.015  0    0 0    2.375e-6 0 0 2.375e-6 0 7.5e-7
0.015  0    0 0    2.375e-6 0 0 2.375e-6 0 7.5e-7
"""
# Of the iiwa: viscous, Coulomb; position [rad], speed [deg/s], torque [N m]
IIWA_JOINTS = """
0.24150 0.31909 2.96706  85 320
0.37328 0.18130 2.0944   85 320
0.11025 0.07302 2.96706 100 176
0.10000 0.17671 2.0944   75 176
0.10000 0.03463 2.96706 130 110
0.12484 0.13391 2.0944  135  40
0.10000 0.08710 3.05433 135  40
"""
# Of the Panda: lower, upper, velocity, effort, acceleration, jerk, effort rate
PANDA_JOINTS = """
-2.8973  2.8973 2.1750 87 15.0  7500 1000
-1.7628  1.7628 2.1750 87  7.5  3750 1000
-2.8973  2.8973 2.1750 87 10.0  5000 1000
-3.0718 -0.0698 2.1750 87 12.5  6250 1000
-2.8973  2.8973 2.6100 12 15.0  7500 1000
-0.0175  3.7525 2.6100 12 20.0 10000 1000
-2.8973  2.8973 2.6100 12 20.0 10000 1000
"""
# Modified parameters a, alpha in quarter turns, d; the last row is the flange. Shoulder height
# and flange of the iiwa, 0.36 and 0.126 m, are included.
PANDA_FRAMES = """
0       0 0.333
0      -1 0
0       1 0.316
0.0825  1 0
-0.0825 -1 0.384
0       1 0
0.088   1 0
0       0 0.107
"""
IIWA_FRAMES = '0 0 0.36  0 1 0  0 -1 0.42  0 -1 0  0 1 0.4  0 1 0  0 -1 0  0 0 0.126'


def table(text, columns):
    return np.array(text.split(), dtype=float).reshape(-1, columns)


LINKS = {
    'panda': [f'panda_link{i}' for i in range(1, 9)],
    'panda_with_hand': [f'panda_link{i}' for i in range(1, 9)],
    'iiwa14': [*(f'iiwa_link_{i}' for i in range(1, 8)), 'iiwa_link_ee'],
}
HAND = 'panda_hand', 'panda_leftfinger', 'panda_rightfinger'
pytestmark = [
    pytest.mark.every_case,
    pytest.mark.filterwarnings('ignore:.*triangle inequality:hodyn_ros.ModelWarning'),
]


def description(name):
    return (ROOT / 'urdf' / f'{name}.urdf').read_text()


@pytest.mark.parametrize(
    ('name', 'links', 'published'),
    [
        ('panda', LINKS['panda'], PANDA_INERTIALS),
        ('panda_with_hand', LINKS['panda'], PANDA_INERTIALS),
        ('panda_with_hand', HAND, HAND_INERTIALS),
        ('iiwa14', LINKS['iiwa14'], IIWA_INERTIALS),
    ],
)
def test_masses_and_inertias_are_the_identified_ones(name, links, published):
    inertials = read_urdf(description(name)).inertials
    for link, row in zip(links, table(published, 10)):
        found = inertials[link]
        entries = found.inertia[np.triu_indices(3)]
        np.testing.assert_array_equal([found.mass, *found.com, *entries], row)


@pytest.mark.parametrize('name', LINKS)
def test_limits_are_those_of_the_manufacturer(name):
    limits = RobotModel.from_urdf(name).limits
    expected = table(PANDA_JOINTS, 7)[:, :4].T
    if name == 'iiwa14':
        _, _, position, speed, torque = table(IIWA_JOINTS, 5).T
        expected = [-position, position, np.radians(speed), torque]
    found = np.array([limits.lower, limits.upper, limits.velocity, limits.effort])
    np.testing.assert_allclose(found[:, :7], expected, rtol=0, atol=5e-7)


@pytest.mark.parametrize('name', LINKS)
def test_link_frames_are_those_of_the_denavit_hartenberg_parameters(name):
    rows = table(PANDA_FRAMES if 'panda' in name else IIWA_FRAMES, 3)
    kinematics = RobotModel.from_dh(
        [(a, turns * np.pi / 2, d, 0.0) for a, turns, d in rows],
        'modified',
        joint_types=['revolute'] * 7 + ['fixed'],
        inertias=[np.eye(6)] * 8,
    )
    model = RobotModel.from_urdf(name)
    q = np.zeros((1, model.n_joints))
    q[0, :7] = np.random.default_rng(1).uniform(-2.0, 2.0, 7)
    for number, link in enumerate(LINKS[name], start=1):
        np.testing.assert_allclose(
            forward_kinematics(model, q, link).pose,
            forward_kinematics(kinematics, q[:, :7], f'link{number}').pose,
            atol=1e-14,
        )


def test_friction_of_the_iiwa_is_the_published_one():
    joints = ElementTree.fromstring(description('iiwa14')).findall('joint/dynamics')
    found = [[float(x.get('damping')), float(x.get('friction'))] for x in joints]
    np.testing.assert_array_equal(found, table(IIWA_JOINTS, 5)[:, :2])


def test_two_links_of_the_iiwa_break_the_triangle_inequality_and_none_of_the_panda():
    assert RobotModel.from_urdf('panda').warnings == ()
    remarks = RobotModel.from_urdf('iiwa14').warnings
    for link, remark in zip(('iiwa_link_4', 'iiwa_link_7'), remarks, strict=True):
        assert link in remark and 'triangle inequality' in remark


def test_configuration_file_holds_the_limits_that_a_urdf_cannot():
    parameters = yaml.safe_load((ROOT / 'config' / 'panda.yaml').read_text())
    limits = parameters['/**']['ros__parameters']['limits']
    assert tuple(limits) == RobotModel.from_urdf('panda').joint_names
    for given, row in zip(limits.values(), table(PANDA_JOINTS, 7)[:, 4:].tolist()):
        assert given == dict(zip(('acceleration', 'jerk', 'effort_dot'), row))
        # An integer would be an integer parameter, which a node that declared a double refuses.
        assert all(isinstance(value, float) for value in given.values())
