"""Motions of a tool by Pinocchio and by interpolation."""

from pathlib import Path

import numpy as np
import pytest
from numpy.polynomial import Chebyshev

# The Panda with a sensor at its flange.
XYZ, RPY = (0.02, -0.03, 0.08), (0.3, -0.5, 1.9)
_SENSOR = (
    '<link name="sensor"/><joint name="sensor_mount" type="fixed"><parent link="panda_link8"/>'
    '<child link="sensor"/><origin xyz="{} {} {}" rpy="{} {} {}"/></joint></robot>'
)
PANDA = (
    (Path(__file__).resolve().parents[2] / 'urdf' / 'panda.urdf')
    .read_text()
    .replace('</robot>', _SENSOR.format(*XYZ, *RPY))
)
LINK = 'panda_link7'
GRAVITY = np.array([1.1, -2.2, -9.0])


def derivatives_at_zero(function, orders=3, half_width=0.3, degree=24):
    """Value and derivatives at t = 0 of a smooth function of time, from values around it."""
    nodes = half_width * np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))
    samples = np.array([np.ravel(function(t)) for t in nodes])
    columns = [
        Chebyshev.fit(nodes, y, degree, [-half_width, half_width]) for y in samples.T
    ]
    result = np.array([[c.deriv(m)(0.0) for c in columns] for m in range(orders)])
    return result.reshape(orders, *np.shape(function(0.0)))


def moved(motion, time):
    """Joint positions at a time, from the derivatives at zero."""
    factorials = np.cumprod([1.0, *range(1, len(motion))])
    return sum(row * time**k / f for k, (row, f) in enumerate(zip(motion, factorials)))


class PinPoses:
    """Rotation and origin of a link of the Panda, computed by Pinocchio."""

    def __init__(self):
        self.pin = pytest.importorskip('pinocchio')
        self.model = self.pin.buildModelFromXML(PANDA)
        self.data = self.model.createData()

    def __call__(self, q, link=LINK):
        self.pin.framesForwardKinematics(self.model, self.data, q)
        pose = self.data.oMf[self.model.getFrameId(link)]
        return pose.rotation.copy(), pose.translation.copy()
