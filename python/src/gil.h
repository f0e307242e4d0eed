// Letting go of the interpreter's lock for a while.
#pragma once

#include <cxxabi.h>
#include <nanobind/nanobind.h>
#include <unistd.h>

namespace heddle::python {

// As nanobind's gil_scoped_release, but for a thread that the interpreter does not wait for at its
// end (a daemon): Python up to 3.13 ends such a thread when it asks for the lock, by unwinding its
// stack, and frames of C++ that throw nothing would end the process with it. It sleeps instead
// until the process is gone.
class ReleasedGil {
 public:
  ReleasedGil() : state_(PyEval_SaveThread()) {}
  // A forced unwind carries no object, so UBSan must not check the reference that catches it.
  __attribute__((no_sanitize("null"))) ~ReleasedGil() {
    try {
      PyEval_RestoreThread(state_);
    } catch (abi::__forced_unwind&) {
      for (;;) ::pause();
    }
  }
  ReleasedGil(const ReleasedGil&) = delete;
  ReleasedGil& operator=(const ReleasedGil&) = delete;

 private:
  PyThreadState* const state_;
};

}  // namespace heddle::python
