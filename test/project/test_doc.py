"""What the documentation shows runs, what it names exists, and every page of it can be found."""

import importlib
import re
import textwrap
from pathlib import Path
from xml.etree import ElementTree

import pytest
import rclpy
import yaml
from support.imports import LAYERS
from support.ros_harness import next_domain
from support.scripts import load

from hodyn_ros.dynamics.inverse import FORMULATIONS

ROOT = Path(__file__).resolve().parents[2]
DOC = ROOT / 'doc'
run_examples = load(DOC / 'run_examples.py')
PAGES = {str(path.relative_to(DOC)): path for path in sorted(DOC.rglob('*.rst'))}
TEXTS = {page: path.read_text(encoding='utf-8') for page, path in PAGES.items()}

COMMANDS = re.compile(
    r'^\.\. code-block:: (?:bash|console|sh)\n\n((?: {3}.*\n|\n)+)', re.MULTILINE
)
DATA = re.compile(r'^\.\. code-block:: (yaml|xml)\n\n((?: {3}.*\n|\n)+)', re.MULTILINE)
TOCTREE = re.compile(r'^\.\. toctree::\n((?: {3}.*\n|\n)+)', re.MULTILINE)
DIRECTORIES = 'config|doc|examples|hodyn_msgs|hodyn_ros|launch|test|urdf'


def examples(page):
    return run_examples.examples(TEXTS[page])


def page_named(name, page):
    """Name in PAGES of what `page` calls `name`."""
    return str((PAGES[page].parent / f'{name}.rst').resolve().relative_to(DOC))


def listed_pages(page):
    lines = [
        line.strip() for part in TOCTREE.findall(TEXTS[page]) for line in part.splitlines()
    ]
    return [page_named(line, page) for line in lines if line and not line.startswith(':')]


def test_every_page_is_reached_from_the_index():
    reached, to_visit = set(), ['index.rst']
    while to_visit:
        page = to_visit.pop()
        assert page in PAGES, f'{page} is listed but does not exist'
        assert page not in reached, f'{page} is listed twice'
        reached.add(page)
        to_visit += listed_pages(page)
    assert reached == set(PAGES)


# Their examples need no node, draw, compile and simulate nothing; the others run with the long
# tests.
QUICK = (
    'index.rst',
    'conventions.rst',
    'kinematics.rst',
    'drives.rst',
    'trajectories.rst',
    'dynamics.rst',
    'formulations/index.rst',
    'files.rst',
)


@pytest.mark.filterwarnings(
    'ignore::hodyn_ros.control.ControlWarning'
)  # what a page is about
@pytest.mark.parametrize(
    'page',
    [
        pytest.param(page, marks=pytest.mark.every_case if page in QUICK else ())
        for page in sorted(PAGES, key=lambda page: page not in QUICK)
        if examples(page)
    ],
)
def test_examples_run_in_their_order_and_print_what_is_shown(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv('ROS_DOMAIN_ID', str(next_domain()))
    try:
        now = run_examples.with_outputs(TEXTS[page], page)
        assert not rclpy.ok(), 'the page does not end what it has started'
    finally:
        rclpy.try_shutdown()  # a page that fails must not keep others from starting
    assert now == TEXTS[page], (
        f'other outputs now: run python doc/run_examples.py doc/{page}'
    )


def test_index_of_formulations_lists_each_with_its_orders():
    rows = re.findall(
        r"\* - ``'(\w+)'``\n +- (?:below|:doc:`(\w+)`)\n +- (.+)\n",
        TEXTS['formulations/index.rst'],
    )
    assert sorted(name for name, _, _ in rows) == sorted(FORMULATIONS)
    for name, page, orders in rows:
        highest = FORMULATIONS[name].highest_order
        expected = {None: 'any', 0: '0'}.get(highest, f'0 to {highest}')
        assert orders == expected, name
        assert f"'{name}'" in TEXTS[f'formulations/{page or "index"}.rst']


def commands(page):
    """Words of each command of a page, without comments."""
    for block in COMMANDS.findall(TEXTS[page]):
        for line in re.sub(r'\\\n', ' ', block).splitlines():
            for command in line.partition(' #')[0].split('&&'):
                if command.strip():
                    yield command.split()


def check_commands(page):
    """Files, targets, modules, launch files and executables of commands exist."""
    targets = re.findall(r'^([a-z-]+):', (ROOT / 'Makefile').read_text(), re.MULTILINE)
    scripts = re.findall(r"'(\w+) = ", (ROOT / 'setup.py').read_text())
    for words in commands(page):
        files = [
            word for word in words[1:] if re.fullmatch(r'(?:test|doc|benchmarks)/\S+', word)
        ]
        assert all((ROOT / file).is_file() for file in files), words
        match words:
            case ['make', target, *_]:
                assert target in targets, words
            case ['python', '-m', module, *_]:
                path = ROOT.joinpath(*module.split('.'))
                assert (
                    path.with_suffix('.py').is_file() or (path / '__main__.py').is_file()
                ), words
            case ['ros2', 'launch', 'hodyn_ros', file, *arguments]:
                text = (ROOT / 'launch' / file).read_text()
                text += (ROOT / 'launch' / 'hodyn.launch.py').read_text()
                assert all(f"'{item.partition(':=')[0]}'" in text for item in arguments), (
                    words
                )
            case ['ros2', 'run', 'hodyn_ros', script, *_]:
                assert script in scripts, words


def check_names(page):
    """Files, objects and pages that are named exist."""
    for path in re.findall(rf'``((?:{DIRECTORIES})/[\w./-]+)``', TEXTS[page]):
        assert (ROOT / path).exists(), path
    for name in re.findall(r'``(hodyn_ros(?:\.\w+)+)``', TEXTS[page]):
        module, attribute = name.rsplit('.', 1)
        assert hasattr(importlib.import_module(module), attribute), name
    for name in re.findall(r':doc:`(?:[^`<]*<)?([^`<>]+)>?`', TEXTS[page]):
        assert page_named(name, page) in PAGES, name


def check_data(page):
    """YAML and XML that are shown can be read."""
    for kind, block in DATA.findall(TEXTS[page]):
        text = textwrap.dedent(block)
        assert yaml.safe_load(text) if kind == 'yaml' else ElementTree.fromstring(text)


@pytest.fixture(scope='module')
def publish_doctree():
    """Docutils, with what stands in for the directives and roles of Sphinx."""
    core = pytest.importorskip('docutils.core')
    from docutils import nodes
    from docutils.parsers.rst import Directive, directives, roles
    from docutils.parsers.rst.directives.body import CodeBlock

    class OfSphinx(Directive):
        """Stands in for a directive of Sphinx."""

        optional_arguments = 1
        option_spec = dict.fromkeys(
            (
                'caption',
                'exclude-members',
                'hidden',
                'maxdepth',
                'members',
                'show-inheritance',
                'special-members',
            ),
            directives.unchanged,
        )
        has_content = True

        def run(self):
            return []

    class CodeBlockOfSphinx(CodeBlock):
        option_spec = {**CodeBlock.option_spec, 'caption': directives.unchanged}

    def doc(name, rawtext, text, lineno, inliner, options=None, content=()):
        return [nodes.literal(rawtext, text)], []

    for name in ('toctree', 'autoclass', 'autofunction', 'automodule'):
        directives.register_directive(name, OfSphinx)
    directives.register_directive('code-block', CodeBlockOfSphinx)
    roles.register_local_role('doc', doc)
    return core.publish_doctree


@pytest.mark.every_case
@pytest.mark.parametrize('page', PAGES)
def test_what_a_page_names_exists_and_docutils_reads_it(page, publish_doctree):
    check_names(page)
    check_commands(page)
    check_data(page)
    settings = {'report_level': 5, 'halt_level': 5, 'syntax_highlight': 'none'}
    document = publish_doctree(
        TEXTS[page],
        source_path=str(PAGES[page]),
        settings_overrides={**settings, 'raw_enabled': False},
    )
    messages = [*document.parse_messages, *document.transform_messages]
    assert [message.astext() for message in messages if message['level'] > 1] == []
    assert document.get('title'), 'the page has no title'


def test_page_on_the_structure_lists_the_layers_and_names_files_that_exist():
    text = TEXTS['contributing.rst']
    block = re.search(r'code-block:: text\n\n((?: {3}.*\n)+)', text)[1]
    assert [set(line.strip().split(', ')) for line in block.splitlines()] == LAYERS
    paths = set(re.findall(r'(?<![\w/])(?:\w+/)+\w+\.py\b', text))
    assert len(paths) > 20
    missing = [
        p for p in paths if not any((ROOT / d / p).exists() for d in ('', 'hodyn_ros'))
    ]
    assert missing == []


def test_rows_of_the_page_on_control_are_those_of_the_benchmark():
    text = (DOC / 'benchmarks' / 'laws.inc').read_text(encoding='utf-8')
    table = re.split(r'^=[= ]+\n', text.partition('RMS / peak')[2], flags=re.MULTILINE)[2]
    measured = {re.split(r' {2,}', row)[0] for row in table.splitlines()}
    faults = TEXTS['control.rst'].partition('\nFaults\n')[2].partition('\nGuards\n')[0]
    column = faults.index('row\n') - faults.index('fault ')
    named = re.findall(
        r'``([^`]+)``', ' '.join(row[column:] for row in faults.splitlines())
    )
    assert len(named) > 15
    assert set(named) <= measured
