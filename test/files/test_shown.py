"""Results show themselves in a line, and in a notebook as a table."""

from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
from support.io_cases import model, results, samples

from hodyn_ros.files import compute
from hodyn_ros.trajectory import Waypoints, plan_motion


class Cells(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.texts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.texts.append(data)


def shown_in_notebook(item):
    return item._repr_html_()  # the protocol of IPython


def test_results_of_any_length_are_a_line_with_robot_and_orders():
    found = compute(model(), samples(2000))
    text = repr(found)
    assert len(text) < 300
    for part in (
        '2000 samples from 0 to 19.99 s',
        '3 of the efforts',
        str(found.provenance),
    ):
        assert part in text


def test_a_notebook_gets_the_largest_efforts_with_units():
    found = replace(results(), joint_units=('rad', 'm'), name='<b>name</b>')
    page = Cells(shown_in_notebook(found))
    assert 'b' not in page.tags
    assert '<b>name</b>' in page.texts[0] and 'not known' in page.texts[0]
    assert {'effort [N m, N]', 'effort rate [N m/s, N/s]'} <= set(page.texts)
    assert f'{np.abs(found.effort[:, 0, 1]).max():.4g}' in page.texts


def test_what_holds_long_arrays_says_their_shapes():
    times = np.arange(100.0)
    waypoints = Waypoints(('a',), times, np.sin(times)[:, None])
    plan = plan_motion(waypoints, ('a',))
    for item in (waypoints, plan, plan.motion, samples(2000)):
        assert len(repr(item)) < 500
        assert 'table' in Cells(shown_in_notebook(item)).tags
    assert 'positions=array of shape (100, 1)' in repr(waypoints)
