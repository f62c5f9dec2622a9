"""EffortController runs with small stand-ins for what it uses of ROS, as in Humble and later."""

import re
from xml.etree import ElementTree

import pytest
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
