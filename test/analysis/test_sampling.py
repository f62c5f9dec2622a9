"""Points for controllers: efforts between them, checked by Pinocchio on dense samples."""

import re
import warnings

import numpy as np
import pytest
from support.control_cases import PANDA

from hodyn_ros import RobotModel
from hodyn_ros.analysis import controller_trajectory
from hodyn_ros.errors import RequestError, TrajectoryError
from hodyn_ros.trajectory import fit_spline, jtc_motion

HOME = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.7])


@pytest.fixture(scope='module')
def model():
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        return RobotModel.from_urdf(PANDA)


@pytest.mark.parametrize('most', [60, 12])
def test_tolerance_that_would_do_does(model, most):
    random = np.random.default_rng(4)
    motion = fit_spline([0.0, 0.6, 1.5, 2.0], HOME + 0.1 * random.normal(size=(4, 7)))
    with pytest.raises(RequestError, match=f'more points than {most}') as caught:
        controller_trajectory(model, motion, 1e-4, max_points=most)
    enough = float(re.search(r'; (\S+) would do', str(caught.value))[1])
    points = controller_trajectory(model, motion, enough, max_points=most)
    assert len(points.times) <= most


def test_efforts_that_jump_are_refused(model):
    motion = jtc_motion([0.0, 1.0, 2.0], [HOME, HOME + 0.1, HOME])
    with pytest.raises(TrajectoryError, match='jump'):
        controller_trajectory(model, motion, 0.1)
