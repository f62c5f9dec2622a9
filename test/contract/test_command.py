"""The command `hodyn` as people run it: files in and out, exit codes, JSON, and what it says."""

import ctypes
import os
import re
import shutil
import signal
import subprocess
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.spatial import cKDTree
from support.command_tools import (
    EFFORTS,
    NAMES,
    ORDERS,
    ROOT,
    URDF,
    as_json,
    call,
    columns_of,
    efforts_of,
    read_table,
    start,
    swinging,
    write_table,
)

LIMITS = {'velocity': (6.0, 6.0), 'effort': (80.0, 30.0)}  # of urdf/two_link.urdf
TIMES = np.linspace(0.0, 1.0, 81)
FAST = swinging(TIMES, 1.0, 6.0)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Every test runs where nothing is but a motion within the limits and a fast one."""
    monkeypatch.chdir(tmp_path)
    write_table('motion.csv', TIMES, swinging(TIMES))
    write_table('fast.csv', TIMES, FAST)
    return tmp_path


def listed(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob('*')}


def pinocchio_efforts(name, names, motion):
    """Efforts and their rates by Pinocchio, shape (N, 2, n)."""
    pin = pytest.importorskip('pinocchio', reason='Pinocchio (PyPI: pin) is the reference')
    model = pin.buildModelFromUrdf(str(name))
    assert tuple(model.names)[1:] == tuple(names)
    data, found = model.createData(), []
    for q, v, a, j, *_ in motion:
        by_q, by_v, M = pin.computeRNEADerivatives(model, data, q, v, a)
        M = np.triu(M) + np.triu(M, 1).T
        # With changes of the acceleration by the jerk, of the speed by the acceleration.
        found.append([data.tau.copy(), by_q @ v + by_v @ a + M @ j])
    return np.array(found)


def test_demo_check_and_compute_agree_with_pinocchio(capsys):
    assert call(capsys, 'demo', '-o', 'demo')[0] == 0
    panda = ROOT / 'urdf' / 'panda.urdf'
    names = [f'panda_joint{i}' for i in range(1, 8)]
    given = read_table('demo/fast.csv')
    motion = columns_of(given, ORDERS, names)
    expected = pinocchio_efforts(panda, names, motion)
    told = as_json(capsys, 'compute', 'panda', 'demo/fast.csv', '-o', 'efforts.csv')
    written = columns_of(read_table('efforts.csv'), EFFORTS, names)
    scale = np.abs(expected).max(axis=(0, 2), keepdims=True)
    assert np.all(np.abs(written[:, :2] - expected) < 1e-12 * scale)
    assert told['samples'] == len(motion)
    for joint, peaks in zip(told['largest'], np.abs(expected).max(axis=0).T):
        assert [joint[name] for name in EFFORTS[:2]] == pytest.approx(list(peaks), rel=1e-9)
    assert as_json(capsys, 'check', 'panda', 'demo/motion.csv')['is_kept']
    found = as_json(capsys, 'check', 'panda', 'demo/fast.csv', code=1)
    rates = {v['joint_name']: v for v in found['violations']}
    assert {v['quantity'] for v in rates.values()} == {'effort_dot'} and not found[
        'is_kept'
    ]
    for name, rate in zip(names, expected[:, 1].T):  # the limit is 1000 N m/s, all over
        worst = np.abs(rate).argmax()
        assert (name in rates) == (abs(rate[worst]) > 1000.0)
        if name in rates:
            assert rates[name]['value'] == pytest.approx(rate[worst], rel=1e-9)
            assert rates[name]['time'] == pytest.approx(given['time'][worst])
            assert abs(rates[name]['limit']) == 1000.0 and rates[name]['unit'] == 'N m/s'


def test_second_derivatives_are_those_of_power_series(capsys):
    assert call(capsys, 'compute', 'two_link', 'motion.csv', '-o', 'efforts.csv')[0] == 0
    expected = efforts_of(swinging(TIMES))
    scale = np.abs(expected).max(axis=(0, 2), keepdims=True)
    assert np.all(np.abs(columns_of(read_table('efforts.csv')) - expected) < 1e-13 * scale)


def test_a_force_on_the_tool_adds_its_torque(capsys):
    push = {f'tool.wrench.{p}.{x}': 0.0 * TIMES for p in ('torque', 'force') for x in 'xyz'}
    push['tool.wrench.force.z'] = 7.0 + TIMES
    write_table('pushing.csv', TIMES, swinging(TIMES)[:, :3], **push)
    found = [
        as_json(capsys, 'compute', 'two_link', path, '-o', f'out_{path}')
        and columns_of(read_table(f'out_{path}'), EFFORTS[:1])[:, 0, 1]
        for path in ('motion.csv', 'pushing.csv')
    ]
    # What the tool exerts along its z acts at 0.5 m from the elbow, whose axis is -y.
    np.testing.assert_allclose(found[1] - found[0], 0.5 * (7.0 + TIMES), rtol=1e-9)


def test_check_says_in_words_what_it_says_in_numbers(capsys):
    code, text, _ = call(capsys, 'check', 'two_link', 'motion.csv')
    assert code == 0 and 'are kept' in text and 'exceeded' not in text
    found = as_json(capsys, 'check', 'two_link', 'fast.csv', code=1)
    code, text, _ = call(capsys, 'check', 'two_link', 'fast.csv')
    assert code == 1 and f'{len(found["violations"])} limits are exceeded.' in text
    told = {(v['quantity'], v['joint_name']): v for v in found['violations']}
    values = {'velocity': FAST[:, 1], 'effort': efforts_of(FAST)[:, 0]}
    for quantity, limits in LIMITS.items():
        for j, name in enumerate(NAMES):
            peak = np.abs(values[quantity][:, j]).max()
            assert ((quantity, name) in told) == (peak > limits[j])
    worst = told['velocity', 'elbow']
    percent = 100.0 * (abs(worst['value']) / 6.0 - 1.0)
    (row,) = [x for x in text.splitlines() if x.split()[:2] == ['velocity', 'elbow']]
    assert f'{percent:.1f} %' in row and '[rad/s]' in row


@pytest.mark.parametrize('how', [(), ('--uniform',)], ids=['path', 'uniform'])
def test_retimed_motion_keeps_the_path_and_the_limits_at_every_instant(how, capsys):
    told = as_json(capsys, 'retime', 'two_link', 'fast.csv', '-o', 'slow.csv', *how)
    table = read_table('slow.csv')
    motion = columns_of(table, ORDERS)
    assert table['time'][-1] - table['time'][0] == pytest.approx(told['duration'], abs=1e-9)
    peaks = {'velocity': motion[:, 1], 'effort': efforts_of(motion)[:, 0]}
    shares = [np.abs(peaks[name]).max(axis=0) / LIMITS[name] for name in LIMITS]
    assert 0.99 < np.max(shares) < 1.0 + 1e-8  # as fast as they allow
    path = swinging(np.linspace(0.0, 1.0, 20001), 1.0, 6.0)[:, 0]
    assert cKDTree(path).query(motion[:, 0], p=np.inf)[0].max() < 1e-3
    assert np.abs(motion[[0, -1], 0] - path[[0, -1]]).max() < 1e-9
    # The derivatives are those of the positions: from sample to sample by Hermite's rule.
    h, (q, v, a) = np.diff(table['time'])[:, None], motion[:, :3].swapaxes(0, 1)
    step = h / 2 * (v[1:] + v[:-1]) - h**2 / 12 * np.diff(a, axis=0)
    np.testing.assert_allclose(np.diff(q, axis=0), step, atol=1e-6)
    assert as_json(capsys, 'check', 'two_link', 'slow.csv')['is_kept']


def test_info_has_the_numbers_of_the_description(capsys):
    told = as_json(capsys, 'info', 'panda_with_hand')
    robot = ElementTree.parse(ROOT / 'urdf' / 'panda_with_hand.urdf').getroot()
    for joint in told['joints']:
        element = robot.find(f"joint[@name='{joint['name']}']")
        assert joint['type'] == element.get('type')
        for key in ('lower', 'upper', 'velocity', 'effort'):
            assert joint[key] == float(element.find('limit').get(key))
    moving = {joint.find('child').get('link') for joint in robot.findall('joint')}
    masses = [
        float(link.find('inertial/mass').get('value'))
        for link in robot.findall('link')
        if link.get('name') in moving and link.find('inertial') is not None
    ]
    assert told['moving_mass'] == pytest.approx(sum(masses), rel=1e-12)
    assert told['joints'][-1]['units']['effort'] == 'N'
    shown = call(capsys, 'info', 'panda')[1]
    (row,) = [line for line in shown.splitlines() if 'panda_joint5' in line]
    # Position, velocity, acceleration, jerk, torque, its rate, mass: of Franka and the URDF.
    assert '-2.897 to 2.897 2.61 15 7500 12 1000 1.226' in ' '.join(row.split())
    assert 'panda' in as_json(capsys, 'info')['hodyn_ros']


def test_generated_code_gives_the_torques_of_power_series(folder, capsys):
    compiler = shutil.which('cc') or pytest.skip('there is no C compiler')
    assert call(capsys, 'generate', 'two_link', '-o', 'code')[0] == 0
    files = listed(folder / 'code')
    assert {'two_link_dynamics.h', 'two_link_dynamics.c', 'CMakeLists.txt'} < files
    command = [compiler, '-shared', '-fPIC', '-O1', 'code/two_link_dynamics.c', '-lm']
    subprocess.run([*command, '-o', './lib.so'], check=True)
    function = ctypes.CDLL('./lib.so').two_link_inverse_dynamics_2
    motion, found = swinging(TIMES[7:8])[0], np.zeros((3, 2))
    as_c = np.ctypeslib.as_ctypes
    function(as_c(motion.ravel()), as_c(found.ravel()))
    np.testing.assert_allclose(found, efforts_of(motion[None])[0], rtol=1e-12, atol=1e-12)
    (folder / 'code' / 'two_link_dynamics.c').write_text('mine')
    code, _, err = call(capsys, 'generate', 'two_link', '-o', 'code')
    assert code == 2 and '--force' in err
    assert (folder / 'code' / 'two_link_dynamics.c').read_text() == 'mine'


def test_a_payload_is_identified_from_torques_of_pinocchio(folder, capsys):
    pin = pytest.importorskip('pinocchio', reason='Pinocchio (PyPI: pin) is the reference')
    bare, model = (pin.buildModelFromUrdf(str(URDF)) for _ in range(2))
    model.inertias[2] += pin.Inertia(0.8, np.array([0.4, 0.0, 0.0]), 1e-3 * np.eye(3))
    times = np.arange(0.0, 10.0, 0.01)
    motion = swinging(times, 0.6, 1.7) + swinging(times, 0.3, 4.1)
    nominal, efforts = (
        np.array([pin.rnea(robot, robot.createData(), *rows[:3]) for rows in motion])
        for robot in (bare, model)
    )
    noise = np.random.default_rng(0).normal(size=(2, len(times), 2))
    efforts += 0.4 * motion[:, 1] + 0.02 * noise[0]
    columns = {f'{name}.effort': efforts[:, j] for j, name in enumerate(NAMES)}
    measured = motion[:, :1] + 1e-5 * noise[1][:, None]
    write_table('recording.csv', times, measured, **columns)
    compared = as_json(capsys, 'compare', 'two_link', 'recording.csv')
    expected = np.sqrt(np.mean((efforts - nominal) ** 2, axis=0))
    residuals = [joint['residual'] for joint in compared['joints']]
    np.testing.assert_allclose(residuals, expected, rtol=0.1)  # in the pass band
    told = as_json(capsys, 'identify', 'two_link', 'recording.csv', '-o', 'loaded.urdf')
    rows = {item['name']: item for item in told['parameters']}
    viscous = rows['elbow viscous']
    assert abs(viscous['value'] - 0.4) < 4.0 * viscous['std'] < 0.1
    found = pin.buildModelFromUrdf('loaded.urdf')
    # First moment of the outer link about its joint, as far as torques show it.
    moments = [(m.inertias[2].mass * m.inertias[2].lever)[0] for m in (model, found)]
    assert moments[1] == pytest.approx(moments[0], rel=0.01)
    assert {'report', 'config', 'run'} < set(told['files'])
    assert {os.path.basename(path) for path in told['files'].values()} <= listed(folder)


def test_motion_that_excites_keeps_the_limits_by_other_means(capsys):
    words = ('excite', 'two_link', '-o', 'motion.csv', '--duration', 6, '--rate', 50)
    told = as_json(capsys, *words)
    table = read_table('motion.csv')
    motion = columns_of(table, ORDERS)
    expected = efforts_of(motion)
    np.testing.assert_allclose(columns_of(table), expected, atol=1e-9)
    shares = np.abs([motion[:, 1] / LIMITS['velocity'], expected[:, 0] / LIMITS['effort']])
    assert 0.3 < shares.max() < 0.81
    assert len(motion) == 301 and told['condition'] >= 1.0
    assert not motion[[0, -1], 1:3].any()


def test_a_folder_of_motions_is_computed_and_gone_on_with(folder, capsys):
    (folder / 'in').mkdir()
    for name in ('motion.csv', 'fast.csv'):
        shutil.move(name, f'in/{name}')
    words = ('compute', 'two_link', 'in', '-o', 'out/*.csv')
    told = as_json(capsys, *words)
    assert (told['computed'], told['failed'], told['samples']) == (2, 0, 162)
    found = columns_of(read_table('out/fast.csv'))
    np.testing.assert_allclose(found, efforts_of(FAST), rtol=1e-9, atol=1e-9)
    code, _, err = call(capsys, *words)
    assert code == 2 and '--resume' in err
    (folder / 'in' / 'broken.csv').write_text('time,nonsense\n0,1\n')
    code, shown, err = call(capsys, *words, '--resume')
    assert code == 2 and '0 computed, 2 kept, 1 failed of 3' in shown
    assert 'broken.csv' in err and 'nonsense' in err


REFUSED = [
    ('compute two_link nowhere.csv', 'nowhere.csv does not exist; give an existing file'),
    ('compute panda motion.csv', 'panda_joint1.*missing; it has shoulder, elbow'),
    ('compute two_link motion.csv -o out.txt', r"'\.txt' is unknown, expected .*\.csv"),
    ('compute two_link motion.csv -o no/out.csv', 'no folder no'),
    ('compute two_link motion.csv -o motion.csv', 'is the motion itself'),
    ('compute two_link cut.csv', r'cut\.csv, line 40: \d+ cells, expected 11'),
    ('compute two_link back.csv', r'sample 40 at .* s comes after .* s'),
    ('compute two_link degrees.csv', 'looks like degrees'),
    ('check two_link wrong.csv', 'velocity of (shoulder|elbow) is given as .* changes by'),
    ('retime two_link degrees.csv -o out.csv', 'looks like degrees'),
    ('compute motion.csv two_link', 'comes first: hodyn compute'),
    ('info pannda', 'did you mean panda'),
    ('info two_link --config loops:=opn', r'did you mean open\?'),
    ('info heavy.urdf', "(?s)'forearm'.*mass"),
    ('chek two_link motion.csv', 'did you mean check'),
    ('check two_link motion.csv --jsn', '--json'),
    ('plot two_link motion.csv -o page.txt', r'expected .*\.png.*\.html'),
    ('report two_link motion.csv', 'no report: write hodyn plot .*html'),
    ('check two_link motion.csv --limits a.yaml', 'no --limits: write --config FILE'),
    ('identify two_link motion.csv -o out.urdf', 'effort'),
    ('generate two_link --wrench hand', "'hand'.*tool"),
]


@pytest.mark.parametrize(('line', 'said'), REFUSED, ids=lambda words: words.split()[0])
def test_refusals_name_the_cause_and_the_way_out_and_write_nothing(
    line, said, folder, capsys
):
    lines = (folder / 'motion.csv').read_text().splitlines()
    (folder / 'cut.csv').write_text('\n'.join([*lines[:39], lines[39][:60]]))
    (folder / 'back.csv').write_text('\n'.join([*lines[:41], lines[30], *lines[41:]]))
    write_table('degrees.csv', TIMES, np.degrees(swinging(TIMES)))
    write_table('wrong.csv', TIMES, swinging(TIMES) * [[1.0], [-1.0], [1.0], [1.0], [1.0]])
    robot = URDF.read_text()
    (folder / 'heavy.urdf').write_text(robot.replace('<mass value="2', '<mass value="-2'))
    before = listed(folder)
    code, out, err = call(capsys, *line.split())
    assert (code, out) == (2, '')

    assert re.search(said, err), err
    assert 'error: ' in err
    assert listed(folder) == before


def test_processes_end_with_the_codes_and_streams_that_shells_expect():
    """A limit exceeded, a reader that went away, a full disk, closed streams."""
    begun = {
        'check': start('check', 'two_link', 'fast.csv'),
        'pipe': start('info', 'panda', '--json'),
    }
    begun['pipe'].stdout.close()
    with open(os.devnull if not os.path.exists('/dev/full') else '/dev/full', 'w') as full:
        begun['full'] = start('info', 'two_link', stdout=full)
    closed = 'import os; os.close(1); os.close(2); from hodyn_ros.cli import run; '
    begun['closed'] = start(program=closed + "os._exit(run(['info', 'nothing']))")
    shown = begun['check'].communicate(timeout=600)
    assert 'limits are exceeded' in shown[0] and 'Traceback' not in shown[1]
    said = {}
    for name in ('pipe', 'full', 'closed'):
        with begun[name] as process:
            said[name] = process.stderr.read()
    codes = {name: process.returncode for name, process in begun.items()}
    assert codes == {'check': 1, 'pipe': 141, 'full': 2, 'closed': 2}, said
    assert 'No space left' in said.pop('full')
    assert set(said.values()) == {''}


# The command, and Ctrl-C when it begins to do something: by the audit events of Python.
INTERRUPTED_AT = """
import signal, sys

event, word = sys.argv.pop(1), sys.argv.pop(1)

def hook(name, arguments):
    global event
    if name == event and word in str(arguments[0]):
        event = None
        signal.raise_signal(signal.SIGINT)

from hodyn_ros.commands import hodyn
sys.addaudithook(hook)
hodyn()
"""


@pytest.mark.parametrize('moment', ['import numpy', 'open efforts.csv'])
def test_ctrl_c_ends_the_command_and_leaves_no_half_file(moment, folder):
    before = listed(folder)
    words = [*moment.split(), 'compute', 'two_link', 'motion.csv', '-o', 'efforts.csv']
    with start(*words, program=INTERRUPTED_AT) as process:
        said = process.communicate(timeout=600)[1]
    assert process.returncode == 128 + signal.SIGINT, said
    assert said.splitlines()[-1] == 'Interrupted.' and 'Traceback' not in said
    assert listed(folder) == before


def test_help_lists_the_commands_and_their_words(capsys):
    shown = call(capsys, '--help')[1]
    assert 'Exit codes: 0 done, 1 a limit is exceeded (check), 2 error' in shown
    for name in (
        *('info', 'compute', 'check', 'retime', 'excite', 'compare', 'identify'),
        *('plot', 'view', 'demo', 'generate'),
    ):
        assert f'\n  {name} ' in shown
        code, text, _ = call(capsys, name, '--help')
        assert code == 0 and f'Usage: hodyn {name}' in text and '--debug' in text
    manifest = (ROOT / 'package.xml').read_text()
    version = call(capsys, '--version')[1].split()[1]
    assert f'<version>{version}</version>' in manifest
