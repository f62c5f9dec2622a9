"""Versions of this package and of others."""

from __future__ import annotations

from xml.etree import ElementTree

from hodyn_ros.resources import share_file


def package_version() -> str:
    """Version of this package, as its manifest has it."""
    return ElementTree.parse(share_file('package.xml')).findtext('version') or 'unknown'
