"""ONNX operators in forms at the border of what their versions allow, for sweep_onnx_forms.py."""
