"""Robot models: from a description (URDF) to a tree of bodies, joint screws and inertias."""
