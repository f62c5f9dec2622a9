"""`hodyn check --recorded`: recordings from files and bags, and what is printed and drawn."""

import json
from pathlib import Path

import numpy as np
import pytest
from support.scripts import load

from hodyn_ros.cli import run

ROOT = Path(__file__).resolve().parents[2]
stopped_robot = load(ROOT / 'examples' / 'stopped_robot.py')
FAULT = stopped_robot.FAULT * stopped_robot.PERIOD  # s

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')


@pytest.fixture(scope='module')
def folders(tmp_path_factory):
    made = {}
    for fault in stopped_robot.FAULTS:
        made[fault] = tmp_path_factory.mktemp(fault)
        assert stopped_robot.main(['--fault', fault, '--folder', str(made[fault])]) == 0
    return made


@pytest.mark.parametrize(
    ('fault', 'kind', 'quantity', 'factor', 'time'),
    [
        ('torque_step', 'torque step', 'effort_dot', stopped_robot.STEP, FAULT),
        ('jump_at_start', 'jump at the start', 'velocity', 0.05 / 0.001 / 2.175, 0.0),
    ],
)
def test_example_tells_its_fault(folders, fault, kind, quantity, factor, time, capsys):
    folder = folders[fault]
    picture = folder / 'stop.png'
    arguments = ['check', 'panda', str(folder / 'sent.csv')]
    arguments += ['--measured', str(folder / 'measured.csv'), '--json', '-o', str(picture)]
    assert run(arguments) == 1
    found = json.loads(capsys.readouterr().out)
    (cause,) = found['causes']
    assert cause['kind'] == kind and cause['is_certain']
    assert cause['time'] == pytest.approx(time, abs=1e-9)
    excess = cause['excesses'][0]
    assert (excess['quantity'], excess['source']) == (quantity, 'commanded')
    assert excess['factor'] == pytest.approx(factor, rel=0.02)
    assert ('payload of 1.5 kg' in found['torques']) == (fault == 'torque_step')
    assert picture.read_bytes()[:4] == b'\x89PNG'


def test_example_without_a_fault_exceeds_nothing(folders, capsys):
    sent = str(folders['none'] / 'sent.csv')
    measured = str(folders['jump_at_start'] / 'measured.csv')
    assert run(['check', 'panda', sent, '--recorded', 'commanded']) == 0
    assert 'No limit that is known is exceeded' in capsys.readouterr().out
    assert run(['check', 'panda', measured, '--recorded', 'measured', '--json']) == 0
    found = json.loads(capsys.readouterr().out)
    assert found['causes'] == [] and found['verdict'] == 'kept'
    coarse = folders['none'] / 'coarse.csv'
    times, *_ = rows = np.loadtxt(sent, delimiter=',', skiprows=1)[:, :8].T
    titles = Path(sent).read_text().split('\n')[0].split(',')[:8]
    rounded = np.column_stack([times, *rows[1:].round(5)])
    np.savetxt(coarse, rounded, '%.5g', ',', header=','.join(titles), comments='')
    assert run(['check', 'panda', str(coarse), '--recorded', 'commanded']) == 0
    printed = capsys.readouterr().out
    assert 'No limit that is known is certainly exceeded' in printed
    assert 'Undecided, since rounding or noise hides it: commanded' in printed


def test_what_is_no_recording_is_refused(folders, tmp_path, capsys):
    sent = str(folders['none'] / 'sent.csv')
    waypoints = tmp_path / 'waypoints.yaml'
    names = [f'panda_joint{number}' for number in range(1, 8)]
    points = [{'positions': [0.1] * 7, 'time_from_start': {'sec': s}} for s in range(3)]
    waypoints.write_text(json.dumps({'joint_names': names, 'points': points}))
    for arguments, said in (
        ([str(waypoints), '--recorded', 'commanded'], 'between its waypoints'),
        ([sent, '--recorded', 'measured', '--measured', sent], 'leave one of them out'),
        (
            [sent, '--recorded', 'commanded', '-o', 'stop.txt'],
            'ends with .png or .pdf or .svg',
        ),
        (
            [sent, '--recorded', 'commanded', '--rate', '100'],
            '--rate has no effect on a rec',
        ),
        ([sent, '-o', 'stop.png'], '--output is for recordings'),
    ):
        assert run(['check', 'panda', *arguments]) == 2
        assert said in capsys.readouterr().err
