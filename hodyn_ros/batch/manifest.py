"""The manifest: what has been done, in a file of JSON lines beside the results.

One process writes it, line by line, and each line only after its result has its final name. A
process that is killed leaves at most one torn line at the end, which counts for nothing: its
result is made again.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from hodyn_ros.batch.errors import BatchError

try:
    import fcntl
except ImportError:  # only POSIX has it; elsewhere, two runs at once are not noticed
    fcntl = None  # type: ignore[assignment]

# Readers of data sets leave out what begins with an underscore.
HIDDEN = '_hodyn'
MANIFEST = 'manifest.jsonl'
ERRORS = 'errors.jsonl'
VERSION = 1

Record = dict[str, Any]

# What a line must hold at least.
_RESULT = {
    'task': str,
    'name': str,
    'job': str,
    'input': dict,
    'rows': (list, type(None)),
    'output': str,
    'output_bytes': int,
    'failures': int,
}
_JOB = {'job': str, 'robot': str, 'actuators': str, 'options': dict}


class Books:
    """The folder beside the results in which the run keeps its books.

    Parameters
    ----------
    output_folder : pathlib.Path
        Exists.

    Attributes
    ----------
    run : str
        Name of this run.
    errors_path : pathlib.Path
    odd : int
        Lines of the manifest that no run writes, such as of results outside of the folder. They
        count for nothing. Known when `records` has been called.
    """

    def __init__(self, output_folder: Path) -> None:
        self._output = output_folder
        self._folder = output_folder / HIDDEN
        self.run = uuid.uuid4().hex
        self.odd = 0
        self.errors_path = self._folder / ERRORS
        self._manifest: IO[bytes] | None = None
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
        self._folder.mkdir(exist_ok=True)
        with open(self._folder / 'lock', 'a+b') as lock:
            if fcntl is not None:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError as error:
                    raise BatchError(
                        f'{self._output} is in use by another run; wait for its end or choose '
                        'another output folder.'
                    ) from error
                except OSError:
                    pass  # a file system without locks
            try:
                yield
            finally:
                for file in (self._manifest, self._errors):
                    if file is not None:
                        file.close()
                shutil.rmtree(self._output / self.temporary, ignore_errors=True)

    def records(self) -> tuple[dict[str, Record], dict[str, Record]]:
        """Read what is recorded.

        Returns
        -------
        jobs : dict of str to Record
        results : dict of str to Record
            By the name of the task; the last record of each counts.

        Raises
        ------
        BatchError
            If the manifest is of a later version.
        """
        jobs: dict[str, Record] = {}
        results: dict[str, Record] = {}
        self.odd = 0
        root = self._output.resolve()

        @lru_cache(maxsize=1000)
        def holds(folder: Path) -> bool:
            resolved = folder.resolve()
            return root in (resolved, *resolved.parents)

        for line in _lines(self._folder / MANIFEST):
            if line.get('version', VERSION) != VERSION:
                raise BatchError(
                    f'{self._folder / MANIFEST} has the version {line["version"]}, this program '
                    f'knows {VERSION}; choose another output folder.'
                )
            if 'task' in line:
                # What is recorded is deleted once it does not hold any more.
                path = self._output / line['output'] if _fits(line, _RESULT) else self._output
                if path != self._output and path.name != '..' and holds(path.parent):
                    results[line['task']] = line
                else:
                    self.odd += 1
            elif 'job' in line:
                if _fits(line, _JOB):
                    jobs[line['job']] = line
                else:
                    self.odd += 1
        return jobs, results

    def begin(self, jobs: Iterable[Record], kept: Iterable[Record]) -> None:
        """Write the manifest anew, with what still holds, and open it for what follows.

        Unfinished results of runs before this one disappear, and with them the folder that
        workers of such a run would still need to finish anything.

        Parameters
        ----------
        jobs : iterable of Record
            What is done in this run, and what results were made with that are kept.
        kept : iterable of Record
            Records of results that are not made again.
        """
        shutil.rmtree(self._folder / 'runs', ignore_errors=True)
        (self._output / self.temporary).mkdir(parents=True)
        for stray in self._folder.glob('*.new'):
            stray.unlink()
        path = self._folder / MANIFEST
        new = path.with_suffix('.new')
        with open(new, 'wb') as file:
            for record in ({'version': VERSION}, *jobs, *kept):
                file.write(_line(record))
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
        self._manifest = open(path, 'ab', buffering=0)
        self.errors_path.unlink(missing_ok=True)

    def add_result(self, record: Record) -> None:
        """Record a result that has its final name."""
        assert self._manifest is not None
        self._manifest.write(_line(record))

    def add_error(self, record: Mapping[str, Any]) -> None:
        """Record an error; the file of errors exists only if there are any."""
        if self._errors is None:
            self._errors = open(self.errors_path, 'ab', buffering=0)
        self._errors.write(_line(record))


def _line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=True, separators=(',', ':')).encode() + b'\n'


def _fits(record: Record, kinds: Mapping[str, Any]) -> bool:
    try:
        # No file has a name with a zero byte, or one that cannot be encoded.
        named = b'\0' not in os.fsencode(str(record.get('output', '')))
    except UnicodeError:
        named = False
    return named and all(
        name in record and isinstance(record[name], kinds[name]) for name in kinds
    )


def _lines(path: Path) -> Iterator[Record]:
    """Complete lines; a torn one is left out."""
    try:
        file = open(path, 'rb')
    except FileNotFoundError:
        return
    with file:
        for line in file:
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(record, dict):
                yield record
