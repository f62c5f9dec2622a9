"""Throughput and memory of `process_files` on a data set that is larger than it keeps in memory.

    python -m benchmarks.batch [--size full] [-o doc/benchmarks/batch.inc]

Motions of the Franka Panda in Parquet files, position to snap of each joint: 36 numbers a sample.
Efforts with two derivatives are computed with one and two worker processes: of files with one
motion each, of a single file with as many motions in a column, and of files with noisy positions
alone, whose derivatives are estimated. One run is killed (SIGKILL)
half-way and run again; its results must be, byte for byte, those of the run that was left alone.
"""

from __future__ import annotations

import argparse
import filecmp
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import ROOT
from benchmarks.report import grid
from hodyn_ros import RobotModel
from hodyn_ros.datasets import DatasetRun, process_files
from hodyn_ros.datasets.worker import peak_memory
from hodyn_ros.resources import share_file

Array = NDArray[np.float64]

ORDERS = ('position', 'velocity', 'acceleration', 'jerk', 'snap')
RATE = 1000.0  # Hz
NOISE = 1e-5  # rad
MB = 1e6
COLUMN = 'motion'
ESTIMATED = 'measured positions, estimated'


class Size(NamedTuple):
    """Size of the data set."""

    files: int
    samples: int
    """In each file."""
    measured: int
    """Noisy positions in each file of them."""
    workers: tuple[int, ...] = (1, 2)


SIZES = {
    'tiny': Size(6, 300, 1000, (1,)),
    'quick': Size(12, 20_000, 40_000),
    'full': Size(36, 100_000, 40_000),
}


class Row(NamedTuple):
    """What a run has come to."""

    what: str
    workers: int
    seconds: float
    """Of the function call, with the start of its processes."""
    processor: float
    """Time of all processes on a processor [s]."""
    samples: int
    read: int
    """[bytes]"""
    worker_memory: int
    """Largest of the workers [bytes]."""
    own_memory: int
    """Of the process that calls the function [bytes]."""
    tasks: int
    kept: int


def motion(n: int, samples: int, seed: int) -> tuple[Array, Array]:
    """Make times (N,) and a motion (N, 5, n) of sinusoids."""
    rng = np.random.default_rng(seed)
    t = np.arange(samples) / RATE
    w, phase = rng.uniform(0.3, 3.0, n), rng.uniform(0.0, 2.0 * np.pi, n)
    k = np.arange(len(ORDERS))[:, None]
    return t, 0.8 * w**k * np.sin(w * t[:, None, None] + phase + 0.5 * np.pi * k)


def write_data(folder: Path, model: RobotModel, size: Size) -> tuple[Path, Path, Path]:
    """Write the same motions as a folder of files and as one file, and noisy ones; returns all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    files, single = folder / 'files', folder / 'single' / 'motions.parquet'
    noisy = folder / 'noisy'
    for place in (files, single.parent, noisy):
        place.mkdir()
    titles = [
        'time',
        *(f'{name}.{order}' for order in ORDERS for name in model.joint_names),
    ]
    plain = {'use_dictionary': False, 'compression': 'none'}
    schema = pa.schema([(COLUMN, pa.int64()), *((title, pa.float64()) for title in titles)])
    with pq.ParquetWriter(single, schema, **plain) as writer:
        for seed in range(size.files):
            times, values = motion(model.n_joints, size.samples, seed)
            rows = np.concatenate(
                [times[:, None], values.reshape(size.samples, -1)], axis=1
            )
            columns = [pa.array(np.ascontiguousarray(column)) for column in rows.T]
            table = pa.table(columns, names=titles)
            pq.write_table(table, files / f'motion{seed:03d}.parquet', **plain)
            ids = pa.array(np.full(size.samples, seed))
            writer.write_table(pa.table([ids, *columns], schema=schema))
            times, values = motion(model.n_joints, size.measured, seed)
            positions = values[:, 0].T.copy()
            positions += NOISE * np.random.default_rng(seed).normal(size=positions.shape)
            table = pa.table([times, *positions], names=titles[: 1 + model.n_joints])
            pq.write_table(table, noisy / f'motion{seed:03d}.parquet', **plain)
    return files, single, noisy


def run_once(arguments: dict[str, Any]) -> None:
    """Process a data set in this process and print the progress and what it has come to."""
    before = sum(os.times()[:4])
    summary = process_files(
        DatasetRun(
            share_file('urdf/panda.urdf'),
            arguments['inputs'],
            arguments['output'],
            workers=arguments['workers'],
            motion_column=arguments['column'],
            derivatives=arguments['derivatives'],
        ),
        lambda progress: print(progress.done, flush=True),
    )
    assert not summary.failed, summary
    found = {
        'seconds': summary.seconds,
        'processor': sum(os.times()[:4]) - before,
        'samples': summary.samples,
        'read': summary.bytes_read,
        'worker_memory': max(summary.peak_memory.values()),
        'own_memory': peak_memory(),
        'tasks': summary.total,
        'kept': summary.kept,
    }
    print(json.dumps(found), flush=True)


def run(
    what: str,
    inputs: Path,
    output: Path,
    workers: int,
    column: str | None = None,
    kill_at: int | None = None,
    derivatives: str = 'auto',
) -> Row | None:
    """Process a data set in a process of its own, which is killed after some tasks or not."""
    arguments = {
        'inputs': str(inputs),
        'output': str(output),
        'workers': workers,
        'column': column,
        'derivatives': derivatives,
    }
    process = subprocess.Popen(
        [sys.executable, '-m', 'benchmarks.batch', '--run', json.dumps(arguments)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, 'PYTHONPATH': str(ROOT)},
    )
    assert process.stdout is not None
    last = ''
    with process:
        for last in process.stdout:
            if kill_at is not None and int(last) >= kill_at:
                process.send_signal(signal.SIGKILL)
                return None
    if process.returncode:
        raise RuntimeError(f'The run ended with exit code {process.returncode}.')
    return Row(what, workers, **json.loads(last))


def same_files(first: Path, second: Path) -> bool:
    """Whether two output folders hold the same results and no others."""
    names = [
        {
            path.relative_to(folder)
            for path in folder.rglob('*')
            if path.is_file() and '_hodyn' not in path.parts
        }
        for folder in (first, second)
    ]
    return names[0] == names[1] and all(
        filecmp.cmp(first / name, second / name, shallow=False) for name in names[0]
    )


def measure(size: Size, folder: Path, say: Callable[[str], object] = print) -> list[Row]:
    """Measure all runs in a folder, which has room for six times the data set."""
    model = RobotModel.from_urdf(share_file('urdf/panda.urdf'))
    say('writing the data set')
    files, single, noisy = write_data(folder, model, size)
    rows = []
    whole = folder / 'whole'
    for workers in size.workers:
        say(f'{workers} workers, files')
        shutil.rmtree(whole, ignore_errors=True)
        rows.append(run('one motion a file', files, whole, workers))
    for workers in size.workers:
        say(f'{workers} workers, one file')
        parts = folder / 'parts'
        rows.append(run('all motions in one file', single, parts, workers, COLUMN))
        shutil.rmtree(parts)
    for workers in size.workers:
        say(f'{workers} workers, estimates')
        row = run(ESTIMATED, noisy, folder / 'out', workers, derivatives='estimate')
        rows.append(row)
        shutil.rmtree(folder / 'out')
    say('killed and run again')
    broken = folder / 'broken'
    run('', files, broken, size.workers[-1], kill_at=size.files // 2)
    rows.append(run('run again after a kill', files, broken, size.workers[-1]))
    found = [row for row in rows if row is not None]
    if not same_files(whole, broken) or not 0 < found[-1].kept < found[-1].tasks:
        raise RuntimeError(
            'The run that was killed has not come to the results of the other.'
        )
    return found


def text(rows: Sequence[Row]) -> str:
    """Table of the runs."""
    alone = {row.what: row.seconds for row in rows if row.workers == 1}
    lines = [
        [
            'data set',
            'workers',
            'tasks',
            'kept',
            'seconds',
            'faster',
            'samples/s',
            'MB/s read',
            'processor time',
            'memory of a worker',
            'of the caller',
        ]
    ]
    for row in rows:
        lines.append(
            [
                row.what,
                str(row.workers),
                str(row.tasks),
                str(row.kept),
                f'{row.seconds:.1f}',
                f'{alone[row.what] / row.seconds:.2f}' if row.what in alone else '',
                f'{row.samples / row.seconds:,.0f}',
                f'{row.read / MB / row.seconds:.0f}',
                f'{row.processor:.1f} s',
                f'{row.worker_memory / MB:.0f} MB',
                f'{row.own_memory / MB:.0f} MB',
            ]
        )
    return grid(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table and write it."""
    parser = argparse.ArgumentParser(
        prog='python -m benchmarks.batch',
        description='Throughput and memory of process_files.',
    )
    parser.add_argument('--size', choices=SIZES, default='quick')
    parser.add_argument(
        '-o',
        '--output',
        type=Path,
        default=ROOT / 'build' / 'bench' / 'batch.inc',
        help='file to write to',
    )
    parser.add_argument(
        '--folder', type=Path, help='where the data set is written to, and removed again'
    )
    parser.add_argument('--run', help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.run:
        run_once(json.loads(options.run))
        return 0
    size = SIZES[options.size]
    start = time.monotonic()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        rows = measure(size, Path(folder), lambda line: print(line, flush=True))
        table = text(rows)
    total = size.files * size.samples
    table = f'{total:,} samples, {rows[0].read / MB:,.0f} MB.\n\n{table}'
    print('\n' + table)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(table, encoding='utf-8')
    print(f'{time.monotonic() - start:.0f} s. Written: {options.output}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
