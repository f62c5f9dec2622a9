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
TYPES = {
    'string': 'std::string',
    'double': 'double',
    'int': 'std::int64_t',
    'string_array': 'std::vector<std::string>',
}


# What values of parameters fulfil, as generate_parameter_library has it: NaN passes bounds alone.
VALID = {
    'gt': '{0} > {1}',
    'lt': '{0} < {1}',
    'gt_eq': '{0} >= {1}',
    'lt_eq': '{0} <= {1}',
    'bounds': '!({0} < {1} || {0} > {2})',
    'not_empty': '!{0}.empty()',
    'unique': 'std::set<std::string>({0}.begin(), {0}.end()).size() == {0}.size()',
    'one_of': 'std::set<std::string>{{{1}}}.count({0}) > 0',
}


def _literal(value):
    if isinstance(value, list):
        return ', '.join(map(_literal, value))
    return f'"{value}"' if isinstance(value, str) else str(value)


def _read(target, name, given):
    """Lines that read a parameter of a name (an expression in C++) and check it."""
    source, fixed = f'node->{given["type"]}s', 'default_value' in given
    lines = [f'{target} = read({source}, {name}, {str(fixed).lower()}, {target});']
    for rule, arguments in given.get('validation', {}).items():
        condition = VALID[rule.removesuffix('<>')].format(
            target, *map(_literal, arguments or [])
        )
        lines.append(f'check({condition}, {name});')
    return lines


def _parameters_header(file):
    """What generate_parameter_library makes of a file, in short."""
    ((name, parameters),) = yaml.safe_load(file.read_text()).items()
    mapped = parameters.pop('limits', {}).get('__map_joints', {})
    fields, reads = [], []
    for key, given in parameters.items():
        default = _literal(given['default_value'])
        fields.append(f'{TYPES[given["type"]]} {key}{{{default}}};')
        reads += _read(f'p.{key}', f'"{key}"', given)
    of_joint = ' '.join(f'double {key} = 0.0;' for key in mapped)
    for key, given in mapped.items():
        lines = _read(
            f'p.limits.joints_map[joint].{key}', f'"limits." + joint + ".{key}"', given
        )
        reads.append(f'for (const auto & joint : p.joints) {{ {" ".join(lines)} }}')
    lines = '\n    '.join(reads)
    return f"""#pragma once
#include <set>
#include <stdexcept>
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
  explicit ParamListener(std::shared_ptr<rclcpp_lifecycle::LifecycleNode> given) : node(given)
  {{
    get_params();
  }}
  static void check(bool is_valid, const std::string & name) {{
    if (!is_valid) throw std::invalid_argument("Parameter '" + name + "' is not valid");
  }}
  template<typename T>
  static T read(
    const std::map<std::string, T> & from, const std::string & key, bool has_default,
    const T & other)
  {{
    const auto found = from.find(key);
    check(has_default || found != from.end(), key);
    return found == from.end() ? other : found->second;
  }}
  Params get_params() const {{
    Params p;
    {lines}
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
