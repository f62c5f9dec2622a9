"""EffortController runs with small stand-ins for what it uses of ROS, as in Humble and later."""

import re
import runpy
import sys
from types import ModuleType
from xml.etree import ElementTree

import pytest
import yaml
from support.compilers import CPP_COMPILERS
from support.plugins import HERE, HUMBLE, KILTED, PACKAGE, run_plugin


@pytest.mark.skipif(not CPP_COMPILERS, reason='there is no C++ compiler')
@pytest.mark.parametrize('version', [HUMBLE, KILTED])
def test_plugin_lives_through_all_states(version, tmp_path):
    sources = PACKAGE / 'src' / 'effort_controller.cpp', HERE / 'effort_plugin.cpp'
    assert run_plugin(tmp_path, version, *sources) == 'correct\n'


def test_plugins_are_declared_as_they_are_exported():
    exported = set()
    for source in (PACKAGE / 'src').glob('*.cpp'):
        pattern = r'PLUGINLIB_EXPORT_CLASS\(\s*([\w:]+),\s*([\w:]+)\)'
        exported.update(re.findall(pattern, source.read_text()))
    library = ElementTree.parse(PACKAGE / 'hodyn_controllers.xml').getroot()
    declared = {(c.get('type'), c.get('base_class_type')) for c in library.iter('class')}
    assert declared == exported
    assert {c.get('name') for c in library.iter('class')} == {
        name.replace('::', '/') for name, _ in exported
    }


def test_build_files_name_the_same_packages():
    manifest = ElementTree.parse(PACKAGE / 'package.xml').getroot()
    depends = {element.text for element in manifest.findall('depend')}
    text = (PACKAGE / 'CMakeLists.txt').read_text()
    found = re.search(r'IN ITEMS(.*?)\)', text, re.DOTALL).group(1).split()
    exported = re.search(r'ament_export_dependencies\((.*?)\)', text, re.DOTALL).group(1)
    assert set(found) == set(exported.split()) == depends


def test_example_drives_the_joints_of_the_panda_within_its_limits(panda_mock):
    known = yaml.safe_load((PACKAGE / 'src/effort_controller_parameters.yaml').read_text())
    example = yaml.safe_load((PACKAGE / 'config' / 'panda_mock.yaml').read_text())
    given = example['effort_controller']['ros__parameters']
    assert set(given) <= set(known['effort_controller'])
    description = (PACKAGE.parent / 'urdf' / 'panda.urdf').read_text()
    robot = ElementTree.fromstring(panda_mock['with_mock_hardware'](description))
    driven = robot.findall('ros2_control/joint')
    assert [joint.get('name') for joint in driven] == given['joints']
    assert all(joint.find('command_interface').get('name') == 'effort' for joint in driven)
    for joint in robot.findall('joint'):
        if joint.get('name') in given['joints']:
            effort = float(joint.find('limit').get('effort'))
            assert given['limits'][joint.get('name')]['effort'] == effort


@pytest.fixture
def panda_mock(monkeypatch):
    """What the launch file defines; its modules of ROS are not there without ROS."""
    for name, holds in (
        ('ament_index_python', ()),
        ('ament_index_python.packages', ('get_package_share_directory',)),
        ('launch', ('LaunchDescription',)),
        ('launch.actions', ('IncludeLaunchDescription',)),
        ('launch.launch_description_sources', ('PythonLaunchDescriptionSource',)),
        ('launch_ros', ()),
        ('launch_ros.actions', ('Node',)),
    ):
        module = ModuleType(name)
        module.__dict__.update(dict.fromkeys(holds, object))
        monkeypatch.setitem(sys.modules, name, module)
    return runpy.run_path(str(PACKAGE / 'launch' / 'panda_mock.launch.py'))
