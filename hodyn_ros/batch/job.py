"""What is done with every motion: the robot and the options, as workers get them."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.batch.errors import BatchError
from hodyn_ros.batch.fingerprint import fingerprint_of
from hodyn_ros.io.derivatives import How
from hodyn_ros.model.robot import RobotModel


@dataclass(frozen=True)
class Options:
    """Options that results depend on."""

    orders: int
    derivatives: str
    interpolation: str
    rate: float | None
    estimator: tuple[tuple[str, Any], ...]
    topic: str | None
    joint_names: tuple[str, ...] | None
    expressed_in: str | None
    acting: str | None
    motion_column: str | None
    suffix: str

    def how(self) -> How:
        """How derivatives come about.

        Raises
        ------
        MotionError
            If they cannot come about so.
        """
        return How(
            self.derivatives, self.orders + 3, self.interpolation, self.rate, dict(self.estimator)
        )


@dataclass(frozen=True)
class Job:
    """Robot, options and where results go."""

    model: RobotModel
    actuators: Actuators | None
    options: Options
    output_folder: str
    """Absolute path."""
    temporary: str
    """Folder of unfinished results, below the output folder. Once another run has begun it is
    gone, and nothing of this run can get a final name any more."""
    chunk: int
    """Samples that are computed together."""

    def packed(self) -> bytes:
        """Return the job as bytes for other processes.

        Raises
        ------
        BatchError
            If it holds something that they could not load.
        """
        try:
            return pickle.dumps(self)
        except Exception as error:  # whatever the classes of a user raise
            raise BatchError(
                f'The robot or its actuators cannot be sent to other processes ({error}); define '
                'classes and functions that they use in a module, or compute with workers=0.'
            ) from error


def job_record(model: RobotModel, actuators: Actuators | None, options: Options) -> dict[str, Any]:
    """Return what results are made with, as it is recorded beside them."""
    # What an option can be told by and written with, whatever it is.
    told = {name: repr(value) for name, value in asdict(options).items()}
    return {
        'robot': fingerprint_of(model), 'actuators': fingerprint_of(actuators), 'options': told
    }


def job_difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Say in words how two records of jobs differ."""
    changed = [f'the {part}' for part in ('robot', 'actuators') if before.get(part) != now[part]]
    old = before.get('options')
    old = old if isinstance(old, dict) else {}
    changed += [
        f'{name} ({old.get(name)} before, {value} now)'
        for name, value in now['options'].items()
        if old.get(name) != value
    ]
    return f'{", ".join(changed)} changed'
