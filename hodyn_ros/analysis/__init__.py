"""What follows from a motion and its efforts: energies, exceeded limits, other time laws."""

from hodyn_ros.resources import lazy_names

__all__, __getattr__ = lazy_names(
    __name__,
    {
        'limits': (
            'LimitCheck', 'MotionLimits', 'Violation', 'find_position_violations',
            'find_violations', 'motion_limits',
        ),
        'retiming': ('Retimed', 'retime'),
        'scaling': ('uniform_scaling',),
        'scaling_search': ('Limiting', 'UniformScaling'),
        'stretching': ('StretchedMotion', 'stretched'),
    },
)  # fmt: skip
