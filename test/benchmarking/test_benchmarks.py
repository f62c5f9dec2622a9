"""The benchmarks run, their tables say what they should, and all contestants agree.

Times are not tested: they depend on the machine and on what else it does.
"""

import importlib
import json
from pathlib import Path

import numpy as np
import pytest
from docutils.core import publish_doctree
from support import robots
from support.random_trees import random_motion, seeds

ROOT = Path(__file__).resolve().parents[2]
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
def benchmarks_are_importable(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(ROOT))
    compilation = module('compilation')
    # What is compiled here is not worth optimising or keeping.
    monkeypatch.setattr(compilation, 'CACHE', tmp_path / 'cache')
    monkeypatch.setattr(compilation, 'FLAGS', ('-O0', '-fPIC', '-shared'))


def module(name):
    return importlib.import_module(f'benchmarks.{name}')


def branched_case():
    model = module('cases').RobotModel.from_urdf(BRANCHED)
    motion = random_motion(1, model.n_joints, 5, (6,))
    return module('cases').Case('branched', BRANCHED, motion, 6)


def contestants(maker, case):
    try:
        return maker(case)
    except module('timing').NotInstalled as reason:
        pytest.skip(str(reason))


def fast_section(name):
    """The named section without the contestants that take long to compile."""
    section = module('sections').SECTIONS[name]
    slow = ('Pinocchio C++', 'JAX', 'skidy', 'MuJoCo C', 'CasADi')
    makers = {key: maker for key, maker in section.makers.items() if key not in slow}
    return module('sections').Section(section.title, section.cases, makers, section.scaling)


def check(entry, case, tolerance):
    entry.run()
    errors = case.errors(entry.result())
    assert len(errors) == entry.order + 1
    assert max(errors) < (DIFFERENCES if 'differences' in entry.name else tolerance), (
        entry.name
    )


@pytest.mark.parametrize(
    ('peer', 'maker'),
    [
        ('casadi_derivatives', 'contestants'),
        ('mujoco_inverse', 'from_python'),
        ('mujoco_inverse', 'in_c'),
        ('pinocchio_python', 'contestants'),
        pytest.param('jax_jet', 'contestants', marks=pytest.mark.slow),
        pytest.param('pinocchio_cpp', 'contestants', marks=pytest.mark.slow),
    ],
)
def test_peer_agrees_with_the_oracle_on_any_joints(peer, maker):
    case = branched_case()
    for entry in contestants(getattr(module(f'peers.{peer}'), maker), case):
        check(entry, case, ROUNDING)


@pytest.mark.slow
def test_expressions_of_skidy_agree_with_the_oracle():
    case = module('cases').planar_arm(2, 6)
    for entry in contestants(module('peers.skidy_closed_form').contestants, case):
        check(entry, case, ROUNDING)


@pytest.mark.parametrize('make', ['from_python', 'from_python_out', 'batch'])
def test_hodyn_ros_agrees_with_the_oracle(make):
    case = branched_case()
    for entry in contestants(getattr(module('ours'), make), case):
        check(entry, case, ROUNDING)


def test_each_way_of_the_engine_agrees_with_the_oracle():
    case = branched_case()
    reasons = set()
    for maker in module('ours').ENGINE.values():
        try:
            entries = maker(case)
        except module('timing').NotInstalled as reason:
            reasons.add(str(reason))
            continue
        for entry in entries:
            check(entry, case, ROUNDING)
    assert all(reasons)


@pytest.mark.parametrize(
    'name', seeds(['arms', 'panda', 'chains', 'trees', 'formulations'], 1)
)
def test_table_of_a_section_is_complete_and_right(name):
    sections = module('sections')
    section = fast_section(name)
    (table,) = sections.measure(section, sections.SIZES['tiny'], say=lambda _: None)
    names = [row.name for row in table.rows]
    assert len(set(names)) == len(names)
    assert len(names) + len(table.absent) >= len(section.makers)
    for row in table.rows:
        timing = row.timing
        assert 0.0 < timing.lower_quartile <= timing.median <= timing.upper_quartile
        assert timing.bursts >= 3
        assert max(row.errors) < (DIFFERENCES if 'differences' in row.name else ROUNDING)
        if row.name == table.yardstick:
            assert row.ratio == 1.0


def test_texts_are_valid_and_hold_every_row():
    sections, report = module('sections'), module('report')
    section = fast_section('chains')
    tables = sections.measure(section, sections.SIZES['tiny'], say=lambda _: None)
    text = report.section_text(section, tables)
    tree = publish_doctree(text, settings_overrides={'report_level': 1, 'halt_level': 2})
    cells = [entry.astext() for entry in tree.findall(lambda node: node.tagname == 'entry')]
    assert all(cells.count(row.name) == 2 for row in tables[0].rows)


def test_command_writes_tables_pictures_and_json(monkeypatch, tmp_path, capsys):
    pytest.importorskip('matplotlib', reason='matplotlib is not installed')
    main = module('__main__')
    monkeypatch.setitem(main.SECTIONS, 'chains', fast_section('chains'))
    output = tmp_path / 'some' / 'where'
    assert main.main(['chains', '--size', 'tiny', '-o', str(output)]) == 0
    assert {file.name for file in output.iterdir()} == {
        'chains.rst',
        'chains.png',
        'chains.svg',
        'benchmarks.json',
    }
    assert (output / 'chains.rst').read_text() in capsys.readouterr().out
    values = json.loads((output / 'benchmarks.json').read_text())
    assert values['sections']['chains'][0]['rows']


def test_command_names_the_sections_there_are(capsys):
    with pytest.raises(SystemExit):
        module('__main__').main(['nothing'])
    assert 'chains' in capsys.readouterr().err


def test_contestants_take_turns():
    timing = module('timing')
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


def test_bursts_that_waited_for_a_processor_do_not_count():
    timing = module('timing')
    shares = [0.5, 1.0, 0.6, 1.0, 0.99, 0.7]
    bursts = [timing.Burst(per_sample=1.0 / share, processors=share) for share in shares]
    found = timing._timing(bursts, threads=1)
    assert (found.median, found.bursts) == (1.0, 3)
    # Of contestants with several threads, waiting for each other is part of the time.
    assert timing._timing(bursts, threads=2).bursts == 6


def test_long_contestant_sits_out_but_not_before_three_rounds():
    timing = module('timing')
    entry = timing.Contestant('slow', 0, 1, lambda: np.linalg.inv(np.eye(20)), lambda: None)
    assert timing.race([entry], timing.Effort(9, 1e-9, 0.0))['slow'].bursts == 3
