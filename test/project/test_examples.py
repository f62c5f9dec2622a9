"""Examples, notebooks and layouts for plotting tools, as users run and open them."""

import importlib
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from support.scripts import load

from hodyn_ros import RobotModel
from hodyn_ros.actuators import Actuators, SeriesElastic
from hodyn_ros.files import Samples, compute, write_results
from hodyn_ros.resources import share_file

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ('two_link_arm', 'iiwa', 'panda_second_order', 'panda_higher_order')
run_examples = load(ROOT / 'doc' / 'run_examples.py')


@pytest.mark.parametrize('name', EXAMPLES)
def test_example_of_a_paper_agrees_with_what_it_is_compared_with(
    name, monkeypatch, tmp_path, capsys
):
    # The directory of a script is the first in which it looks for modules.
    monkeypatch.syspath_prepend(str(ROOT / 'examples'))
    monkeypatch.chdir(tmp_path)
    assert importlib.import_module(name).main(['--samples', '9']) == 0
    assert re.search(r'\de-1\d', capsys.readouterr().out)
    assert not list(tmp_path.iterdir())  # no picture unless one is asked for


def printed(text):
    """What the cells of a notebook print, and how many pictures each draws."""
    cells = [cell for cell in json.loads(text)['cells'] if cell['cell_type'] == 'code']
    for cell in cells:
        data = [item['data'] for item in cell['outputs'] if 'data' in item]
        lines = [''.join(item['text']) for item in cell['outputs'] if 'text' in item]
        yield (
            lines,
            [item['text/plain'] for item in data],
            sum('image/png' in d for d in data),
        )


def found_by(name):
    """Names after the cells of a notebook have run, which give the outputs that are stored."""
    pytest.importorskip('matplotlib', reason='matplotlib is not installed')
    stored = (ROOT / 'examples' / 'notebooks' / f'{name}.ipynb').read_text(encoding='utf-8')
    found = {}
    now = run_examples.with_cell_outputs(stored, name, found)
    assert list(printed(now)) == list(printed(stored)), 'run make notebooks'
    assert sum(count for *_, count in printed(stored)) > 0
    return found


def test_notebooks_show_what_they_print_keep_limits_and_find_faults(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = found_by('torque_rates')
    rates = [abs(found[name].effort[:, 1]).max() for name in ('kept', 'planned')]
    assert rates[0] <= 150.0 < rates[1]
    analysis = found_by('stopped_robot')['analysis']
    assert analysis.verdict == 'exceeded'
    assert [cause.kind for cause in analysis.causes] == ['missed cycle']
    pytest.importorskip('mujoco', reason='mujoco is not installed')
    errors = [run.peak_error for run in found_by('elastic_joints')['runs'].values()]
    assert errors[0] > 3.0 * errors[1] > 300.0 * errors[2]


@pytest.mark.needs('clarabel', 'matplotlib', 'mujoco')
def test_notebook_identifies_what_is_off_and_follows_better(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = found_by('identification')
    truth = {'panda_link8 mass': 1.0}
    for number in (1, 7):
        name, stiffness = f'panda_joint{number}', found['stiffness'][number - 1]
        truth |= {f'{name} coulomb': 1.0, f'{name} viscous': 0.0}
        truth |= {f'{name} stiffness': 0.95 * stiffness}
    for name, value in truth.items():
        parameter = found['identified'][name]
        assert abs(parameter.value - value) < 3.0 * parameter.std, name
    assert found['after'].peak_error < 0.3 * found['before'].peak_error


def test_every_curve_of_the_layouts_is_in_a_bag(tmp_path):
    any_reader = pytest.importorskip('rosbags.highlevel').AnyReader
    panda = RobotModel.from_urdf('panda', tip_link='panda_link8')
    drives = {name: SeriesElastic(1000.0, 0.1) for name in panda.joint_names}
    samples = Samples(panda.joint_names, np.arange(3.0), np.full((3, 5, 7), 0.1))
    path, messages = tmp_path / 'x.mcap', {}
    write_results(path, compute(panda, samples, actuators=Actuators(panda, drives)))
    with any_reader([path]) as bag:
        for item, _, data in bag.messages():
            messages.setdefault(item.topic, bag.deserialize(data, item.msgtype))
    root = ElementTree.parse(share_file('config/plotjuggler_hodyn.xml'))
    curves = [curve.get('name') for curve in root.iter('curve')]
    assert len(set(curves)) == len(curves) == 8 * 7
    for curve in curves:  # as PlotJuggler names them
        topic, joint, field = curve.rsplit('/', 2)
        values = getattr(messages[topic], field)
        assert np.isfinite(values[messages[topic].name.index(joint)])
    layout = json.loads(share_file('config/foxglove_hodyn.json').read_text())
    panels = [panel for panel in layout['configById'].values() if 'paths' in panel]
    assert len(panels) == 9
    for series in (path for panel in panels for path in panel['paths']):
        if 'limit' in series['label']:
            continue
        topic, field, index = re.fullmatch(
            r'(.+)\.(\w+)\[(\d+)\]', series['value']
        ).groups()
        message = messages[topic]
        assert np.isfinite(getattr(message, field)[int(index)])
        names = getattr(message, 'motor_names', None) or message.joint_names
        assert names[int(index)] == series['label']
