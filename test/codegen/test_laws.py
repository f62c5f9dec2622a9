"""Laws in C with every kind of drive, friction and sensor answer as those in Python do."""

import warnings

import numpy as np
import pytest
from support.compiled_controller import Compiled, build
from support.compilers import C_COMPILERS, CPP_COMPILERS, WARNINGS, run
from support.robots import TWO_LINK

from hodyn_ros import HodynError, ModelWarning, RobotModel, friction, generate_code
from hodyn_ros.actuators import Actuators, CubicSpring, RigidDrive, SeriesElastic
from hodyn_ros.control import (
    GravityCompensation,
    JointImpedance,
    TorqueControl,
    TrackingController,
    tracking_controller,
)

pytestmark = pytest.mark.skipif(
    not (C_COMPILERS and CPP_COMPILERS), reason='there are no C and C++ compilers'
)

T = 1e-3
START = np.array([0.3, -0.4])
SPRING = SeriesElastic(500.0, 0.1, 0.5)
RUBBING = SeriesElastic(
    500.0, 0.1, 3.0, friction.Coulomb(0.3, 0.05) + friction.Stribeck(0.6, 0.2, 0.05)
)
ROUGH = SeriesElastic(
    500.0, 0.1, friction=friction.Sigmoid(0.8, 9.0, -0.02) + friction.Offset(0.1)
)
SOFT = {'stiffness': [50.0, 0.0], 'damping': 1.0, 'feeds_torque_back': False}
# Kind of law, drives, options.
LAWS = {
    'tracking, rigid joint': (
        tracking_controller,
        (RigidDrive(0.1, friction.Viscous(0.5)), RUBBING),
        {'delay': 2e-3},
    ),
    'tracking, rough motors': (tracking_controller, (ROUGH, RigidDrive()), {}),
    'tracking, little torque': (
        tracking_controller,
        (SPRING, SPRING),
        {'torque_limits': [9.0, 2.0], 'guards': None},
    ),
    'impedance, soft in one joint': (JointImpedance, (SPRING, SPRING), SOFT),
    'led by hand': (
        GravityCompensation,
        (SPRING, RigidDrive(0.1, friction.Coulomb(0.5, 0.02))),
        {'damping': 0.5, 'feeds_torque_back': True, 'delay': 2e-3},
    ),
    'torque': (TorqueControl, (RUBBING, SPRING), {'damping': 0.5}),
}


def law(name):
    kind, drives, options = LAWS[name]
    model = RobotModel.from_urdf(TWO_LINK)
    actuators = Actuators(model, dict(zip(model.joint_names, drives)))
    return kind(actuators, T, **{'torque_limits': [80.0, 40.0], 'guards': None, **options})


@pytest.mark.every_case
@pytest.mark.parametrize('name', LAWS)
def test_answers_on_random_states_are_those_of_python(name, tmp_path):
    """Now and then everything begins anew, and torque sensors tell what springs do not."""
    controller = law(name)
    c, random = Compiled(build(controller, tmp_path)), np.random.default_rng(3)
    error = largest = 0.0
    for k in range(300):
        if k in (0, 100, 200):
            controller.reset()
            c.reset()
            start = START + random.uniform(-0.3, 0.3, 2)
            rest = controller.resting(start)
        q = start + 2e-3 * random.standard_normal(2)
        theta = rest + 1e-3 * random.standard_normal(2)
        desired = random.uniform(-1.0, 1.0, (getattr(controller, 'orders', 5), 2))
        desired[0] += start
        given = [desired, q, None, theta, None]
        if k > 200 and 'tracking' in name:
            given.append(500.0 * (theta - q) + 0.02 * random.standard_normal(2))
        torque, found = controller.command(*given), c.command(*given)
        assert c.status == 0
        error = max(error, np.abs(found - torque).max())
        largest = max(largest, np.abs(torque).max())
    assert error < 1e-9 * largest
    as_cpp = '-x', 'c++', '-std=c++11', *WARNINGS, '-O1', '-c', '-o', tmp_path / 'code.o'
    run(CPP_COMPILERS[0], *as_cpp, tmp_path / 'robot_dynamics.c')


def test_a_singular_mass_matrix_is_told(tmp_path):
    """Two rods without mass that carry a point, stretched."""
    B = np.tile(np.eye(4), (2, 1, 1))
    B[1, 0, 3] = 1.0
    inertias = [(0.0, np.zeros(3), np.zeros((3, 3))), (1.0, [1.0, 0, 0], np.zeros((3, 3)))]
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        model = RobotModel.from_body_screws([[0, 0, 1, 0, 0, 0]] * 2, B, inertias=inertias)
    drives = Actuators(model, dict.fromkeys(model.joint_names, SeriesElastic(1000.0, 0.5)))
    controller = TrackingController(drives, T, torque_limits=np.inf)
    c, desired, bent = Compiled(build(controller, tmp_path)), np.zeros((5, 2)), [0.0, 1.0]
    c.command(desired, bent, None, bent)
    assert c.status == 0
    c.reset()
    straight = desired, np.zeros(2), None, np.zeros(2)
    torque = c.command(*straight)
    assert (c.status, torque[0]) == (2, 1234.5)
    with pytest.raises(HodynError, match='singular'):
        controller.command(*straight, None)


def test_actuators_without_code_are_refused(tmp_path):
    model, drive = (
        RobotModel.from_urdf(TWO_LINK),
        SeriesElastic(CubicSpring(900.0, 1e4), 0.5),
    )
    controller = tracking_controller(
        Actuators(model, {'shoulder': drive}), T, torque_limits=[80.0, 40.0]
    )
    with pytest.raises(HodynError, match='CubicSpring.*shoulder'):
        generate_code(model, tmp_path, controller=controller)
    with pytest.raises(HodynError, match='float'):
        generate_code(
            model, tmp_path, precision='float', controller=law('tracking, rough motors')
        )
    assert list(tmp_path.iterdir()) == []
