"""Figures that notebooks show; this module alone imports Matplotlib, which is not always there."""

from __future__ import annotations

from io import BytesIO

from matplotlib.figure import Figure


class ShownFigure(Figure):
    """A figure that a notebook shows as the last value of a cell, and `display` anywhere.

    Matplotlib shows figures in notebooks only if its own ones, of pyplot, are asked for there.
    """

    def _repr_png_(self) -> bytes:
        """Picture in PNG, which notebooks ask for."""
        target = BytesIO()
        self.savefig(target, format='png')
        return target.getvalue()
