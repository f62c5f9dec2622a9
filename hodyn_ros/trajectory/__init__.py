"""Motions between waypoints, estimates of measured ones, and reference motions."""

from hodyn_ros.resources import lazy_names

__all__, __getattr__ = lazy_names(
    __name__,
    {
        'estimator': ('DerivativeEstimator', 'Estimate'),
        'extremes': ('Extremes', 'position_extremes'),
        'jtc': ('JtcMotion', 'jtc_motion', 'spline_of_degree_5'),
        'planning': ('MotionPlan', 'StartState', 'plan_motion'),
        'spline': ('MotionSpline', 'fit_spline'),
        'stopping': ('stop_motion',),
        'waypoints': ('Waypoints', 'deviation_from_jtc'),
    },
)
