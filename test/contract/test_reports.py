"""Pictures and pages: what they show is what the numbers are, and they need no network."""

from dataclasses import replace

import numpy as np
import pytest
from support.command_tools import NAMES, as_json, call, efforts_of, swinging, write_table
from support.plotting_tools import Page

from hodyn_ros import RobotModel
from hodyn_ros.files import Samples
from hodyn_ros.model import motion_limits
from hodyn_ros.plotting import html_report, plot_efforts, plot_joint, view

TIMES = np.linspace(0.0, 1.0, 61)
MOTION = swinging(TIMES, 1.0, 6.0)
EFFORTS = efforts_of(MOTION)
MODEL = RobotModel.from_urdf('two_link')
RESULTS = Samples(NAMES, TIMES, MOTION, EFFORTS, name='fast.csv')


def test_the_report_says_what_check_says_in_json(tmp_path, capsys):
    pytest.importorskip('plotly', reason='plotly is not installed')
    motion = write_table(tmp_path / 'fast.csv', TIMES, MOTION)
    told = as_json(capsys, 'check', 'two_link', motion, code=1)['violations']
    html = tmp_path / 'page.html'
    code, out, _ = call(capsys, 'plot', 'two_link', motion, '-o', html)
    assert code == 0 and 'exceeded' in out
    page = Page(html.read_text(encoding='utf-8'))
    assert page.mistakes == []
    rows = page.table('Limits that are exceeded')[1:]
    assert len(rows) == len(told) >= 3
    for row, each in zip(rows, told):
        value, limit = (float(cell.split()[0].replace('−', '-')) for cell in row[2:4])
        assert row[1] == each['joint_name']
        assert value == pytest.approx(each['value'], rel=1e-3)
        assert limit == each['limit']
        assert float(row[5].split()[0]) == pytest.approx(each['time'], abs=1e-3)
        assert int(row[6]) == each['sample']
    assert f'{len(told)} limits are exceeded' in page.text_of_all('p', 'verdict')[0]
    # The curves are those of the torques.
    curves = [curve for panel in page.pictures() for curve in panel['curves']]
    for j in range(2):
        for values in (MOTION[:, 0, j], EFFORTS[:, 0, j], EFFORTS[:, 1, j]):
            near = 1e-5 * np.ptp(values)
            assert any(
                len(c['y']) == len(values) and np.abs(c['y'] - values).max() < near
                for c in curves
            )


def test_a_page_asks_nobody_for_anything_and_runs_nothing_that_is_in_names():
    pytest.importorskip('plotly', reason='plotly is not installed')
    nasty = '</title></script><script>alert(1)</script><img src=x onerror="a()">&amp;'
    html = html_report(
        MODEL, replace(RESULTS, name=nasty), motion_limits(MODEL), remarks=[nasty]
    )
    page = Page(html)
    assert page.mistakes == []
    assert nasty in page.visible_text()
    assert page.attributes('img') == page.attributes('link') == []
    for _, attributes, _ in page.elements:
        assert 'src' not in attributes and not any(a.startswith('on') for a in attributes)
        assert (attributes.get('href') or '#').startswith('#')
    policies = [a.get('content', '') for a in page.attributes('meta')]
    assert any("default-src 'none'" in policy for policy in policies)


def lines(axes):
    return [line.get_xydata().T for line in axes.lines if len(line.get_xdata()) > 2]


def test_figures_show_the_numbers_with_their_units_and_limits(tmp_path, capsys):
    pytest.importorskip('matplotlib', reason='matplotlib is not installed')
    axes = [a for a in plot_joint(MODEL, RESULTS, 'elbow').axes if a.axison]
    values = [*MOTION[:, :, 1].T, *EFFORTS[:, :, 1].T]
    assert len(axes) == len(values)
    for place, expected in zip(axes, values):
        ((x, y),) = lines(place)
        np.testing.assert_array_equal(x, TIMES)
        np.testing.assert_array_equal(y, expected)
    labels = [place.get_ylabel() for place in axes]
    assert labels[1].endswith('[rad/s]') and labels[-2].endswith('[N m/s]')
    figure = plot_efforts(MODEL, RESULTS, motion_limits(MODEL))
    flat = [y for a in figure.axes for line in a.lines for y in line.get_ydata()]
    assert {80.0, -80.0, 30.0, -30.0} <= set(flat)
    motion = write_table(tmp_path / 'fast.csv', TIMES, MOTION)
    for name, begin in (('a.png', b'\x89PNG'), ('a.svg', b'<?xml'), ('a.pdf', b'%PDF')):
        assert call(capsys, 'plot', 'two_link', motion, '-o', tmp_path / name)[0] == 0
        assert (tmp_path / name).read_bytes().startswith(begin)


def test_robots_in_motion_stand_where_pinocchio_has_them(tmp_path):
    pytest.importorskip('rerun', reason='Rerun (PyPI: rerun-sdk) is not installed')
    pin = pytest.importorskip('pinocchio', reason='Pinocchio (PyPI: pin) is the reference')
    from support.rerun_files import pose_of, read_recording

    recording = view(MODEL, {'here': RESULTS}, motion_limits(MODEL))
    recording.save(tmp_path / 'motion.rrd')
    recording.disconnect()
    entities = read_recording(tmp_path / 'motion.rrd')
    other = pin.buildModelFromUrdf(str(MODEL.provenance.file))
    data, frame = other.createData(), other.getFrameId('forearm')
    expected = []
    for q in MOTION[:, 0]:
        pin.framesForwardKinematics(other, data, q)
        expected.append(data.oMf[frame].homogeneous)
    (path,) = [
        p for p in entities if p.startswith('/here/bodies/') and p.endswith('/forearm')
    ]
    found = pose_of(entities[path.rpartition('/')[0]]) @ pose_of(entities[path])
    np.testing.assert_allclose(found, expected, atol=1e-6)  # of float32
    torque = entities['/here/effort/elbow']
    np.testing.assert_array_equal(np.ravel(torque['Scalars:scalars']), EFFORTS[:, 0, 1])
    np.testing.assert_allclose(torque['time'], TIMES, atol=1e-9)
