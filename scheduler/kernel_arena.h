// The threads that a run's kernels execute on: bounds those of the primitives library (oneDNN on
// TBB) and of our own ParallelFor, and gives both one set of threads.
//
// Threads: Execute may be called from any number of threads. With `threads` > 1 at most that many
// are inside at a time, further ones wait; with one thread each caller works on its own.
#pragma once

#include <memory>

#include "core/function_ref.h"
#include "core/services.h"
#include "scheduler/host_pool.h"

namespace heddle {

class KernelArena {
 public:
  // `workers`: TBB's workers may help (runs that go one instruction after another). Without, only
  // threads that are inside do the work (runs that spread over a HostPool already).
  KernelArena(int threads, bool workers, HostPool& pool);
  ~KernelArena();
  void Execute(FunctionRef<void()> fn);
  // Starts TBB, once for the process, which otherwise the first Execute with several threads does.
  // It takes about a millisecond and may be called on any thread. Does not throw.
  static void WarmUp();
  IntraOp& intra() { return *intra_; }
  // Whether there is a primitives library whose threads arenas bound.
  static bool BoundsLibrary();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::unique_ptr<IntraOp> own_;
  IntraOp* intra_;
};

}  // namespace heddle
