"""All formulations of the comparison compute the same, and cost what the documentation says.

Times are not tested: they depend on the machine and on what else it does.
"""

import importlib
import re
from pathlib import Path

import numpy as np
import pytest
from docutils.core import publish_doctree
from support import robots

from hodyn_ros import RobotModel

pytest.importorskip('llvmlite', reason='what is compared are compiled programs')

ROOT = Path(__file__).resolve().parents[2]
# A branch, a prismatic joint, axes that are not coordinate axes, and turned frames.
BRANCHED = robots.robot(
    '<link name="base"/>',
    *(
        robots.link(name, mass)
        for name, mass in (('upper', 2.0), ('fore', 0.7), ('side', 0.4))
    ),
    robots.link('hand', 0.2),
    robots.joint('shoulder', 'base', 'upper', axis='0.36 0.48 0.8'),
    robots.joint('elbow', 'upper', 'fore', kind='prismatic', axis='0.6 0 -0.8'),
    robots.joint('branch', 'upper', 'side', axis='0 0 -1'),
    robots.joint('wrist', 'fore', 'hand', axis='0 1 0'),
)


@pytest.fixture(autouse=True)
def benchmarks_are_importable(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))


def module(name):
    return importlib.import_module(f'benchmarks.formulations.{name}')


def panda():
    return RobotModel.from_urdf(ROOT / 'urdf' / 'panda.urdf')


@pytest.fixture(scope='module')
def panda_counts():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        # The matrices of all bodies take as long as everything else; smaller robots have them.
        entries = [
            entry for entry in module('programs').formulations() if not entry.largest
        ]
        return module('measure').measure('Panda', panda(), None, entries)


@pytest.mark.parametrize('name', ['branched', 'chain', 'twisted', 'tree'])
def test_all_formulations_agree(name):
    examples = module('robots')
    model = {
        'branched': lambda: RobotModel.from_urdf(BRANCHED),
        'chain': lambda: examples.chain(4),
        'twisted': lambda: examples.chain(3, twisted=True),
        'tree': lambda: examples.tree(4),
    }[name]()
    table = module('measure').measure(name, model, None)
    assert len(table.rows) == 15
    for row in table.rows:
        assert row.error < 1e-12, row.label


def test_all_formulations_agree_on_the_panda(panda_counts):
    for row in panda_counts.rows:
        assert row.error < 1e-12, row.label


def test_machine_code_agrees_one_at_a_time_and_in_lanes():
    examples, measure = module('robots'), module('measure')
    timing = importlib.import_module('benchmarks.timing')
    effort = timing.Effort(rounds=3, burst=0.0, longest=0.0)
    entries = [e for e in module('programs').formulations() if e.written != '6x6 matrices']
    table = measure.measure('arm', examples.chain(2), effort, entries[::2])
    assert len(table.rows) == 5
    for row in table.rows:
        assert row.error < 1e-12, row.label
        assert all(time > 0.0 for time in (*row.scalar, *row.lanes)), row.label


def test_counts_are_reproducible():
    first, again = (
        module('measure').measure('arm', module('robots').chain(2), None) for _ in range(2)
    )
    assert [row.operations for row in first.rows] == [row.operations for row in again.rows]


def test_the_documentation_shows_the_counts(panda_counts):
    page = (ROOT / 'doc' / 'formulations' / 'cost.rst').read_text(encoding='utf-8')
    page, _, _ = page.partition('More joints')
    shown = re.findall(
        r'^   \* - (\S.*)\n     - (\d+)\n     - (\d+)\n     - (\d+)$', page, re.M
    )
    totals = {row.label: [o.total for o in row.operations] for row in panda_counts.rows}
    names = {'engine, masses not regrouped': 'engine, masses as given'}
    compared = 0
    for name, *counts in shown:
        label = names.get(name, name.replace('6x6 matrices', '6x6 matrices, own frames'))
        if label in totals:
            assert [int(count) for count in counts] == totals[label], name
            compared += 1
    assert compared == len(totals)


def test_the_engine_takes_fewest_operations_and_body_fixed_next(panda_counts):
    totals = {row.label: [o.total for o in row.operations] for row in panda_counts.rows}
    engine, body_fixed = totals.pop('engine'), totals.pop("body-fixed, engine's frames")
    del totals['engine, masses as given'], totals['body-fixed, own frames']
    for order in range(3):
        others = min(total[order] for total in totals.values())
        assert engine[order] < body_fixed[order] < others


def test_formulations_in_base_axes_take_twice_the_operations(panda_counts):
    totals = {row.label: row.operations[-1].total for row in panda_counts.rows}
    for name in ('hybrid', 'spatial'):
        assert totals[f"{name}, engine's frames"] > 2.0 * totals['engine']


def test_closed_form_grows_with_the_square_of_the_joints_and_the_others_with_their_number():
    programs, examples = module('programs'), module('robots')
    growth = {}
    for entry in programs.formulations():
        if entry.label.endswith('own frames') and 'matrices' not in entry.label:
            small, large = (
                programs.operations(entry.program(examples.chain(n), 0)).total
                for n in (8, 16)
            )
            growth[entry.name] = large / small
    assert growth['closed form'] > 3.0
    for name in ('body-fixed', 'hybrid', 'spatial'):
        assert growth[name] < 2.5


def test_robots_that_the_comparison_does_not_cover_are_refused():
    examples = module('robots')
    geared = examples.chain(2).with_armature({'joint1': 0.1})
    with pytest.raises(ValueError, match='rotors'):
        examples.check(geared)


def test_command_writes_the_table(tmp_path, capsys):
    main = module('__main__').main
    assert main(['arm of 2', '--count', '-o', str(tmp_path)]) == 0
    written = (tmp_path / 'formulations.rst').read_text(encoding='utf-8')
    assert written in capsys.readouterr().out
    tree = publish_doctree(written, settings_overrides={'halt_level': 2})
    rows = [
        len(list(table.findall(lambda node: node.tagname == 'row')))
        for table in tree.findall(lambda node: node.tagname == 'table')
    ]
    assert rows == [16]


def test_engine_frames_carry_the_same_robot():
    examples = module('robots')
    model = examples.tree(6)
    own, engine = examples.in_own_frames(model), examples.in_engine_frames(model)
    assert np.isclose(np.linalg.norm(own.gravity), np.linalg.norm(engine.gravity))
    assert all(body.e == (0.0, 0.0, 1.0) for body in engine.bodies)
    assert all(body.mass == 0.0 for body in engine.bodies)
