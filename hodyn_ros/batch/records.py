"""The output folder: results, and beside them what each of them was made from.

A result at ``a/b.npz`` has a record at ``_hodyn/records/a/b.npz.json``. The record gets its name,
complete, after the result has its own; a run that is killed in between leaves a result without a
record, which is made again. What a record says is compared, never followed: its own place says
which result it belongs to.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from hodyn_ros.batch.errors import BatchError

try:
    import fcntl
except ImportError:  # only POSIX has it; elsewhere, two runs at once are not noticed
    fcntl = None  # type: ignore[assignment]

# Readers of data sets leave out what begins with an underscore.
HIDDEN = '_hodyn'
VERSION = 2


class Record(NamedTuple):
    """What a result was made from."""

    version: int
    name: str
    """Of the input."""
    rows: list[int] | None
    """First row of the input and the one behind the last; None: all."""
    input: dict[str, Any]
    """Fingerprint of the input."""
    job: dict[str, Any]
    """Fingerprints of robot and actuators, and the options."""
    output_bytes: int
    failures: int
    """Motions of the input that are missing in the result."""


class OutputFolder:
    """The folder of the results.

    Parameters
    ----------
    path : pathlib.Path
        Exists.

    Attributes
    ----------
    run : str
        Name of this run.
    errors_path : pathlib.Path
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._hidden = path / HIDDEN
        self._records = self._hidden / 'records'
        self.run = uuid.uuid4().hex
        self.errors_path = self._hidden / 'errors.jsonl'
        self._errors: IO[bytes] | None = None

    @property
    def temporary(self) -> str:
        """Folder of unfinished results of this run, below the output folder."""
        return f'{HIDDEN}/runs/{self.run}'

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep others from using the output folder, also when this process is killed at once.

        Raises
        ------
        BatchError
            If another run uses it.
        """
        self._hidden.mkdir(exist_ok=True)
        with open(self._hidden / 'lock', 'a+b') as lock:
            if fcntl is not None:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError as error:
                    raise BatchError(
                        f'{self.path} is in use by another run; wait for its end or choose '
                        'another output folder.'
                    ) from error
                except OSError:
                    pass  # a file system without locks
            try:
                yield
            finally:
                if self._errors is not None:
                    self._errors.close()
                shutil.rmtree(self.path / self.temporary, ignore_errors=True)

    def begin(self) -> None:
        """Make the folder of unfinished results.

        Those of runs before this one disappear, and with them the folder that workers of such a
        run would still need to finish anything.
        """
        shutil.rmtree(self._hidden / 'runs', ignore_errors=True)
        (self.path / self.temporary).mkdir(parents=True)
        self.errors_path.unlink(missing_ok=True)

    def record(self, output: str) -> Record | None:
        """Record of a result; None if there is none, or none that a run of today has written."""
        try:
            record = Record(**json.loads(self._place(output).read_bytes()))
        except (OSError, ValueError, TypeError, RecursionError):
            return None
        is_ours = record.version == VERSION and all(
            isinstance(part, dict) for part in (record.input, record.job)
        )
        return record if is_ours else None

    def outputs(self) -> Iterator[str]:
        """Results that have records, by their paths below the output folder."""
        for path in sorted(self._records.rglob('*.json')):
            yield path.relative_to(self._records).as_posix()[: -len('.json')]

    def add(self, output: str, record: Record) -> None:
        """Record a result that has its final name.

        Raises
        ------
        BatchError
            If the record cannot be written.
        """
        place = self._place(output)
        new = self.path / self.temporary / 'record'
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            # Should its content not survive a power failure, its result is made again.
            new.write_bytes(_json(record._asdict()))
            os.replace(new, place)
        except OSError as error:
            raise BatchError(
                f'{output}: its record cannot be written to {self._records}: {error}'
            ) from error

    def remove(self, output: str) -> None:
        """Remove a result and its record, and folders that have become empty."""
        # In this order: what has no record is made again.
        for path, root in (
            (self._place(output), self._records), (self.path / output, self.path)
        ):
            path.unlink(missing_ok=True)
            folder = path.parent
            try:
                while folder != root:
                    folder.rmdir()
                    folder = folder.parent
            except OSError:
                pass  # not empty, or not there

    def add_error(self, record: Mapping[str, Any]) -> None:
        """Write an error down; the file of errors exists only if there are any."""
        if self._errors is None:
            self._errors = open(self.errors_path, 'ab', buffering=0)
        self._errors.write(_json(record))

    def _place(self, output: str) -> Path:
        return self._records / f'{output}.json'


def _json(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=True, separators=(',', ':')).encode() + b'\n'
