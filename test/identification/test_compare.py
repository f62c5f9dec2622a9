"""What measured and computed efforts differ by, and what would explain it."""

import numpy as np
import pinocchio
import pytest
from support import identification_cases as cases
from support.recordings import samples

from hodyn_ros import RobotModel
from hodyn_ros.identification import BANDS, compare

MOTION = cases.random_motion(4, duration=20.0)
SENSING = cases.Sensing(period=4e-3, noise=0.1)
NONE = np.zeros(7)


@pytest.fixture(scope='module')
def model():
    return RobotModel.from_urdf('panda')


def recorded(robot, sensing=SENSING, seed=0):
    return samples(robot.record(MOTION, sensing, seed))


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
        (
            as_described(model=cases.panda(None, (1.3, (0.0, 0.0, 0.1)))),
            SENSING,
            'of 1.3 kg',
        ),
        (as_described(model=tilted()), SENSING, 'by 2.9 degrees'),
        (as_described(), cases.Sensing(4e-3, noise=0.01, delay=0.012), '12 ms late'),
        (as_described(model=cases.panda(3)), SENSING, 'masses'),
    ],
    ids=['friction', 'payload', 'gravity', 'delay', 'bodies'],
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


def test_bands_add_up_to_the_difference(model):
    found = compare(model, recorded(cases.RigidRobot.random(5)))
    assert found.bands.shape == (len(BANDS) - 1, 7)
    np.testing.assert_allclose(
        np.sqrt((found.bands**2).sum(axis=0)), found.residual, rtol=1e-9
    )
    # Friction changes slowly, noise does not.
    assert np.all(found.bands[:3].max(axis=0) > found.bands[3])


def test_results_are_those_along_the_filtered_motion(model):
    found = compare(model, [recorded(cases.RigidRobot.random(5), seed=k) for k in (1, 2)])
    assert len(found.stretches) == 2
    results = found.results(model)
    assert np.all(np.diff(results.times) > 0.0)
    assert results.motion.shape[1:] == (3, 7) and results.effort.shape[1:] == (1, 7)
    stretch = found.stretches[0]
    exact = MOTION(stretch.times)
    np.testing.assert_allclose(stretch.motion[:, 0], exact[:, 0], atol=1e-5)
    np.testing.assert_allclose(stretch.motion[:, 2], exact[:, 2], atol=0.02)
    torque = cases.rigid_torques(cases.panda(), exact)
    np.testing.assert_allclose(results.effort[: len(torque), 0], torque, atol=0.02)


def test_other_units_are_remarked_where_some_joints_agree(model):
    record = recorded(cases.RigidRobot.random(5))
    record.effort[:, 3] *= 0.01
    remarks = ' '.join(compare(model, record).remarks)
    assert 'panda_joint4 0.01' in remarks and 'before the gear' in remarks
