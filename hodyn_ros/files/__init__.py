"""Motions from files and results into files: tables, trajectories and bags.

`read_motion` and `iterate_motion` read what the suffix of a file says, `compute` and
`compute_stream` add efforts and motors, `write_results` and `ResultsWriter` write.
"""

from hodyn_ros.files.compute import compute, compute_stream
from hodyn_ros.files.derivatives import to_motion
from hodyn_ros.files.files import (
    ResultsWriter,
    iterate_motion,
    read_motion,
    read_results,
    write_results,
)
from hodyn_ros.files.samples import Results, Samples, join_results

__all__ = [
    'Results',
    'ResultsWriter',
    'Samples',
    'compute',
    'compute_stream',
    'iterate_motion',
    'join_results',
    'read_motion',
    'read_results',
    'to_motion',
    'write_results',
]
