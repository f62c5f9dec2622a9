"""Data sets of many motions, processed by all cores or a cluster, resumable."""

from hodyn_ros.datasets.dataset import DatasetRun
from hodyn_ros.datasets.run import BatchSummary, Progress, process_files
from hodyn_ros.errors import BatchError

__all__ = ['BatchError', 'BatchSummary', 'DatasetRun', 'Progress', 'process_files']
