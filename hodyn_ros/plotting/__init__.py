"""Pictures and reports of a motion and its efforts: Matplotlib figures and an HTML page.

Matplotlib and Plotly are imported only where they are used; they come with the extras ``plot`` and
``report``.
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
]
