"""Plugins and the packages around them, with small stand-ins for what they use of ROS."""

import re
import subprocess
from pathlib import Path

import yaml
from support.compilers import CPP_COMPILERS, WARNINGS, run

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / 'test' / 'controllers'
PACKAGE = ROOT / 'hodyn_controllers'
CHECKED = ('-fsanitize=address,undefined', '-fno-sanitize-recover=all')
HUMBLE, KILTED = 16, 29
TYPES = {'string': 'std::string', 'double': 'double', 'int': 'std::int64_t'}


def _literal(value):
    if isinstance(value, str):
        return f'"{value}"'
    return str(value)


def _parameters_header(file):
    """What generate_parameter_library makes of a file, in short."""
    ((name, parameters),) = yaml.safe_load(file.read_text()).items()
    mapped = parameters.pop('limits', {}).get('__map_joints', {})
    fields, reads = [], []
    for key, given in parameters.items():
        if given['type'] == 'string_array':
            fields.append(f'std::vector<std::string> {key};')
            reads.append(f'p.{key} = read(node->string_arrays, "{key}", p.{key});')
            continue
        kind = given['type']
        fields.append(f'{TYPES[kind]} {key} = {_literal(given["default_value"])};')
        reads.append(f'p.{key} = read(node->{kind}s, "{key}", p.{key});')
    of_joint = ' '.join(f'double {k} = {v["default_value"]};' for k, v in mapped.items())
    read_joint = ' '.join(
        f'm.{key} = read(node->doubles, "limits." + joint + ".{key}", m.{key});'
        for key in mapped
    )
    each = f"""
    for (const auto & joint : p.joints) {{
      auto & m = p.limits.joints_map[joint];
      {read_joint}
    }}"""
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
    {each if mapped else ''}
    return p;
  }}
  std::shared_ptr<rclcpp_lifecycle::LifecycleNode> node;
}};
}}
"""


def _write_stand_ins(folder, sources, there):
    """A header of each name that sources include and that is not theirs."""
    for source in sources:
        for name in re.findall(r'#include "(.+)"', source.read_text()):
            header = folder / name
            if any((one / name).exists() for one in (folder, *there)):
                continue
            header.parent.mkdir(parents=True, exist_ok=True)
            if name.endswith('_parameters.hpp'):
                header.write_text(
                    _parameters_header(PACKAGE / 'src' / f'{header.stem}.yaml')
                )
            else:
                header.write_text('#include "ros2_control.hpp"\n')


SANITIZED = ('-g', *CHECKED)


def compile_plugin(target, version, *sources, include=(), flags=SANITIZED):
    """Compile a plugin and what uses it as in a distribution of ROS; stand-ins lie beside it."""
    headers = (PACKAGE / 'include' / 'hodyn_controllers').glob('*.hpp')
    there = (PACKAGE / 'include', HERE / 'stand_ins', HERE, *include)
    stand_ins = target.parent / 'stand_ins'
    texts = [source for source in sources if source.suffix == '.cpp']
    _write_stand_ins(stand_ins, [*headers, *texts], there)
    run(
        CPP_COMPILERS[0],
        '-std=c++17',
        *WARNINGS,
        *flags,
        f'-DRCLCPP_VERSION_MAJOR={version}',
        *(f'-I{one}' for one in (*there, stand_ins)),
        *sources,
        '-o',
        target,
    )


def run_plugin(folder, version, *sources, include=(), given='', flags=SANITIZED):
    """What a test of a plugin says, compiled with its source as in a distribution of ROS."""
    program = folder / 'test'
    compile_plugin(program, version, *sources, include=include, flags=flags)
    return subprocess.run(
        [program], input=given, text=True, capture_output=True, timeout=600
    ).stdout
