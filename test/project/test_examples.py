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


def found_by(name):
    """Names after the cells of a notebook have run."""
    pytest.importorskip('matplotlib.pyplot').switch_backend('Agg')
    found = {'__name__': '__main__'}
    path = ROOT / 'examples' / 'notebooks' / f'{name}.ipynb'
    assert all(not cell.get('outputs') for cell in json.loads(path.read_text())['cells'])
    for number, code in enumerate(run_examples.cells(path)):
        exec(compile(code, f'{name}, cell {number}', 'exec'), found)  # noqa: S102
    return found


def test_notebooks_keep_limits_find_faults_and_show_what_derivatives_are_worth(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    found = found_by('torque_rates')
    rates = [abs(found[name].effort[:, 1]).max() for name in ('kept', 'planned')]
    assert rates[0] <= 150.0 < rates[1]
    assert found_by('stopped_robot')['analysis'].verdict == 'exceeded'
    assert 'missed cycle at 2.200 s' in capsys.readouterr().out
    pytest.importorskip('mujoco', reason='mujoco is not installed')
    errors = [run.peak_error for run in found_by('elastic_joints')['runs'].values()]
    assert errors[0] > 3.0 * errors[1] > 300.0 * errors[2]


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
