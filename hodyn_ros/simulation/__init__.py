"""Simulation of robots with elastic joints on MuJoCo, which shares no code with this package.

MuJoCo is imported when the first plant is made.
"""

from hodyn_ros.simulation.closed_loop import Tracking, simulate_tracking
from hodyn_ros.simulation.imperfections import Imperfections
from hodyn_ros.simulation.plant import ElasticPlant
from hodyn_ros.simulation.sampled import Measurement, SampledPlant, Sensors

__all__ = [
    'ElasticPlant',
    'Imperfections',
    'Measurement',
    'SampledPlant',
    'Sensors',
    'Tracking',
    'simulate_tracking',
]
