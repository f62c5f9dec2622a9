"""The result of one task, written to a file that has no final name yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.batch.errors import BatchError
from hodyn_ros.batch.job import Job
from hodyn_ros.batch.motions import PartWriter, Rows, open_parquet
from hodyn_ros.batch.tasks import Task
from hodyn_ros.errors import HodynError
from hodyn_ros.io import Results, ResultsWriter, Samples, compute_stream, iterate_motion
from hodyn_ros.io.columns import (
    Layout,
    Metadata,
    columns_of,
    layout_of,
    metadata_of,
    parse_metadata,
    refuse_not_increasing,
    with_wrench_choices,
)
from hodyn_ros.io.parquet_tables import ParquetTable

Array = NDArray[np.float64]


class Done(NamedTuple):
    """What has come of a task."""

    samples: int
    motions: int
    """Those in the file."""
    failures: list[tuple[str | None, Exception]]
    """Motions that are not, by their ids."""
    remarks: tuple[str, ...]


def compute_task(job: Job, task: Task, path: Path) -> Done:
    """Compute what a task asks for.

    Parameters
    ----------
    job : Job
    task : Task
    path : pathlib.Path
        Of the file to write. There is none if no motion could be computed.

    Returns
    -------
    Done

    Raises
    ------
    HodynError
        If the file cannot be read or its only motion cannot be computed.
    """
    if task.bounds:
        return _Part(job, task, path).compute()
    options = job.options
    source = iterate_motion(
        task.path,
        chunk=job.chunk,
        topic=options.topic,
        joint_names=options.joint_names,
        expressed_in=options.expressed_in,
        acting=options.acting,
    )
    samples = 0
    remarks: dict[str, None] = {}
    with ResultsWriter(path) as writer:
        for results in _results(job, source):
            writer.write(results)
            samples += len(results)
            remarks.update(dict.fromkeys(results.remarks))
    return Done(samples, 1, [], tuple(remarks))


def _results(job: Job, samples: Iterable[Samples]) -> Iterator[Results]:
    return compute_stream(
        job.model,
        samples,
        actuators=job.actuators,
        orders=job.options.orders,
        derivatives=job.options.derivatives,
        interpolation=job.options.interpolation,
        rate=job.options.rate,
        estimator=dict(job.options.estimator),
    )


class _Broken(Exception):
    """A motion of which some rows have been written cannot be computed to its end."""


class _Part:
    """Motions of a file with many.

    Motions that have all derivatives are computed together, since each sample is on its own and
    the cost of Python is in the number of calls; others one by one.
    """

    def __init__(self, job: Job, task: Task, path: Path) -> None:
        self._job, self._task, self._path = job, task, path
        column = job.options.motion_column
        assert column is not None
        self._column = column
        source = Path(task.path)
        table = ParquetTable(source)
        layout = layout_of(table.titles, str(source))
        metadata = parse_metadata(table.lines, str(source))
        self._layout: Layout = layout
        self._metadata: Metadata = with_wrench_choices(
            metadata, layout, job.options.expressed_in, job.options.acting
        )
        # Dampers remember: their joints go through each motion from its beginning.
        remembers = job.actuators is not None and bool(job.actuators.single.dampers)
        self._may_go_together = not remembers
        self._failures: dict[int, tuple[str, Exception]] = {}
        self._remarks: dict[str, None] = {}

    def compute(self) -> Done:
        """Write the results of all motions but those that fail."""
        while True:
            try:
                samples, motions = self._attempt()
                break
            except _Broken:
                self._path.unlink(missing_ok=True)
        failures = [self._failures[number] for number in sorted(self._failures)]
        return Done(samples, motions, list(failures), tuple(self._remarks))

    def _attempt(self) -> tuple[int, int]:
        """Numbers of samples and motions; without the motions that have failed before."""
        samples = motions = 0
        writer = PartWriter(self._path, self._column, self._job.chunk)
        path = Path(self._task.path)
        bounds = self._task.bounds
        with open_parquet(path, self._column) as file:
            rows = Rows(file, path, self._column, self._layout.titles, bounds[0], bounds[-1])
            try:
                for first, last in self._groups():
                    length = bounds[last] - bounds[first]
                    if length > self._job.chunk:
                        written = [self._long(writer, rows, first)]
                    else:
                        ids, values = rows.take(length)
                        written = self._short(writer, ids, values, first, last)
                    samples += sum(written)
                    motions += sum(count > 0 for count in written)
            finally:
                writer.close()
        return samples, motions

    def _groups(self) -> Iterator[tuple[int, int]]:
        """First motion and the one behind the last of what is computed together."""
        bounds = self._task.bounds
        first = 0
        for last in range(1, len(bounds)):
            behind = last + 1 == len(bounds)
            if behind or bounds[last + 1] - bounds[first] > self._job.chunk:
                yield first, last
                first = last

    def _long(self, writer: PartWriter, rows: Rows, number: int) -> int:
        """Write a motion that is too long to be in memory; number of its samples."""
        start, stop = self._task.bounds[number : number + 2]
        chunk = self._job.chunk
        lengths = [min(chunk, stop - row) for row in range(start, stop, chunk)]
        if number in self._failures:
            for length in lengths:
                rows.take(length)
            return 0
        identity: Any = None
        written = 0

        def parts() -> Iterator[Samples]:
            nonlocal identity
            row, before = 0, None
            for length in lengths:
                ids, values = rows.take(length)
                identity = ids[0]
                samples = self._samples(values, identity, row)
                refuse_not_increasing(samples, before)
                row, before = row + length, float(samples.times[-1])
                yield samples

        try:
            for results in _results(self._job, parts()):
                self._write(writer, np.full(len(results), identity), results)
                written += len(results)
        except HodynError as error:
            self._failures[number] = str(identity), error
            # What is written cannot be taken back, and the rest of its rows may not be read yet.
            raise _Broken from error
        return written

    def _short(
        self, writer: PartWriter, ids: Any, values: Array, first: int, last: int
    ) -> list[int]:
        """Write some whole motions; numbers of their samples, 0: it failed."""
        bounds = self._task.bounds[first : last + 1]
        starts = [bound - bounds[0] for bound in bounds]
        counts = [stop - start for start, stop in zip(starts, starts[1:])]
        known = any(number in self._failures for number in range(first, last))
        if self._may_go_together and last - first > 1 and not known:
            increases = values[1:, 0] > values[:-1, 0]
            increases[np.array(starts[1:-1]) - 1] = True
            if increases.all() and np.isfinite(values).all():
                try:
                    samples = self._layout.samples(values, self._metadata)
                    if self._job.options.how().choose(samples) == 'given':
                        (results,) = _results(self._job, [self._selected(samples)])
                        self._write(writer, ids, results)
                        return counts
                except (HodynError, ValueError):
                    pass  # One by one shows whose fault it is.
        written = []
        for number, start, count in zip(range(first, last), starts, counts):
            identity = ids[start]
            try:
                if number in self._failures:
                    raise self._failures[number][1]
                samples = self._samples(values[start : start + count], identity, 0)
                refuse_not_increasing(samples, None)
                found = list(_results(self._job, [samples]))
                for results in found:
                    self._write(writer, np.full(len(results), identity), results)
                written.append(sum(map(len, found)))
            except HodynError as error:
                self._failures[number] = str(identity), error
                written.append(0)
        return written

    def _samples(self, values: Array, identity: Any, first: int) -> Samples:
        layout = replace(self._layout, name=f'{self._task.path}, motion {identity!s}')
        return self._selected(layout.samples(values, self._metadata, first))

    def _selected(self, samples: Samples) -> Samples:
        names = self._job.options.joint_names
        return samples if names is None else samples.in_order(names)[0]

    def _write(self, writer: PartWriter, ids: Any, results: Results) -> None:
        if len(ids) != len(results):
            raise BatchError(
                f'{results.name}: {len(results)} results for {len(ids)} rows; read such motions '
                'from files of their own.'
            )
        titles, values = columns_of(results)
        writer.write(ids, titles, values, metadata_of(results).lines())
        self._remarks.update(dict.fromkeys(results.remarks))

