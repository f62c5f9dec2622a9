"""What a force-torque sensor measures."""

import numpy as np
from scipy.spatial.transform import Rotation

from hodyn_ros.dynamics import wrench_from_frame
from hodyn_ros.lie import se3


def test_wrench_of_a_sensor_has_the_moment_of_its_force_about_the_link():
    R, r = (
        Rotation.from_euler('xyz', [0.4, -1.1, 2.0]).as_matrix(),
        np.array([0.1, -0.2, 0.3]),
    )
    values = np.random.default_rng(0).normal(size=(3, 6))
    on_link = wrench_from_frame(values, se3.pose(R, r))
    for (m, f), (moment, force) in zip(values.reshape(3, 2, 3), on_link.reshape(3, 2, 3)):
        np.testing.assert_allclose(force, R @ f, atol=1e-15)
        np.testing.assert_allclose(moment, R @ m + np.cross(r, R @ f), atol=1e-15)
