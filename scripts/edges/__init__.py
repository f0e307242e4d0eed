"""Cases with values at the edges, for scripts/sweep_edges.py."""
