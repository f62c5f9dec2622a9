"""All contestants compute the same, turns are fair, and the command writes what was measured.

Times are not tested: they depend on the machine and on what else it does.
"""

import importlib
import json
from functools import partial

import numpy as np
import pytest
from docutils.core import publish_doctree
from support import robots
from support.random_trees import random_motion

import hodyn_ros
from benchmarks import __main__ as command
from benchmarks import cases, compilation, timing
from benchmarks.tables import Benchmark, Picture, Table

# A branch, a prismatic joint, an axis that is not a coordinate axis, and a fixed joint.
BRANCHED = robots.robot(
    '<link name="base"/>',
    *(
        robots.link(name, mass)
        for name, mass in (('upper', 2.0), ('fore', 0.7), ('side', 0.4))
    ),
    robots.link('tool', 0.2),
    robots.joint('shoulder', 'base', 'upper', axis='0.36 0.48 0.8'),
    robots.joint('elbow', 'upper', 'fore', kind='prismatic'),
    robots.joint('branch', 'upper', 'side', axis='0 0 -1'),
    robots.joint('flange', 'fore', 'tool', kind='fixed'),
)
ROUNDING, DIFFERENCES = 1e-13, 1e-5


@pytest.fixture(autouse=True)
def nothing_is_optimised_or_kept(monkeypatch, tmp_path):
    monkeypatch.setattr(compilation, 'CACHE', tmp_path / 'cache')
    monkeypatch.setattr(compilation, 'FLAGS', ('-O0', '-fPIC', '-shared'))


def branched():
    model = hodyn_ros.RobotModel.from_urdf(BRANCHED)
    return cases.Case('branched', BRANCHED, random_motion(1, model.n_joints, 5, (6,)), 6)


def contestants(path, *arguments):
    """Those of a function below `benchmarks`."""
    module, function = path.rsplit('.', 1)
    try:
        return getattr(importlib.import_module(f'benchmarks.{module}'), function)(
            *arguments
        )
    except timing.NotInstalled as reason:
        pytest.skip(str(reason))


# --- Fairness ---------------------------------------------------------------------------------


def check_inverse_dynamics(path, case):
    for entry in contestants(path, case):
        entry.run()
        errors = case.errors(entry.result())
        assert len(errors) == entry.order + 1
        tolerance = DIFFERENCES if 'differences' in entry.name else ROUNDING
        assert max(errors) < tolerance, entry.name


@pytest.mark.every_case
@pytest.mark.parametrize(
    'path',
    [
        'peers.casadi_code.inverse_dynamics',
        'peers.mujoco_inverse.from_python',
        'peers.mujoco_inverse.in_c',
        'peers.pinocchio_python.inverse_dynamics',
        'inverse_dynamics.from_python',
        'inverse_dynamics.batch',
        'inverse_dynamics.generated_c',
    ],
)
def test_all_compute_the_torques_of_power_series(path):
    check_inverse_dynamics(path, branched())


@pytest.mark.parametrize(
    'path', ['peers.jax_jet.contestants', 'peers.pinocchio_cpp.inverse_dynamics']
)
def test_peers_that_take_long_to_make_compute_them_too(path):
    check_inverse_dynamics(path, branched())


def efforts(case, orders):
    return hodyn_ros.inverse_dynamics(case.model, case.motion[:, : orders + 2].copy())


def check_forward_dynamics(entries, case):
    for entry in entries:
        entry.run()
        found = np.asarray(entry.result())
        expected = case.motion[: len(found), 2 : 3 + entry.order]
        np.testing.assert_allclose(found, expected, atol=1e-8, err_msg=entry.name)


def test_all_compute_the_accelerations_that_the_torques_came_from():
    case = cases.panda(30)
    for orders in (1, 3):
        given = case, efforts(case, orders)
        check_forward_dynamics(contestants('forward_dynamics.public', *given), case)
        for form in ('mass matrix', 'articulated bodies'):
            entries = contestants('forward_dynamics.kernels', *given, form)
            check_forward_dynamics(entries, case)
    peer = contestants('peers.pinocchio_python.forward_dynamics', *given)
    check_forward_dynamics(peer, case)


def test_casadi_computes_them_too():
    case = cases.chain(2, 16)
    made = contestants('peers.casadi_code.forward_functions', case, 1)
    entry = contestants(
        'peers.casadi_code.forward_dynamics', case, efforts(case, 2), made.merged
    )
    check_forward_dynamics([entry], case)


@pytest.mark.slow
def test_matrices_of_pinocchio_are_those_of_the_package():
    case = cases.panda(30)
    check_forward_dynamics(
        contestants('peers.pinocchio_cpp.forward_dynamics', case, efforts(case, 3)), case
    )
    n, motion = case.n, case.motion[:, :3]
    (regressor,) = contestants('peers.pinocchio_cpp.regressor', case)
    regressor.run()
    parameters = hodyn_ros.RobotModel.from_urdf('panda').inertial_parameters.reshape(n, 10)
    # Pinocchio has I_xx, I_xy, I_yy, I_xz, I_yz, I_zz.
    parameters = parameters[:, [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]].ravel()
    found = regressor.result().reshape(-1, n, 10 * n) @ parameters
    assert found == pytest.approx(hodyn_ros.inverse_dynamics(case.model, motion)[:, 0])
    (partials,) = contestants('peers.pinocchio_cpp.partial_derivatives', case)
    partials.run()
    by_q, by_v, by_a = np.moveaxis(partials.result(), 1, 0).swapaxes(-1, -2)
    expected = hodyn_ros.inverse_dynamics_derivatives(case.model, motion)[:, 0]
    assert by_q == pytest.approx(expected[:, :, 0], abs=1e-9)
    assert by_v == pytest.approx(expected[:, :, 1], abs=1e-9)
    assert np.triu(by_a) == pytest.approx(np.triu(expected[:, :, 2]), abs=1e-9)


def test_contestants_take_turns_until_they_have_taken_long_enough():
    turns = []
    entries = [
        timing.Contestant(name, 0, 2, lambda name=name: turns.append(name), lambda: None)
        for name in 'abc'
    ]
    found = timing.race(entries, timing.Effort(rounds=4, burst=1e-9, longest=1.0))
    # Two calls of each to find how many fit in a burst, then bursts of one call.
    rounds = [turns[i : i + 3] for i in range(6, len(turns), 3)]
    assert [sorted(each) for each in rounds] == [['a', 'b', 'c']] * 4
    assert all(3 <= entry.bursts <= 4 for entry in found.values())
    found = timing.race(entries, timing.Effort(rounds=9, burst=1e-9, longest=0.0))
    assert [entry.bursts for entry in found.values()] == [3] * 3


# --- The command ------------------------------------------------------------------------------


def run(tmp_path, *arguments):
    assert command.main([*arguments, '--size', 'tiny', '-o', str(tmp_path)]) == 0
    (name,) = arguments
    return json.loads((tmp_path / f'{name}.json').read_text())['tables']


def test_formulations_are_timed_and_their_errors_are_rounding(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv('CXX', 'a compiler that takes minutes for Pinocchio')
    (table,) = run(tmp_path, 'formulations')
    assert (tmp_path / 'formulations.inc').read_text() in capsys.readouterr().out
    rows = {name: cells for name, *cells in table['rows']}
    assert {f'{name}, NumPy' for name in hodyn_ros.dynamics.FORMULATIONS} < set(rows)
    for name, (orders, time, _, _, *errors, _) in rows.items():
        bound = 1e-6 if name.endswith('single') else ROUNDING
        assert float(time) > 0.0
        assert len([error for error in errors if error]) == int(orders[-1]) + 1
        assert all(float(error) < bound for error in errors if error)


def test_retimed_motions_are_within_their_limits_and_the_fastest_of_ours(tmp_path):
    (table,) = run(tmp_path, 'retiming')
    rows = {row[0]: dict(zip(table['header'], row)) for row in table['rows']}
    durations = {name: float(row['duration'].split()[0]) for name, row in rows.items()}
    ours = [name for name in rows if name.startswith('retime')]
    assert len(ours) == 3
    for name in ours:
        assert 0.9 < float(rows[name]['of limits']) <= 1.0
        assert durations[name] < durations['uniform_scaling, from rest to rest']
    assert rows['retime, all limits']['relative'].startswith('1.0000 ')


def numbers(cell):
    """Of a cell such as 'number (number)'."""
    return [float(word.strip('(),s')) for word in cell.split() if word != 's,']


def test_limits_of_the_third_order_are_measured_on_a_robot(tmp_path):
    pytest.importorskip('toppra')
    (table,) = run(tmp_path, 'jerk_limits')
    rows = {
        row[0].partition(': ')[2]: dict(zip(table['header'], row)) for row in table['rows']
    }
    rates = {name: numbers(row['torque rate [N m/s]'])[0] for name, row in rows.items()}
    assert rates['with jerk and torque rate'] < 0.3 * rates['with jerk']
    assert rates['with tuned jerk'] < 0.3 * rates['with jerk']
    for row in rows.values():
        # No more than weight, motors and what the controller does not know make of it.
        assert 0.0 < numbers(row['RMS error [mrad]'])[0] < 3.0
        duration, ratio = numbers(row['duration [s]'])
        assert duration > 1.0 and 1.0 <= ratio < 1.1


def test_all_orders_agree_with_power_series(tmp_path):
    pytest.importorskip('casadi')
    times, made = run(tmp_path, 'orders')
    rows = {name: cells for name, *cells in made['rows']}
    assert {'CasADi C loop', 'CasADi from Python', 'hodyn_ros batch'} <= set(rows)
    assert rows.keys() == {row[0] for row in times['rows']}
    for cells in rows.values():
        assert len(cells) == 2
        assert all(numbers(cell)[-1] < ROUNDING for cell in cells)


def written(tmp_path, monkeypatch, measure):
    """Run a benchmark that is made up."""
    module = importlib.import_module('benchmarks.laws')
    made_up = Benchmark('Made up', {'tiny': 5}, measure)
    monkeypatch.setitem(module.BENCHMARKS, 'laws', made_up)
    return run(tmp_path, 'laws')


def test_tables_are_valid_and_pictures_stand_beside_them(tmp_path, monkeypatch):
    pytest.importorskip('matplotlib', reason='matplotlib is not installed')

    def measure(size):
        rows = [['', 'µs', ''], ['second', str(size), '']]
        picture = Picture((2.0, 1.0), lambda figure: figure.add_subplot().plot([size]))
        return [
            Table('two rows', ['', 'time', ''], rows, ['A note.', '- a point']),
            picture,
        ]

    (table,) = written(tmp_path, monkeypatch, measure)
    assert table['rows'] == [['', 'µs', ''], ['second', '5', '']]
    text = (tmp_path / 'laws.inc').read_text()
    tree = publish_doctree(text, settings_overrides={'report_level': 2, 'halt_level': 2})
    cells = [entry.astext() for entry in tree.findall(lambda node: node.tagname == 'entry')]
    assert len(cells) == 9 and cells[-3:] == ['second', '5', '']
    assert {'time', 'µs'} < set(cells)
    assert 'Two rows' in tree.astext() and 'A note.' in tree.astext()
    assert (tmp_path / 'laws.png').stat().st_size > 1000


def test_what_is_missing_or_unknown_is_said(tmp_path, monkeypatch, capsys):
    def measure(size):
        raise timing.NotInstalled('no such package')

    for run_it, message in (
        (partial(written, tmp_path, monkeypatch, measure), 'laws: no such package'),
        (partial(run, tmp_path, 'nothing'), 'there are panda, chains'),
    ):
        with pytest.raises(SystemExit):
            run_it()
        assert message in capsys.readouterr().err
