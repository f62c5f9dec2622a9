"""Pictures of a motion and its efforts: Matplotlib figures, an HTML page, robots in motion.

Matplotlib, Plotly and Rerun are imported only where they are used; they come with the extras
``plot``, ``report`` and ``view``.
"""

from hodyn_ros.plotting.figures import (
    plot_comparison,
    plot_efforts,
    plot_energy,
    plot_joint,
    plot_motion,
    plot_motors,
    plot_portraits,
    plot_stop,
)
from hodyn_ros.plotting.report import html_report
from hodyn_ros.plotting.scene import view

__all__ = [
    'html_report',
    'plot_comparison',
    'plot_efforts',
    'plot_energy',
    'plot_joint',
    'plot_motion',
    'plot_motors',
    'plot_portraits',
    'plot_stop',
    'view',
]
