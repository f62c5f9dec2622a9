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
from support.processes import run_python

import hodyn_ros
from hodyn_ros.resources import share_file

ROOT = Path(__file__).resolve().parents[2]
MESSAGES = ROOT / 'hodyn_msgs'
CONTROLLERS = ROOT / 'hodyn_controllers'
DATA_DIRECTORIES = ('launch', 'config', 'urdf')

# Import name to rosdep key and to distribution on PyPI, where they are not formed by a rule.
ROSDEP_KEYS = {
    'click': 'python3-click',
    'llvmlite': 'python3-numba',
    'numba': 'python3-numba',
    'numpy': 'python3-numpy',
    'rich': 'python3-rich',
    'scipy': 'python3-scipy',
    'yaml': 'python3-yaml',
}
DISTRIBUTIONS = {
    'click': 'click',
    # The compiler comes with Numba, in the version that it needs.
    'llvmlite': 'numba',
    'numba': 'numba',
    'numpy': 'numpy',
    'rich': 'rich',
    'scipy': 'scipy',
    'yaml': 'PyYAML',
}
# Not on PyPI; needed by launch files only, and hodyn_msgs is installed from its directory.
NOT_ON_PYPI = {'hodyn_msgs', 'launch', 'launch_ros', 'control_msgs'}
# Imported only where they are used, and asked for by an extra of the same purpose.
OPTIONAL = {'cryptography', 'dask', 'distributed', 'matplotlib', 'rosbags'}


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
    return names - sys.stdlib_module_names - {'hodyn_ros'} - OPTIONAL


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


def test_dependencies_are_the_imports():
    declared = dependencies(ROOT / 'package.xml', 'depend', 'exec_depend')
    imported = {ROSDEP_KEYS.get(name, name) for name in third_party_imports()}
    assert declared == imported


def test_pip_installs_what_is_imported(setup_arguments):
    imported = third_party_imports() - NOT_ON_PYPI
    expected = {
        DISTRIBUTIONS.get(name, 'ros-' + name.replace('_', '-')) for name in imported
    }
    core = distribution_names(setup_arguments['install_requires'])
    ros = distribution_names(setup_arguments['extras_require']['ros'])
    assert core | ros == expected
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


def test_interface_dependencies_agree():
    cmake = (MESSAGES / 'CMakeLists.txt').read_text()
    listed = set(
        re.search(r'set\(interface_dependencies\s(.*?)\)', cmake, re.DOTALL)[1].split()
    )
    used = {
        package
        for path in MESSAGES.glob('*/*')
        if path.suffix in ('.msg', '.srv')
        for package in re.findall(
            r'^(\w+)/\w+(?:\[.*?\])? ', path.read_text(), re.MULTILINE
        )
    } - {'hodyn_msgs'}
    assert used == listed
    assert dependencies(MESSAGES / 'package.xml', 'depend') == listed
    project = (MESSAGES / 'pyproject.toml').read_text()
    for package in listed:
        # Once for building and once for using.
        assert project.count(f'"ros-{package.replace("_", "-")}~=') == 2


@pytest.mark.every_case
@pytest.mark.parametrize(
    'path', sorted(MESSAGES.glob('*/*.[ms][sr][gv]')), ids=lambda path: path.name
)
def test_fields_are_commented(path):
    """Every group of lines that declares something says what it is."""
    for group in re.split(r'\n\s*\n|^---$', path.read_text(), flags=re.MULTILINE):
        if re.search(r'^\w', group, re.MULTILINE):
            assert '#' in group, f'{path.name}: no comment in:\n{group}'


def test_the_package_says_its_version_and_runs_as_the_command():
    version = ElementTree.parse(ROOT / 'package.xml').findtext('version')
    assert hodyn_ros.__version__ == version
    code = (
        'import runpy, sys; sys.argv = ["hodyn", "--version"]; '
        'runpy.run_module("hodyn_ros", run_name="__main__")'
    )
    assert run_python(code) == (f'hodyn_ros {version}\n', '')
