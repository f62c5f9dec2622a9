"""The description of the KUKA LBR iiwa 14 holds the published numbers.

The tables below were typed from Stuerz, Affolter and Smith, IFAC-PapersOnLine 50-1, 2017, Tables 1
and 3, as the example code of Mueller and Kumar 2021 prints them, too.
"""

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from support.oracles import read_urdf

from hodyn_ros import ModelWarning, RobotModel, forward_kinematics

XML = (Path(__file__).resolve().parents[2] / 'urdf' / 'iiwa14.urdf').read_text()
JOINTS = tuple(f'iiwa_joint_{i}' for i in range(1, 8))

# mass; centre of mass x, y, z; inertia about it xx, xy, xz, yy, yz, zz
INERTIALS = """
3.94781 -0.00351  0.00160 -0.03139 0.00455  0.00000  0.00000 0.00454  0.00001 0.00029
4.50275 -0.00767  0.16669 -0.00355 0.00032  0.00000  0.00000 0.00010  0.00000 0.00042
2.45520 -0.00225 -0.03492 -0.02652 0.00223 -0.00005  0.00007 0.00219  0.00007 0.00073
2.61155  0.00020 -0.05268  0.03818 0.03844  0.00088 -0.00112 0.01144 -0.00111 0.04988
3.41000  0.00005 -0.00237 -0.21134 0.00277 -0.00001  0.00001 0.00284  0.00000 0.00012
3.38795  0.00049  0.02019 -0.02750 0.00050 -0.00005 -0.00003 0.00281 -0.00004 0.00232
0.35432 -0.03466 -0.02324  0.07138 0.00795  0.00022 -0.00029 0.01089 -0.00029 0.00294
"""
# viscous, Coulomb; position [rad], speed [deg/s], torque [N m]
JOINT_VALUES = """
0.24150 0.31909 2.96706  85 320
0.37328 0.18130 2.0944   85 320
0.11025 0.07302 2.96706 100 176
0.10000 0.17671 2.0944   75 176
0.10000 0.03463 2.96706 130 110
0.12484 0.13391 2.0944  135  40
0.10000 0.08710 3.05433 135  40
"""
# Quarter turns of alpha and r of the modified parameters (d is zero everywhere); shoulder height
# 0.36 m and flange 0.126 m included.
KHALIL = [(0, 0.36), (1, 0), (-1, 0.42), (-1, 0), (1, 0.4), (1, 0), (-1, 0), (0, 0.126)]


def rows(table):
    return [
        [float(number) for number in line.split()] for line in table.strip().splitlines()
    ]


def frames_by_denavit_hartenberg(q):
    """Poses of links 1 to 7 and the flange as products of Rot_x(alpha) Rot_z(q) Trans_z(r)."""
    poses, pose = [], np.eye(4)
    for (quarter_turns, r), angle in zip(KHALIL, [*q, 0.0], strict=True):
        ca, sa = {0: (1, 0), 1: (0, 1), -1: (0, -1)}[quarter_turns]
        c, s = np.cos(angle), np.sin(angle)
        about_x = np.array([[1, 0, 0, 0], [0, ca, -sa, 0], [0, sa, ca, 0], [0, 0, 0, 1]])
        about_z = np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, r], [0, 0, 0, 1]])
        pose = pose @ about_x @ about_z
        poses.append(pose)
    return poses


@pytest.fixture
def model():
    with pytest.warns(ModelWarning):
        return RobotModel.from_urdf(XML)


def test_masses_and_inertias_are_the_identified_ones():
    inertials = read_urdf(XML).inertials
    assert len(inertials) == 7
    for i, row in enumerate(rows(INERTIALS), start=1):
        inertial = inertials[f'iiwa_link_{i}']
        xx, xy, xz, yy, yz, zz = row[4:]
        assert [float(value) for value in (inertial.mass, *inertial.com)] == row[:4]
        expected = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
        np.testing.assert_array_equal(inertial.inertia.astype(float), expected)


def test_friction_and_limits_are_the_published_ones():
    joints = {j.get('name'): j for j in ElementTree.fromstring(XML).findall('joint')}
    for name, row in zip(JOINTS, rows(JOINT_VALUES), strict=True):
        viscous, coulomb, position, speed, torque = row
        dynamics, limit = joints[name].find('dynamics'), joints[name].find('limit')
        assert [float(dynamics.get(key)) for key in ('damping', 'friction')] == [
            viscous,
            coulomb,
        ]
        assert [float(limit.get(key)) for key in ('lower', 'upper')] == [
            -position,
            position,
        ]
        assert float(limit.get('effort')) == torque
        assert float(limit.get('velocity')) == pytest.approx(np.radians(speed), abs=5e-7)


@pytest.mark.parametrize('seed', range(5))
def test_link_frames_are_those_of_the_denavit_hartenberg_parameters(seed, model):
    q = np.random.default_rng(seed).uniform(-2.0, 2.0, 7) if seed else np.zeros(7)
    links = [*(f'iiwa_link_{i}' for i in range(1, 8)), 'iiwa_link_ee']
    for link, expected in zip(links, frames_by_denavit_hartenberg(q), strict=True):
        np.testing.assert_allclose(
            forward_kinematics(model, q[None], link).pose, expected, rtol=0, atol=1e-14
        )


def test_two_links_break_the_triangle_inequality_and_are_used_with_a_remark(model):
    assert len(model.warnings) == 2
    for link, warning in zip(('iiwa_link_4', 'iiwa_link_7'), model.warnings):
        assert link in warning and 'triangle inequality' in warning
