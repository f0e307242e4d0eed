// A group of ranks within a process.
//
// Ranks meet: each enters a collective with its operands, and when all are there each does a share
// of the work, on operands of all of them, and leaves when all shares are done. What decides that a
// wait cannot end, another rank's failure, its end or the waits of all others, is looked at under
// the one mutex, whenever something of it changes. A thread that waits wakes now and then to see
// whether its own run is to end.
//
// A ring is of all ranks or of some: `members` are its ranks, in their order.
//
// Ownership: ranks share the group. Threads: one mutex guards everything but the shares of work,
// which ranks do at the same time on parts of their own. Memory ordering: operands are written
// before their rank takes the mutex to enter, and read by others after they took it; shares of work
// likewise before the ranks leave.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/thread_annotations.h"
#include "ranks/communicator.h"

namespace heddle {

class ProcessGroup {
 public:
  explicit ProcessGroup(int size) : size_(size), members_(static_cast<size_t>(size)) {}
  int size() const { return size_; }

  // A collective's properties that must be the same on all ranks.
  struct Kind {
    enum class What : uint8_t {
      kAllReduce,
      kReduce,
      kReduceScatter,
      kAllGather,
      kBroadcast,
      kScatter,
      kAllToAll,
      kBarrier,
    };
    What what;
    Reduction how = Reduction::kSum;
    int64_t root = 0;
    DType dtype = DType::kUnknown;
    Shape shape = {};
    friend bool operator==(const Kind&, const Kind&) = default;
    std::string ToString() const;
  };
  // The operands of all ranks.
  struct Operands {
    std::vector<const std::byte*> in;
    std::vector<std::byte*> out;
  };
  using Share = FunctionRef<void(const Operands&)>;

  Status BeginRun(int rank, FunctionRef<Status()> interrupted);
  void EndRun(int rank, const Status& status);
  Status Claim(int rank, const void* lock, bool alone);
  // The rank is given up: nobody is to wait for it.
  void Leave(int rank);
  using Ranks = std::vector<int>;
  // `share`: the rank's part of the work. Operands, and roots, are counted within the ring.
  Status Meet(int rank, const Ranks& members, const RankCall& call, const Kind& kind,
              const std::byte* in, std::byte* out, Share share);
  // `to`, `from`: ranks of the group.
  Status Send(int rank, const RankCall& call, int to, const Tensor& in);
  Result<Tensor> Receive(int rank, const RankCall& call, int from);

 private:
  struct Member {
    int64_t run = 0;  // the number of the present run, or of the last one
    bool inside = false, gone = false;
    int given_up = 0;  // runs that ended while they waited for the present one
    const void* lock = nullptr;
    bool alone = false;                // has the lock to itself
    std::map<int64_t, int64_t> calls;  // collectives of the present run, by ring
    // While it waits: what for, and what would let it go on.
    std::string waits_for;
    const FunctionRef<bool()>* can_go = nullptr;
  };
  struct Meeting {
    Meeting(const Kind& k, int rank, std::string_view type, size_t ranks)
        : kind(k),
          first(rank),
          op(type),
          here(ranks, false),
          operands{std::vector<const std::byte*>(ranks), std::vector<std::byte*>(ranks)} {}
    const Kind kind;
    const int first;       // the rank that came first
    const std::string op;  // ... with this operator
    std::vector<bool> here;
    Operands operands;
    int joined = 0, done = 0;
    Status failed;  // a share of the work that was ended
  };
  struct Message {
    int64_t run;
    Tensor tensor;
  };

  // Waits until can_go(). An error when it cannot be, or the caller's run is to end.
  Status Await(int rank, const RankCall& call, std::string waits_for, FunctionRef<bool()> can_go,
               FunctionRef<bool(int)> needs) HEDDLE_REQUIRES(mutex_);
  // The failure of the rank's run: its own, another rank's, or of all ranks together.
  Status Trouble(int rank, FunctionRef<bool(int)> needs) HEDDLE_REQUIRES(mutex_);
  Status Stuck(int64_t run) HEDDLE_REQUIRES(mutex_);
  // Keeps the first failure of a run, which all ranks' are then.
  Status Fail(int64_t run, Status why) HEDDLE_REQUIRES(mutex_);
  // The same for what has ended the rank's present run.
  void FailOthers(int rank, const Status& status) HEDDLE_REQUIRES(mutex_);
  void Forget() HEDDLE_REQUIRES(mutex_);
  bool HasEnded(int rank, int64_t run) const HEDDLE_REQUIRES(mutex_) {
    const Member& m = members_[static_cast<size_t>(rank)];
    return m.gone || m.run > run || (m.run == run && !m.inside);
  }

  const int size_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<Member> members_ HEDDLE_GUARDED_BY(mutex_);
  std::map<int64_t, Status> failed_ HEDDLE_GUARDED_BY(mutex_);  // by run
  // By run, ring and number within the ring.
  std::map<std::tuple<int64_t, int64_t, int64_t>, std::shared_ptr<Meeting>> meetings_
      HEDDLE_GUARDED_BY(mutex_);
  // By sender, receiver and ring.
  std::map<std::tuple<int, int, int64_t>, std::deque<Message>> messages_ HEDDLE_GUARDED_BY(mutex_);
};

}  // namespace heddle
