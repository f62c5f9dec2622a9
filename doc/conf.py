"""Settings of Sphinx."""

project = 'hodyn_ros'
author = 'hodyn_ros maintainers'
copyright = author  # noqa: A001
extensions = ['sphinx.ext.mathjax']
html_theme = 'alabaster'
nitpicky = True
