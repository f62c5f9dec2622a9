"""EffortController runs with small stand-ins for what it uses of ROS, as in Humble and later."""

import re
from xml.etree import ElementTree

import pytest
import yaml
from support.compilers import CPP_COMPILERS
from support.plugins import HERE, HUMBLE, KILTED, PACKAGE, run_plugin


@pytest.mark.skipif(not CPP_COMPILERS, reason='there is no C++ compiler')
@pytest.mark.parametrize('version', [HUMBLE, KILTED])
def test_sanitizers_find_nothing_in_the_life_of_the_plugin(version, tmp_path):
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


def test_example_drives_the_joints_of_the_panda_within_its_limits():
    known = yaml.safe_load((PACKAGE / 'src/effort_controller_parameters.yaml').read_text())
    example = yaml.safe_load((PACKAGE / 'config' / 'panda_mock.yaml').read_text())
    given = example['effort_controller']['ros__parameters']
    assert set(given) <= set(known['effort_controller'])
    robot = ElementTree.parse(PACKAGE.parent / 'urdf' / 'panda.urdf')
    moving = [j for j in robot.findall('joint') if j.get('type') == 'revolute']
    assert [joint.get('name') for joint in moving] == given['joints']
    for joint in moving:
        effort = float(joint.find('limit').get('effort'))
        assert given['limits'][joint.get('name')]['effort'] == effort
