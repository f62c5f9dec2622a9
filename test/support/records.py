"""Records of tests: copies with other fields."""

from __future__ import annotations

import dataclasses
from typing import Any


def changed(record: Any, **fields: Any) -> Any:
    """Copy of a named tuple or a data class with other values in some fields."""
    if dataclasses.is_dataclass(record):
        return dataclasses.replace(record, **fields)
    return type(record)(**{**dict(zip(record._fields, record)), **fields})
