"""Robots as MJCF files, loaded by MuJoCo alone, and what mujoco_ros2_control needs beside them."""

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from hodyn_ros import ModelWarning, RobotModel
from hodyn_ros.actuators import CubicSpring, Qbmove, SeriesElastic, VariableStiffness
from hodyn_ros.errors import SimulationError
from hodyn_ros.model.friction import Coulomb
from hodyn_ros.simulation import ElasticPlant, Imperfections

mujoco = pytest.importorskip('mujoco')
URDF = Path(__file__).resolve().parents[2] / 'urdf'


def plant_of(name, rigid=0, drive=None, **faults):
    """A robot with springs in all joints but the last ones."""
    model = RobotModel.from_urdf(URDF / f'{name}.urdf')
    names = model.joint_names[: model.n_joints - rigid]
    drives = dict.fromkeys(names, drive or SeriesElastic(5000.0, 0.5, 1.0))
    return ElasticPlant(
        model, drives, 2e-4, imperfections=Imperfections(**faults), end_stops=True
    )


def loaded(plant):
    """The file in MuJoCo, at its keyframe."""
    model = mujoco.MjModel.from_xml_string(plant.to_mjcf())
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, model.key('start').id)
    return model, data


@pytest.mark.parametrize(('name', 'rigid'), [('panda', 1), ('five_bar', 0)])
def test_file_moves_in_mujoco_alone_as_the_plant_itself(name, rigid):
    faults = {'coulomb': 0.3, 'stiffness_error': 0.1, 'backlash': 1e-3}
    plant = plant_of(name, rigid, torque_limit=20.0, **faults)
    closure = plant.model.closure
    start = np.linspace(0.1, 0.2, plant.model.n_joints)
    if closure is not None:
        start = closure.start[closure.independent] + 0.02
    plant.reset(start, time=0.5)
    model, data = loaded(plant)
    weight = plant.holding_torque(start)
    for k in range(40):
        torque = weight + 30.0 * np.sin(0.3 * k + np.arange(len(weight)))
        plant.step(torque, 20)
        data.ctrl[:] = torque
        mujoco.mj_step(model, data, 20)
    q = [data.joint(joint).qpos[0] for joint in plant.joint_names]
    np.testing.assert_allclose(q, plant.q, rtol=0.0, atol=1e-12)
    assert data.time == pytest.approx(plant.time, abs=1e-12)
    assert np.abs(plant.q - start).max() > 0.05
    # Motors are joints of their own, unless the joint is rigid.
    elastic = plant.joint_names[: len(weight) - rigid]
    theta = [data.joint(f'{joint}_motor').qpos[0] for joint in elastic]
    np.testing.assert_allclose(theta, plant.theta[: len(theta)], rtol=0.0, atol=1e-12)


def test_elements_for_ros2_control_have_the_joints_of_file_and_description():
    plant = plant_of('panda', rigid=1)
    model, _ = loaded(plant)
    root = ElementTree.fromstring(f'<robot>{plant.to_ros2_control("/tmp/a.xml")}</robot>')
    values = {param.get('name'): param.text for param in root.iter('param')}
    assert values == {'mujoco_model': '/tmp/a.xml', 'initial_keyframe': 'start'}
    commanded, measured = (
        [
            joint.get('name')
            for joint in root.find('ros2_control').findall('joint')
            if joint.find(f'{kind}_interface') is not None
        ]
        for kind in ('command', 'state')
    )
    motors = [f'{name}_motor' for name in plant.joint_names[:-1]]
    assert commanded == [plant.joint_names[-1], *motors]
    assert measured == [*plant.joint_names, *motors]
    # A motor acts on the joint of each name, and the description has it.
    driven = [model.joint(int(id_)).name for id_ in model.actuator_trnid[:, 0]]
    assert sorted(driven) == sorted(commanded)
    assert [joint.get('name') for joint in root.findall('joint')] == motors
    text = plant.to_ros2_control('a.xml').partition('<ros2_control')[0]
    urdf = (URDF / 'panda.urdf').read_text(encoding='utf-8')
    urdf = urdf.replace('</robot>', f'{text}</robot>')
    with pytest.warns(ModelWarning, match='_motor. lies outside the chain'):
        whole = RobotModel.from_urdf(urdf, tip_link='panda_link8')
    assert whole.joint_names == plant.joint_names


def test_nearest_moments_are_written_for_those_that_no_body_has():
    with pytest.warns(ModelWarning, match='violate the triangle inequality'):
        plant = plant_of('iiwa14')
    with pytest.warns(ModelWarning, match="link of joint 'iiwa_joint_[47]' has principal"):
        model, _ = loaded(plant)
    found, known = (
        np.sort(m.body('iiwa_joint_4').inertia) for m in (model, plant.mujoco_model)
    )
    assert found[0] > known[0]
    np.testing.assert_allclose(found[1:], known[1:], rtol=1e-9)
    assert found[0] + found[1] == pytest.approx(found[2])


@pytest.mark.parametrize(
    ('options', 'missing'),
    [
        ({'drive': SeriesElastic(CubicSpring(5000.0, 10.0), 0.5)}, 'springs that are not'),
        (
            {'drive': VariableStiffness(Qbmove(6.7, 0.3), 0.02)},
            'springs that are not linear',
        ),
        (
            {'drive': SeriesElastic(5e3, 0.5, friction=Coulomb(1.0, smoothing=0.1))},
            'friction that is neither viscous',
        ),
        ({'breakaway': 1.0}, 'breakaway'),
        ({'gear_ratio': 10.0}, 'gear_ratio'),
    ],
)
def test_what_mujoco_alone_has_not_is_refused(options, missing):
    with pytest.raises(SimulationError, match=f'The robot has .*{re.escape(missing)}'):
        plant_of('two_link', **options).to_mjcf()
