// Communicator: one rank's part in a group of ranks, as communication operators and runs see it.
// ranks/process_group.h is a group within a process; others implement the same.
//
// Ownership: tensors are the caller's and used only during a call. Threads: calls of one rank come
// one at a time (BeginRun, rank and size from any thread). Errors: a call that returns an error has
// left its output undefined; the run is to end with that error.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/function_ref.h"
#include "core/services.h"
#include "heddle/ranks.h"
#include "heddle/tensor.h"

namespace heddle {

// The operation that makes one value of the ranks' values. kAvg: their sum by their number.
enum class Reduction : uint8_t { kSum, kMax, kMin, kProd, kAvg };

// A call of a communication operator.
struct RankCall {
  std::string_view op;  // its type, for messages
  int64_t ring = 0;     // calls of one ring come in the same order on all ranks
  // Not ok: the run is to end. Asked while the call waits.
  FunctionRef<Status()> interrupted;
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // The rank's part in a ring of some ranks only (RankRing), which counts them by itself; its own
  // part where the ring is of all. nullptr: the rank is not in the ring.
  virtual Communicator* Ring(int64_t /*ring*/) { return this; }

  // Around every run of a communicating program. A rank's runs come one at a time: BeginRun waits
  // for the one before, until `interrupted` returns an error. Then the run has ended without
  // EndRun, and the others' runs that belong to it fail.
  virtual Status BeginRun(FunctionRef<Status()> interrupted) = 0;
  // `status`: how the run ended; a failure is the others' as well. Does not throw.
  virtual void EndRun(const Status& status) = 0;
  // The present run will need what `lock` names, and nobody else meanwhile where `alone`. An error
  // when another rank's present run needs it, too, and one of them alone: they would wait for each
  // other.
  virtual Status Claim(const void* lock, bool alone) = 0;

  // Collectives: every rank calls the same one with operands of the same dtype and shape. `out` may
  // be `in`.
  virtual Status AllReduce(const RankCall& call, Reduction how, const Tensor& in, Tensor* out) = 0;
  // Rank `root` gets the reduced values, the others keep their own.
  virtual Status Reduce(const RankCall& call, Reduction how, int64_t root, const Tensor& in,
                        Tensor* out) = 0;
  // Rank r gets the r-th part of the reduced values. `out` is not `in`.
  virtual Status ReduceScatter(const RankCall& call, Reduction how, const Tensor& in,
                               Tensor* out) = 0;
  // The ranks' values one behind the other. `out` is not `in`.
  virtual Status AllGather(const RankCall& call, const Tensor& in, Tensor* out) = 0;
  virtual Status Broadcast(const RankCall& call, int64_t root, const Tensor& in, Tensor* out) = 0;
  // Rank r gets the r-th part of what `root` has. `out` is not `in`.
  virtual Status Scatter(const RankCall& call, int64_t root, const Tensor& in, Tensor* out) = 0;
  // Part s of rank r becomes part r of rank s. `out` is not `in`.
  virtual Status AllToAll(const RankCall& call, const Tensor& in, Tensor* out) = 0;
  virtual Status Barrier(const RankCall& call) = 0;

  // Does not wait: what is sent is kept until the peer takes it, in the order of sending, or until
  // both ranks' runs have ended.
  virtual Status Send(const RankCall& call, int64_t peer, const Tensor& in) = 0;
  virtual Result<Tensor> Receive(const RankCall& call, int64_t peer) = 0;
};

// A run (a BlockRunner) that may be a rank's.
class RankRun {
 public:
  virtual ~RankRun() = default;
  virtual Communicator* communicator() const = 0;  // nullptr: it is none's
};

// The communicator of the run that a kernel is part of; nullptr: none.
inline Communicator* CommunicatorOf(const Services& services) {
  const auto* run = dynamic_cast<const RankRun*>(services.blocks);
  return run != nullptr ? run->communicator() : nullptr;
}

}  // namespace heddle
