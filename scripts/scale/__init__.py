"""Programs of N of a kind, in all formats, for sweep_scale.py."""
