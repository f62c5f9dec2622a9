"""Helical joints: turning about an axis and advancing along it, with any axis and pitch."""

import dataclasses

import numpy as np
import pytest
from support.oracles import taylor_terms
from support.random_trees import (
    random_motion,
    random_wrenches,
)
from support.records import changed

from hodyn_ros import RobotModel, Wrench, forward_kinematics, inverse_dynamics
from hodyn_ros.dynamics import FORMULATIONS

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')

K = 5


SCREW_PRESS = """
<robot name="press">
  <link name="base"/>
  <link name="arm"><inertial><origin xyz="0.1 0.02 -0.05" rpy="0.3 0.1 -0.4"/><mass value="2.5"/>
    <inertia ixx="0.02" ixy="0.001" ixz="-0.002" iyy="0.03" iyz="0.0005" izz="0.025"/></inertial>
  </link>
  <link name="nut"/>
  <link name="spindle"><inertial><origin xyz="0.03 -0.2 0.1"/><mass value="1.2"/>
    <inertia ixx="0.01" ixy="0.0002" ixz="0.0004" iyy="0.015" iyz="-0.001" izz="0.012"/></inertial>
  </link>
  <link name="plate"><inertial><origin xyz="0.2 0 0.1"/><mass value="0.8"/>
    <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.025"/></inertial></link>
  <joint name="swing" type="continuous"><origin xyz="0 0 0.3" rpy="0.2 0.1 0.5"/>
    <parent link="base"/><child link="arm"/><axis xyz="0 0.6 0.8"/></joint>
  <joint name="screw" type="continuous"><origin xyz="0.4 0.1 0" rpy="-0.5 0.9 0.1"/>
    <parent link="arm"/><child link="nut"/><axis xyz="0.48 0.64 0.6"/></joint>
  <joint name="advance" type="prismatic"><origin xyz="0 0 0"/>
    <parent link="nut"/><child link="spindle"/><axis xyz="0.48 0.64 0.6"/>
    <limit lower="-1" upper="1" velocity="1" effort="1"/>
    <mimic joint="screw" multiplier="{pitch}"/></joint>
  <joint name="tilt" type="continuous"><origin xyz="0.1 0.2 0.3" rpy="0.4 0 0.3"/>
    <parent link="spindle"/><child link="plate"/><axis xyz="1 0 0"/></joint>
</robot>
"""


@pytest.mark.parametrize('algorithm', ['auto', *FORMULATIONS])
@pytest.mark.parametrize('pitch', [0.05, -0.8])
def test_helical_joint_equals_a_turning_joint_and_an_advancing_mimic_joint(
    pitch, algorithm
):
    pair = RobotModel.from_urdf(SCREW_PRESS.format(pitch=pitch))
    # The same robot with one helical joint: the nut and the advance are left out by hand.
    turn = pair.body_names.index('screw')
    kept = [i for i in range(pair.n_bodies) if pair.body_names[i] != 'advance']
    X, M_body = pair.X.copy(), pair.M_body.copy()
    X[turn, 3:] = pitch * X[turn, :3]
    M_body[turn] = pair.M_body[pair.body_names.index('advance')]
    helical = dataclasses.replace(
        pair,
        body_names=tuple(pair.body_names[i] for i in kept),
        parent=np.array([-1, 0, 1]),
        coordinate=pair.coordinate[kept],
        multiplier=pair.multiplier[kept],
        offset=pair.offset[kept],
        B=pair.B[kept],
        X=X[kept],
        M_body=M_body[kept],
        links={
            **{name: frame for name, frame in pair.links.items() if frame.body < turn},
            'spindle': pair.links['nut'],
            'plate': changed(pair.links['plate'], body=2),
        },
    )
    motion = random_motion(7, 3, K, (4,))
    wrenches = random_wrenches(7, ('spindle', 'plate', 'arm'), K, (4,))
    terms = taylor_terms(
        SCREW_PRESS.format(pitch=pitch), pair.joint_names, pair.gravity, motion, wrenches
    )
    orders = K - 2
    if algorithm in FORMULATIONS and FORMULATIONS[algorithm].highest_order is not None:
        orders = FORMULATIONS[algorithm].highest_order + 1
    arguments = [Wrench(w.link, w.values[..., :orders, :], *w[2:]) for w in wrenches]
    effort = inverse_dynamics(helical, motion[..., : orders + 2, :], arguments, algorithm)
    assert effort.shape[-2] == orders
    for order in range(orders):
        scale = np.abs(terms[..., order, :]).max()
        np.testing.assert_allclose(
            effort[..., order, :], terms.sum(axis=0)[..., order, :], atol=1e-13 * scale
        )
    for link in ('spindle', 'plate'):
        ours = forward_kinematics(helical, motion, link)
        expected = forward_kinematics(pair, motion, link)
        np.testing.assert_allclose(ours.pose, expected.pose, atol=1e-14)
        np.testing.assert_allclose(ours.twist, expected.twist, atol=1e-12)
