"""What the package declares is what it contains: dependencies, data files, interfaces."""

import ast
import re
import runpy
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
import yaml

from hodyn_ros.resources import share_file

ROOT = Path(__file__).resolve().parents[2]
MESSAGES = ROOT / 'hodyn_msgs'
CONTROLLERS = ROOT / 'hodyn_controllers'
DATA_DIRECTORIES = ('launch', 'config', 'urdf')
# Of Python, named so on PyPI and python3-... in rosdep; the compiler comes with Numba.
OF_PYTHON = {'click', 'numba', 'numpy', 'rich', 'scipy', 'yaml'}
# Not on PyPI; needed by launch files only, and hodyn_msgs is installed from its directory.
NOT_ON_PYPI = {'hodyn_msgs', 'launch', 'launch_ros', 'control_msgs'}
# Imported only where they are used, and asked for by an extra of the same purpose.
OPTIONAL = {'dask', 'distributed', 'matplotlib', 'rosbags'}


def dependencies(manifest, *tags):
    root = ElementTree.parse(manifest).getroot()
    return {element.text for tag in tags for element in root.findall(tag)}


def third_party_imports():
    files = [*(ROOT / 'hodyn_ros').rglob('*.py'), *(ROOT / 'launch').glob('*.py')]
    names = set()
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(), str(file))):
            if isinstance(node, ast.Import):
                names.update(alias.name.partition('.')[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names.add(node.module.partition('.')[0])
    return names - sys.stdlib_module_names - {'hodyn_ros', 'llvmlite'} - OPTIONAL


def data_file_paths():
    return sorted(
        path.relative_to(ROOT)
        for directory in DATA_DIRECTORIES
        for path in (ROOT / directory).rglob('*')
        if path.is_file() and path.suffix != '.pyc' and not path.name.startswith('.')
    )


def distribution_names(requirements):
    return {re.match(r'[\w.-]+', requirement).group() for requirement in requirements}


@pytest.fixture
def setup_arguments(monkeypatch):
    """What setup.py hands to setuptools."""
    captured = {}
    setuptools = SimpleNamespace(setup=captured.update, find_packages=lambda **_: [])
    monkeypatch.setitem(sys.modules, 'setuptools', setuptools)
    monkeypatch.chdir(ROOT)
    runpy.run_path('setup.py')
    return captured


@pytest.mark.every_case
@pytest.mark.parametrize(
    'directory',
    [ROOT, MESSAGES, CONTROLLERS],
    ids=['hodyn_ros', 'hodyn_msgs', 'hodyn_controllers'],
)
def test_manifest_is_valid(directory):
    package = pytest.importorskip('catkin_pkg.package')
    warnings = []
    manifest = package.parse_package(str(directory / 'package.xml'), warnings=warnings)
    manifest.validate()
    assert warnings == []
    assert manifest.package_format == 3


def test_versions_agree(setup_arguments):
    def version_in(manifest):
        return ElementTree.parse(manifest).getroot().findtext('version')

    version = version_in(ROOT / 'package.xml')
    assert re.fullmatch(r'\d+\.\d+\.\d+', version)
    assert setup_arguments['version'] == version
    assert version_in(MESSAGES / 'package.xml') == version
    assert version_in(CONTROLLERS / 'package.xml') == version
    project = (MESSAGES / 'pyproject.toml').read_text()
    assert re.findall(r'^version = "(.*)"$', project, re.MULTILINE) == [version]
    citation = yaml.safe_load((ROOT / 'CITATION.cff').read_text(encoding='utf-8'))
    assert citation['version'] == version
    pages = (ROOT / 'doc' / 'formulations' / 'index.rst').read_text(encoding='utf-8')
    for paper in citation['references']:
        assert paper['title'] in ' '.join(pages.split()), paper['title']


def test_links_of_the_readme_name_files_and_lead_to_the_repository_on_pypi(setup_arguments):
    names = runpy.run_path('setup.py')
    link = re.compile(r'\]\(([^)]+)\)')
    files = link.findall(names['readme'](''))
    assert len(files) > 20
    assert [name for name in files if not Path(name).exists()] == []
    places = link.findall(names['readme']('https://example.org/robot'))
    assert places[0] == f'https://example.org/robot/raw/main/{files[0]}'  # the picture
    assert places[1:] == [
        f'https://example.org/robot/blob/main/{name}' for name in files[1:]
    ]


def test_dependencies_are_the_imports():
    declared = dependencies(ROOT / 'package.xml', 'depend', 'exec_depend')
    imported = third_party_imports()
    assert declared == {
        f'python3-{name}' if name in OF_PYTHON else name for name in imported
    }


def test_pip_installs_what_is_imported(setup_arguments):
    imported = third_party_imports() - NOT_ON_PYPI
    expected = {
        name if name in OF_PYTHON else f'ros-{name.replace("_", "-")}' for name in imported
    }
    core = distribution_names(setup_arguments['install_requires'])
    ros = distribution_names(setup_arguments['extras_require']['ros'])
    assert {name.replace('PyYAML', 'yaml') for name in core | ros} == expected
    # A ROS installation has no distributions of these names, and scripts would refuse to start.
    assert not [name for name in core if name.startswith('ros-')]


def test_every_data_file_is_installed(setup_arguments):
    declared = {
        (directory, path)
        for directory, paths in setup_arguments['data_files']
        for path in map(Path, paths)
    }
    for path in data_file_paths():
        assert (f'share/hodyn_ros/{path.parent}', path) in declared
        assert share_file(path).read_bytes() == (ROOT / path).read_bytes()


def test_every_executable_has_a_main(setup_arguments):
    scripts = setup_arguments['entry_points']['console_scripts']
    assert scripts
    for script in scripts:
        module, _, function = script.partition(' = ')[2].partition(':')
        assert callable(getattr(import_module(module), function)), script


def test_every_interface_is_built():
    cmake = (MESSAGES / 'CMakeLists.txt').read_text()
    declared = set(re.findall(r'\b(?:msg|srv)/\w+\.\w+', cmake))
    existing = {
        f'{kind}/{path.name}'
        for kind in ('msg', 'srv')
        for path in (MESSAGES / kind).iterdir()
    }
    assert declared == existing
