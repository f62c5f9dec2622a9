"""Motions between waypoints, derivatives of measured streams, and reference motions."""

from hodyn_ros.trajectory.estimator import DerivativeEstimator, Estimate
from hodyn_ros.trajectory.jtc import JtcMotion, jtc_motion, spline_of_degree_5
from hodyn_ros.trajectory.motion import Extremes, PiecewiseMotion, position_extremes
from hodyn_ros.trajectory.planning import (
    MotionPlan,
    StartState,
    deviation_from_jtc,
    plan_motion,
)
from hodyn_ros.trajectory.references import Sinusoids, panda_sinusoids, panda_swing
from hodyn_ros.trajectory.rounding import Fitted, fit_waypoints
from hodyn_ros.trajectory.smoother import Smoothed, Smoother, smooth
from hodyn_ros.trajectory.spline import MotionSpline, fit_spline, stop_motion
from hodyn_ros.trajectory.waypoints import Waypoints

__all__ = [
    'DerivativeEstimator',
    'Estimate',
    'Extremes',
    'Fitted',
    'JtcMotion',
    'MotionPlan',
    'MotionSpline',
    'PiecewiseMotion',
    'Sinusoids',
    'Smoothed',
    'Smoother',
    'StartState',
    'Waypoints',
    'deviation_from_jtc',
    'fit_spline',
    'fit_waypoints',
    'jtc_motion',
    'panda_sinusoids',
    'panda_swing',
    'plan_motion',
    'position_extremes',
    'smooth',
    'spline_of_degree_5',
    'stop_motion',
]
