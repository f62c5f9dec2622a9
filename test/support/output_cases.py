"""Friction and actuators of the two-link arm that parameter files can hold."""

from hodyn_ros import friction
from hodyn_ros.actuators import (
    CubicSpring,
    LinearSpring,
    PolynomialSpring,
    RigidDrive,
    SeriesElastic,
    TableSpring,
)

FRICTION = {
    'shoulder': friction.Viscous(0.31)
    + friction.Coulomb(1.2, 1e-7)
    + friction.Stribeck(0.4, 0.1, 1e-7)
    + friction.Offset(-0.2),
    'elbow': friction.Sigmoid(0.5, 5.0, 0.04),
}
DRIVES = (
    RigidDrive(0.3, friction.Viscous(0.1)),
    SeriesElastic(LinearSpring(300.0, 0.2), 0.1, 3.0, friction.Coulomb(0.4, 0.01)),
    SeriesElastic(LinearSpring(300.0), 0.1),
    SeriesElastic(
        CubicSpring(300.0, 1e5),
        1e-7,
        friction=friction.Viscous(0.2)
        + friction.Coulomb(0.4)
        + friction.Stribeck(0.1, 0.02),
    ),
    SeriesElastic(PolynomialSpring((300.0, 10.0, 2e4), 0.3), 0.1),
    SeriesElastic(TableSpring((-0.1, 0.0, 0.1, 0.2), (-9.0, 0.0, 8.0, 20.0)), 0.1),
)
