"""How measured inputs are estimated, from the parameters."""

from __future__ import annotations

from typing import Any

from hodyn_ros.ros.settings import EstimatorSettings, Settings
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
    return DerivativeEstimator(**_wrench_options(settings))


def is_wrench_estimated_alike(settings: Settings, others: Settings) -> bool:
    """Whether two settings lead to the same estimator of wrenches."""
    return _wrench_options(settings) == _wrench_options(others)


def _wrench_options(settings: Settings) -> dict[str, Any]:
    sensor, joints = settings.wrench, settings.estimator
    return {
        'n': _WRENCH_COMPONENTS,
        'highest_derivative': _HIGHEST_WRENCH_DERIVATIVE,
        # Motions that are estimated lag, and need the wrench of their own instant.
        'delay': max(sensor.delay, joints.delay) if joints.enabled else sensor.delay,
        'noise': sensor.noise or None,
        'bandwidth': sensor.bandwidth or None,
        'max_gap': sensor.timeout,
        'smallest_motion': _SMALLEST_FORCE,
    }
