// Memory that Python objects lend to tensors: how long, and with which right.
//
// Ownership: a tensor keeps the object that lent its memory. The flag that memory is read-only
// stays with the memory: every tensor that shares it, an output of a run included, is read-only.
// Threads: tensors may be dropped by any; all else needs the GIL, unless it says otherwise.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <functional>
#include <string>

#include "heddle/tensor.h"

namespace heddle::python {

namespace nb = nanobind;

// As Python lends it: strides in bytes, none where there are no gaps.
struct Lent {
  void* data = nullptr;
  DType dtype = DType::kUnknown;
  int rank = 0;
  const int64_t* dims = nullptr;
  const int64_t* byte_strides = nullptr;
  bool read_only = true;
};

// A tensor over it, whose last owner calls `release`, without the GIL. False: heddle cannot address
// it.
bool BorrowMemory(const Lent& lent, std::function<void()> release, Tensor* out);

// Drop a reference to an object, or a view, that a tensor borrowed memory from. Need no GIL: it is
// let go of by SettleLoans().
void ReturnLoan(PyObject* object);
void ReturnLoan(Py_buffer* view);
// Lets go of what tensors that are gone had borrowed. Conversions begin with it.
void SettleLoans();

// Throws ValueError: "'name': why".
[[noreturn]] void WrongValue(const std::string& name, const std::string& why);

}  // namespace heddle::python
