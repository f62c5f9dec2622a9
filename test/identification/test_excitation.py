"""Motions that show parameters: what they tell is what Pinocchio's regressor tells."""

import numpy as np
import pinocchio as pin
import pytest
from support import doubt_cases as doubts
from support import identification_cases as cases

from hodyn_ros import RobotModel
from hodyn_ros.actuators import Actuators, CubicSpring, SeriesElastic
from hodyn_ros.analysis import motion_limits
from hodyn_ros.errors import (
    IdentificationError,
    JointNameError,
    MotionError,
    RequestError,
)
from hodyn_ros.identification import excite, simulated_recording
from hodyn_ros.trajectory import fit_spline

NOISE, RATE, SHARE = 0.1, 100.0, 0.8
RATES = {'acceleration': 10.0, 'jerk': 5000.0, 'effort_dot': 1000.0}
PANDA = RobotModel.from_urdf('panda')
LIMITS = motion_limits(PANDA, dict.fromkeys(PANDA.joint_names, RATES))
SMALL = doubts.small(1).urdf
# Place of a parameter among the ten of Pinocchio.
PLACES = ('mass', 'hx', 'hy', 'hz', 'ixx', 'ixy', 'iyy', 'ixz', 'iyz', 'izz')


def small(**options):
    """A motion for the bodies of a robot of three joints."""
    model = RobotModel.from_urdf(SMALL)
    limits = motion_limits(model, dict.fromkeys(model.joint_names, RATES))
    return excite(model, limits, **{'rate': RATE, 'duration': 5.0, **options})


@pytest.fixture(scope='module')
def found():
    return small()


def columns(robot, motion, names):
    """Regressor (n N, p) of named columns by Pinocchio and written down plainly."""
    data, joints = robot.createData(), list(robot.names)[1:]
    rows = [
        pin.computeJointTorqueRegressor(robot, data, *each[:3]).copy() for each in motion
    ]
    wanted = np.zeros((len(motion), len(joints), len(names)))
    _, qd, q2d = np.moveaxis(motion[:, :3], 1, 0)
    plain = {
        'viscous': qd,
        'coulomb': np.sign(qd),
        'offset': np.ones_like(qd),
        'armature': q2d,
    }
    for place, name in enumerate(names):
        joint, quantity = name.removesuffix(' + ...').split()
        j = joints.index(joint)
        if quantity in PLACES:
            wanted[:, :, place] = np.array(rows)[:, :, 10 * j + PLACES.index(quantity)]
        else:
            wanted[:, j, place] = plain[quantity][:, j]
    return wanted.reshape(-1, len(names))


def test_information_condition_and_deviations_are_those_of_the_regressor_of_pinocchio(
    found,
):
    Y = columns(pin.buildModelFromXML(SMALL), found.samples(RATE)[1], found.names)
    information = Y.T @ Y / NOISE**2
    scale = np.sqrt(np.diag(information))
    assert np.abs((found.information - information) / np.outer(scale, scale)).max() <= 2e-2
    condition = np.linalg.cond(Y / np.linalg.norm(Y, axis=0))
    assert found.condition == pytest.approx(condition, rel=0.02)
    std = np.sqrt(np.diag(np.linalg.inv(information)))
    np.testing.assert_allclose(found.std, std, rtol=0.02)


def test_equal_seeds_give_equal_motions(found):
    t = np.linspace(0.0, 5.0, 99)
    assert np.array_equal(found.motion(t), small().motion(t))


WRIST = {'target': 'payload', 'link': 'panda_link8', 'duration': 8.0}


def test_all_links_stay_in_the_box():
    box = np.array([[-0.3, -0.6, 0.1], [0.8, 0.6, 1.2]])
    found = excite(PANDA, LIMITS, box=box, **WRIST)
    robot, places = cases.panda(), []
    data = robot.createData()
    for q in found.samples(100.0)[1][:, 0]:
        pin.framesForwardKinematics(robot, data, q)
        moving = [i for i, frame in enumerate(robot.frames) if frame.parentJoint > 0]
        places.append([data.oMf[i].translation.copy() for i in moving])
    assert np.all(places >= box[0] - 1e-6) and np.all(places <= box[1] + 1e-6)
    # Without it they leave it.
    assert np.ptp(np.array(places)[:, -1], axis=0).max() > 0.1


def test_friction_is_shown_from_slow_to_fast_in_both_directions():
    found = excite(PANDA, LIMITS, target='friction', duration=30.0)
    _, motion = found.samples(100.0)
    speeds = motion[:, 1] / np.abs(motion[:, 1]).max(axis=0)
    for low, high in ((0.002, 0.05), (0.05, 0.3), (0.3, 1.0)):
        for way in (1.0, -1.0):
            within = (way * speeds > low) & (way * speeds <= high)
            assert np.count_nonzero(within, axis=0).min() >= 50


def test_springs_see_the_torques_that_pinocchio_computes():
    soft = SeriesElastic(CubicSpring(200.0, 3000.0, 0.2), 0.3)
    drives = {'panda_joint2': SeriesElastic(800.0, 0.6), 'panda_joint4': soft}
    given = {'target': 'springs', 'actuators': Actuators(PANDA, drives), 'duration': 8.0}
    found = excite(PANDA, LIMITS, rate=RATE, **given)
    torque = cases.rigid_torques(cases.panda(), found.samples(1000.0)[1])
    assert np.abs(torque[:, 3]).max() <= SHARE * (200.0 * 0.2 + 3000.0 * 0.2**3)
    # The law of the soft spring increases: its inverse is interpolated in a dense table.
    table = np.linspace(-0.2, 0.2, 200_001)
    delta = np.interp(torque[:, 3], 200.0 * table + 3000.0 * table**3, table)
    linear = torque[:, 1] / 800.0
    of_soft = {'stiffness': delta, 'cubic_stiffness': delta**3}
    for joint, columns in (
        ('panda_joint2', {'stiffness': linear, 'damping': np.gradient(linear, 1e-3)}),
        ('panda_joint4', {**of_soft, 'damping': np.gradient(delta, 1e-3)}),
    ):
        own = [found.names.index(f'{joint} {name}') for name in columns]
        Y = np.stack([*columns.values()], axis=1)
        std = NOISE * np.sqrt(np.diag(np.linalg.inv(Y.T @ Y * RATE / 1000.0)))
        np.testing.assert_allclose(found.std[own], std, rtol=0.02)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('settings', 'error', 'words'),
    [
        ({'target': 'all'}, RequestError, 'expected one of bodies, payload'),
        ({'target': 'springs'}, RequestError, 'series elastic'),
        ({'target': 'payload', 'link': 'panda_link0'}, IdentificationError, 'never moves'),
        ({'joints': ['panda_joint9']}, JointNameError, 'panda_joint9; expected some of'),
        ({'box': [[0, 0, 0], [0.1, 0.1, 0.1]]}, RequestError, 'No pose was found'),
        ({'box': [[0, 0, 1], [1, 1, 0]]}, RequestError, 'the lowest and then the highest'),
        ({'share': 1.5}, RequestError, 'share is 1.5'),
        ({'effort_noise': [0.1, 0.2]}, RequestError, 'number above zero or 7'),
    ],
)
def test_what_cannot_be_is_refused(settings, error, words):
    with pytest.raises(error, match=words):
        excite(PANDA, LIMITS, **settings)


def test_simulated_recordings_are_efforts_with_noise_along_rounded_positions():
    model = RobotModel.from_urdf(SMALL)
    swing = fit_spline([1.0, 2.0, 5.0], [[0.0] * 3, [0.5, -0.4, 0.3], [0.0] * 3])
    exact = simulated_recording(model, swing, 500.0)
    along = swing(exact.times)
    assert (exact.times[0], exact.times[-1], len(exact.times)) == (1.0, 5.0, 2001)
    assert exact.is_measured and exact.motion.shape == (2001, 1, 3)
    np.testing.assert_array_equal(exact.motion[:, 0], along[:, 0])
    robot = pin.buildModelFromXML(SMALL)
    data = robot.createData()
    wanted = np.array([pin.rnea(robot, data, *row[:3]) for row in along])
    np.testing.assert_allclose(exact.effort[:, 0], wanted, atol=1e-10)
    given = {'noise': [0.1, 0.2, 0.0], 'resolution': 1e-3}
    rough = simulated_recording(model, swing, 500.0, **given)
    errors = (rough.effort - exact.effort)[:, 0]
    np.testing.assert_allclose(errors.std(axis=0), given['noise'], rtol=0.1, atol=1e-12)
    steps = rough.motion / 1e-3
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-9)
    assert np.abs(rough.motion - exact.motion).max() <= 0.5e-3 + 1e-12
    again = simulated_recording(model, swing, 500.0, **given)
    np.testing.assert_array_equal(again.effort, rough.effort)
    other = simulated_recording(model, swing, 500.0, seed=1, **given)
    assert (other.effort[..., :2] != rough.effort[..., :2]).all()
    for wrong, said in (
        ({'rate': 0.0}, 'The rate is 0.0'),
        ({'noise': -1.0}, 'noise is -1.0, expected one or 3 numbers from 0 on'),
        ({'resolution': [1e-3, 1e-3]}, 'resolution is .*expected one or 3 numbers'),
    ):
        with pytest.raises(RequestError, match=said):
            simulated_recording(model, swing, **wrong)
    with pytest.raises(MotionError, match='shape'):
        simulated_recording(PANDA, swing)
