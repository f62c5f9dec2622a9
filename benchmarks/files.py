"""Throughput and memory of computing efforts from large files, part by part.

    python -m benchmarks.files [--size full] [-o doc/benchmarks/files.inc]
    python -m benchmarks.files --peers [-o doc/benchmarks/files_peers.inc]

A motion of the Panda with all its derivatives is written to files of some hundred megabytes. Then
every file is read, computed and written to another one by a process of its own, which says how
much memory it had at most. Recorded joint states are estimated on the way.

The peers read the same file and write the same columns or messages, without computing them:
pyarrow, one thread and the same settings, and rosbags, message by message as bytes. They and
hodyn_ros take turns in one process; the ratios are those of the medians of processor time.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import ROOT
from benchmarks.report import grid
from hodyn_ros import RobotModel
from hodyn_ros.files import Results, ResultsWriter, compute_stream, iterate_motion
from hodyn_ros.files.messages import encode, typestore
from hodyn_ros.resources import share_file

PART = 10_000  # samples
PERIOD = 0.001  # s
START = 1_700_000_000_000_000_000
JOINT_STATE = 'sensor_msgs/msg/JointState'


class Case(NamedTuple):
    """A file to compute from, and what is written."""

    source: str
    """Suffix of the file, or 'states' for recorded joint states in MCAP."""
    target: str
    """Suffix; empty to read only."""
    title: str


CASES = {
    'parquet': Case('.parquet', '.parquet', 'Parquet to Parquet'),
    'mcap': Case('.mcap', '.mcap', 'joint_motion in MCAP to MCAP'),
    'sqlite3': Case('.db3', '.mcap', 'joint_motion in SQLite to MCAP'),
    'npz': Case('.npz', '.npz', 'NPZ to NPZ'),
    'csv': Case('.csv', '.csv', 'CSV to CSV'),
    'mcap_to_parquet': Case('.mcap', '.parquet', 'joint_motion in MCAP to Parquet'),
    'read_states': Case('states', '', 'joint_states in MCAP, read only'),
    'states': Case('states', '.parquet', 'joint_states in MCAP, estimated, to Parquet'),
}

# Megabytes of the files. Estimating costs about 0.1 ms for each message of 0.4 kB.
SIZES = {
    'tiny': dict.fromkeys(CASES, 2.0),
    'quick': {**dict.fromkeys(CASES, 100.0), 'states': 10.0},
    'full': dict.fromkeys(CASES, 1000.0),
}


def panda() -> RobotModel:
    """Return the arm without its hand."""
    return RobotModel.from_urdf(share_file('urdf/panda.urdf'), tip_link='panda_link8')


def swing(times: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Sum of two sines in every joint with four derivatives, shape (N, 5, n)."""
    result = np.zeros((len(times), 5, n))
    for share, factor in ((0.3, 0.7), (0.05, 2.3)):
        w = factor * (1.0 + 0.13 * np.arange(n))
        for k in range(5):
            result[:, k] += share * w**k * np.sin(np.outer(times, w) + k * np.pi / 2)
    return result


def parts(count: int, names: tuple[str, ...]) -> Iterator[Results]:
    """Yield a motion without efforts, part by part."""
    for first in range(0, count, PART):
        times = PERIOD * np.arange(first, min(first + PART, count))
        motion = swing(times, len(names))
        yield Results(
            names,
            times,
            motion,
            np.empty((len(times), 0, len(names))),
            start=START,
            source='given',
        )


def write_source(path: Path, megabytes: float, kind: str) -> None:
    """Write a file of about the given size."""
    names = panda().joint_names
    trial = path.with_name('trial_' + path.name)
    _write(trial, 2 * PART, names, kind)
    count = max(2 * PART, int(2 * PART * 1e6 * megabytes / trial.stat().st_size))
    trial.unlink()
    _write(path, count, names, kind)


def _write(path: Path, count: int, names: tuple[str, ...], kind: str) -> None:
    if kind == 'states':
        _write_states(path, count, names)
        return
    with ResultsWriter(path) as writer:
        for part in parts(count, names):
            writer.write(part)


def _write_states(path: Path, count: int, names: tuple[str, ...]) -> None:
    """Write joint states with the noise of an encoder."""
    from rosbags.rosbag2 import StoragePlugin, Writer

    random = np.random.default_rng(0)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        bag = Path(folder) / 'bag'
        with Writer(bag, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
            connection = writer.add_connection(
                '/joint_states', JOINT_STATE, typestore=typestore()
            )
            for part in parts(count, names):
                stamps = START + np.rint(1e9 * part.times).astype(np.int64)
                position = part.motion[:, 0] + 1e-5 * random.normal(
                    size=part.motion[:, 0].shape
                )
                fields: dict[str, Any] = {
                    'name': names,
                    'position': position,
                    'velocity': part.motion[:, 1],
                    'effort': np.zeros_like(position),
                }
                batch = encode(JOINT_STATE, stamps, 'panda_link0', fields)
                for stamp, data in zip(stamps.tolist(), batch):
                    writer.write(connection, stamp, data.tobytes())
        (bag / 'bag.mcap').replace(path)


def convert(source: Path, target: Path | None) -> dict[str, float]:
    """Read, compute and write a file; what it took."""
    model = panda()
    model.warm_up()
    # Once with a short motion, so that compilers and libraries are loaded before.
    first = next(iterate_motion(source, chunk=1000))
    next(compute_stream(model, [first]))
    before = peak_memory()
    begin, begin_cpu = time.perf_counter(), time.process_time()
    count = 0
    if target is None:
        for part in iterate_motion(source):
            count += len(part)
    else:
        with ResultsWriter(target) as writer:
            for results in compute_stream(model, iterate_motion(source)):
                count += len(results)
                writer.write(results)
    return {
        'seconds': time.perf_counter() - begin,
        'cpu': time.process_time() - begin_cpu,
        'samples': count,
        'before': before,
        'peak': peak_memory(),
        'size': source.stat().st_size / 1e6,
        'written': 0.0 if target is None else target.stat().st_size / 1e6,
    }


def _csv_peer(source: Path, target: Path) -> Callable[[Path], object]:
    import pyarrow.csv

    def comments(path: Path) -> Any:
        with path.open() as file:
            count = sum(line.startswith('#') for line in file)
        return pyarrow.csv.ReadOptions(use_threads=False, skip_rows=count)

    result, options = pyarrow.csv.read_csv(target, comments(target)), comments(source)

    def copy(path: Path) -> None:
        pyarrow.csv.read_csv(source, options)
        pyarrow.csv.write_csv(result, path)

    return copy


def _parquet_peer(source: Path, target: Path) -> Callable[[Path], object]:
    import pyarrow.parquet

    result = pyarrow.parquet.read_table(target)
    group = pyarrow.parquet.read_metadata(target).row_group(0)
    column = group.column(0)

    def copy(path: Path) -> None:
        pyarrow.parquet.read_table(source, use_threads=False)
        pyarrow.parquet.write_table(
            result,
            path,
            row_group_size=group.num_rows,
            compression=column.compression,
            use_dictionary=False,
            use_byte_stream_split='BYTE_STREAM_SPLIT' in column.encodings,
        )

    return copy


def _mcap_peer(source: Path, target: Path) -> Callable[[Path], object]:
    from rosbags.rosbag2 import Reader, StoragePlugin, Writer

    with Reader(target) as reader:
        connections = list(reader.connections)
        messages = [(c.id, stamp, bytes(data)) for c, stamp, data in reader.messages()]

    def copy(path: Path) -> None:
        with Reader(source) as reader:
            for _ in reader.messages():
                pass
        with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
            added = {
                c.id: writer.add_connection(c.topic, c.msgtype, typestore=typestore())
                for c in connections
            }
            for number, stamp, data in messages:
                writer.write(added[number], stamp, data)

    return copy


PEERS = {
    '.csv': ('pyarrow', _csv_peer),
    '.mcap': ('rosbags', _mcap_peer),
    '.parquet': ('pyarrow', _parquet_peer),
}


def measure_peers(
    suffix: str, samples: int, rounds: int, folder: Path
) -> tuple[float, float]:
    """Median processor time of hodyn_ros and of its peer [s a sample]."""
    model = panda()
    model.warm_up()
    source, target, copied = (
        folder / f'{name}{suffix}' for name in ('source', 'target', 'copy')
    )
    _write(source, samples, model.joint_names, suffix)

    def ours(path: Path) -> None:
        with ResultsWriter(path) as writer:
            for results in compute_stream(model, iterate_motion(source)):
                writer.write(results)

    ours(target)
    peer = PEERS[suffix][1](source, target)
    times: tuple[list[float], list[float]] = [], []
    for _ in range(rounds):
        for found, run in zip(times, (ours, peer)):
            begin = time.process_time()
            run(copied)
            found.append((time.process_time() - begin) / samples)
            if copied.is_dir():
                shutil.rmtree(copied)
            else:
                copied.unlink()
    return median(times[0]), median(times[1])


def table_of_peers(samples: int, rounds: int, folder: Path | None) -> str:
    """Table of hodyn_ros and its peers."""
    rows = [['files', 'peer', 'hodyn_ros', 'peer alone', 'ratio']]
    for suffix, (name, _) in PEERS.items():
        with tempfile.TemporaryDirectory(dir=folder) as place:
            ours, peer = measure_peers(suffix, samples, rounds, Path(place))
        titles = [case.title for case in CASES.values() if case[:2] == (suffix, suffix)]
        row = [titles[0], name, f'{1e6 * ours:.2f} µs', f'{1e6 * peer:.2f} µs']
        rows.append([*row, f'{ours / peer:.2f}'])
        print(*rows[-1], sep='  ', flush=True)
    return grid(rows)


def peak_memory() -> float:
    """Return the largest resident size of this process so far [MB]."""
    try:
        # Not inherited from the process that has started this one, as that of getrusage is.
        for line in Path('/proc/self/status').read_text().splitlines():
            if line.startswith('VmHWM:'):
                return int(line.split()[1]) * 1024 / 1e6
    except OSError:
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def measure(name: str, megabytes: float, folder: Path) -> dict[str, float]:
    """Measure a case in processes of their own."""
    case = CASES[name]
    suffix = '.mcap' if case.source == 'states' else case.source
    source, target = folder / f'source{suffix}', folder / f'target{case.target}'
    write_source(source, megabytes, case.source)
    command = [sys.executable, '-m', 'benchmarks.files', '--convert', str(source)]
    if case.target:
        command.append(str(target))
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    source.unlink()
    target.unlink(missing_ok=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table and write it into a file."""
    parser = argparse.ArgumentParser(prog='python -m benchmarks.files')
    parser.add_argument('cases', nargs='*', help=f'{", ".join(CASES)}; all by default')
    parser.add_argument('--size', choices=SIZES, default='quick')
    parser.add_argument('--convert', nargs='+', type=Path, help=argparse.SUPPRESS)
    parser.add_argument('--folder', type=Path, help='where to put the files meanwhile')
    parser.add_argument('-o', '--output', type=Path, help='file for the table')
    parser.add_argument('--peers', action='store_true', help='beside pyarrow and rosbags')
    options = parser.parse_args(arguments)
    if options.peers:
        tiny = options.size == 'tiny'
        text = table_of_peers(2000 if tiny else 40_000, 3 if tiny else 11, options.folder)
        _finish(text, options.output)
        return 0
    if options.convert:
        target = options.convert[1] if len(options.convert) > 1 else None
        print(json.dumps(convert(options.convert[0], target)))
        return 0
    rows = []
    for name in options.cases or CASES:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            found = measure(name, SIZES[options.size][name], Path(folder))
        rows.append(
            [
                CASES[name].title,
                f'{found["size"]:.0f}',
                f'{1e-6 * found["samples"]:.3g}',
                f'{found["seconds"]:.1f}',
                f'{found["cpu"]:.1f}',
                f'{found["size"] / found["seconds"]:.3g}',
                f'{1e-3 * found["samples"] / found["seconds"]:.3g}',
                f'{found["before"]:.0f}',
                f'{found["peak"]:.0f}',
            ]
        )
        print(*rows[-1], sep='  ', flush=True)
    header = ['files', 'MB', '10^6 samples', 's', 'CPU s', 'MB/s', '10^3 samples/s']
    header += ['MB before', 'MB at most']
    text = grid([header, *rows])
    _finish(text, options.output)
    return 0


def _finish(text: str, output: Path | None) -> None:
    print('\n' + text)
    if output:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text, encoding='utf-8')


if __name__ == '__main__':
    sys.exit(main())
