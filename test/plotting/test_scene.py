"""Recordings of robots in motion, read back by Rerun's own reader; nothing opens a window."""

import numpy as np
import pytest
from support import robots
from support.command_tools import call
from support.plotting_tools import results_of
from support.rerun_files import pose_of, read_recording

from hodyn_ros import RobotModel, Wrench
from hodyn_ros.lie import se3
from hodyn_ros.model import motion_limits
from hodyn_ros.plotting import view
from hodyn_ros.plotting.scene import moving_bodies, share_colours, wrench_arrows

pytestmark = pytest.mark.filterwarnings('ignore:Python 3.10:DeprecationWarning')
MODEL = RobotModel.from_urdf(robots.TWO_LINK)  # |q| <= 2, |qd| <= 3, |Q| <= 50
GREY, GREEN, RED, UNKNOWN = share_colours(np.array([0.0, 1.0, 1.1, np.nan])).tolist()
BOX = '<visual><geometry><box size="1 2 3"/></geometry></visual>'


@pytest.fixture
def recorded(tmp_path):
    """What `view` records, by the path of the entity."""

    def record(*arguments, **options):
        recording = view(*arguments, **options)
        recording.save(tmp_path / 'motion.rrd')
        recording.disconnect()
        return read_recording(tmp_path / 'motion.rrd')

    return record


def colours_of(entity, kind):
    packed = np.array(entity[kind]).ravel().astype('>u4')
    return packed.view(np.uint8).reshape(-1, 4)[:, :3].tolist()


@pytest.mark.needs('rerun')
def test_scalars_have_all_digits_units_and_limits(recorded):
    limits = motion_limits(MODEL, {'elbow': {'effort_dot': 30.0}})
    results = results_of(MODEL, name='swing.csv')
    entities = recorded(MODEL, results, limits)
    for order, (quantity, unit) in enumerate(
        (('effort', 'N m'), ('effort_dot', 'N m/s'), ('effort_ddot', 'N m/s²'))
    ):
        for joint, name in enumerate(MODEL.joint_names):
            entity = entities[f'/swing/{quantity}/{name}']
            values = np.ravel(entity['Scalars:scalars'])
            assert values.tolist() == results.effort[:, order, joint].tolist()
            np.testing.assert_allclose(entity['time'], results.times, atol=1e-9)
            assert entity['SeriesLines:names'][0][0].endswith(f'[{unit}]')
    assert entities['/limits/effort/shoulder']['Scalars:scalars'] == [[-50.0, 50.0]] * 2
    assert entities['/limits/effort_dot/elbow']['Scalars:scalars'] == [[-30.0, 30.0]] * 2
    assert '/limits/effort_dot/shoulder' not in entities
    parts = entities['/swing/parts\\ of\\ limits/effort_dot']
    assert parts['SeriesLines:names'] == [['elbow']]
    np.testing.assert_array_equal(
        np.ravel(parts['Scalars:scalars']), results.effort[:, 1, 1] / 30.0
    )


@pytest.mark.needs('rerun')
def test_links_are_red_exactly_where_a_limit_of_their_joint_is_exceeded(recorded):
    results = results_of(MODEL)
    rate = np.abs(results.effort[:, 1, 1])
    limit = float(np.median(rate))
    limits = motion_limits(MODEL, {'elbow': {'effort_dot': limit}})
    entities = recorded(MODEL, {'it': results}, limits)
    entity = entities['/it/bodies/elbow/sticks']
    rows = np.searchsorted(results.times, entity['time'] - 1e-6)
    colours = colours_of(entity, 'LineStrips3D:colors')
    is_red = [colour == RED for colour in colours]
    assert is_red == (np.maximum.reduceat(rate, rows) > limit).tolist()
    assert 0 < sum(is_red) < len(rows)
    for colour in colours_of(entities['/it/bodies/shoulder/sticks'], 'LineStrips3D:colors'):
        assert colour != RED
    base = colours_of(entities['/it/base/sticks'], 'LineStrips3D:colors')
    assert base == [UNKNOWN] * len(rows)


@pytest.mark.needs('rerun')
def test_motions_stand_beside_each_other(recorded):
    first, second = results_of(MODEL), results_of(MODEL, amplitude=0.2)
    entities = recorded(MODEL, {'first': first, 'second one': second})
    first_place, second_place = (
        np.ravel(entities[path]['Transform3D:translation'])
        for path in ('/first', '/second\\ one')
    )
    apart = second_place - first_place
    assert np.flatnonzero(apart).tolist() == [1]  # along y
    reach = max(
        np.abs(pose[:, :3, 3]).max() for pose in moving_bodies(MODEL, first.motion[:, 0])[1]
    )
    assert apart[1] > reach
    assert {'/first/name', '/second\\ one/name'} <= set(entities)


@pytest.mark.parametrize('expressed_in', ['body', 'hybrid', 'spatial'])
def test_arrows_are_the_wrench_that_acts_on_the_robot(expressed_in):
    rng = np.random.default_rng(1)
    pose = se3.exp(rng.normal(size=(4, 6)))
    R, p = pose[:, :3, :3], pose[:, :3, 3]
    force, moment = rng.normal(size=(2, 4, 3))  # in axes of the base, about the link
    given = {
        'body': [np.linalg.solve(R, each[..., None])[..., 0] for each in (moment, force)],
        'hybrid': [moment, force],
        'spatial': [moment + np.cross(p, force), force],
    }[expressed_in]
    values = np.concatenate(given, axis=1)[:, None]
    for acting, sign in (('on_robot', 1.0), ('on_environment', -1.0)):
        arrows = wrench_arrows(
            Wrench('fore', values, expressed_in, acting), pose, np.arange(4)
        )
        np.testing.assert_allclose(arrows, sign * np.stack([force, moment], 1), atol=1e-12)


@pytest.mark.needs('rerun')
def test_shapes_have_their_sizes_and_what_moves_has_no_sticks(recorded):
    urdf = robots.TWO_LINK.replace(
        '<link name="tool"/>',
        f'<link name="tool">{BOX}<visual><origin xyz="0 0 1"/><geometry>'
        '<cylinder radius="0.1" length="0.4"/></geometry></visual><visual><geometry>'
        '<capsule radius="0.1" length="0.4"/></geometry></visual><visual><geometry>'
        '<sphere radius="0.3"/></geometry></visual></link>',
    )
    entities = recorded(MODEL, {'it': results_of(MODEL)}, description=urdf)
    box, cylinder, capsule, sphere = (
        entities[f'/it/bodies/elbow/tool/{i}'] for i in range(4)
    )
    # Rerun begins a capsule at the origin.
    np.testing.assert_allclose(
        capsule['Capsules3D:translations'], [[[0.0, 0.0, -0.2]]], rtol=1e-7
    )
    np.testing.assert_allclose(sphere['Ellipsoids3D:half_sizes'], [[[0.3] * 3]], rtol=1e-7)
    assert box['Boxes3D:half_sizes'] == [[[0.5, 1.0, 1.5]]]
    np.testing.assert_allclose(cylinder['Cylinders3D:radii'], [[0.1]], rtol=1e-7)
    np.testing.assert_allclose(cylinder['Cylinders3D:lengths'], [[0.4]], rtol=1e-7)
    assert pose_of(cylinder)[0, :3, 3].tolist() == [0.0, 0.0, 1.0]
    assert len(box['Boxes3D:colors']) == len(box['time']) > 50
    assert '/it/bodies/elbow/sticks' not in entities
    assert '/it/bodies/shoulder/sticks' in entities


@pytest.mark.needs('rerun')
def test_the_command_writes_a_recording_where_there_is_no_display(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    for name in ('DISPLAY', 'WAYLAND_DISPLAY'):
        monkeypatch.delenv(name, raising=False)
    assert call(capsys, 'demo')[0] == 0
    motions = ('hodyn_demo/fast.csv', 'hodyn_demo/motion.csv', 'hodyn_demo/motion.csv')
    _, out, err = call(capsys, 'view', 'panda', *motions)
    assert 'Written: fast.rrd' in out
    assert 'no display' in err
    assert '--serve' in err
    entities = read_recording(tmp_path / 'fast.rrd')
    assert {'/fast', '/motion', '/motion_3'} <= set(entities)
    assert entities['/limits/effort_dot/panda_joint1']['Scalars:scalars'][0] == [-1e3, 1e3]
