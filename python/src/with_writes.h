// Reading and replacing variables that runs write.
#pragma once

#include "heddle/limits.h"
#include "heddle/params.h"
#include "python/src/errors.h"
#include "python/src/gil.h"
#include "python/src/interrupt.h"

namespace heddle::python {

// fn() with the scope's write_mutex and without the GIL. Ctrl-C ends the wait for runs that write
// it; a handler of a signal cannot have it from inside such a run, which is an error.
template <typename Fn>
void WithWrites(Scope& scope, Fn&& fn) {
  Status status;
  const InterruptScope signals;
  {
    const ReleasedGil released;
    const auto writes = [&] {
      const LimitScope limits(signals.limits());
      return HoldWrites(scope);
    }();
    status = writes.status();
    if (writes.ok()) fn();
  }
  signals.ThrowIfInterrupted();
  Check(status);
}

}  // namespace heddle::python
