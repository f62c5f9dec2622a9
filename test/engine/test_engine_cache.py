"""The cache of machine code, and machines without a compiler; in processes of their own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.engine_cases import needs_compiler
from support.processes import run_python

import hodyn_ros

URDF = str(Path(__file__).resolve().parents[2] / 'urdf' / 'two_link.urdf')
SCRIPT = """
import sys
import numpy as np
{before}
from hodyn_ros import RobotModel, Wrench, inverse_dynamics
from hodyn_ros.dynamics import chosen_algorithm
model = RobotModel.from_urdf({urdf!r})
model.warm_up()
motion = np.random.default_rng(0).standard_normal((20, 5, 2))
expected = inverse_dynamics(model, motion, algorithm='nth_order')
wrench = Wrench('tool', np.ones((3, 6)), 'spatial')
for given in (motion, motion[0]):
    error = np.abs(inverse_dynamics(model, given) - expected[: given.ndim // 3 or 1])
    assert error.max() if given.ndim == 3 else error[0].max() < 1e-12
for _ in range(2):
    loaded = inverse_dynamics(model, motion, wrench)
    error = np.abs(loaded - inverse_dynamics(model, motion, wrench, 'nth_order'))
    assert error.max() < 1e-11
print(chosen_algorithm(model, motion), chosen_algorithm(model, motion[0]))
{after}
"""


def run(before='', after='', **environment):
    """Output of a fresh process that computes with a warm robot."""
    script = SCRIPT.format(before=before, after=after, urdf=URDF)
    return run_python(script, **environment)[0].splitlines()


def cached(directory):
    return sorted((directory / 'hodyn_ros').glob('*.o'))


@needs_compiler
def test_machine_code_is_kept_where_numba_keeps_its_own(tmp_path):
    assert run(NUMBA_CACHE_DIR=str(tmp_path))[0] == 'compiled_robot compiled_robot'
    files = cached(tmp_path)
    assert len(files) >= 6  # three orders, one sample and several
    written = [path.stat().st_ino for path in files]
    run(NUMBA_CACHE_DIR=str(tmp_path))
    assert [path.stat().st_ino for path in files] == written
    # Damaged entries are made again, not run.
    for number, path in enumerate(files):
        content = path.read_bytes()
        path.write_bytes(content[:-100] + bytes(100) if number % 2 else b'')
    assert run(NUMBA_CACHE_DIR=str(tmp_path))[0] == 'compiled_robot compiled_robot'
    assert all(path.stat().st_size > 1000 for path in cached(tmp_path))


@needs_compiler
def test_machine_code_is_made_anew_where_a_file_that_writes_it_has_changed(tmp_path):
    package = tmp_path / 'hodyn_ros'
    shutil.copytree(Path(hodyn_ros.__file__).parent, package)
    found = []
    for change in ('', '# changed'):
        with (package / 'engine' / 'llvm_lanes.py').open('a') as file:
            file.write(change)
        before = f'sys.path.insert(0, {str(tmp_path)!r})'
        lines = run(before, NUMBA_CACHE_DIR=str(tmp_path / 'cache'))
        assert lines[0] == 'compiled_robot compiled_robot'
        found.append(set(cached(tmp_path / 'cache')))
    assert len(found[1]) == 2 * len(found[0]) > 0


@needs_compiler
def test_without_a_place_for_a_cache_everything_is_compiled_again(tmp_path):
    (tmp_path / 'file').write_text('in the way')
    lines = run(NUMBA_CACHE_DIR=str(tmp_path / 'file'), XDG_CACHE_HOME=None)
    assert lines[0] == 'compiled_robot compiled_robot'
    lines = run(NUMBA_CACHE_DIR=None, XDG_CACHE_HOME=None, HOME='/proc/nobody')
    assert lines[0] == 'compiled_robot compiled_robot'


@needs_compiler
@pytest.mark.parametrize('name', ['hodyn_ros', ''])
def test_no_machine_code_is_taken_from_where_everyone_can_write(tmp_path, name):
    (tmp_path / 'hodyn_ros').mkdir()
    (tmp_path / name).chmod(0o1777)
    script = SCRIPT.format(before='', after='', urdf=URDF)
    out, messages = run_python(script, NUMBA_CACHE_DIR=str(tmp_path))
    assert out.split() == ['compiled_robot', 'compiled_robot']
    assert not cached(tmp_path)
    assert messages.count('everyone can write there') == 1
    assert not list(tmp_path.rglob('*.nbi'))


# In a process of its own: what others still compile would come into the same cache.
EVICTING = """
import os, sys
from pathlib import Path
from hodyn_ros import RobotModel
from hodyn_ros.engine import code_cache

# The code of calls, which all robots share, has another place.
RobotModel.from_urdf('panda').warm_up(0)
os.environ['NUMBA_CACHE_DIR'] = sys.argv[1]
folder = Path(sys.argv[1]) / 'hodyn_ros'

def cached():
    return set(folder.glob('*.o')) if folder.exists() else set()

def use(k):
    # Files that a new model, whose code is its own, has after it was warmed up.
    panda = RobotModel.from_urdf('panda').with_armature({'panda_joint1': 0.1 * k})
    before = cached()
    panda.warm_up(0)
    return cached() - before

first = use(0)
foreign = [folder / 'program.o', folder / 'notes.txt']
for path in foreign:
    path.write_text('not of this package')
abandoned = folder / 'hodyn_abc.tmp'  # by a process that was killed
abandoned.write_text('half')
os.utime(abandoned, (0, 0))
code_cache.CACHE_SIZE = int(3.5 * sum(path.stat().st_size for path in first))
second = use(1)
for k in range(2, 6):
    made = use(k)
    assert made and all(path.exists() for path in made)
    assert not use(0)  # it is in the cache, and has been used
    entries = cached() - set(foreign)
    assert sum(path.stat().st_size for path in entries) <= code_cache.CACHE_SIZE
assert all(path.exists() for path in (*first, *foreign))
assert not any(path.exists() for path in (*second, abandoned))
print('kept', len(first))
"""


@needs_compiler
def test_what_has_not_been_used_for_longest_leaves_the_cache(tmp_path):
    assert run_python(EVICTING, str(tmp_path))[0].startswith('kept ')


@needs_compiler
@pytest.mark.parametrize('size', [1, None])
def test_processes_that_start_together_share_the_cache(tmp_path, size):
    # With the smallest size each removes what the others have just made.
    before = (
        f'from hodyn_ros.engine import code_cache; code_cache.CACHE_SIZE = {size}'
        if size
        else ''
    )
    script = SCRIPT.format(before=before, after='', urdf=URDF)
    processes = [
        subprocess.Popen(
            [sys.executable, '-c', script],
            env={**os.environ, 'NUMBA_CACHE_DIR': str(tmp_path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for process in processes:
        out, err = process.communicate(timeout=600)
        assert process.returncode == 0, err
        assert out.split() == ['compiled_robot', 'compiled_robot']
    assert not [p for p in (tmp_path / 'hodyn_ros').iterdir() if p.suffix == '.tmp']


NO_COMPILERS = {
    'disabled': ({}, {'NUMBA_DISABLE_JIT': '1'}),
    'Numba is missing': ({'before': 'sys.modules["numba"] = None'}, {}),
    'both are missing': (
        {'before': 'sys.modules["numba"] = None; sys.modules["llvmlite"] = None'},
        {},
    ),
}


@pytest.mark.parametrize('case', NO_COMPILERS)
def test_without_a_compiler_numpy_computes(case):
    code, environment = NO_COMPILERS[case]
    refused = (
        'try:\n    inverse_dynamics(model, motion, algorithm="compiled_robot")\n'
        'except ValueError as error:\n    print(error)'
    )
    lines = run(**code, after=refused, **environment)
    assert lines[0] == 'nth_order nth_order'
    assert 'There is no compiler' in lines[1]
    assert 'NUMBA_DISABLE_JIT' in lines[1] or 'cannot be imported' in lines[1]


FAILING = """
import logging
import llvmlite.binding
import numpy as np
from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.dynamics import chosen_algorithm

def fail(*_):
    raise RuntimeError('no such processor')

llvmlite.binding.parse_assembly = fail
said = []
handler = logging.Handler()
handler.emit = lambda record: said.append(record.getMessage())
logging.getLogger().addHandler(handler)
model = RobotModel.from_urdf('two_link')
motion = np.random.default_rng(0).standard_normal((100, 5, 2))
expected = inverse_dynamics(model, motion, algorithm='body_fixed')
while not said:
    assert np.abs(inverse_dynamics(model, motion) - expected).max() < 1e-11
for _ in range(100):
    assert np.abs(inverse_dynamics(model, motion) - expected).max() < 1e-11
print(chosen_algorithm(model, motion), said)
"""


@needs_compiler
def test_a_compiler_that_fails_is_reported_once_and_replaced(tmp_path):
    out, _ = run_python(FAILING, NUMBA_CACHE_DIR=str(tmp_path))
    said = 'Compiling the dynamics of two_link failed; slower code is used.'
    assert out == f'nth_order {[said]}\n'


def test_importing_the_package_imports_no_compiler():
    code = (
        'import sys, hodyn_ros; '
        'print([name for name in ("numba", "llvmlite") if sys.modules.get(name)])'
    )
    assert run_python(code) == ('[]\n', '')
