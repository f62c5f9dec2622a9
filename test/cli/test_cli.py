"""The command `hodyn` itself: help, errors, exit codes, interruptions, completion."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from hodyn_ros.cli import commands, main, problem
from hodyn_ros.cli.main import hodyn, run
from hodyn_ros.model import sources
from hodyn_ros.names import BUNDLED_ROBOTS

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = {command.name: command for command in commands.COMMANDS}


def start(*arguments, program=None, **options):
    """Start a process of its own: the command, or a program in Python."""
    command = ['-c', program] if program else ['-m', 'hodyn_ros.cli.main']
    paths = [str(ROOT), *filter(None, [os.environ.get('PYTHONPATH')])]
    environment = {**os.environ, 'PYTHONPATH': os.pathsep.join(paths)}
    environment.update(options.pop('environment', {}))
    return subprocess.Popen(
        [sys.executable, *command, *arguments],
        env=environment,
        text=True,
        **{'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE, **options},
    )


def test_help_lists_every_command_with_what_it_does(capsys):
    assert run(['--help']) == 0
    text = capsys.readouterr().out
    for name, command in COMMANDS.items():
        assert f'{name} ' in text
        assert command.short_help in text


def test_help_of_a_command_has_its_own_options_first_and_shared_ones_by_subject(capsys):
    assert run(['retime', '--help']) == 0
    heads = re.findall(
        r'^([A-Z].*):$|^  (?:-\w, )?--([\w-]+)', capsys.readouterr().out, re.M
    )
    sections = ' '.join(title + ':' if title else option for title, option in heads)
    assert re.fullmatch(
        'Options: uniform .*Limits and drives: actuators limits Motion: topic .*'
        'Robot: base-link .*Output: output json debug help',
        sections,
    )


def test_without_a_command_the_help_is_shown(capsys):
    assert run([]) == 0
    alone = capsys.readouterr().out
    run(['--help'])
    assert alone == capsys.readouterr().out


@pytest.mark.parametrize('name', COMMANDS)
def test_every_command_explains_itself_with_an_example(name, capsys):
    assert run([name, '--help']) == 0
    text = capsys.readouterr().out
    assert f'Usage: hodyn {name}' in text
    assert '--debug' in text
    if name != 'demo':
        assert f'  hodyn {name} ' in text
    # What is not listed in the help cannot be found.
    for parameter in COMMANDS[name].params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name
        assert not getattr(parameter, 'hidden', False)


@pytest.mark.parametrize(
    'words, meant',
    [
        (['infp', 'panda'], 'Is info meant?'),
        (['chek'], 'Is check meant?'),
        (['frobnicate'], 'Commands: info, compute'),
        (['--verison'], '--version'),
        (['check', '--jsn', 'panda', 'motion.csv'], '--json'),
        (['retime', 'panda', 'motion.csv', '--unifrom'], '--uniform'),
    ],
)
def test_mistyped_commands_and_options_get_a_suggestion(words, meant, capsys):
    assert run(words) == 2
    assert meant in capsys.readouterr().err


LIGHT = """
import os, sys
from hodyn_ros.cli.main import run
try:
    run(sys.argv[1:])
except SystemExit:
    pass
print(*sorted(sys.modules), file=sys.stderr)
"""


@pytest.mark.parametrize(
    ('words', 'completed'),
    [
        (['--help'], None),
        (['check', '--help'], None),
        ([], 'hodyn '),
        ([], 'hodyn check --'),
        ([], 'hodyn demo --'),
    ],
)
def test_help_and_completion_import_click_and_the_names_alone(words, completed):
    environment = {}
    if completed:
        environment = {
            '_HODYN_COMPLETE': 'bash_complete',
            'COMP_WORDS': completed,
            'COMP_CWORD': str(len(completed.split(' ')) - 1),
        }
    with start(*words, program=LIGHT, environment=environment) as process:
        shown, modules = process.communicate(timeout=600)
    assert shown
    found = {name for name in modules.split() if name.startswith('hodyn_ros')}
    assert found == {
        'hodyn_ros',
        'hodyn_ros.cli',
        'hodyn_ros.cli.commands',
        'hodyn_ros.cli.main',
        'hodyn_ros.errors',
        'hodyn_ros.interrupts',
        'hodyn_ros.names',
    }
    tops = {name.partition('.')[0] for name in modules.split()}
    assert 'click' in tops
    assert not tops & {'jinja2', 'numpy', 'rich', 'scipy', 'yaml'}


def test_version_is_that_of_the_package(capsys):
    assert run(['--version']) == 0
    manifest = (ROOT / 'package.xml').read_text()
    assert f'<version>{capsys.readouterr().out.split()[1]}</version>' in manifest


@pytest.mark.parametrize(
    'arguments, words',
    [
        (['chek'], 'chek'),
        (['compute'], 'ROBOT'),
        (['info', 'panda', '--gravity', '0', '0', 'down'], 'down'),
        (['info', 'panda', '--nonsense'], '--nonsense'),
        (['info', 'panda', '--limits', '/nowhere/limits.yaml'], '/nowhere/limits.yaml'),
        (['info', 'panda', '--base-link', 'nose'], 'nose'),
    ],
)
def test_errors_are_messages_without_traceback_and_exit_code_two(arguments, words, capsys):
    assert run(arguments) == 2
    output = capsys.readouterr()
    assert output.out == ''
    assert words in output.err
    assert 'error: ' in output.err
    assert 'Traceback' not in output.err


@pytest.mark.parametrize('place', [0, 2])
def test_debug_shows_the_traceback_before_or_behind_the_command(place, capsys):
    arguments = ['info', 'no such robot']
    arguments.insert(place, '--debug')
    assert run(arguments) == 2
    text = capsys.readouterr().err
    assert text.startswith('Traceback')
    assert 'error: ' in text.splitlines()[-1]


def test_a_fault_of_the_program_says_that_it_is_one(monkeypatch, capsys):
    def broken(*arguments, **keywords):
        raise ZeroDivisionError('of all things')

    monkeypatch.setattr(problem, 'find_robot', broken)
    assert run(['info', 'panda']) == 2
    text = capsys.readouterr().err
    assert 'ZeroDivisionError: of all things' in text
    assert '--debug' in text
    assert 'Traceback' not in text


@pytest.mark.parametrize('error, code', [(KeyboardInterrupt, 130), (BrokenPipeError, 141)])
def test_interruptions_have_the_exit_codes_of_shells(error, code, monkeypatch, capsys):
    def interrupted(*arguments, **keywords):
        raise error

    monkeypatch.setattr(problem, 'find_robot', interrupted)
    monkeypatch.setattr(main, '_redirect_to_nowhere', lambda stream: None)
    assert run(['info', 'panda']) == code
    assert 'Traceback' not in capsys.readouterr().err


def test_a_reader_that_goes_away_ends_the_command_quietly():
    with start('info', 'panda', '--json') as process:
        process.stdout.close()  # before anything is written
        complaints = process.stderr.read()
        process.wait(timeout=600)
    assert process.returncode == 141
    assert complaints == ''


# Interrupts the command when it first does something, by the names of audit events of Python.
INTERRUPTED_AT = """
import gc, signal, sys

event, word = sys.argv.pop(1), sys.argv.pop(1)

def interrupt(*_):
    signal.raise_signal(signal.SIGINT)

def hook(name, arguments):
    global event
    if name == event and word in str(arguments[0]):
        event = None
        if word == 'llvmlite':
            # Where Python ignores exceptions, as it does in C code that imports and compiles.
            gc.callbacks.append(interrupt)
            gc.collect()
        interrupt()

from hodyn_ros.commands import hodyn
sys.addaudithook(hook)
hodyn()
"""


@pytest.mark.parametrize(
    ('event', 'word'),
    [
        ('import', 'click'),
        ('import', 'numpy'),
        ('import', 'llvmlite'),
        ('os.mkdir', 'efforts.csv'),
        ('open', 'efforts.csv'),
        ('os.rename', 'efforts.csv'),
        ('os.rmdir', 'efforts.csv'),
    ],
)
def test_ctrl_c_at_any_moment_ends_the_command_and_leaves_whole_files_alone(
    event, word, tmp_path
):
    path = tmp_path / 'motion.csv'
    path.write_text(
        'time,shoulder.position,elbow.position\n0,0,0\n1,0.1,0.2\n2,0.1,0.3\n3,0,0\n'
    )
    arguments = [event, word, 'compute', 'two_link', 'motion.csv', '-o', 'efforts.csv']
    with start(*arguments, program=INTERRUPTED_AT, cwd=tmp_path) as process:
        _, complaints = process.communicate(timeout=600)
    files = {file.name for file in tmp_path.iterdir()}
    assert process.returncode == 130, complaints
    assert complaints.splitlines()[-1] == 'Interrupted.'
    assert 'Traceback' not in complaints
    written = {'efforts.csv', 'efforts.csv.json'} if event == 'os.rmdir' else set()
    assert files == {'motion.csv', *written}  # when that is done, they are in their places


def test_bundled_robots_are_those_that_are_completed():
    assert BUNDLED_ROBOTS == tuple(sources.BUNDLED)


def test_shell_completes_commands_and_robots():
    completed = {}
    for words, current in (('hodyn ', 1), ('hodyn info pan', 2), ('hodyn gen', 1)):
        environment = {
            '_HODYN_COMPLETE': 'bash_complete',
            'COMP_WORDS': words,
            'COMP_CWORD': str(current),
        }
        with start(environment=environment) as process:
            output, _ = process.communicate(timeout=600)
        completed[words] = output.splitlines()
    assert completed['hodyn '] == [f'plain,{name}' for name in COMMANDS]
    assert completed['hodyn gen'] == ['plain,generate']
    assert 'plain,panda' in completed['hodyn info pan']
    assert 'plain,iiwa14' not in completed['hodyn info pan']
    assert 'file,pan' in completed['hodyn info pan']


def test_json_has_no_infinite_numbers(capsys):
    assert run(['info', 'iiwa14', '--json']) == 0

    def refuse(constant):
        raise AssertionError(f'{constant} is not JSON')

    data = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert data['joints'][0]['jerk'] is None
    assert data['joints'][0]['acceleration'] == 8.57


def test_group_is_the_one_that_the_console_script_runs():
    assert isinstance(hodyn, click.Group)
    setup = (ROOT / 'setup.py').read_text()
    assert "'hodyn = hodyn_ros.commands:hodyn'" in setup


MOTION = 'time,shoulder.position,elbow.position\n0,0,0\n1,0.1,0.2\n2,0.2,0.3\n3,0.2,0.3\n'


CHECK = ('check two_link {}', 50, ['limit is', 'torque rate'])
INFO = ('info panda', 60, ['panda_joint1  revolute', '4.971'])  # too wide: whole lines


@pytest.mark.parametrize(
    ('case', 'variables'),
    [
        (CHECK, {}),
        (INFO, {}),
        pytest.param(CHECK, {'NO_COLOR': '1'}, marks=pytest.mark.slow),
        pytest.param(CHECK, {'TERM': 'dumb'}, marks=pytest.mark.slow),
    ],
)
def test_tables_fit_terminals_and_nothing_is_cut_off(tmp_path, case, variables):
    command, columns, words = case
    (tmp_path / 'motion.csv').write_text(MOTION)
    arguments = command.format(tmp_path / 'motion.csv').split()
    terminal, child = pty.openpty()
    environment = {'TERM': 'xterm', 'COLUMNS': str(columns), **variables}
    columns = 80 if 'TERM' in variables else columns
    try:
        with start(*arguments, environment=environment, stdout=child) as process:
            process.wait(timeout=600)
        shown = os.read(terminal, 100_000).decode()
    finally:
        os.close(terminal)
        os.close(child)
    assert '\x1b[3' not in shown  # the weight of the letters tells enough
    lines = [re.sub(r'\x1b\[[0-9;]*m', '', line).rstrip() for line in shown.splitlines()]
    table = [line for line in lines if line.startswith('  ')]
    assert all(any(word in line for line in table) for word in words)
    assert (max(map(len, table)) <= columns) == (arguments[0] == 'check')


def test_tables_are_plain_text_as_wide_as_they_are_in_pipes():
    with start(
        'info', 'panda', environment={'FORCE_COLOR': '1', 'COLUMNS': '40'}
    ) as process:
        shown, _ = process.communicate(timeout=600)
    assert '\x1b' not in shown
    assert 'panda_joint1  revolute    -2.897 to 2.897     2.175' in shown


def test_compiling_that_takes_long_is_told_once_and_results_stay_alone(tmp_path):
    motion = tmp_path / 'motion.csv'
    motion.write_text('time,shoulder.position,elbow.position\n0,0,0\n1,1,1\n2,0,1\n')
    script = (
        'import sys\n'
        'from hodyn_ros.cli import main\n'
        'main._PATIENCE = 0.0\n'
        'main.main(sys.argv[1:])'
    )
    done = subprocess.run(
        [
            sys.executable,
            '-c',
            script,
            'compute',
            'two_link',
            motion,
            '-o',
            tmp_path / 'o.csv',
        ],
        env={**os.environ, 'NUMBA_CACHE_DIR': str(tmp_path / 'cache')},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count('Compiling machine code') == 1
    assert 'Compiling' not in done.stdout
