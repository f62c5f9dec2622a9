"""A run that is killed at any moment: no file is half there, nothing is lost, nothing is twice."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.batch_tools import (
    assert_complete,
    make_folder,
    outputs_in,
    recorded_in,
    two_link,
)

from hodyn_ros.datasets import DatasetRun, process_files
from hodyn_ros.files import read_results

ROOT = Path(__file__).resolve().parents[2]

SCRIPT = """
import sys
from pathlib import Path

from support.batch_tools import two_link
from hodyn_ros.datasets import DatasetRun, process_files


def show(progress):
    print(progress.done, flush=True)


if __name__ == '__main__':
    folder, workers = Path(sys.argv[1]), int(sys.argv[2])
    run = DatasetRun(
        two_link(), folder / 'in', folder / 'out', workers=workers, suffix='.npz'
    )
    process_files(run, show)
"""

EVENTS = {'open', 'os.mkdir', 'os.remove', 'os.rename', 'os.rmdir', 'os.truncate'}


@pytest.fixture(scope='module')
def model():
    return two_link()


def assert_whole(folder):
    """All files with final names are complete and all that is recorded is there."""
    names = outputs_in(folder)
    for name in names:
        assert len(read_results(folder / name)) == 50
    assert set(recorded_in(folder)) <= set(names)


def dies_at(event_number, function):
    """Run a function in a copy of this process that dies at once at an event; whether it did."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        assert os.WIFEXITED(status)
        assert os.WEXITSTATUS(status) in (0, 9)
        return os.WEXITSTATUS(status) == 9
    try:
        count = 0

        def die(event, arguments):
            nonlocal count
            if event in EVENTS:
                count += 1
                if count == event_number:
                    os._exit(9)

        sys.addaudithook(die)
        function()
        os._exit(0)
    finally:
        os._exit(1)


@pytest.mark.skipif(not hasattr(os, 'fork'), reason='needs fork')
def test_run_may_die_at_any_operation_on_files(model, tmp_path, processed):
    motions = make_folder(tmp_path / 'in', model, 2)

    def run():
        processed(model)

    run()  # all that is imported and compiled in it is there from now on
    shutil.rmtree(tmp_path / 'out')
    deaths = 0
    while dies_at(deaths + 1, run):
        deaths += 1
        assert_whole(tmp_path / 'out') if (tmp_path / 'out').exists() else None
        if deaths % 7 == 0:  # otherwise the next one goes on from what this one has left
            for path in tmp_path.glob('out'):
                path.rename(tmp_path / f'left{deaths}')
    assert deaths > 20
    assert_complete(tmp_path / 'out', model, motions)
    for left in tmp_path.glob('left*'):
        process_files(DatasetRun(model, tmp_path / 'in', left, workers=0, suffix='.npz'))
        assert_complete(left, model, motions)


def start(folder, workers):
    environment = {
        **os.environ,
        'PYTHONPATH': os.pathsep.join([str(ROOT), str(ROOT / 'test')]),
    }
    script = folder / 'script.py'
    script.write_text(SCRIPT)
    return subprocess.Popen(
        [sys.executable, script, folder, str(workers)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def members_of(session):
    """Processes of a session that are not dead yet."""
    found = []
    for path in Path('/proc').glob('[0-9]*/stat'):
        try:
            fields = path.read_text().rpartition(')')[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != 'Z':
            found.append(int(path.parent.name))
    return found


@pytest.mark.skipif(not Path('/proc/self/stat').exists(), reason='needs /proc')
def test_killed_run_takes_its_workers_along_and_the_next_goes_on(
    model, tmp_path, processed
):
    motions = make_folder(tmp_path / 'in', model, 40)
    with start(tmp_path, 2) as process:
        try:
            for line in process.stdout:
                if int(line) >= 10:
                    break
            assert len(members_of(process.pid)) >= 3
            process.send_signal(signal.SIGKILL)
            process.wait()
            deadline = time.monotonic() + 60.0
            while members_of(process.pid) and time.monotonic() < deadline:
                time.sleep(0.02)
            assert members_of(process.pid) == []
        finally:
            process.kill()
    assert_whole(tmp_path / 'out')
    recorded = len(recorded_in(tmp_path / 'out'))
    assert recorded >= 10
    summary = processed(model)
    assert (summary.kept, summary.computed) == (recorded, 40 - recorded)
    assert_complete(tmp_path / 'out', model, motions)
