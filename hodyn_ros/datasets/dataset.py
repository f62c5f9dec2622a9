"""What a run over a data set computes from which files, how and where to."""

from __future__ import annotations

import hashlib
import io
import os
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

from hodyn_ros.checks import check_choice, checked_number
from hodyn_ros.datasets.inputs import Inputs
from hodyn_ros.errors import BatchError
from hodyn_ros.files.compute import refuse_other_robot
from hodyn_ros.files.derivatives import How
from hodyn_ros.files.files import SUFFIXES
from hodyn_ros.files.formats import Wanted
from hodyn_ros.model.provenance import Provenance
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed

if TYPE_CHECKING:
    from hodyn_ros.actuators.assignment import Actuators

_OPTIONS = {
    'reading': tuple(item.name for item in fields(Wanted)),
    'computing': ('order', 'derivatives', 'interpolation', 'rate', 'estimator'),
}


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
        If an option in `computing` cannot be used.

    Examples
    --------
    >>> from hodyn_ros.datasets import DatasetRun
    >>> run = DatasetRun('panda', 'recordings', 'efforts', computing={'order': 1}, workers=4)
    """

    model: RobotModel
    """Also what `RobotModel.from_urdf` takes."""
    inputs: Inputs
    """Folders, files, bags or patterns, or a list of these."""
    output_folder: Path
    """Made if needed. Its folder `_hodyn` says what the results were made from."""
    actuators: Actuators | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)
    """Options of `read_motion`: topic, joint_names, index, expressed_in, acting."""
    computing: Mapping[str, Any] = field(default_factory=dict)
    """Options of `compute`: order, derivatives, interpolation, rate, estimator."""
    suffix: str = '.parquet'
    """Format of the results: .parquet, .npz, .csv, .yaml, .mcap or .db3."""
    workers: int | None = None
    """Processes of this machine; by default one for each core that may be used. 0 and 1: this
    process does all."""
    scheduler: Any = None
    """Address of a Dask cluster, or a distributed.Client of one, that does the work instead; its
    workers must see inputs and output folder under the same paths."""

    def __post_init__(self) -> None:
        """Refuse what no file could be computed with."""
        if not isinstance(self.model, RobotModel):
            self._set('model', RobotModel.from_urdf(self.model))
        if self.workers is not None:
            checked_number('workers', self.workers, BatchError, least=0, whole=True)
        check_choice('suffix', self.suffix, SUFFIXES, BatchError)
        for what, names in _OPTIONS.items():
            if unknown := [name for name in getattr(self, what) if name not in names]:
                raise BatchError(f'{what} has {listed(unknown)}, expected {listed(names)}.')
            self._set(what, dict(sorted(getattr(self, what).items())))
        how = {'order': 2, **self.computing}
        order = checked_number('order', how.pop('order'), BatchError, least=0, whole=True)
        How(orders=int(order) + 3, **how)
        if self.actuators is not None:
            refuse_other_robot(self.actuators, self.model)
        self._set('output_folder', Path(self.output_folder).absolute())

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def cores(self) -> int:
        """Processes of this machine that may work at once."""
        if self.workers is not None:
            return self.workers
        if hasattr(os, 'sched_getaffinity'):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1

    def made_with(self) -> dict[str, str]:
        """What a result depends on beside its input, as text."""
        options = {**self.reading, **self.computing}
        robot = {'the robot': _digest(self.model), 'the actuators': _digest(self.actuators)}
        return {name: repr(value) for name, value in options.items()} | robot


def _digest(value: Any) -> str:
    """Digest of all that a robot or its actuators hold, whatever has been computed with them."""
    file = io.BytesIO()
    pickler = _Plain(file, 4)
    pickler.fast = True  # the same object twice is as good as two equal ones
    pickler.dump(value)
    return hashlib.blake2b(file.getvalue(), digest_size=16).hexdigest()


class _Plain(pickle.Pickler):
    """Pickles classes and functions by their names, and no cached properties or provenance."""

    def persistent_id(self, value: Any) -> str | None:
        """Qualified name of a class or function; None for everything else, which is pickled."""
        is_code = isinstance(value, (type, FunctionType))
        return f'{value.__module__}.{value.__qualname__}' if is_code else None

    def reducer_override(self, value: Any) -> Any:
        """What pickle makes of an object, without cached properties and provenance."""
        if isinstance(
            value, Provenance
        ):  # the same robot from another file is the same robot
            return Provenance, ()
        reduced = value.__reduce_ex__(4)
        if len(reduced) < 3 or not isinstance(reduced[2], dict):
            return reduced
        kept = {
            name: item
            for name, item in reduced[2].items()
            if not isinstance(getattr(type(value), name, None), cached_property)
        }
        return (*reduced[:2], kept, *reduced[3:])
