"""Results show themselves in a line, and in a notebook as a table."""

import json
from dataclasses import replace

import numpy as np
from support.io_cases import model, results, samples
from support.plotting_tools import Page

from hodyn_ros.display import Answer, Column, Table
from hodyn_ros.files import compute


def test_results_of_any_length_are_a_line_with_robot_and_orders():
    found = compute(model(), samples(2000))
    text = repr(found)
    assert len(text) < 300
    for said in ('2000 samples from 0 to 19.99 s', '3 of the efforts', found.provenance):
        assert str(said) in text


def test_a_notebook_gets_the_largest_efforts_with_units():
    found = replace(results(), joint_units=('rad', 'm'), name='<b>name</b>')
    page = Page(found._repr_html_())  # the protocol of IPython
    text = page.visible_text()
    assert page.attributes('b') == [] and '<b>name</b>' in text and 'not known' in text
    assert 'torque\n[N m, N]' in text and 'torque rate\n[N m/s, N/s]' in text
    assert f'{np.abs(found.effort[:, 0, 1]).max():.4g}' in text


ROWS = (
    {'joint': 'elbow', 'jerk': 7500.0, 'std': np.inf, 'sample': 3},
    {'joint': '<b>tool</b>', 'jerk': np.inf, 'std': np.nan, 'sample': 4},
    {'joint': 'wrist', 'jerk': None, 'std': 0.25, 'sample': 5},
)
TABLE = Table(
    'Limits',
    [
        Column('joint', 'name of\nthe joint'),
        Column('jerk', unit='rad/s^3', infinite='none'),
        Column('std', '+-', form='{:.2f}'.format),
    ],
    ROWS,
)


def test_a_table_says_what_is_infinite_unknown_or_not_there():
    title, blank, *head, elbow, tool, wrist = str(TABLE).splitlines()
    assert (title, blank) == ('Limits', '')
    assert [line.split() for line in head] == [
        ['name', 'of', 'jerk'],
        ['the', 'joint', '[rad/s^3]', '+-'],
    ]
    assert elbow.split() == ['elbow', '7500', 'infinite']
    assert tool.split() == ['<b>tool</b>', 'none', 'unknown']
    assert wrist.split() == ['wrist', '0.25']
    # Numbers end at the same place.
    assert len({len(line) for line in (elbow, tool, wrist)}) == 1


def test_a_notebook_gets_an_answer_as_html_and_programs_all_that_the_records_hold():
    answer = Answer(['It is <so>.', '', TABLE], {'limits': TABLE, 'of': 'robot'})
    page = Page(answer._repr_html_())
    text = page.visible_text()
    assert page.attributes('b') == [] and '<b>tool</b>' in text and '<so>' in text
    assert 'infinite' in text and 'unknown' in text
    found = json.loads(answer.json)
    assert found['of'] == 'robot'
    assert found['limits'][1] == {
        'joint': '<b>tool</b>',
        'jerk': None,
        'std': None,
        'sample': 4,
    }
    assert str(answer) == f'It is <so>.\n\n{TABLE}'


def test_a_column_may_be_made_of_its_record_and_a_table_without_records_is_left_out():
    def name(row):
        return f'{row["joint"]} {row["sample"]}'

    table = Table('', [Column(name, 'both'), Column('jerk')], ROWS)
    assert [cells[0] for cells in table.cells] == ['elbow 3', '<b>tool</b> 4', 'wrist 5']
    empty = Table('Nothing', table.columns, ())
    assert str(Answer([empty, 'That is all.'], {})) == 'That is all.'
