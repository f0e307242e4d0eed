// Arrays that come and go as DLPack's capsules, without a copy.
//
// Ownership: a tensor keeps what the capsule held, which is taken once; a capsule keeps its tensor.
// Threads: with the GIL. Errors: Python exceptions.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>

#include "heddle/tensor.h"

namespace heddle::python {

namespace nb = nanobind;

enum class Taken { kYes, kNo, kNeedsCopy };

// An object with __dlpack__, or a capsule. ValueError: it lies on another device, or its capsule
// was taken before. `name` is for messages.
Taken TakeDlpack(nb::handle object, const std::string& name, Tensor* out);
// Tensor.__dlpack__. BufferError: the memory is read-only and the consumer takes a form of before
// DLPack 1.0, which cannot say so.
nb::object ExportDlpack(nb::pointer_and_handle<Tensor> self, nb::kwargs options);

}  // namespace heddle::python
