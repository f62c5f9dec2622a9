"""Results for the tests of pictures and reports, and an HTML page taken apart."""

from __future__ import annotations

import base64
import json
from html.parser import HTMLParser

import numpy as np

from hodyn_ros import inverse_dynamics
from hodyn_ros.actuators import motor_motion
from hodyn_ros.files import Samples
from hodyn_ros.identification import (
    Comparison,
    Doubt,
    Explanation,
    Identification,
    IdentifiedParameter,
    Payload,
    Residual,
)
from hodyn_ros.identification.compare import ComparedStretch

VOID = {'meta', 'br', 'link', 'img', 'input', 'hr'}


def swinging(n, N=201, duration=2.0, K=5, amplitude=0.5):
    """Times and a motion of sines, all orders of it, shape (N, K, n)."""
    t = np.linspace(0.0, duration, N)
    frequency = 1.0 + np.arange(n)
    orders = np.arange(K)[:, None]
    phase = t[:, None, None] * frequency + orders * np.pi / 2
    return t, amplitude * frequency**orders * np.sin(phase)


def results_of(model, actuators=None, name='swing.csv', **motion_options):
    times, motion = swinging(model.n_joints, **motion_options)
    motors = {}
    if actuators is not None:
        owners = actuators.joint_of_motor.tolist()
        names = ('motor_position', 'motor_torque', 'deflection')
        motors |= zip(names, motor_motion(actuators, motion))
        motors['motor_names'] = actuators.motor_names
        motors['motor_joints'] = tuple(model.joint_names[i] for i in owners)
    effort = inverse_dynamics(model, motion)
    return Samples(model.joint_names, times, motion, effort, name=name, **motors)


def comparison_of(model, name='swing.csv', explanations=None):
    """Measured efforts that are sines more than computed ones: joint j by 0.5 (j + 1) at 1 Hz.

    Two stretches of 4 s and 2 s with a gap of 1 s; the last sample of the first is not used.
    """
    n, stretches = model.n_joints, []
    for start, end in ((0.0, 4.0), (5.0, 7.0)):
        t = np.arange(start, end, 0.02)
        _, motion = swinging(n, len(t), end - start, K=3)
        computed = inverse_dynamics(model, motion)[:, 0]
        rest = 0.5 * (1.0 + np.arange(n)) * np.sin(2.0 * np.pi * t)[:, None]
        used = np.ones(computed.shape, dtype=bool)
        used[-1] = start > 0.0
        stretches.append(ComparedStretch(name, t, motion, computed + rest, computed, used))
    shares = np.linspace(0.5, 0.9, n)
    explanations = explanations or (
        Explanation('a payload of 1.5 kg at tool', shares, 0.75),
        Explanation('friction and offsets', -shares, 0.25),
        Explanation('all of these together', np.full(n, np.nan), 1.0),
    )
    return Comparison(
        model.joint_names,
        ('N m',) * n,
        tuple(stretches),
        np.arange(1.0, n + 1.0),
        0.125 * np.arange(1.0, n + 1.0),
        0.01 * np.arange(1.0, 4 * n + 1.0).reshape(4, n),
        np.full(n, 1.25),
        np.full(n, 0.975),
        explanations,
        ('Efforts were clipped.',),
    )


def identification_of(
    model, names, link='tool', remark='At the boundary.', name='swing.csv'
):
    """Two parameters of the names, one of them a combination, and one that is not shown."""
    parameters = tuple(
        IdentifiedParameter(*fields)
        for fields in (
            ('bodies', f'{names[0]} izz', 0.25, 0.0125, 'kg m^2', False, 1.075),
            ('viscous', f'{names[1]} viscous', 0.5, np.inf, 'N m s/rad', True, 0.1),
        )
    )
    payload = Payload(link, 1.5, np.array([0.01, 0.0, -0.02]), np.eye(3))
    missing = np.full(model.n_joints, np.nan)
    missing[1] = 3.0
    rest = missing / 6.0, missing / 24.0, np.nan * missing
    residuals = (Residual(name, 'effort', missing, *(missing / k for k in (4, 48, 96))),)
    unseen = (Residual(f'/home/of/{name}', 'motor', missing, *rest),)
    doubt = Doubt(missing, (), np.zeros(2), False, np.ones(2))
    return Identification(
        model,
        None,
        payload,
        parameters,
        (),
        np.eye(2),
        np.zeros(2),
        np.eye(2),
        residuals,
        unseen,
        doubt,
        (remark,),
    )


class Page(HTMLParser):
    """Elements, texts and nesting of a page, as a browser reads them."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.elements = []  # (tag, attributes, index of the parent)
        self.texts = []  # (text, index of the element)
        self.mistakes = []
        self._open = []
        self.feed(html)
        self.close()
        self.mistakes += [f'{self.elements[i][0]} is not closed' for i in self._open]

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs), self._open[-1] if self._open else None))
        if tag not in VOID:
            self._open.append(len(self.elements) - 1)

    def handle_endtag(self, tag):
        if not self._open or self.elements[self._open[-1]][0] != tag:
            self.mistakes.append(f'</{tag}> at {self.getpos()}')
        else:
            self._open.pop()

    def handle_data(self, data):
        self.texts.append((data, self._open[-1] if self._open else None))

    def attributes(self, tag):
        """Of all elements with this tag."""
        return [attributes for name, attributes, _ in self.elements if name == tag]

    def children(self, index):
        return [i for i, element in enumerate(self.elements) if element[2] == index]

    def inside(self, index, ancestor):
        while index is not None and index != ancestor:
            index = self.elements[index][2]
        return index == ancestor

    def text_of(self, index):
        return ''.join(text for text, owner in self.texts if self.inside(owner, index))

    def indices(self, tag, class_=None):
        return [
            i
            for i, (name, attributes, _) in enumerate(self.elements)
            if name == tag
            and (class_ is None or class_ in (attributes.get('class') or '').split())
        ]

    def text_of_all(self, tag, class_=None):
        return [self.text_of(i) for i in self.indices(tag, class_)]

    def visible_text(self):
        hidden = [i for tag in ('script', 'style') for i in self.indices(tag)]
        return ''.join(
            text
            for text, owner in self.texts
            if not any(self.inside(owner, i) for i in hidden)
        )

    def table(self, caption):
        """Rows of cells of the table whose caption begins so."""
        for i in self.indices('table'):
            (title,) = [c for c in self.children(i) if self.elements[c][0] == 'caption']
            if self.text_of(title).startswith(caption):
                rows = [r for r in self.indices('tr') if self.inside(r, i)]
                return [[self.text_of(cell) for cell in self.children(row)] for row in rows]
        raise AssertionError(f'no table {caption!r}')

    def data(self):
        """What the page hands to its script."""
        (index,) = (
            i for i in self.indices('script') if self.elements[i][1].get('id') == 'pictures'
        )
        return json.loads(self.text_of(index))

    def pictures(self):
        """Data of all pictures, decoded, in their order."""
        panels = self.data()['panels']
        for panel in panels:
            for curve in panel['curves']:
                for axis in ('x', 'y'):
                    curve[axis] = decoded(curve[axis])
        return panels


def decoded(packed):
    offsets = np.frombuffer(base64.b64decode(packed['offsets']), '<f4')
    return packed['first'] + offsets.astype(float)
