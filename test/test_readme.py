"""What the README shows runs."""

import re
from pathlib import Path

import numpy as np

from hodyn_ros.ros import parameters

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / 'README.md').read_text(encoding='utf-8')


def test_python_example_runs(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    (example,) = re.findall(r'```python\n(.*?)```', README, flags=re.DOTALL)
    names = {}
    exec(compile(example, 'README.md', 'exec'), names)  # noqa: S102
    assert len(example.strip().splitlines()) <= 12
    assert all(np.shape(names[name]) == (7,) for name in ('Q', 'Qd', 'Q2d'))
    assert np.all(np.isfinite([names['Q'], names['Qd'], names['Q2d']]))
    assert capsys.readouterr().out.startswith('[[')


def test_pictures_and_files_that_are_named_exist():
    for path in re.findall(r'\]\(([^):]+)\)', README):
        assert (ROOT / path).exists(), path
    for path in re.findall(r'`((?:config|launch|urdf|examples|doc)/[\w./]*)`', README):
        assert (ROOT / path).exists(), path


def test_every_parameter_is_listed():
    source = Path(parameters.__file__).read_text(encoding='utf-8')
    names = set(re.findall(r"(?:text|number)\(\s*'(\w+)'", source))
    names |= set(re.findall(r"declare_parameter\(\s*'(\w+)'", source))
    assert len(names) >= 9
    for name in names:
        assert f'`{name}`' in README, name
