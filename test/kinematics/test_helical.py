"""Helical joints: turning about an axis and advancing along it, with any axis and pitch."""

import dataclasses

import numpy as np
import pytest
from scipy.linalg import expm
from support.interpolation import derivatives_at_zero, taylor
from support.oracles import taylor_terms
from support.random_trees import (
    helical_model,
    random_motion,
    random_wrenches,
)
from support.records import changed

from hodyn_ros import RobotModel, Wrench, forward_kinematics, inverse_dynamics
from hodyn_ros.dynamics.inverse import FORMULATIONS
from hodyn_ros.kinematics.joints import JointTransforms
from hodyn_ros.lie import se3
from hodyn_ros.lie.se3 import pitches

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')

SEEDS = range(8)
K = 5


def test_pitch_is_read_off_the_screw():
    e = np.array([0.0, 0.6, 0.8])
    x = np.array([0.3, -2.0, 0.7])
    X = np.array(
        [
            [*e, *np.cross(x, e)],
            [*e, *(np.cross(x, e) + 0.02 * e)],
            [0, 0, 0, *e],
            [*e, 0, 0, 0],
        ]
    )
    np.testing.assert_allclose(pitches(X), [0, 0.02, 0, 0], atol=1e-16)
    # A change of frames leaves no pitch behind that was not there.
    turned = X @ se3.Ad(se3.exp([0.3, 1.0, -0.4, 2.0, 3.0, -1.0])).T
    assert pitches(turned)[0] == 0.0
    np.testing.assert_allclose(pitches(turned), [0, 0.02, 0, 0], atol=1e-15)


@pytest.mark.parametrize('seed', SEEDS)
def test_transforms_are_matrix_exponentials(seed):
    model = helical_model(seed)
    coordinates = np.random.default_rng(seed).uniform(-6.0, 6.0, (3, 1, model.n_bodies))
    transforms = JointTransforms(model, coordinates)
    V = np.eye(6)
    for i in range(model.n_bodies):
        for sample in range(3):
            expected = expm(-se3.ad(model.X[i]) * coordinates[sample, 0, i]) @ se3.Ad(
                se3.inverse(model.B[i])
            )
            columns = [transforms.to_body(i, row[None, None])[sample, 0] for row in V]
            scale = np.abs(expected).max()
            np.testing.assert_allclose(np.array(columns).T, expected, atol=1e-13 * scale)
            rows = [transforms.to_parent(i, row[None, None])[sample, 0] for row in V]
            np.testing.assert_allclose(np.array(rows), expected, atol=1e-13 * scale)


@pytest.mark.parametrize('seed', SEEDS)
def test_derivatives_of_the_transforms_are_those_of_their_values(seed):
    model = helical_model(seed)
    motion = random_motion(seed, model.n_bodies, K)
    y = np.random.default_rng(seed).normal(size=6)
    constant = np.zeros((1, K, 6))
    constant[0, 0] = y
    transforms = JointTransforms(model, motion[None])
    for i in range(model.n_bodies):

        def value(times, i=i):
            values = JointTransforms(model, taylor(motion, times)[:, :1])
            return values.to_body(i, np.broadcast_to(y, (len(times), 1, 6)))[:, 0]

        expected = derivatives_at_zero(value, K - 1)
        actual = transforms.to_body(i, constant)[0]
        for k in range(K):
            np.testing.assert_allclose(actual[k], expected[k], atol=1e-10 * 10**k)


@pytest.mark.parametrize('seed', SEEDS)
def test_twist_up_to_jounce_is_the_derivative_of_the_pose(seed):
    model = helical_model(seed)
    motion = random_motion(seed, model.n_joints, K)
    link = list(model.links)[-1]
    hybrid = forward_kinematics(model, motion, link, 'hybrid')
    C = derivatives_at_zero(
        lambda times: forward_kinematics(model, taylor(motion, times)[:, :1], link).pose,
        K - 1,
    )
    scale = max(1.0, np.abs(hybrid.twist).max())
    for k in range(K - 1):
        np.testing.assert_allclose(
            hybrid.twist[k, 3:], C[k + 1][:3, 3], atol=1e-10 * scale * 10**k
        )
    omega_hat = C[1][:3, :3] @ C[0][:3, :3].T
    omega = [omega_hat[2, 1], omega_hat[0, 2], omega_hat[1, 0]]
    np.testing.assert_allclose(hybrid.twist[0, :3], omega, atol=1e-9 * scale)


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
