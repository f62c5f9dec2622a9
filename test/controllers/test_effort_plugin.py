"""The plugin runs with small stand-ins for what it uses of ROS, as in Humble and later."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from support.compilers import CPP_COMPILERS, WARNINGS, run

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parents[1] / 'hodyn_controllers'
CHECKED = ('-fsanitize=address,undefined', '-fno-sanitize-recover=all')
HUMBLE, KILTED = 16, 29
TYPES = {'string': 'std::string', 'double': 'double', 'bool': 'bool'}


def literal(value):
    if isinstance(value, str):
        return f'"{value}"'
    return str(value).lower()


def parameters_header(file):
    """What generate_parameter_library makes of a file, in short."""
    ((name, parameters),) = yaml.safe_load(file.read_text()).items()
    mapped = parameters.pop('limits')['__map_joints']
    fields, reads = [], []
    for key, given in parameters.items():
        if given['type'] == 'string_array':
            fields.append(f'std::vector<std::string> {key};')
            reads.append(f'p.{key} = read(node->string_arrays, "{key}", p.{key});')
            continue
        kind = given['type']
        fields.append(f'{TYPES[kind]} {key} = {literal(given["default_value"])};')
        reads.append(f'p.{key} = read(node->{kind}s, "{key}", p.{key});')
    of_joint = ' '.join(f'double {k} = {v["default_value"]};' for k, v in mapped.items())
    read_joint = ' '.join(
        f'm.{key} = read(node->doubles, "limits." + joint + ".{key}", m.{key});'
        for key in mapped
    )
    return f"""#pragma once
#include "ros2_control.hpp"
namespace {name} {{
struct Params {{
  struct Limits {{
    struct MapJoints {{ {of_joint} }};
    std::map<std::string, MapJoints> joints_map;
  }} limits;
  {' '.join(fields)}
}};
struct ParamListener {{
  explicit ParamListener(std::shared_ptr<rclcpp_lifecycle::LifecycleNode> given) : node(given) {{}}
  template<typename T>
  static T read(const std::map<std::string, T> & from, const std::string & key, const T & other) {{
    const auto found = from.find(key);
    return found == from.end() ? other : found->second;
  }}
  Params get_params() const {{
    Params p;
    {' '.join(reads)}
    for (const auto & joint : p.joints) {{ auto & m = p.limits.joints_map[joint]; {read_joint} }}
    return p;
  }}
  std::shared_ptr<rclcpp_lifecycle::LifecycleNode> node;
}};
}}
"""


def write_stand_ins(folder, sources):
    """A header of each name that sources include and that is not theirs."""
    for source in sources:
        for name in re.findall(r'#include "(.+)"', source.read_text()):
            header = folder / name
            if (PACKAGE / 'include' / name).exists() or header.exists():
                continue
            header.parent.mkdir(parents=True, exist_ok=True)
            if name.endswith('_parameters.hpp'):
                header.write_text(
                    parameters_header(PACKAGE / 'src' / f'{header.stem}.yaml')
                )
            else:
                header.write_text('#include "ros2_control.hpp"\n')


@pytest.mark.skipif(not CPP_COMPILERS, reason='there is no C++ compiler')
@pytest.mark.parametrize('version', [HUMBLE, KILTED])
def test_plugin_lives_through_all_states(version, tmp_path):
    source = PACKAGE / 'src' / 'effort_controller.cpp'
    headers = [*(PACKAGE / 'include' / 'hodyn_controllers').glob('*.hpp')]
    write_stand_ins(tmp_path, [source, *headers])
    folders = (PACKAGE / 'include', tmp_path, HERE / 'stand_ins', HERE)
    program = tmp_path / 'test'
    run(
        CPP_COMPILERS[0],
        '-std=c++17',
        *WARNINGS,
        '-g',
        *CHECKED,
        f'-DRCLCPP_VERSION_MAJOR={version}',
        *(f'-I{folder}' for folder in folders),
        source,
        HERE / 'effort_plugin.cpp',
        '-o',
        program,
    )
    assert run(program) == 'correct\n'


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
