// Arrays of Python as heddle's tensors, and back.
//
// Ownership: a tensor made of an array keeps the array's memory alive; an array made of a tensor
// keeps the tensor's. Memory that was read-only stays so, through whatever shares it. Nothing is
// copied where memory is contiguous enough to be described by strides and its elements are aligned.
// Threads: all functions need the GIL; tensors made here may be dropped without it. Errors: Python
// exceptions (nanobind::python_error, nanobind::builtin_exception).
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "heddle/heddle.h"

namespace heddle::python {

namespace nb = nanobind;

// NumPy's or Paddle's name of an element type; kUnknown for a name that is none.
DType DTypeNamed(const std::string& name);

// `object` as a tensor: an array, anything with the buffer protocol or __dlpack__, a heddle.Tensor,
// a number or nested lists, a pair (array, offsets of sequences), or an object with lod() like
// Paddle's LoDTensor. Numbers and lists become `wanted` (kUnknown: what NumPy makes of them);
// arrays keep their type, but for 16-bit unsigned integers, which stand for bfloat16 as in Paddle.
// `name` is for messages.
Tensor ToTensor(nb::handle object, DType wanted, const std::string& name);
// ToTensor, but for a heddle.Value, which is taken as it is. `declared`: what the program's file
// calls the elements, as heddle::InputTypes says: arrays of that type are converted to `wanted`,
// and their numbers must be in its range; "string" takes an array of texts.
Value ToValue(nb::handle object, DType wanted, const std::string& name,
              const std::string& declared = "");
// A tensor in memory of its own.
Tensor ToOwnTensor(nb::handle object, DType wanted, const std::string& name);

// A numpy.ndarray over the tensor's memory, which it keeps alive; read-only where the memory is
// that of a read-only array. bfloat16 comes as ml_dtypes' type where that package is installed,
// else as uint16.
nb::object ToArray(Tensor tensor);
// Tensors as arrays, arrays of tensors as lists, selected rows as a tuple (rows, values, height),
// strings as arrays of objects. Arrays have the type `declared`, as heddle::OutputTypes says, where
// NumPy has it.
nb::object ToPython(Value value, const std::string& declared = "");

// The types Tensor and Value.
void BindTensor(nb::module_& module);

}  // namespace heddle::python
