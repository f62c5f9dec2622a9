"""`hodyn compare` and `hodyn identify`: what recordings say, what is written, what is refused.

The recordings come from Pinocchio: a Panda whose masses, armature and friction differ from the
description, and one that carries a payload.
"""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from support.identification_cases import (
    GAZ,
    NO_FRICTION,
    ElasticRobot,
    RigidRobot,
    Sensing,
    panda,
)
from support.plotting_tools import Page

from hodyn_ros import RobotModel
from hodyn_ros.cli import run
from hodyn_ros.cli.problem import Given, load_problem

pytest.importorskip('plotly', reason='plotly is not installed')

SENSING = Sensing(period=4e-3, noise=0.1, delay=2e-3)
ELASTIC = ElasticRobot.random(5)
LOADED = RigidRobot(panda(payload=(1.5, (0.02, 0.0, 0.08))), np.zeros(7), NO_FRICTION)


def recorded(folder, name, robot):
    """A table of a recording."""
    record = robot.record(GAZ, SENSING, 0)
    columns = {'time': record['time']}
    for what in ('position', 'effort', 'motor_position', 'motor_torque'):
        if record.get(what) is not None:
            titles = (f'{joint}.{what}' for joint in record['names'])
            columns |= dict(zip(titles, record[what].T))
    rows = np.stack([*columns.values()], axis=1)
    path = folder / name
    np.savetxt(path, rows, '%.9g', ',', header=','.join(columns), comments='')
    return str(path)


@pytest.fixture(scope='module')
def loaded(tmp_path_factory):
    return recorded(tmp_path_factory.mktemp('recordings'), 'loaded.csv', LOADED)


def told(capsys, *words):
    assert run([*words, '--json']) == 0
    return json.loads(capsys.readouterr().out)


def test_compare_tells_how_far_torques_are_apart_in_words_numbers_pages_and_pictures(
    loaded, tmp_path, capsys
):
    words = ['compare', 'panda', loaded, '--link', 'panda_link8']
    page, picture = tmp_path / 'page.html', tmp_path / 'picture.png'
    assert run([*words, '-o', str(page)]) == 0
    text = capsys.readouterr().out
    assert 'a payload of 1.5 kg at panda_link8 would explain 100 % of it.' in text
    found = told(capsys, *words, '-o', str(picture))
    # The row of a joint has the numbers that the JSON has.
    (row,) = [
        line.split() for line in text.splitlines() if line.startswith('  panda_joint2')
    ]
    joint = found['joints'][1]
    shown = [float(row[i]) for i in (1, 2, 7, 8)]
    expected = [joint[name] for name in ('measured', 'residual', 'scale', 'correlation')]
    np.testing.assert_allclose(shown, expected, rtol=6e-3)
    # Along the motion that was measured, the payload turns joint 2 by some N m.
    assert joint['residual'] == pytest.approx(6.6, rel=0.1)
    page = Page(page.read_text(encoding='utf-8'))
    assert page.mistakes == []
    assert page.text_of_all('h1') == ['panda: loaded.csv']
    assert len(page.table('RMS of torques')) == 8
    assert picture.read_bytes()[:4] == b'\x89PNG'


def test_identify_says_what_it_found_in_tables_and_json(loaded, tmp_path, capsys):
    path = tmp_path / 'loaded.urdf'
    words = ['identify', 'panda', loaded, '-o', str(path), '--link', 'panda_link8']
    words += [part for name in ('payload', 'delay') for part in ('--estimate', name)]
    assert run(words) == 0
    text = capsys.readouterr().out
    assert 'panda_link8 carries 1.5' in text
    config = path.with_name('loaded.yaml')
    assert f'hodyn check {path} MOTION --config {config}' in text
    given, whole = (
        load_problem(Given(name, files)).limits
        for name, files in (('panda', ()), (str(path), (str(config),)))
    )
    np.testing.assert_array_equal(whole, given)
    page = Page(path.with_suffix('.html').read_text(encoding='utf-8'))
    assert page.mistakes == []
    assert page.text_of_all('h2')[:2] == ['Identified parameters', 'Measured and computed']
    found = told(capsys, *words)
    assert found['payload']['mass'] == pytest.approx(1.5, abs=0.005)
    np.testing.assert_allclose(found['payload']['com'], [0.02, 0.0, 0.08], atol=2e-3)
    by_name = {item['name']: item for item in found['parameters']}
    assert by_name['delay']['value'] == pytest.approx(2e-3, abs=3e-4)
    assert sorted(found['files']) == ['', 'config', 'report', 'run']
    # Without another recording a part of this one is held out; noise is all that is left.
    (held,) = found['validation']
    ratio = np.array(held['after']) / np.array(held['noise'])
    np.testing.assert_allclose(ratio, 1.0, atol=0.35)
    assert np.all(np.array(held['before']) > 1.2 * np.array(held['after']))
    run_of = json.loads(path.with_name('loaded_run.json').read_text(encoding='utf-8'))
    digest = hashlib.sha256(Path(loaded).read_bytes()).hexdigest()
    assert run_of['inputs'][loaded] == digest
    assert {'hodyn_ros', 'numpy', 'clarabel'} <= run_of['versions'].keys()
    assert run_of['parameters'] == found['parameters']
    masses = [RobotModel.from_urdf(name).M_body[6, 5, 5] for name in ('panda', path)]
    assert masses[1] - masses[0] == pytest.approx(1.5, abs=0.005)


def test_springs_come_out_of_elastic_recordings(tmp_path, capsys):
    path = tmp_path / 'elastic.urdf'
    recording = recorded(tmp_path, 'elastic.csv', ELASTIC)
    words = [recording, '-o', str(path), '--config', 'panda_sea']
    told(capsys, 'identify', 'panda', *words)
    drives = yaml.safe_load(path.with_suffix('.yaml').read_text())
    drives = drives['/**']['ros__parameters']['actuators']
    springs = [drives[f'panda_joint{i}']['stiffness'] for i in range(1, 8)]
    np.testing.assert_allclose(springs, ELASTIC.stiffness, rtol=0.02)
    # What was written is what the command takes.
    words = ['--config', str(path.with_suffix('.yaml'))]
    found = told(capsys, 'compare', str(path), recording, *words)
    assert all(0.9 < joint['correlation'] <= 1.0 for joint in found['joints'])
