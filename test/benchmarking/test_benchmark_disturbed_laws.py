"""The benchmark of laws under faults runs, and its robot is one of physics."""

import importlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('pinocchio')

from support.control_cases import (  # noqa: E402
    HOME,
    JOINTS,
    MOTOR_INERTIA,
    PANDA,
    STIFFNESS,
    TORQUE_LIMITS,
)
from support.control_plant import Plant  # noqa: E402

from hodyn_ros.control import Command  # noqa: E402

TIP = 'panda_link8'
START = np.array(HOME)
NONE = np.zeros(7)


@pytest.fixture(scope='module')
def modules():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).resolve().parents[2]))
        names = 'benchmarks.disturbed_laws', 'benchmarks.elastic_plant'
        yield tuple(map(importlib.import_module, names))


@pytest.fixture
def laws(modules):
    return modules[0]


@pytest.fixture
def robot(modules):
    def make(step=5e-4, **faults):
        module = modules[1]
        for name in ('motor_friction', 'link_friction'):
            if name in faults:
                faults[name] = module.Friction(*faults[name])
        return module.ElasticPlant(
            PANDA,
            STIFFNESS,
            MOTOR_INERTIA,
            TORQUE_LIMITS,
            TIP,
            module.Faults(**faults),
            step,
        )

    return make


def moving(plant):
    """A state with all joints and motors in motion, springs deflected."""
    rng = np.random.default_rng(5)
    state = plant.at_rest(START)
    state[1], state[3] = rng.uniform(-0.5, 0.5, (2, 7))
    state[2] += rng.uniform(-0.01, 0.01, 7)
    return state


def path(plant, state, torque, count, period=1e-3):
    states = [state]
    for _ in range(count):
        states.append(plant.advance(states[-1], torque, period))
    return np.array(states)


@pytest.mark.parametrize('wall', [None, (0.55, 1e4)])
def test_nothing_is_lost_without_friction(robot, wall):
    plant = robot(1.25e-4, wall=wall)
    states = path(plant, moving(plant), NONE, 150)
    if wall:
        assert max(plant.wall_force(plant.tip(x[0])[0][2]) for x in states) > 10.0
    energies = np.array([plant.energy(x) for x in states])
    kinetic = 0.5 * MOTOR_INERTIA @ states[-1, 3] ** 2
    assert kinetic > 0.5
    np.testing.assert_allclose(energies, energies[0], atol=1e-4 * kinetic)


def test_motors_do_the_work_of_their_torques(robot):
    plant, torque = robot(2.5e-4), np.array([20.0, -40.0, 5.0, 15.0, 2.0, 3.0, -1.0])
    start = moving(plant)
    end = path(plant, start, torque, 100)[-1]
    work = torque @ (end[2] - start[2])
    assert plant.energy(end) - plant.energy(start) == pytest.approx(work, rel=1e-5)


def test_robot_moves_as_another_one_that_is_integrated_continuously(robot):
    plant, torque = robot(stiffness=-0.2, payload=2.0), np.linspace(20.0, -5.0, 7)
    state = moving(plant)
    other = Plant(
        PANDA,
        JOINTS,
        0.8 * STIFFNESS,
        MOTOR_INERTIA,
        payload=(TIP, 2.0),
        limits=TORQUE_LIMITS,
    )
    times = 1e-3 * np.arange(101)
    expected = other.run_continuously(state[:4], lambda t, x: torque, times)
    found = path(plant, state, np.clip(torque, -TORQUE_LIMITS, TORQUE_LIMITS), 100)
    assert np.ptp(expected[:, 0], axis=0).max() > 0.01
    np.testing.assert_allclose(found[:, [0, 2]], expected[:, [0, 2]], atol=1e-6)


def test_robot_rests_where_springs_carry_its_weight(robot):
    plant = robot(stiffness=0.1, payload=3.0)
    state = plant.at_rest(START)
    np.testing.assert_allclose(
        1.1 * STIFFNESS * (state[2] - state[0]), plant.weight(START), rtol=1e-12, atol=1e-12
    )
    height = [plant.tip(START + d)[0][2] for d in 1e-6 * np.vstack([np.eye(7), -np.eye(7)])]
    lift = 3.0 * 9.81 * (np.array(height[:7]) - height[7:]) / 2e-6
    np.testing.assert_allclose(plant.weight(START) - robot().weight(START), lift, atol=1e-6)
    end = path(plant, state, state[-1], 300)[-1]
    np.testing.assert_allclose(end[:4], state[:4], atol=1e-9)


def test_push_and_wall_do_the_work_of_their_forces(robot):
    plant = robot()
    plant.force[:] = 3.0, -2.0, 10.0
    state = plant.at_rest(START)
    state[1] = 0.1
    before = plant.tip(state[0])[0]
    end = path(plant, state, NONE, 50)[-1]
    work = plant.force @ (plant.tip(end[0])[0] - before)
    assert abs(work) > 0.01
    assert plant.energy(end) - plant.energy(state) == pytest.approx(work, rel=1e-4)


@pytest.mark.parametrize('friction', ['motor_friction', 'link_friction'])
def test_dry_friction_holds_up_to_its_bound_and_brakes_beyond(robot, friction):
    plant = robot(**{friction: (0.5, 1.0)})
    state, row = plant.at_rest(START), 2 if friction == 'motor_friction' else 0
    for joint, more in ((0, 0.9), (3, -0.9), (0, 1.1)):
        begin, torque = state.copy(), state[-1].copy()
        torque[joint] += more
        if row == 0:  # the spring already brings it to the link
            begin[2, joint] += more / STIFFNESS[joint]
        moved = path(plant, begin, torque, 400)[-1] - begin
        sticks = abs(moved[row, joint]) < 1e-6
        assert sticks == (abs(more) < 1.0)
    states = path(plant, moving(plant), state[-1], 100)
    energies = np.array([plant.energy(x) for x in states])
    work = (states[:, 2] - states[0, 2]) @ state[-1]
    assert np.all(np.diff(energies - work) < 1e-4)


def test_hysteresis_takes_up_four_times_its_height_times_the_way(robot):
    plant = robot(hysteresis=0.5)
    state, loops, lost = plant.at_rest(START), 2, 0.0
    turn = 0.02 * np.sin(np.linspace(0.0, 2.0 * np.pi * loops, 4001))
    held = []
    for before, after in zip(turn[:-1], turn[1:]):
        # Links at rest, motors turned by hand.
        state[3], h = (after - before) / 5e-4, 5e-4
        rate = plant._rate(state, state[-1])
        state[4] += h * rate[4]
        held.append(state[4, 0])
        lost += state[4, 0] * (after - before)
    assert np.abs(held).max() == pytest.approx(0.5, rel=1e-3)
    assert lost / loops == pytest.approx(4.0 * 0.5 * 0.02, rel=0.1)


def test_current_loop_has_its_bandwidth(robot):
    plant = robot(current_loop=300.0)
    state = plant.at_rest(START)
    step = state[-1] + 1.0
    after = plant.advance(state, step, 1.0 / (2.0 * np.pi * 300.0))[-1]
    np.testing.assert_allclose(after - state[-1], 1.0 - np.exp(-1.0), rtol=2e-3)


def test_brakes_hold_motors_and_drives_without_power_give_no_torque(robot):
    plant = robot()
    state = moving(plant)
    plant.locked = True
    held = path(plant, state, NONE, 50)[-1]
    np.testing.assert_array_equal(held[2], state[2])
    assert not held[3].any() and np.abs(held[0] - state[0]).max() > 1e-3
    plant.locked, plant.is_on = False, False
    np.testing.assert_array_equal(
        plant.advance(state, TORQUE_LIMITS, 0.01), robot().advance(state, NONE, 0.01)
    )


def test_torques_come_as_late_as_the_bus_is(laws, robot):
    plant = robot()
    state, more = plant.at_rest(START), np.eye(7)[0]
    bus = laws.Bus(laws.Case(delay=1.5e-3), plant, state[-1])
    bus.send(0.0, state[-1] + more)
    for k in range(3):
        state = bus.advance(state, 1e-3 * k, 1e-3 * (k + 1))
    speed = 1.5e-3 / MOTOR_INERTIA[0]
    assert state[3, 0] == pytest.approx(speed, rel=1e-3)


def test_calls_are_left_out_and_times_moved_as_often_as_said(laws):
    times, called = laws.sampled(laws.Case(dropped=0.2, jitter=0.3))
    assert called[0] and np.mean(called) == pytest.approx(0.8, abs=0.03)
    steps = np.diff(times)
    assert 0.4e-3 < steps.min() < 0.6e-3 and 1.4e-3 < steps.max() < 1.6e-3
    assert times[-1] == pytest.approx(2.8)


def test_wall_stands_where_the_tip_has_its_speed(laws, robot):
    motion, height = laws.going_down()
    q, qd = motion(np.array([0.5 * motion.duration]))[0, :2]
    place, J = robot().tip(q)
    assert place[2] == pytest.approx(height)
    assert J[2] @ qd == pytest.approx(-laws.TOUCH)
    later = motion(np.array([motion.duration]))[0, 0]
    assert robot().tip(later)[0][2] < height - 0.05


class Law:
    """Notes the times that it is told, and stops at the third call."""

    lead, state, estimates = 0.0, 'following', True

    def __init__(self):
        self.elapsed = []

    def evaluate(self, desired, q, qd, theta, thetad, elapsed=None):
        self.elapsed.append(elapsed)
        if len(self.elapsed) > 2:
            self.state = 'stopped'
        torque = np.ones(7)
        return Command(torque, torque, 'too fast' if len(self.elapsed) > 2 else '')

    def release(self):
        self.state = 'following'


def test_laws_are_told_the_time_and_heard(laws):
    law = Law()
    kind = laws.Kind(lambda robot, w: law)
    contestant = laws.Contestant(kind, None, 50.0)
    for k in (0, 1, 3, 4):
        contestant.answer(1e-3 * k, np.zeros((5, 7)), NONE, NONE)
    np.testing.assert_allclose(law.elapsed[1:], [1e-3, 2e-3, 1e-3])
    assert law.elapsed[0] is None
    assert contestant.said == (3e-3, 'too fast')
    assert contestant.state == 'stopped'
    contestant.release()
    assert law.state == 'following'


def test_refused_measurement_holds_the_torque_and_does_not_spoil_velocities(laws):
    contestant = laws.Contestant(laws.KINDS['PD + gravity'], laws.known(laws.Case()), 20.0)
    desired = np.zeros((5, 7))
    desired[0] = START
    first = contestant.answer(0.0, desired, START, START)
    wrong = START.copy()
    wrong[2] = np.nan
    np.testing.assert_array_equal(contestant.answer(1e-3, desired, wrong, START), first)
    assert contestant.said is not None and contestant.said[0] == 1e-3
    np.testing.assert_allclose(contestant.answer(2e-3, desired, START, START), first)


def test_quick_run_is_what_it_should_be(laws):
    case = replace(laws.CASES['exact'], rest=0.2)
    result = laws.run(laws.Job('tracking', 50.0, case))
    assert not result.diverged and not result.refused
    assert result.rms < 5e-3 and result.peak < 0.05
    assert result.saturated == 0.0 and 0.5 < result.velocity < 1.0
    refused = laws.run(laws.Job('tracking', 50.0, laws.CASES['motors x 100']))
    assert refused.refused and 'behind the' in refused.said[1]


def test_one_rule_tunes_the_laws(laws):
    still = np.zeros((201, 7))

    def record(rms, rate=0.0, torque=1.0, diverged=False):
        steps = np.full((200, 7), torque)
        steps[1::2] += rate * 1e-3
        return laws.Run(
            1e-3,
            1e-3 * np.arange(201),
            still + rms,
            still,
            steps,
            still[:, 0],
            None,
            '',
            diverged,
        )

    tried = {
        10.0: record(3e-3, 900.0),
        20.0: record(2e-3, 900.0),
        30.0: record(1e-3, 1100.0),
        40.0: record(1e-3, torque=87.0),
        50.0: record(1e-4, diverged=True),
    }
    assert laws.chosen(tried) == 20.0
    assert laws.chosen({w: tried[w] for w in (30.0, 50.0)}) == 30.0
    assert record(1e-3, 700.0).rate_at_rest == pytest.approx(700.0)


@pytest.mark.slow
def test_tables_are_written(laws, tmp_path, capsys):
    core = pytest.importorskip('docutils.core')
    include = tmp_path / 'some.inc'
    arguments = [
        '--size',
        'tiny',
        '--folder',
        str(tmp_path / 'made'),
        '--include',
        str(include),
    ]
    assert laws.main(arguments) == 0
    text = include.read_text()
    assert text in capsys.readouterr().out
    document = core.publish_doctree(text, settings_overrides={'report_level': 5})
    assert document.parse_messages == []
    for row in ('exact', 'wall', 'motors x 100'):
        assert sum(line.startswith(row) for line in text.splitlines()) == 4
    assert 'refused' in text
