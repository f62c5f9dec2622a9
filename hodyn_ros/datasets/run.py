"""What is done with a data set: of which robot, from where, how, and where to."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from hodyn_ros.checks import check_choice, checked_number
from hodyn_ros.errors import BatchError
from hodyn_ros.files.compute import refuse_other_robot
from hodyn_ros.files.derivatives import How
from hodyn_ros.files.files import SUFFIXES, PathLike
from hodyn_ros.model.robot import RobotModel

if TYPE_CHECKING:
    from hodyn_ros.actuators.assignment import Actuators

Inputs = Union[PathLike, Sequence[PathLike]]  # noqa: UP007

_LEAST = {'order': 0, 'chunk': 1, 'part_rows': 1, 'workers': 0}
_CHOICES = {
    'suffix': SUFFIXES,
    'on_change': ('recompute', 'refuse'),
    'fingerprint': ('quick', 'content'),
}
_READING = ('joint_names', 'topic', 'expressed_in', 'acting')
_COMPUTING = ('order', 'derivatives', 'interpolation', 'rate', 'estimator')
_RESULT = (*_COMPUTING, *_READING, 'motion_column', 'suffix')


@dataclass(frozen=True)
class DatasetRun:
    """The efforts of many motions: what is computed from which files, how, and where to.

    Raises
    ------
    BatchError
        If an option cannot be used.
    ModelError
        If the robot cannot be used.
    MotionError
        If derivatives, order, interpolation, rate or estimator cannot be used.
    """

    model: RobotModel
    """Also what `RobotModel.from_urdf` takes."""
    inputs: Inputs
    """Folders, files, bags or patterns; see `find_inputs`."""
    output_folder: Path
    """Made if needed. It also holds the folder `_hodyn` with records and errors."""
    actuators: Actuators | None = None
    order: int = 2
    """Highest derivative of the efforts."""
    derivatives: str = 'auto'
    """This, `interpolation`, `rate` and `estimator`: see `hodyn_ros.files.to_motion`."""
    interpolation: str = 'spline'
    rate: float | None = None
    estimator: Mapping[str, Any] = field(default_factory=dict)
    topic: str | None = None
    """This, `joint_names`, `expressed_in`, `acting`: see `hodyn_ros.files.read_motions`."""
    joint_names: Sequence[str] | None = None
    expressed_in: str | None = None
    acting: str | None = None
    motion_column: str | None = None
    """Column of motion ids, for Parquet files that hold many motions, each in consecutive rows.
    Their results are folders of Parquet files with the same column."""
    suffix: str = '.parquet'
    """Format of the results: .parquet, .npz, .csv, .yaml, .mcap or .db3."""
    chunk: int = 10_000
    """Samples that are read, computed and written together where the file gives all derivatives;
    otherwise a motion is read as a whole."""
    part_rows: int = 100_000
    """Rows of a file with many motions that make one task."""
    workers: int | None = None
    """Processes of this machine; by default one for each core that may be used, or this process
    alone if Dask is not installed. 0 and 1: this process does all."""
    scheduler: Any = None
    """Address of a Dask cluster, or a distributed.Client of one, that does the work instead; its
    workers must see inputs and output folder under the same paths."""
    stop_on_error: bool = False
    """Whether the first error of a file ends the run. By default errors are recorded, the other
    files are computed, and files with errors are tried again by the next run."""
    on_change: str = 'recompute'
    """What happens if there are results of another robot, of other actuators or options: they are
    computed anew, or the run is refused ('refuse')."""
    fingerprint: str = 'quick'
    """How a changed input is known, 'quick' or by its 'content'; see `input_digest`."""

    def __post_init__(self) -> None:
        """Refuse what no file could be computed with."""
        if not isinstance(self.model, RobotModel):
            self._set('model', RobotModel.from_urdf(self.model))
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is not None or name != 'workers':
                checked_number(name, value, BatchError, least=least, whole=True)
        for name, choices in _CHOICES.items():
            check_choice(name, getattr(self, name), choices, BatchError)
        if self.motion_column is not None and self.suffix != '.parquet':
            raise BatchError(
                f'suffix is {self.suffix!r}, but files with a column of motion ids give results '
                'with one, which are .parquet.'
            )
        self._set('estimator', dict(sorted(self.estimator.items())))
        How(
            self.derivatives,
            self.order + 3,
            self.interpolation,
            self.rate,
            self.estimator,
        )
        if self.actuators is not None:
            refuse_other_robot(self.actuators, self.model)
        if self.joint_names is not None:
            self._set('joint_names', tuple(self.joint_names))
        self._set('output_folder', Path(self.output_folder).absolute())

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _fields(self, names: Sequence[str]) -> dict[str, Any]:
        return {name: getattr(self, name) for name in names}

    @property
    def reading(self) -> dict[str, Any]:
        """Options of `read_motion`.

        Returns
        -------
        dict of str to object
            'joint_names', 'topic', 'expressed_in' and 'acting'.
        """
        return self._fields(_READING)

    @property
    def computing(self) -> dict[str, Any]:
        """Options of `compute`.

        Returns
        -------
        dict of str to object
            'order', 'derivatives', 'interpolation', 'rate' and 'estimator'.
        """
        return self._fields(_COMPUTING)

    def made_with(self) -> dict[str, str]:
        """What a result depends on beside its input, robot and actuators, as text.

        Returns
        -------
        dict of str to str
            By the option.
        """
        return {name: repr(value) for name, value in self._fields(_RESULT).items()}

    def cores(self) -> int:
        """Processes of this machine that may work at once.

        Returns
        -------
        int
            `workers` if that is given, else the cores that this process may use.
        """
        if self.workers is not None:
            return self.workers
        if hasattr(os, 'sched_getaffinity'):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1
