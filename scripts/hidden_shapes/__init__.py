"""Recorded cases whose shapes are hidden from a reader, for sweep_hidden_shapes.py."""
