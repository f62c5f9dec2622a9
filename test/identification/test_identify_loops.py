"""Parameters of a five-bar are found again in what its cranks show."""

import numpy as np
import pytest
from support import mechanisms
from support.records import changed

from hodyn_ros import friction, inverse_dynamics
from hodyn_ros.errors import IdentificationError
from hodyn_ros.files import Samples
from hodyn_ros.identification import excite, identify

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')

NAMES = ('left', 'right')
OF_CRANKS = {
    'armature': (0.02, 0.03),
    'viscous': (0.4, 0.2),
    'coulomb': (0.3, 0.5),
    'offset': (0.0, 0.0),
}


@pytest.fixture(scope='module')
def given():
    passive = {'left_rod': friction.Viscous(0.05), 'right_rod': friction.Viscous(0.3)}
    return mechanisms.five_bar().with_friction(passive).with_armature({'left_rod': 0.01})


@pytest.fixture(scope='module')
def true(given):
    factors = np.repeat(np.random.default_rng(1).uniform(0.8, 1.25, 4), 10)  # of each body
    laws = {
        name: friction.Viscous(viscous) + friction.Coulomb(coulomb)
        for name, viscous, coulomb in zip(NAMES, OF_CRANKS['viscous'], OF_CRANKS['coulomb'])
    }
    model = given.with_inertial_parameters(given.inertial_parameters * factors)
    model = model.with_friction(laws)
    return model.with_armature(dict(zip(NAMES, OF_CRANKS['armature'])))


def motion_of(seed):
    """Sums of five waves about a position of both cranks, at 250 Hz for 10 s."""
    rng = np.random.default_rng(seed)
    times, rates = np.arange(0.0, 10.0, 4e-3), 0.4 * np.pi * np.arange(1, 6)
    size = rng.normal(size=(5, 2)) + 1j * rng.normal(size=(5, 2))
    waves = np.exp(1j * rates * times[:, None])
    motion = np.stack([(waves * (1j * rates) ** k @ size).real for k in range(3)], axis=1)
    motion *= 0.35 / np.abs(motion[:, 0]).max()
    motion[:, 0] += 2.0, 1.0
    return times, motion


def recorded(model, seed, order=(0, 1)):
    times, motion = motion_of(seed)
    effort = inverse_dynamics(model, motion)[:, 0]
    effort += 0.02 * np.random.default_rng(seed).normal(size=effort.shape)
    position = motion[:, :1, list(order)]
    return Samples(NAMES, times, position, effort=effort, name='rec', is_measured=True)


def test_parameters_are_within_their_deviations(given, true):
    found = identify(given, recorded(true, 1), validation=())
    values = np.concatenate([true.inertial_parameters, *OF_CRANKS.values(), [0.0]])
    errors = np.array([item.value for item in found.parameters]) - found.mapping @ values
    errors /= [item.std for item in found.parameters]
    assert len(errors) == 18 and np.abs(errors).max() < 4.0
    assert 0.5 < np.sqrt(np.mean(errors**2)) < 1.7
    assert found.model.friction['right_rod'] == friction.Viscous(0.3)


def test_swapped_encoders_are_named(given, true):
    with pytest.raises(IdentificationError, match='swap of the encoders of left and right'):
        identify(given, recorded(true, 1, order=(1, 0)), validation=())


@pytest.mark.parametrize('upper', [[3.9, 2.9], [7.0, 3.5]])
def test_motions_keep_to_where_loops_close(given, upper):
    """Limits leave room for positions at which they do not, in the second case in their middle."""
    limits = changed(
        given.limits,
        lower=np.array([0.1, -0.9]),
        upper=np.array(upper),
        velocity=np.full(2, 3.0),
        acceleration=np.full(2, 20.0),
    )
    found = excite(given, limits, target='friction', duration=5.0)
    motion = found.motion(np.linspace(0.0, 5.0, 400), 2)
    assert np.ptp(motion[:, 0], axis=0).min() > 0.1
    assert np.isfinite(inverse_dynamics(given, motion)).all()
