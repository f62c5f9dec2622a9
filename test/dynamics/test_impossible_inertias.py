"""Inertias that no body has have one value in NumPy, compiled code, mass matrix and C.

Their second moments may be negative and cancel in sums, as those of possible ones cannot.
"""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest
from support.oracles import taylor_rnea
from support.random_trees import random_motion

from hodyn_ros import RobotModel, forward_dynamics, inverse_dynamics, mass_matrix
from hodyn_ros.codegen import generate_code

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')

FORMS = ('auto', 'body_fixed', 'compiled_robot', 'compiled_tree')


def universal_joint(inertia):
    """A massless body that turns about x, on it one that turns about z."""
    return RobotModel.from_body_screws(
        [(1, 0, 0, 0, 0, 0), (0, 0, 1, 0, 0, 0)],
        [np.eye(4)] * 2,
        inertias=[(0.0, (0, 0, 0), np.zeros((3, 3))), (1.0, (0, 0, 0), inertia)],
        gravity=(0.0, 0.0, 0.0),
    )


@pytest.mark.parametrize('largest', [0.3, 0.202, 0.2])
def test_both_axes_of_a_universal_joint_feel_their_moments(largest):
    # At zero position these are the principal moments; 0.2 is the largest that a body can have.
    model = universal_joint(np.diag([0.1, 0.1, largest]))
    motion = [[0.0, 0.0], [0.0, 0.0], [1.0, 2.0]]
    for form in FORMS:
        found = inverse_dynamics(model, motion, algorithm=form)[0]
        np.testing.assert_allclose(found, [0.1, 2.0 * largest], rtol=1e-14)
    model.warm_up(0)
    np.testing.assert_allclose(
        mass_matrix(model, motion)[0], np.diag([0.1, largest]), atol=1e-15
    )
    found = forward_dynamics(model, motion[:2], [[0.1, largest]])
    np.testing.assert_allclose(found, [[1.0, 1.0]], rtol=1e-14)


NEGATIVE = """<robot name="arm"><link name="base"/>
{0}{1}{2}
<joint name="j0" type="revolute"><parent link="base"/><child link="l0"/><origin xyz="0 0 0.2"/>
  <axis xyz="0 0 1"/><limit lower="-2" upper="2" effort="50" velocity="2"/></joint>
<joint name="j1" type="revolute"><parent link="l0"/><child link="l1"/><origin xyz="0 0 0.2"/>
  <axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="50" velocity="2"/></joint>
<joint name="j2" type="revolute"><parent link="l1"/><child link="l2"/><origin xyz="0 0 0.2"/>
  <axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="50" velocity="2"/></joint></robot>"""
LINK = (
    '<link name="l{}"><inertial><origin xyz="0.02 0.01 0.1" rpy="0.1 -0.2 0.3"/><mass value="{}"/>'
    '<inertia ixx="{}" iyy="{}" izz="{}" ixy="{}" ixz="{}" iyz="{}"/></inertial></link>'
)
USUAL = (0.01, 0.012, 0.008, 0.001, -0.0005, 0.0007)


def test_negative_principal_moments_have_one_value_in_every_form(tmp_path):
    xml = NEGATIVE.format(
        LINK.format(0, 1.5, *USUAL),
        LINK.format(1, 0.75, -4.98, -5.95, 0.83, 0.0, 2.7, 0.0),
        LINK.format(2, 0.5, *USUAL),
    )
    model = RobotModel.from_urdf(xml, allow_impossible_inertia=True)
    motion = random_motion(0, 3, 5)
    expected = taylor_rnea(xml, model.joint_names, model.gravity, motion)
    size = np.abs(expected).max(axis=-1, keepdims=True)
    for form in FORMS:
        found = inverse_dynamics(model, motion, algorithm=form)
        assert (np.abs(found - expected) < 1e-13 * size).all(), form
    compiler = shutil.which('cc') or pytest.skip('no C compiler')
    source = generate_code(model, tmp_path, name='arm')[1]
    library = tmp_path / 'arm.so'
    subprocess.run([compiler, '-shared', '-fPIC', '-o', library, source, '-lm'], check=True)
    code = ctypes.CDLL(str(library))
    found = np.empty((3, 3))
    pointers = (x.ctypes.data_as(ctypes.c_void_p) for x in (motion, found))
    code.arm_inverse_dynamics_2(*pointers)
    assert (np.abs(found - expected) < 1e-13 * size).all()
