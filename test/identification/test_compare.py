"""What measured and computed efforts differ by, and what would explain it."""

import numpy as np
import pinocchio
import pytest
from support import identification_cases as cases
from support.recordings import samples

from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.files import Samples
from hodyn_ros.identification import compare, identify

MOTION = cases.random_motion(4, duration=12.0)
SENSING = cases.Sensing(period=4e-3, noise=0.1)
NONE = np.zeros(7)


@pytest.fixture(scope='module')
def model():
    return RobotModel.from_urdf('panda')


def recorded(robot, sensing=SENSING):
    return samples(robot.record(MOTION, sensing))


def as_described(**changes):
    """A robot that is as the description says, but for changes."""
    return cases.RigidRobot(**{'armature': NONE, 'friction': cases.NO_FRICTION, **changes})


def tilted():
    links = cases.panda()
    links.gravity.linear = pinocchio.exp3(np.array([0.05, 0.0, 0.0])) @ links.gravity.linear
    return links


@pytest.mark.parametrize(
    'robot, sensing, words',
    [
        (as_described(friction=cases.random_friction(2)), SENSING, 'friction'),
        (as_described(model=tilted()), SENSING, 'by 2.9 degrees'),
        (as_described(), cases.Sensing(4e-3, noise=0.01, delay=0.012), '12 ms late'),
        (as_described(model=cases.panda(3)), SENSING, 'masses'),
    ],
    ids=['friction', 'gravity', 'delay', 'bodies'],
)
def test_what_is_wrong_explains_the_difference(model, robot, sensing, words):
    found = compare(model, recorded(robot, sensing))
    own = [item for item in found.explanations if words in item.text]
    assert own, [item.text for item in found.explanations]
    assert own[0].share > 0.95 * found.explanations[0].share
    assert own[0].share > 0.9
    assert len(found.explanations) == 6


def test_an_exact_model_leaves_the_noise(model):
    found = compare(model, recorded(as_described()))
    kept = found.stretches[0]
    rate = 1.0 / (kept.times[1] - kept.times[0])
    # The filter leaves the part of the noise below half of the rate of its rows.
    expected = 0.1 * np.sqrt(rate / 250.0)
    np.testing.assert_allclose(found.residual, expected, rtol=0.2)
    np.testing.assert_allclose(found.scale[[1, 3]], 1.0, atol=0.01)
    assert found.correlation[1] > 0.999


def test_other_units_are_remarked_where_some_joints_agree(model):
    record = recorded(cases.RigidRobot.random(5))
    record.effort[..., 3] *= 0.01
    remarks = ' '.join(compare(model, record).remarks)
    assert 'panda_joint4 0.01' in remarks and 'before the gear' in remarks


def planar(late, noise=1e-2):
    """Shoulder and elbow of a planar robot, with efforts that come late."""
    model = RobotModel.from_urdf('two_link')
    times = np.arange(0.0, 12.0, 4e-3)
    rates = np.array([[2.1], [5.7]]) * [1.0, 1.6]

    def motion(at):
        angles = at[:, None, None] * rates + [[0.0, 1.0], [0.0, 1.0]]
        size = np.array([[1.0], [0.3]])
        return np.stack(
            [
                (size * rates**k * np.sin(angles + k * np.pi / 2)).sum(axis=1)
                for k in range(3)
            ],
            axis=1,
        )

    random = np.random.default_rng(0)
    effort = inverse_dynamics(model, motion(times - late))[:, 0]
    effort = effort + noise * random.standard_normal(effort.shape)
    return model, times, motion(times), effort


def test_a_delay_of_a_planar_robot_does_not_become_a_tilt_of_gravity():
    model, times, motion, effort = planar(late=0.03)
    recorded = Samples(model.joint_names, times, motion[:, :1], effort=effort)
    found = identify(model, recorded, ('viscous', 'gravity', 'delay'))
    np.testing.assert_allclose(found.model.gravity, [0.0, 0.0, -9.81], atol=0.02)
    assert found['delay'].value == pytest.approx(0.03, abs=1e-3)
    explained = compare(model, recorded).explanations
    assert explained[0].text == 'efforts that come 30 ms late'
    assert explained[0].share > 0.99
