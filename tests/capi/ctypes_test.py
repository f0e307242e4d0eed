"""The C API called from another language: ctypes_test.py LIBRARY MODEL_DIR"""

import ctypes as c
import sys

import numpy as np

FLOAT32 = 8
INVALID_ARGUMENT, NOT_FOUND = 1, 2


class Info(c.Structure):
    _fields_ = [("name", c.c_char_p), ("dtype", c.c_int), ("rank", c.c_int),
                ("dims", c.POINTER(c.c_int64))]


class ExecutorOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("threads", c.c_int), ("plan_cache_capacity", c.c_int),
                ("memory_limit", c.c_size_t)]


lib = c.CDLL(sys.argv[1])
handle, text = c.c_void_p, c.c_char_p
for name, result, arguments in [
    ("heddle_version", text, []),
    ("heddle_error_text", text, [handle]),
    ("heddle_error_code", c.c_int, [handle]),
    ("heddle_error_free", None, [handle]),
    ("heddle_executor_new", handle, [c.POINTER(ExecutorOptions), c.POINTER(handle)]),
    ("heddle_executor_threads", c.c_int, [handle]),
    ("heddle_executor_free", None, [handle]),
    ("heddle_model_load", handle, [handle, text, text, handle, c.POINTER(handle)]),
    ("heddle_model_input", Info, [handle, c.c_size_t]),
    ("heddle_model_run", handle, [handle, handle, c.POINTER(text), c.POINTER(handle), c.c_size_t,
                                  c.POINTER(handle), c.c_size_t]),
    ("heddle_model_free", None, [handle]),
    ("heddle_tensor_wrap", handle, [c.c_int, c.c_int, c.POINTER(c.c_int64), handle, handle, handle,
                                    c.POINTER(handle)]),
    ("heddle_tensor_rank", c.c_int, [handle]),
    ("heddle_tensor_dims", c.POINTER(c.c_int64), [handle]),
    ("heddle_tensor_const_data", handle, [handle]),
    ("heddle_tensor_free", None, [handle]),
]:
    function = getattr(lib, name)
    function.restype, function.argtypes = result, arguments


def check(error, expected=0, naming=""):
    code, words = lib.heddle_error_code(error), lib.heddle_error_text(error).decode()
    lib.heddle_error_free(error)
    assert code == expected and naming in words, (code, words)


executor, model = handle(), handle()
options = ExecutorOptions(c.sizeof(ExecutorOptions), 2, 0, 0)
check(lib.heddle_executor_new(c.byref(options), c.byref(executor)))
assert lib.heddle_executor_threads(executor) == 2
check(lib.heddle_model_load(executor, b"/nowhere", None, None, c.byref(model)), NOT_FOUND,
      "/nowhere")
check(lib.heddle_model_load(executor, sys.argv[2].encode(), None, None, c.byref(model)))
assert lib.heddle_model_input(model, 0).name == b"x"
assert lib.heddle_model_input(model, 1).name is None

digits = np.load(sys.argv[2] + "/input.npy")


def run(array, outputs):
    dims = (c.c_int64 * array.ndim)(*array.shape)
    tensor = handle()
    check(lib.heddle_tensor_wrap(FLOAT32, array.ndim, dims, array.ctypes.data, None, None,
                                 c.byref(tensor)))
    try:
        return lib.heddle_model_run(model, None, (text * 1)(b"x"), (handle * 1)(tensor), 1, outputs,
                                    1)
    finally:
        lib.heddle_tensor_free(tensor)


outputs = (handle * 1)()
check(run(digits[:, :, :7], outputs), INVALID_ARGUMENT, "x")
check(run(digits, outputs))
rank = lib.heddle_tensor_rank(outputs[0])
shape = tuple(lib.heddle_tensor_dims(outputs[0])[:rank])
data = c.cast(lib.heddle_tensor_const_data(outputs[0]), c.POINTER(c.c_float))
probabilities = np.ctypeslib.as_array(data, shape).copy()
lib.heddle_tensor_free(outputs[0])
assert shape == (len(digits), 10)
assert np.allclose(probabilities.sum(1), 1, atol=1e-5)

# The same image alone and in company is taken for the same digit.
for i in range(len(digits)):
    alone = (handle * 1)()
    check(run(np.ascontiguousarray(digits[i:i + 1]), alone))
    data = c.cast(lib.heddle_tensor_const_data(alone[0]), c.POINTER(c.c_float))
    assert np.argmax(np.ctypeslib.as_array(data, (10,))) == np.argmax(probabilities[i])
    lib.heddle_tensor_free(alone[0])

# The model keeps its executor alive.
lib.heddle_executor_free(executor)
check(run(digits, outputs))
lib.heddle_tensor_free(outputs[0])
lib.heddle_model_free(model)
print("heddle", lib.heddle_version().decode(), "answers through ctypes")
