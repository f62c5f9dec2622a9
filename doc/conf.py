"""Settings of Sphinx."""

import os
import sys
from importlib.util import find_spec

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

# The sources beside these pages come before an installed copy. rosdoc2 copies the pages to another
# place; there the installed package is documented.
_SOURCES = os.path.abspath('..')
if os.path.isfile(os.path.join(_SOURCES, 'hodyn_ros', '__init__.py')):
    sys.path.insert(0, _SOURCES)

project = 'hodyn_ros'
author = 'hodyn_ros maintainers'
copyright = author  # noqa: A001
extensions = [
    'sphinx.ext.autodoc',
    'sphinx.ext.napoleon',
    'sphinx.ext.viewcode',
    'sphinx_rtd_theme',
]
nitpicky = True

# rosdoc2 adds copies of all pages and a page for every module. The index lists all that is wanted.
exclude_patterns = [
    '__*.rst',
    'benchmarks',
    'hodyn_ros*.rst',
    'interfaces',
    'modules.rst',
    'sphinx_output',
    'standard*',
    'user_docs*',
]

# Names in single backticks are links where they are documented, and code everywhere else; types
# are said in words, which lead nowhere.
default_role = 'py:obj'
nitpick_ignore_regex = [('py:(class|exc|obj)', '.*')]
autodoc_typehints = 'none'
autodoc_member_order = 'bysource'
autodoc_mock_imports = [
    name
    for name in (
        'builtin_interfaces',
        'diagnostic_msgs',
        'geometry_msgs',
        'hodyn_msgs',
        'rcl_interfaces',
        'rclpy',
        'rosgraph_msgs',
        'sensor_msgs',
        'std_msgs',
        'std_srvs',
        'trajectory_msgs',
    )
    if find_spec(name) is None
]
# As a list of names, which are no links: many classes have an attribute `time`.
napoleon_custom_sections = [('Attributes', 'params_style')]
napoleon_google_docstring = False
napoleon_use_param = False
napoleon_use_rtype = False

# Formulas as MathML, which browsers draw by themselves: nothing is loaded from elsewhere.
html_math_renderer = 'mathml'
html_theme = 'sphinx_rtd_theme'
html_theme_options = {'navigation_depth': 3}
html_static_path = ['_static']
html_css_files = ['pages.css']
html_show_sphinx = False


def formula(translator, node):
    """Write a formula as MathML."""
    is_block = isinstance(node, nodes.math_block)
    text = tex2mathml(node.astext(), as_block=is_block)
    translator.body.append(f'<div class="math">{text}</div>\n' if is_block else text)
    raise nodes.SkipNode


def setup(app):
    """Add formulas, and keep the docstrings of fields.

    Napoleon takes what stands before a colon for a type.
    """
    app.add_html_math_renderer('mathml', (formula, None), (formula, None))
    fields = {}

    def keep(app, what, name, obj, options, lines):
        if what == 'attribute':
            fields[name] = lines[:]

    def restore(app, what, name, obj, options, lines):
        lines[:] = fields.pop(name, lines)

    app.connect('autodoc-process-docstring', keep, priority=400)
    app.connect('autodoc-process-docstring', restore, priority=600)
