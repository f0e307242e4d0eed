"""Measures heddle against other runtimes; see ../peers.py."""
