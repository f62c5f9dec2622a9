"""Records with some fields changed."""

import dataclasses


def changed(record, **fields):
    """The same record, a NamedTuple or a dataclass, with other values in some fields."""
    if dataclasses.is_dataclass(record):
        return dataclasses.replace(record, **fields)
    return record._replace(**fields)
