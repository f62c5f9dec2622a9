"""Motions from files and results into files: tables, trajectories and bags.

`read_motion` reads what the suffix of a file says, `compute` adds efforts and motors,
`write_results` writes.
"""

from hodyn_ros.files.compute import compute
from hodyn_ros.files.derivatives import to_motion
from hodyn_ros.files.files import read_motion, read_motions, read_results, write_results
from hodyn_ros.files.samples import Samples

__all__ = [
    'Samples',
    'compute',
    'read_motion',
    'read_motions',
    'read_results',
    'to_motion',
    'write_results',
]
