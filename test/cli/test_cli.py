"""The command `hodyn` itself: help, errors, exit codes, interruptions, completion."""

import os
import pty
import re

import click
import numpy as np
import pytest
from support.command_tools import start, swinging, write_table

from hodyn_ros.cli import commands, run
from hodyn_ros.model import sources
from hodyn_ros.names import BUNDLED_ROBOTS

COMMANDS = {command.name: command for command in commands.COMMANDS}


def test_without_a_command_the_help_is_shown(capsys):
    assert run([]) == 0
    alone = capsys.readouterr().out
    run(['--help'])
    assert alone == capsys.readouterr().out


@pytest.mark.every_case
@pytest.mark.parametrize('name', COMMANDS)
def test_every_command_explains_its_options(name):
    # What is not listed in the help cannot be found.
    for parameter in COMMANDS[name].params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name
        assert not getattr(parameter, 'hidden', False)


@pytest.mark.every_case
@pytest.mark.parametrize('name', COMMANDS)
def test_help_of_a_command_is_one_screen(name, capsys, monkeypatch):
    monkeypatch.setenv('COLUMNS', '80')
    assert run([name, '--help']) == 0
    assert len(capsys.readouterr().out.splitlines()) <= 40


def test_options_that_do_not_exist_are_refused_with_what_to_write_instead(capsys):
    for word, instead in commands.ELSEWHERE.items():
        words = (
            ['check', 'two_link', 'a.csv', word, '1'] if word[0] == '-' else [word, 'panda']
        )
        assert run(words) == 2
        assert f'error: There is no {word}: {instead}.' in capsys.readouterr().err
    options = {
        option
        for command in COMMANDS.values()
        for item in command.params
        for option in item.opts
    }
    # Named here, they are not declared: but for the order of what is generated.
    assert options & set(commands.ELSEWHERE) == {'--order'}


LIGHT = """
import os, sys
from hodyn_ros.cli import run
try:
    run(sys.argv[1:])
except SystemExit:
    pass
print(*sorted(sys.modules), file=sys.stderr)
"""


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('words', 'completed'),
    [
        (['check', '--help'], None),
        ([], 'hodyn check --'),
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


def test_debug_shows_the_traceback_before_or_behind_the_command(capsys):
    for words in ('--debug info nothing', 'info nothing --debug'):
        assert run(words.split()) == 2
        text = capsys.readouterr().err
        assert text.startswith('Traceback')
        assert 'error: ' in text.splitlines()[-1]


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


def test_tables_fit_terminals_and_nothing_is_cut_off(tmp_path):
    times = np.linspace(0.0, 1.0, 41)
    words = 'check', 'two_link', write_table(tmp_path / 'm.csv', times, swinging(times))
    terminal, child = pty.openpty()
    environment = {'TERM': 'xterm', 'COLUMNS': '50'}
    try:
        with start(*words, environment=environment, stdout=child) as process:
            process.wait(timeout=600)
        shown = os.read(terminal, 100_000).decode()
    finally:
        os.close(terminal)
        os.close(child)
    assert '\x1b[3' not in shown  # the weight of the letters tells enough
    lines = [re.sub(r'\x1b\[[0-9;]*m', '', line).rstrip() for line in shown.splitlines()]
    table = [line for line in lines if line.startswith('  ')]
    assert all(any(word in line for line in table) for word in ('limit is', 'torque rate'))
    assert max(map(len, table)) <= 50
