"""How measured inputs are estimated, from the parameters."""

from __future__ import annotations

from hodyn_ros.ros.settings import EstimatorSettings, Settings
from hodyn_ros.ros.wrench_settings import WrenchSettings
from hodyn_ros.trajectory.estimator import DerivativeEstimator

_WRENCH_COMPONENTS = 6
_HIGHEST_WRENCH_DERIVATIVE = 2
_SMALLEST_FORCE = 1.0  # N, of an oscillation whose derivatives are of interest


def joint_estimator(settings: EstimatorSettings, n_joints: int) -> DerivativeEstimator:
    """Estimator of joint motions, up to what the highest wanted order of the effort needs."""
    return DerivativeEstimator(
        n_joints,
        highest_derivative=settings.highest_order + 2,
        delay=settings.delay,
        noise=settings.noise or None,
        bandwidth=settings.bandwidth or None,
        max_gap=settings.max_gap,
    )


def wrench_estimator(settings: Settings) -> DerivativeEstimator:
    """Estimator of the components of a wrench and their derivatives."""
    sensor = settings.wrench
    return DerivativeEstimator(
        _WRENCH_COMPONENTS,
        highest_derivative=_HIGHEST_WRENCH_DERIVATIVE,
        # Motions that are estimated lag, and need the wrench of their own instant.
        delay=max(sensor.delay, settings.estimator.delay),
        noise=sensor.noise or None,
        bandwidth=sensor.bandwidth or None,
        max_gap=settings.wrench_timeout,
        smallest_motion=_SMALLEST_FORCE,
    )


def wrench_settings(settings: Settings) -> WrenchSettings:
    """How wrenches are taken."""
    sensor = settings.wrench
    return WrenchSettings(
        link=sensor.link,
        acting=sensor.acting,
        sensor_xyz=sensor.sensor_xyz,
        sensor_rpy=sensor.sensor_rpy,
        tool_mass=sensor.tool_mass,
        tool_center_of_mass=sensor.tool_center_of_mass,
        timeout=settings.wrench_timeout,
        stale_policy=settings.wrench_stale_policy,
        # Of no use otherwise, and then it may be zero.
        fade_time=settings.wrench_fade_time or 1.0,
    )
