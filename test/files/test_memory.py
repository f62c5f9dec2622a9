"""Files of any size take the same memory, as a process of its own shows."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.io_cases import START, swing

from hodyn_ros.files import Results, ResultsWriter

ROOT = Path(__file__).resolve().parents[2]

CONVERT = """
import json, sys
from pathlib import Path
from hodyn_ros.files import ResultsWriter, compute_stream, iterate_motion
from support.io_cases import model

def peak():
    for line in Path('/proc/self/status').read_text().splitlines():
        if line.startswith('VmHWM:'):
            return 1024 * int(line.split()[1])

source, target = sys.argv[1:]
robot = model()
robot.warm_up()  # or compiling in the background counts
count = 0
with ResultsWriter(target) as writer:
    stream = compute_stream(robot, iterate_motion(source, chunk=2000))
    for number, results in enumerate(stream):
        writer.write(results)
        count += len(results)
        if number == 10:
            early = peak()
print(json.dumps({'early': early, 'late': peak(), 'count': count}))
"""


@pytest.mark.skipif(
    not Path('/proc/self/status').exists(), reason='the peak is read from /proc'
)
@pytest.mark.parametrize(
    'suffix, count, needs',
    [
        pytest.param('.csv', 80_000, 'numpy', marks=pytest.mark.slow),
        pytest.param('.npz', 400_000, 'numpy', marks=pytest.mark.slow),
        ('.parquet', 400_000, 'pyarrow'),
        ('.mcap', 80_000, 'rosbags'),
        pytest.param('.db3', 80_000, 'rosbags', marks=pytest.mark.slow),
    ],
)
def test_memory_does_not_grow_with_the_file(tmp_path, suffix, count, needs):
    pytest.importorskip(needs)
    source, target = tmp_path / f'source{suffix}', tmp_path / f'target{suffix}'
    names = ('shoulder', 'elbow')
    with ResultsWriter(source) as writer:
        for first in range(0, count, 20_000):
            times = 0.001 * np.arange(first, first + 20_000)
            empty = np.empty((len(times), 0, 2))
            writer.write(Results(names, times, swing(times), empty, start=START))
    environment = {'PYTHONPATH': f'{ROOT}:{ROOT / "test"}', 'PATH': '/usr/bin:/bin'}
    done = subprocess.run(
        [sys.executable, '-c', CONVERT, str(source), str(target)],
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
    )
    found = json.loads(done.stdout)
    assert found['count'] == count
    size = source.stat().st_size + target.stat().st_size
    assert size > 30e6
    assert found['late'] - found['early'] < 0.2 * size
