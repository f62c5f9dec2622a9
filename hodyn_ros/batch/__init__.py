"""Data sets of many motions, processed by all cores or a cluster, resumable."""

from hodyn_ros.batch.errors import BatchError
from hodyn_ros.batch.process import process_files
from hodyn_ros.batch.run import BatchSummary, Progress

__all__ = ['BatchError', 'BatchSummary', 'Progress', 'process_files']
