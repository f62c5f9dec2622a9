"""The reference is complete: every field of a message, every public name. Sphinx builds it."""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import hodyn_msgs.msg
import hodyn_msgs.srv
import pytest
from support.scripts import load

import hodyn_ros
from hodyn_ros import errors

ROOT = Path(__file__).resolve().parents[2]
DOC = ROOT / 'doc'
generate_reference = load(DOC / 'generate_reference.py')

INTERFACES = {
    path.stem: path
    for path in sorted(
        [*ROOT.glob('hodyn_msgs/msg/*.msg'), *ROOT.glob('hodyn_msgs/srv/*.srv')]
    )
}
# What these packages export is for people who work on this package itself.
INNER = {'cli', 'codegen', 'dynamics', 'engine', 'lie', 'ros'}
PUBLIC = [
    hodyn_ros,
    *(
        importlib.import_module(f'hodyn_ros.{info.name}')
        for info in pkgutil.iter_modules(hodyn_ros.__path__)
        if info.ispkg and info.name not in INNER
    ),
    errors,
]
WHOLE = re.compile(r'^\.\. automodule:: ([\w.]+)\n {3}:members:$', re.MULTILINE)
DIRECTIVE = re.compile(r'^\.\. auto(?:class|exception|function):: ([\w.]+)$', re.MULTILINE)


def documented():
    """Dotted names on the pages of the Python interface."""
    pages = [DOC / 'api.rst', *sorted(DOC.glob('api/*.rst'))]
    texts = [path.read_text(encoding='utf-8') for path in pages]
    names = [name for text in texts for name in DIRECTIVE.findall(text)]
    for module in [name for text in texts for name in WHOLE.findall(text)]:
        members = inspect.getmembers(importlib.import_module(module), inspect.isclass)
        names += [
            f'{module}.{name}' for name, value in members if value.__module__ == module
        ]
    return names


def section(name):
    """Section of the reference on a message."""
    text = (DOC / 'messages.inc').read_text(encoding='utf-8')
    below = text.partition(f'\n{name}\n{"~" * len(name)}\n')[2]
    return re.split(r'\n\w+\n~{3,}\n', below)[0]


def field_names(kind):
    if name := getattr(hodyn_msgs.msg, kind, None):
        return list(name.get_fields_and_field_types())
    service = getattr(hodyn_msgs.srv, kind)
    parts = service.Request, service.Response
    return [name for part in parts for name in part.get_fields_and_field_types()]


@pytest.mark.every_case
@pytest.mark.parametrize('path', generate_reference.FILES, ids=lambda path: path.name)
def test_generated_file_is_current(path):
    text = generate_reference.FILES[path]()
    assert path.read_text(encoding='utf-8') == text, 'run python doc/generate_reference.py'


@pytest.mark.every_case
@pytest.mark.parametrize('kind', INTERFACES)
def test_reference_lists_every_field_of_the_built_messages(kind):
    terms = re.findall(r'^(``.+)\n {3}\S', section(kind), re.MULTILINE)
    listed = re.findall(r'``(\w+)``', ' '.join(terms))
    assert sorted(listed) == sorted(field_names(kind))


@pytest.mark.every_case
@pytest.mark.parametrize('module', PUBLIC, ids=lambda module: module.__name__)
def test_every_public_name_is_documented_once(module):
    names = getattr(module, '__all__', None) or [
        name for name, value in vars(module).items() if inspect.isclass(value)
    ]
    listed = [found(name) for name in documented()]
    for name in names:
        value = getattr(module, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert len([item for item in listed if item is value]) == 1, name


def found(name):
    """What has a dotted name, also behind the facade, such as hodyn_ros.friction.Viscous."""
    owner = hodyn_ros
    for part in name.split('.')[1:]:
        if inspect.ismodule(owner) and not hasattr(owner, part):
            importlib.import_module(f'{owner.__name__}.{part}')
        owner = getattr(owner, part)
    return owner


def test_every_documented_name_has_a_docstring():
    for name in documented():
        assert inspect.getdoc(found(name)), name
