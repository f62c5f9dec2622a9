"""The example on Franka's interface, without the simulated robot, and with it."""

import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from support.scripts import load

from hodyn_ros.resources import share_file
from hodyn_ros.trajectory import panda_swing

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / 'examples' / 'franka'
SERVER = ROOT / '.venv-franka' / 'bin' / 'python'
LIMIT = 1000.0  # N m/s


class StrictRobot:
    """Stands where it is told to be, and stops like a Franka: torques may not step."""

    def __init__(self, *_):
        self.where, self.before, self.sent, self.recovered = np.zeros(7), np.zeros(7), [], 0
        self.stops = False

    def set_collision_behavior(self, *_):
        pass

    def automatic_error_recovery(self):
        self.recovered += 1

    def start_torque_control(self):
        self.before, self.stops = np.zeros(7), False
        return self

    def read_once(self):
        errors = ['controller_torque_discontinuity'] * self.stops
        return SimpleNamespace(q=list(self.where), dq=[0.0] * 7, current_errors=errors)

    def readOnce(self):  # noqa: N802
        if self.stops:
            raise ControlException(
                'libfranka: Move command aborted: motion aborted by reflex! '
                '["joint_velocity_violation", "controller_torque_discontinuity"]'
            )
        return self.read_once(), None

    def writeOnce(self, torques):  # noqa: N802
        torque = np.array(torques.torque)
        self.stops = bool((np.abs(torque - self.before) > LIMIT * 1e-3).any())
        self.before = torque
        self.sent.append(torque)


class ControlException(Exception):
    pass


@pytest.fixture(scope='module')
def modules():
    """The modules of the example, with a robot that is not there."""
    library = ModuleType('pylibfranka')
    library.Robot, library.ControlException = StrictRobot, ControlException
    library.RealtimeConfig = SimpleNamespace(kIgnore=0)
    library.Torques = lambda torque: SimpleNamespace(torque=torque, motion_finished=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, 'pylibfranka', library)
        motions = load(FOLDER / 'motions.py')
        patch.setitem(sys.modules, 'motions', motions)
        client = load(FOLDER / 'client.py')
        patch.setattr(client, 'RECOVERY', 0.0)
        yield SimpleNamespace(motions=motions, client=client)


@pytest.fixture(scope='module')
def kept(modules):
    model = modules.motions.fr3()
    limits = modules.motions.limits_of(model, 0.8 * LIMIT, 5000.0)
    return modules.motions.timed(model, 'kept', panda_swing(), limits)


def test_torques_are_those_of_the_arm_without_weight(modules, kept):
    pin = pytest.importorskip('pinocchio')
    arm = pin.buildModelFromUrdf(str(share_file('urdf/fr3.urdf')))
    arm.gravity = pin.Motion.Zero()
    arm.armature[:] = modules.motions.ARMATURE
    data = arm.createData()
    for cycle in (0, 30, 700, 1500, len(kept.states) - 1):
        q, v, a = kept.states[cycle, :3]
        friction = modules.motions.FRICTION * np.tanh(v / modules.motions.SMOOTHING)
        expected = pin.rnea(arm, data, q, v, a) + friction
        np.testing.assert_allclose(kept.efforts[cycle, 0], expected, atol=1e-10)
    assert not kept.states[-1, 1:].any()


def test_exact_torques_within_the_limit_arrive_and_steps_of_them_are_foretold(
    modules, kept
):
    arm = modules.client.Arm()
    arm.go_to(kept.states[0, 0])
    exact, held = kept.exactly(), kept.from_source(0.01, 'held')
    assert exact.reflex() is None
    assert np.abs(exact.rates).max() < 0.85 * LIMIT
    cycle, joint, rate = held.reflex()
    # A robot that stands still has no error of its own to add.
    without_feedback = modules.motions.Commands(
        'held', np.zeros_like(held.position), np.zeros_like(held.velocity), held.torque
    )
    outcome = arm.follow(without_feedback)
    assert (outcome.reflex, outcome.cycle, outcome.joint) == (
        'controller_torque_discontinuity',
        cycle,
        joint,
    )
    assert outcome.rate == pytest.approx(rate)
    assert arm._robot.recovered == 1


@pytest.mark.parametrize('kind, order', [('held', 0), ('linear', 1), ('second order', 2)])
def test_torques_of_a_source_go_on_by_their_derivatives(kind, order, modules, kept):
    commands = kept.from_source(0.02, kind)
    np.testing.assert_array_equal(commands.torque[::20], kept.efforts[::20, 0])
    after = 7
    expected = sum(
        kept.efforts[400, k] * (after * 1e-3) ** k / (1, 1, 2)[k] for k in range(order + 1)
    )
    np.testing.assert_allclose(commands.torque[400 + after], expected, rtol=1e-12)


def test_a_client_that_cuts_never_steps(modules, kept):
    arm = modules.client.Arm()
    outcome = arm.follow(kept.from_source(0.02, 'held'), most_rate=980.0)
    assert not outcome.reflex
    assert outcome.rate <= 980.0 * (1 + 1e-9)
    assert len(outcome.sent) == len(kept.states)


def test_a_table_goes_on_where_it_was_interrupted(modules, tmp_path, monkeypatch, capsys):
    pytest.importorskip('ruckig')
    monkeypatch.syspath_prepend(ROOT)
    monkeypatch.syspath_prepend(FOLDER)
    for name in ('motions', 'client'):
        monkeypatch.setitem(sys.modules, name, getattr(modules, name))
    for name in ('demo', 'ways'):
        monkeypatch.setitem(sys.modules, name, load(FOLDER / f'{name}.py'))
    table = load(FOLDER / 'table.py')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(table, 'program', lambda options: f'of mass {options[-1]}')
    timing = SimpleNamespace(exactly=lambda: None)
    monkeypatch.setattr(table, 'ways', lambda _: {'a way': lambda *_: timing})
    measured, breaks = [], []

    def lines_of(server, made_by, number, timed_path):
        if number in breaks:
            raise KeyboardInterrupt
        measured.append(number)
        stop = ('reflex', 7, 2, 1234.5, 0.25, 'the arm said "so", and stopped')
        stopped = table.Line(
            made_by, number, 'a way', np.inf, 'a way', 2.0 + number, 7, *stop
        )
        return [stopped, stopped._replace(cut=980.0, reflex='', rate=980.0, text='')]

    monkeypatch.setattr(table, 'lines_of', lines_of)

    def run(*words):
        measured.clear()
        monkeypatch.setattr(sys, 'argv', ['table.py', '--paths', '3', *words])
        table.main()
        return capsys.readouterr().out

    breaks.append(2)
    with pytest.raises(KeyboardInterrupt):
        run()
    assert measured == [0, 1]
    breaks.clear()
    said = run()
    assert measured == [2]
    assert '3 paths of the FR3' in said and '3 of 3 outcomes' in said
    stops = (tmp_path / table.STOPS).read_text().splitlines()
    assert stops[1] == (
        'seed 0, path 1, a way: cycle 7, joint 2, 1234.5 N m/s, reflex: the arm said "so", and '
        'stopped'
    )
    assert len(stops) == 3
    assert run() == said and not measured
    run('--mass', '1.2')  # another robot
    assert measured == [0, 1, 2]


LATE = """
import sys, time
sys.path.insert(0, sys.argv[1])
import numpy as np
from demo import CUT, robot
from motions import Commands

class Late:
    def __init__(self, rows):
        self.rows = rows
    def __getitem__(self, cycle):
        time.sleep(0.02 * (cycle == 0))
        return self.rows[cycle]

with robot(sys.argv[2]) as arm:
    torque = np.zeros((80, 7))
    torque[:30, 1], torque[30:60, 1] = 5.0, -5.0
    still = np.repeat(np.array(arm._robot.read_once().q)[None], 80, axis=0)
    for _ in range(3):
        outcome = arm.follow(Commands('', still, 0.0 * still, Late(torque)), most_rate=CUT)
        print(outcome.reflex or 'arrived')
"""


def run_with_robot(folder, *words):
    """What a program prints that moves a simulated robot."""
    if not SERVER.exists():
        pytest.skip('make test-long installs franka-sim in an environment of its own')
    pytest.importorskip('pylibfranka')
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, capture_output=True, text=True, timeout=600.0
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_simulated_robot_waits_for_the_first_command_of_a_motion(tmp_path):
    """Otherwise the first two act in one step, which stops it."""
    said = run_with_robot(tmp_path, '-c', LATE, str(FOLDER), str(SERVER))
    assert said.split() == ['arrived'] * 3


@pytest.mark.slow
def test_the_demonstration_on_a_simulated_robot(tmp_path):
    run_with_robot(tmp_path, str(FOLDER / 'demo.py'), '--server', str(SERVER))
    assert (tmp_path / 'build' / 'demo_franka' / 'torque_rates.png').stat().st_size > 10_000
