"""Laws for interaction in C answer as those in Python do."""

import numpy as np
import pytest
from support import control_simulation
from support.compiled_controller import Compiled, T, build, meet
from support.compilers import C_COMPILERS, CPP_COMPILERS, WARNINGS, run
from support.control_cases import (
    HOME,
    JOINTS,
    MOTOR_INERTIA,
    STIFFNESS,
    TORQUE_LIMITS,
    Condition,
)
from support.robots import TWO_LINK

from hodyn_ros import HodynError, RobotModel, generate_code
from hodyn_ros.actuators import Actuators, LinearSpring, RigidDrive, SeriesElastic
from hodyn_ros.control import (
    CartesianImpedance,
    GravityCompensation,
    Guards,
    JointImpedance,
    TorqueControl,
)
from hodyn_ros.control.guards import BOUNDS
from hodyn_ros.dynamics.matrices import gravity_effort
from hodyn_ros.model.friction import Coulomb

pytestmark = pytest.mark.skipif(
    not (C_COMPILERS and CPP_COMPILERS), reason='there are no C and C++ compilers'
)

HOME = np.array(HOME)
COUPLED = np.diag([200.0] * 4 + [100.0] * 3) + 20.0 * (np.eye(7, k=1) + np.eye(7, k=-1))
LAWS = {
    'impedance': (JointImpedance, {'stiffness': COUPLED}),
    'impedance, soft in one joint': (
        JointImpedance,
        {'stiffness': [200.0] * 6 + [0.0], 'damping': 1.0, 'feeds_torque_back': False},
    ),
    'led by hand': (GravityCompensation, {'damping': 0.5}),
    'led by hand, fed back': (
        GravityCompensation,
        {'damping': 0.5, 'feeds_torque_back': True},
    ),
    'torque': (TorqueControl, {'damping': 0.5}),
}


@pytest.fixture(scope='module')
def panda():
    return control_simulation.panda()


def springs(model, friction=None, rigid=()):
    rows = zip(JOINTS, STIFFNESS.tolist(), MOTOR_INERTIA.tolist())
    drives = {name: SeriesElastic(k, b, 0.5, friction) for name, k, b in rows}
    drives |= {JOINTS[j]: RigidDrive(float(MOTOR_INERTIA[j]), friction) for j in rigid}
    return Actuators(model, drives)


def law(name, model, friction=None, rigid=(), **options):
    kind, given = LAWS[name]
    options = {'torque_limits': TORQUE_LIMITS, **given, **options}
    return kind(springs(model, friction, rigid), T, **options)


@pytest.mark.parametrize('delay', [0.0, 2e-3])
@pytest.mark.parametrize('name', LAWS)
def test_answers_on_random_states_are_those_of_python(panda, name, delay, tmp_path):
    """Two joints are rigid, there is friction, and now and then everything begins anew."""
    friction = None if 'impedance' in name else Coulomb(0.5, 0.02)
    controller = law(name, panda, friction, (1, 5), delay=delay, guards=None)
    c, random = Compiled(build(controller, tmp_path)), np.random.default_rng(3)
    error = largest = 0.0
    for k in range(300):
        if k in (0, 100, 200):
            controller.reset()
            c.reset()
            start = HOME + random.uniform(-0.3, 0.3, 7)
            rest = gravity_effort(panda, start[None])[0] / STIFFNESS
        q = start + 2e-3 * random.standard_normal(7)
        theta = q + rest + 1e-3 * random.standard_normal(7)
        desired = random.uniform(-1.0, 1.0, (controller.orders, 7))
        desired[0] += start
        torque = controller.command(desired, q, None, theta, None)
        found = c.command(desired, q, None, theta)
        assert c.status == 0
        error, largest = (
            max(error, np.abs(found - torque).max()),
            max(largest, *abs(torque)),
        )
    assert error < 1e-9 * largest


FAULTS = {
    'missing samples': 0,
    'jitter': 0,
    'glitches': 0,
    'slip': 6,
    'brake': None,
    'stop': 10,
    'clock': 0,
}


@pytest.mark.parametrize('name', ['impedance', 'led by hand'])
@pytest.mark.parametrize('fault', FAULTS)
def test_faults_are_met_as_in_python(panda, name, fault, tmp_path):
    reactions = dict.fromkeys(BOUNDS, 'float' if fault == 'slip' else 'hold')
    delay = 1e-3 if fault in ('slip', 'jitter') else 0.0
    controller = law(name, panda, delay=delay, guards=Guards(reactions=reactions))
    seen = meet(controller, build(controller, tmp_path), fault)
    assert seen == FAULTS[fault] or fault == 'brake'
    assert ('gives way' in controller.reason) == (fault == 'slip')


@pytest.mark.parametrize('name', ['impedance', 'led by hand', 'torque'])
def test_gap_is_met_as_in_python(panda, name, tmp_path):
    """Something that does not rest is wanted; a torque is no motion but may change."""
    controller = law(name, panda)
    weight = gravity_effort(panda, HOME[None])[0]

    def wanted(time):
        desired = np.zeros((controller.orders, 7))
        desired[0], desired[1] = weight if name == 'torque' else HOME, 1e-3
        return desired

    assert meet(controller, build(controller, tmp_path), 'gap', wanted) == 8


def two_links():
    model = RobotModel.from_urdf(TWO_LINK)
    drives = {name: SeriesElastic(500.0, 0.1, 0.5) for name in model.joint_names}
    return Actuators(model, drives), [0.3, -0.4]


@pytest.mark.parametrize('robot', ['two links', 'panda'])
@pytest.mark.parametrize('name', ['impedance', 'led by hand'])
def test_closed_loop_is_that_of_python(panda, name, robot, tmp_path):
    """2 s in which the robot is pushed, with the torques of the code in C."""
    pytest.importorskip('mujoco')
    from hodyn_ros.simulation import ElasticPlant

    kind, given = LAWS[name]
    actuators, start = (springs(panda), HOME) if robot == 'panda' else two_links()
    if name == 'impedance' and robot != 'panda':
        given = {'stiffness': [100.0, 60.0]}
    controller = kind(actuators, T, torque_limits=87.0, **given)
    c = Compiled(build(controller, tmp_path))
    plant = ElasticPlant(actuators.model, actuators, 2e-4)
    plant.reset(start)
    desired = np.zeros((5, len(start)))
    desired[0] = start
    error = largest = moved = 0.0
    for k in range(2000):
        if k in (300, 500):
            plant.push(
                actuators.model.joint_names[-1], [0.0, 10.0 * (k == 300), 5.0 * (k == 300)]
            )
        given = desired, plant.q, None, plant.theta
        torque, found = controller.command(*given, None), c.command(*given)
        assert c.status == 0
        error, largest = (
            max(error, np.abs(found - torque).max()),
            max(largest, *abs(torque)),
        )
        plant.step(found, 5)
        moved = max(moved, *abs(plant.q - start))
    assert error < 1e-9 * largest
    assert moved > 5e-3


def test_taking_up_after_a_stop_has_no_step(panda, tmp_path):
    controller = law('impedance', panda)
    c, plant = Compiled(build(controller, tmp_path)), Condition().plant()
    state, torques, released = plant.at_rest(HOME), [], 0
    desired = np.zeros((5, 7))
    desired[0] = HOME + 0.1
    for k in range(1500):
        if k == 100:
            c.library.robot_controller_stop(c.memory)
        if k > 200 and not released and not c.library.robot_controller_release(c.memory):
            released = k
        torques.append(c.command(desired, state[0], None, state[2]))
        state = plant.hold(state, torques[-1], T, 2)
    steps = np.abs(np.diff(torques, axis=0)).max(axis=1)
    assert released
    assert steps[99] < 5.0
    assert steps[released - 1] < 1.0


def test_spring_out_of_its_range_is_told(panda, tmp_path):
    drives = dict(springs(panda).by_joint)
    drives[JOINTS[1]] = SeriesElastic(LinearSpring(1000.0, 0.06), 0.6)
    controller = JointImpedance(
        Actuators(panda, drives), T, torque_limits=TORQUE_LIMITS, stiffness=COUPLED
    )
    c = Compiled(build(controller, tmp_path))
    desired = np.zeros((5, 7))
    desired[0] = HOME
    given = desired, HOME, None, controller.resting(HOME)
    c.command(*given)
    controller.command(*given, None)
    desired[0, 1] += 1.0
    for _ in range(3):
        found, answer = c.command(*given), controller.evaluate(*given, None)
        assert (c.status, c.library.reason(c.memory)) == (0, 9)
        np.testing.assert_allclose(found, answer.torque, atol=1e-9)
        assert JOINTS[1] in answer.reason


@pytest.mark.parametrize('name', LAWS)
def test_code_compiles_without_warning_as_c_and_as_cpp(panda, name, tmp_path):
    friction = Coulomb(0.5, 0.02) if name != 'impedance' else None
    controller = law(name, panda, friction, rigid=(1,), delay=1e-3)
    header, source, *_ = generate_code(panda, tmp_path, controller=controller)
    assert f'see {type(controller).__name__}' in header.read_text()
    for compiler in (C_COMPILERS[0], CPP_COMPILERS[0]):
        standard = ('-std=c99',) if compiler in C_COMPILERS else ('-x', 'c++', '-std=c++11')
        run(compiler, *standard, *WARNINGS, '-O2', '-c', '-o', tmp_path / 'code.o', source)


def test_law_of_the_tip_has_no_code(panda, tmp_path):
    controller = CartesianImpedance(
        springs(panda), T, 'panda_link8', torque_limits=TORQUE_LIMITS, stiffness=100.0
    )
    with pytest.raises(
        HodynError, match='generated for CartesianImpedance, but for Tracking'
    ):
        generate_code(panda, tmp_path, controller=controller)
    assert list(tmp_path.iterdir()) == []
