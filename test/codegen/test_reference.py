"""The generated code that stands in the repository is the one that is generated."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

NUMBER = re.compile(r'(?<![\w.])\d+(?:\.\d*)?(?:[eE][+-]?\d+)?')
_PATH = Path(__file__).with_name('make_reference.py')


@pytest.fixture(scope='module')
def made():
    """Module that writes the reference."""
    spec = importlib.util.spec_from_file_location('make_reference', _PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_reference_is_what_is_generated(made, tmp_path):
    made.write(tmp_path)
    for name in made.FILES:
        now, kept = ((folder / name).read_text() for folder in (tmp_path, made.FOLDER))
        hint = (
            f'{name}: run python test/codegen/make_reference.py, and look at what changes'
        )
        # Libraries for matrices differ in last digits.
        assert NUMBER.sub('#', now) == NUMBER.sub('#', kept), hint
        numbers = [np.array(NUMBER.findall(text), dtype=float) for text in (now, kept)]
        np.testing.assert_allclose(*numbers, rtol=1e-9, err_msg=hint)
