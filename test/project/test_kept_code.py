"""Machine code of Numba that is kept between processes belongs to what it was made from."""

import os
import shutil
import subprocess
import sys
from textwrap import dedent

import pytest

pytest.importorskip('numba')

KERNEL = dedent("""
    from hodyn_ros.resources import compiled_function
    from hodyn_ros_trial.helper import FACTOR, helper

    HELPERS = (helper,)  # written with its address, which is another one in each process


    def kernel(x):
        return FACTOR * helper(x)


    kernel = compiled_function(kernel, 'float64(float64)')
""")
HELPER = dedent("""
    from numba.extending import register_jitable

    FACTOR = {factor}


    @register_jitable
    def helper(x):
        return x + {summand}
""")
SCRIPT = dedent("""
    from hodyn_ros_trial.kernel import kernel

    print(kernel(1.0), sum(kernel.stats.cache_misses.values()))
""")


def result(cache, place, factor, summand):
    """Value of the kernel of a package at a place, and how often it was compiled for that."""
    package = place / 'hodyn_ros_trial'
    package.mkdir(parents=True, exist_ok=True)
    (package / '__init__.py').write_text('')
    (package / 'kernel.py').write_text(KERNEL)
    (package / 'helper.py').write_text(HELPER.format(factor=factor, summand=summand))
    shutil.rmtree(package / '__pycache__', ignore_errors=True)
    answer = subprocess.run(
        [sys.executable, '-c', SCRIPT],
        env={**os.environ, 'NUMBA_CACHE_DIR': str(cache), 'PYTHONPATH': str(place)},
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 0, answer.stderr
    value, misses = answer.stdout.split()
    return float(value), int(misses)


def test_code_is_compiled_again_where_a_helper_of_another_module_has_changed(tmp_path):
    cache, place = tmp_path / 'cache', tmp_path / 'one'
    assert result(cache, place, factor=2.0, summand=10.0) == (22.0, 1)
    assert result(cache, place, factor=2.0, summand=20.0) == (42.0, 1)
    assert result(cache, place, factor=3.0, summand=20.0) == (63.0, 1)


def test_installation_at_another_place_finds_the_code_that_is_there(tmp_path):
    cache = tmp_path / 'cache'
    assert result(cache, tmp_path / 'one', factor=2.0, summand=10.0) == (22.0, 1)
    assert result(cache, tmp_path / 'other', factor=2.0, summand=10.0) == (22.0, 0)
