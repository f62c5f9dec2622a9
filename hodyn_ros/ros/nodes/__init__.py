"""The nodes, one file each.

They are not imported here, since their modules are run as programs:
`hodyn_ros.ros.nodes.hodyn_node.HodynNode` and so on.
"""

__all__ = ()
