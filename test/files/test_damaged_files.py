"""Damaged and invented files: they are read, or refused with an error that names them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.io_cases import model, results, swing

from hodyn_ros import inverse_dynamics
from hodyn_ros.errors import HodynError
from hodyn_ros.files import Samples, compute, read_motion, read_results, write_results

FORMATS = ('.csv', '.npz', '.parquet', '.yaml', '.mcap', '.db3')
NEEDS = {'.parquet': 'pyarrow', '.mcap': 'rosbags', '.db3': 'rosbags'}
damage = st.lists(
    st.one_of(
        st.tuples(st.just('flip'), st.floats(0, 1), st.integers(0, 7)),
        st.tuples(st.just('set'), st.floats(0, 1), st.integers(0, 255)),
        st.tuples(st.just('cut'), st.floats(0, 1), st.just(0)),
        st.tuples(st.just('put'), st.floats(0, 1), st.binary(max_size=12)),
        st.tuples(st.just('drop'), st.floats(0, 1), st.integers(1, 40)),
    ),
    min_size=1,
    max_size=4,
)


def damaged(data, changes):
    result = bytearray(data)
    for what, where, value in changes:
        place = min(int(where * len(result)), max(len(result) - 1, 0))
        if what == 'cut' or not result:
            del result[place:]
        elif what == 'flip':
            result[place] ^= 1 << value
        elif what == 'set':
            result[place] = value
        elif what == 'put':
            result[place:place] = value
        else:
            del result[place : place + value]
    return bytes(result)


def attempt(path, read):
    """Read a file; the only error may be one of ours that names it."""
    try:
        return read(path)
    except HodynError as error:
        assert path.name in str(error)
        return None


@pytest.fixture(scope='module')
def intact(tmp_path_factory):
    folder = tmp_path_factory.mktemp('intact')
    found = {}
    for suffix in FORMATS:
        try:
            __import__(NEEDS.get(suffix, 'numpy'))
        except ImportError:
            continue
        write_results(folder / f'x{suffix}', results())
        found[suffix] = (folder / f'x{suffix}').read_bytes()
        assert len(read_motion(folder / f'x{suffix}')) == 40
    return folder, found


@pytest.mark.every_case
@pytest.mark.parametrize('suffix', FORMATS)
def test_damaged_files_are_read_or_refused(suffix, intact):
    folder, found = intact
    if suffix not in found:
        pytest.skip(f'{NEEDS[suffix]} is not installed')
    path = folder / f'damaged{suffix}'

    @given(damage)
    def check(changes):
        path.write_bytes(damaged(found[suffix], changes))
        samples = attempt(path, read_motion)
        if samples is not None:
            assert np.isfinite(samples.motion[:, 0]).all()
        if suffix in ('.csv', '.npz', '.parquet'):
            attempt(path, read_results)

    check()


@pytest.mark.every_case
@pytest.mark.parametrize('suffix', FORMATS)
def test_invented_files_are_refused(suffix, intact):
    folder, found = intact
    if suffix not in found:
        pytest.skip(f'{NEEDS[suffix]} is not installed')
    path = folder / f'invented{suffix}'

    @given(st.one_of(st.binary(max_size=200), st.sampled_from(list(found.values()))))
    def check(data):
        path.write_bytes(data)
        if data != found[suffix]:
            assert attempt(path, read_motion) is None

    check()


cells = st.one_of(
    st.floats().map(repr),
    st.integers(-(10**30), 10**30).map(str),
    st.sampled_from(
        ['', ' ', 'nan', '1e999', '0x1', '1_0', '"', '"1"', "'", '\x00', '#', '١']
    ),
    st.text(max_size=4),
)
titles = st.lists(
    st.sampled_from(
        [
            'time',
            'a.position',
            'a.velocity',
            'b.position',
            'b.velocity',
            'a.stiffness',
            'a.motor_position',
            'a.effort',
            'l.wrench.force.x',
            '.position',
            'x',
            '',
        ]
    ),
    max_size=8,
)


@given(titles, st.lists(st.lists(cells, max_size=8), max_size=5), st.sampled_from(',;\t'))
def test_invented_tables_are_read_or_refused(tmp_path_factory, names, rows, delimiter):
    path = tmp_path_factory.getbasetemp() / 'invented_table.csv'
    lines = [delimiter.join(names), *(delimiter.join(row) for row in rows)]
    path.write_text('\n'.join(lines), encoding='utf-8', errors='surrogatepass')
    attempt(path, read_motion)
    attempt(path, read_results)


yaml_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**20), 10**20),
        st.floats(),
        st.sampled_from(['a', '1e-3', '']),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                [
                    'joint_names',
                    'points',
                    'positions',
                    'velocities',
                    'time_from_start',
                    'sec',
                    'nanosec',
                    'header',
                    'stamp',
                ]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)
waypoint = st.fixed_dictionaries(
    {
        'positions': st.lists(yaml_values, min_size=1, max_size=2),
        'time_from_start': yaml_values,
    },
    optional={'velocities': yaml_values, 'accelerations': yaml_values},
)


@given(
    st.one_of(
        yaml_values,
        st.fixed_dictionaries(
            {'joint_names': st.just(['a']), 'points': st.lists(waypoint, max_size=3)},
            optional={'header': yaml_values},
        ),
    )
)
def test_invented_trajectories_are_read_or_refused(tmp_path_factory, content):
    import yaml

    path = tmp_path_factory.getbasetemp() / 'invented.yaml'
    path.write_text(yaml.safe_dump(content))
    attempt(path, read_motion)


@given(
    st.sampled_from(['auto', 'given', 'spline', 'estimate']),
    st.integers(1, 5),
    st.integers(0, 30),
    st.sampled_from([1.0, 1e-9, 1e6, 1e200]),
)
def test_samples_of_any_size_are_computed_rightly_or_refused(
    derivatives, orders, count, scale
):
    robot, times = model(), 0.01 * np.arange(count)
    motion = scale * swing(times, orders=orders)
    samples = Samples(robot.joint_names, times, motion)
    try:
        found = compute(robot, samples, derivatives=derivatives)
    except HodynError:
        # A motion of usual size with its accelerations is always computed.
        assert (
            scale > 1.0 or count < 8 or orders < 3 or derivatives not in ('auto', 'given')
        )
        return
    assert len(found) == len(found.times) == len(found.effort)
    if derivatives == 'given':
        expected = inverse_dynamics(robot, motion)
        np.testing.assert_allclose(found.effort, expected, rtol=1e-9, atol=1e-9)
