"""Results show themselves in a line, and in a notebook as a table."""

from dataclasses import replace

import numpy as np
from support.io_cases import model, results, samples
from support.plotting_tools import Page

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
    assert 'effort [N m, N]' in text and 'effort rate [N m/s, N/s]' in text
    assert f'{np.abs(found.effort[:, 0, 1]).max():.4g}' in text
