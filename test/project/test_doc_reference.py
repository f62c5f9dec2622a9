"""The reference is complete: every field of a message, every public name. Sphinx builds it."""

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import hodyn_msgs.msg
import hodyn_msgs.srv
import pytest
from support.scripts import load

import hodyn_ros
from hodyn_ros import errors

ROOT = Path(__file__).resolve().parents[2]
DOC = ROOT / 'doc'
generate_messages = load(DOC / 'generate_messages.py')

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
DIRECTIVE = re.compile(r'^\.\. auto(?:class|exception|function):: ([\w.]+)$', re.MULTILINE)


def documented():
    """Dotted names on the pages of the Python interface."""
    texts = [path.read_text(encoding='utf-8') for path in sorted(DOC.glob('api/*.rst'))]
    return [name for text in texts for name in DIRECTIVE.findall(text)]


def section(name):
    """What the page on messages says of one of them."""
    text = generate_messages.PAGE.read_text(encoding='utf-8')
    below = text.partition(f'\n{name}\n{"-" * len(name)}\n')[2]
    return re.split(r'\n\w+\n-{3,}\n', below)[0]


def field_names(kind):
    if name := getattr(hodyn_msgs.msg, kind, None):
        return list(name.get_fields_and_field_types())
    service = getattr(hodyn_msgs.srv, kind)
    parts = service.Request, service.Response
    return [name for part in parts for name in part.get_fields_and_field_types()]


def test_page_on_messages_is_what_its_script_writes():
    page = generate_messages.PAGE.read_text(encoding='utf-8')
    assert page == generate_messages.page(), 'run python doc/generate_messages.py'


@pytest.mark.parametrize('kind', INTERFACES)
def test_page_on_messages_lists_every_field_of_the_built_messages(kind):
    terms = re.findall(r'^(``.+)\n {3}\S', section(kind), re.MULTILINE)
    listed = re.findall(r'``(\w+)``', ' '.join(terms))
    assert sorted(listed) == sorted(field_names(kind))


@pytest.mark.parametrize('kind', INTERFACES)
def test_every_field_and_constant_has_a_meaning(kind):
    for part in INTERFACES[kind].read_text(encoding='utf-8').split('\n---\n'):
        for group in generate_messages.read_part(part).groups:
            for entry in group.entries:
                assert group.comment or entry.note or entry.units, f'{kind}.{entry.name}'


def test_definitions_are_read():
    part = generate_messages.read_part(
        '# What it is.\n\n# Both of `a` and b_*.\nfloat64[] a  # [N], [N m]\nint8 b_dot\n'
        'uint8 ONE = 1  # the first\n# Below.\nstring<=5 c\n'
    )
    assert part.introduction == ['What it is.']
    (both, below) = part.groups
    assert [entry.name for entry in both.entries] == ['a', 'b_dot', 'ONE']
    assert [entry.units for entry in both.entries] == ['[N], [N m]', '', '']
    assert (both.entries[2].value, both.entries[2].note) == ('1', 'the first')
    assert generate_messages.markup(both.comment) == r'Both of ``a`` and b\_\*.'
    assert below.comment == 'Below.'
    assert below.entries[0].type == 'string<=5'
    assert (
        generate_messages.head(both.entries[:2])
        == '``a`` [N, N m]: float64[]; ``b_dot``: int8'
    )
    with pytest.raises(ValueError, match='do not say what a is'):
        generate_messages.item(both.entries[:1], '')


@pytest.mark.parametrize('definition', ['float64[ a', '# x\nfloat64 a\n\n# about nothing'])
def test_definitions_that_are_not_understood_are_refused(definition):
    with pytest.raises(ValueError, match='definition|nothing'):
        generate_messages.read_part(definition)


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


@pytest.mark.slow  # `test_docutils_parses_without_complaint` reads each page alone
def test_sphinx_reads_the_pages_without_a_warning(tmp_path):
    pytest.importorskip('sphinx')
    pytest.importorskip('sphinx_rtd_theme')
    command = [
        sys.executable,
        '-m',
        'sphinx',
        '-q',
        '-n',
        '-W',
        '--keep-going',
        '-b',
        'dummy',
    ]
    made = subprocess.run(
        [*command, '-d', tmp_path / 'cache', DOC, tmp_path / 'nothing'],
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert made.returncode == 0, made.stderr
    pages = {str(path.relative_to(DOC).with_suffix('')) for path in DOC.rglob('*.rst')}
    built = {
        str(path.relative_to(tmp_path / 'cache').with_suffix(''))
        for path in (tmp_path / 'cache').rglob('*.doctree')
    }
    assert pages <= built
