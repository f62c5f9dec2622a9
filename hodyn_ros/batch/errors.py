"""What goes wrong with a batch as a whole, as opposed to one of its files."""

from __future__ import annotations

from hodyn_ros.errors import HodynError


class BatchError(HodynError):
    """Inputs, options or a folder that cannot be used, or workers that were lost for good."""
