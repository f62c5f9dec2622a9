"""Planning beside the stream: the process, its end in the node, and what it answers."""

__all__ = ()
