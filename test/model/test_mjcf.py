"""Robots read from MJCF against MuJoCo itself."""

import numpy as np
import pytest

from hodyn_ros import ModelWarning, RobotModel, inverse_dynamics
from hodyn_ros.errors import ModelError

mujoco = pytest.importorskip('mujoco', reason='MuJoCo (PyPI: mujoco) reads MJCF')

INERTIAL = (
    '<inertial pos=".1 .02 -.03" mass="{}" fullinertia=".03 .04 .05 .001 -.002 .003"/>'
)


def arm(name, inner=''):
    """A body with a hinge and a slider, each off its origin, and one behind it with a hinge."""
    return f"""<body name="{name}0" pos=".1 .2 .3" euler=".3 -.2 .5">{INERTIAL.format(2)}
      <joint name="{name}_turn" axis="1 2 .5" pos=".05 -.1 .2" range="-1 2" armature=".1" ref=".2"
        damping=".3" frictionloss=".4" actuatorfrcrange="-20 30"/>
      <joint name="{name}_slide" type="slide" axis="0 1 1" pos=".1 0 0" ref="-.05"/>
      <body name="{name}_plate" pos="0 .1 0"><geom type="box" size=".1 .2 .05" mass=".4"/></body>
      <body name="{name}1" pos=".4 0 .1" euler="-.4 .1 0">{INERTIAL.format(1.3)}
        <joint name="{name}_elbow" axis="0 -1 .2" armature=".02"/>
        <body name="{name}2" pos=".3 0 0">{INERTIAL.format(0.5)}
          <site name="{name}_end" pos=".3 0 .1" euler=".1 .2 .3"/>
          <joint name="{name}_wrist" axis="0 .3 1"/>{inner}</body></body></body>"""


def model(bodies, more='', gravity='.5 -2 -9'):
    return f"""<mujoco model="arms"><compiler angle="radian" autolimits="true"/>
      <option gravity="{gravity}"/><worldbody>{bodies}</worldbody>{more}</mujoco>"""


def equality(*elements):
    return f'<equality>{"".join(elements)}</equality>'


TWO = arm('a') + arm('b').replace('pos=".1 .2 .3"', 'pos=".9 .1 .3"')


def test_free_bodies_are_the_base():
    free = f'<body name="trunk" pos="0 0 1" euler=".3 .2 .1"><freejoint/>{INERTIAL.format(5)}{TWO}'
    xml = model(f'{free}</body>')
    with pytest.warns(ModelWarning, match="body 'trunk' moves freely"):
        robot = RobotModel.from_mjcf(xml)
    assert robot.base_link == 'trunk'
    compiled = mujoco.MjModel.from_xml_string(xml)
    compiled.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    compiled.dof_damping[:] = 0.0
    data = mujoco.MjData(compiled)
    motion = np.random.default_rng(4).normal(size=(3, 8))
    at = [compiled.joint(name).dofadr[0] for name in robot.joint_names]
    data.qpos[7:], data.qvel[6:], data.qacc[6:] = motion[:, np.argsort(at)]
    mujoco.mj_inverse(compiled, data)
    np.testing.assert_allclose(
        inverse_dynamics(robot, motion)[0], data.qfrc_inverse[at], atol=1e-9
    )


CLOSINGS = {
    'point of sites': ('<connect name="e" site1="a_end" site2="b_end"/>', 'ball'),
    'given weld': (
        '<weld name="e" body1="a2" body2="b2" anchor=".1 0 .2" relpose=".1 .2 -.1 .9 .1 .2 -.3"/>',
        'weld',
    ),
    'weld to the world': ('<weld name="e" body1="a2"/>', 'weld'),
}


@pytest.mark.parametrize('case', CLOSINGS)
@pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')
def test_loops_are_those_that_mujoco_closes(case):
    element, kind = CLOSINGS[case]
    xml = model(TWO, equality(element, element.replace('"e"', '"off" active="false"')))
    start = (
        dict(a_elbow=-1.8, a_wrist=-1.9, b_turn=1.3, b_slide=1.7) if 'sites' in case else {}
    )
    robot = RobotModel.from_mjcf(xml, start=start)
    (loop,) = robot.closure.loops
    assert (loop.name, loop.kind) == ('e', kind)
    compiled = mujoco.MjModel.from_xml_string(model(TWO, equality(element)))
    data = mujoco.MjData(compiled)
    for name, value in zip(robot.closure.tree.joint_names, robot.closure.start):
        data.qpos[compiled.joint(name).qposadr] = value
    mujoco.mj_forward(compiled, data)
    assert data.nefc >= {'ball': 3, 'weld': 6}[kind]
    rows = data.efc_type == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)
    assert np.abs(data.efc_pos[rows]).max() < 1e-8


REFUSED = {
    'ball': (
        model(
            arm('a', '<body name="c"><joint type="ball" name="s"/><geom size=".1"/></body>')
        ),
        "'s' is a ball joint",
    ),
    'two free': (model(2 * '<body><freejoint/><geom size=".1"/></body>'), 'at most one'),
    'beside a free one': (
        model(f'<body name="t"><freejoint/><geom size=".1"/></body>{arm("a")}'),
        "a_turn, a_slide, a_elbow, a_wrist are not behind the free body 't'",
    ),
    'tendons': (
        model(
            arm('a'),
            '<tendon><fixed name="t"><joint joint="a_turn" coef="1"/></fixed></tendon>'
            + equality('<tendon name="e" tendon1="t"/>'),
        ),
        "equality 'e' of type mjEQ_TENDON is not supported",
    ),
    'armature': (
        model(arm('a').replace('armature=".02"', 'armature="-.02"')),
        "The armature of joint 'a_elbow' is -0.02",
    ),
    'no MJCF': ('<mujoco><wrong/></mujoco>', 'cannot be read'),
    'no file': ('no_such_file.xml', 'cannot be read.*no_such_file'),
}


@pytest.mark.every_case
@pytest.mark.parametrize('case', REFUSED)
def test_what_is_not_supported_is_refused(case):
    text, reason = REFUSED[case]
    with pytest.raises(ModelError, match=reason):
        RobotModel.from_mjcf(text)


def test_springs_and_compensated_gravity_are_said():
    xml = model(
        arm('a')
        .replace('armature=".02"', 'stiffness="3"')
        .replace('name="a2"', 'name="a2" gravcomp="1"')
    )
    with pytest.warns(ModelWarning) as said:
        RobotModel.from_mjcf(xml, tip_link='a2')
    texts = [str(item.message) for item in said]
    assert 'Springs of joints a_elbow are not read.' in texts
    assert 'gravcomp of bodies a2 are not read.' in texts
