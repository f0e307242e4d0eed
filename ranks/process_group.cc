#include "ranks/process_group.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>

#include "core/error.h"
#include "core/guard.h"
#include "core/memory/watched_bytes.h"
#include "heddle/bounds.h"
#include "ranks/reduce.h"

namespace heddle {
namespace {

using What = ProcessGroup::Kind::What;

constexpr std::chrono::milliseconds kLook{2};  // between looks at whether a run is to end

constexpr const char* kNames[] = {"an all-reduce", "a reduce",  "a reduce-scatter", "an all-gather",
                                  "a broadcast",   "a scatter", "an all-to-all",    "a barrier"};
constexpr const char* kReductions[] = {"sum", "max", "min", "prod", "avg"};

// The rank's place in a ring; the ring's length: the rank is not in it.
size_t PlaceIn(const ProcessGroup::Ranks& members, int rank) {
  return static_cast<size_t>(std::find(members.begin(), members.end(), rank) - members.begin());
}

}  // namespace

std::string ProcessGroup::Kind::ToString() const {
  std::string text = kNames[static_cast<int>(what)];
  if (what == What::kBarrier) return text;
  if (what <= What::kReduceScatter) text += StrCat(" (", kReductions[static_cast<int>(how)], ")");
  if (what == What::kReduce) text += StrCat(" to rank ", root);
  if (what == What::kBroadcast || what == What::kScatter) text += StrCat(" from rank ", root);
  return text + StrCat(" of ", Name(dtype), " ", shape.ToString());
}

Status ProcessGroup::BeginRun(int rank, FunctionRef<Status()> interrupted) {
  MutexLock lock(mutex_);
  Member& m = members_[static_cast<size_t>(rank)];
  while (m.inside) {
    if (const Status status = interrupted(); !status.ok()) {
      ++m.given_up;
      return status;
    }
    changed_.WaitUntil(mutex_, std::chrono::steady_clock::now() + kLook);
  }
  ++m.run;
  m.inside = true;
  m.calls.clear();
  return Status::Ok();
}

void ProcessGroup::EndRun(int rank, const Status& status) {
  MutexLock lock(mutex_);
  Member& m = members_[static_cast<size_t>(rank)];
  m.inside = false;
  m.lock = nullptr;
  // Without memory for the failure, the others find that the run has ended.
  if (!status.ok())
    (void)Guard([&] {
      mutex_.AssertHeld();
      FailOthers(rank, status);
      return Status::Ok();
    });
  m.run += std::exchange(m.given_up, 0);
  Forget();
  changed_.NotifyAll();
}

void ProcessGroup::Leave(int rank) {
  MutexLock lock(mutex_);
  members_[static_cast<size_t>(rank)].gone = true;
  changed_.NotifyAll();
}

Status ProcessGroup::Claim(int rank, const void* what, bool alone) {
  MutexLock lock(mutex_);
  Member& mine = members_[static_cast<size_t>(rank)];
  for (size_t r = 0; r < members_.size(); ++r)
    if (static_cast<int>(r) != rank && members_[r].inside && members_[r].lock == what &&
        (alone || members_[r].alone))
      return Fail(mine.run, InvalidArgument("ranks ", std::min<size_t>(r, rank), " and ",
                                            std::max<size_t>(r, rank),
                                            " run a program that writes to one scope's variables; "
                                            "each needs a scope of its own"));
  mine.lock = what;
  mine.alone = alone;
  return Status::Ok();
}

// Drops failures, meetings and messages of runs that all ranks have left.
void ProcessGroup::Forget() {
  int64_t oldest = std::numeric_limits<int64_t>::max();
  for (const Member& m : members_)
    if (!m.gone) oldest = std::min(oldest, m.inside ? m.run : m.run + 1);
  std::erase_if(failed_, [&](const auto& f) { return f.first < oldest; });
  std::erase_if(meetings_, [&](const auto& m) { return std::get<0>(m.first) < oldest; });
  for (auto& [key, queue] : messages_)
    while (!queue.empty() && queue.front().run < oldest) queue.pop_front();
}

Status ProcessGroup::Fail(int64_t run, Status why) {
  const auto [at, first] = failed_.emplace(run, std::move(why));
  if (first) changed_.NotifyAll();
  return at->second;
}

void ProcessGroup::FailOthers(int rank, const Status& status) {
  const int64_t run = members_[static_cast<size_t>(rank)].run;
  if (failed_.find(run) == failed_.end())
    (void)Fail(run,
               Status(status.code(), StrCat("rank ", rank, "'s run failed: ", status.ToString())));
}

// All ranks are in this run, and each waits for what none of the others will do.
Status ProcessGroup::Stuck(int64_t run) {
  std::string text;
  for (size_t r = 0; r < members_.size(); ++r) {
    const Member& m = members_[r];
    if (!m.inside || m.run != run || m.can_go == nullptr || (*m.can_go)()) return Status::Ok();
    text += StrCat(text.empty() ? "" : ", ", "rank ", r, " in ", m.waits_for);
  }
  return Fail(run, InvalidArgument("the ranks wait for each other: ", text));
}

Status ProcessGroup::Trouble(int rank, FunctionRef<bool(int)> needs) {
  const int64_t run = members_[static_cast<size_t>(rank)].run;
  if (const auto failed = failed_.find(run); failed != failed_.end()) return failed->second;
  for (int r = 0; r < size(); ++r) {
    if (r == rank || !needs(r) || !HasEnded(r, run)) continue;
    return Fail(run, InvalidArgument("rank ", rank, " waits in ",
                                     members_[static_cast<size_t>(rank)].waits_for, " for rank ", r,
                                     members_[static_cast<size_t>(r)].gone
                                         ? ", which is there no more"
                                         : ", which has ended its run without it"));
  }
  return Stuck(run);
}

Status ProcessGroup::Await(int rank, const RankCall& call, std::string waits_for,
                           FunctionRef<bool()> can_go, FunctionRef<bool(int)> needs) {
  Member& m = members_[static_cast<size_t>(rank)];
  m.waits_for = std::move(waits_for);
  m.can_go = &can_go;
  const Status status = Guard([&] {
    mutex_.AssertHeld();
    while (!can_go()) {
      HEDDLE_RETURN_IF_ERROR(Trouble(rank, needs));
      HEDDLE_RETURN_IF_ERROR(call.interrupted());
      changed_.WaitUntil(mutex_, std::chrono::steady_clock::now() + kLook);
    }
    return Status::Ok();
  });
  m.can_go = nullptr;
  return status;
}

Status ProcessGroup::Meet(int rank, const Ranks& members, const RankCall& call, const Kind& kind,
                          const std::byte* in, std::byte* out, Share share) {
  const size_t me = PlaceIn(members, rank);
  const int size = static_cast<int>(members.size());
  MutexLock lock(mutex_);
  Member& m = members_[static_cast<size_t>(rank)];
  if (const auto failed = failed_.find(m.run); failed != failed_.end()) return failed->second;
  const auto key = std::tuple(m.run, call.ring, m.calls[call.ring]++);
  std::shared_ptr<Meeting>& place = meetings_[key];
  if (place == nullptr) place = std::make_shared<Meeting>(kind, rank, call.op, members.size());
  const std::shared_ptr<Meeting> meeting = place;
  if (!(meeting->kind == kind))
    return Fail(m.run,
                InvalidArgument("the ranks' operators do not fit together: rank ", meeting->first,
                                " makes ", meeting->kind.ToString(), " (", meeting->op, "), rank ",
                                rank, " ", kind.ToString(), " (", call.op, ")"));
  std::string waits_for(call.op);  // the last allocation before others count on this rank
  meeting->here[me] = true;
  meeting->operands.in[me] = in;
  meeting->operands.out[me] = out;
  if (++meeting->joined == size) changed_.NotifyAll();
  const Status status = Await(
      rank, call, std::move(waits_for), [&] { return meeting->joined == size; },
      [&](int r) {
        const size_t at = PlaceIn(members, r);
        return at < members.size() && !meeting->here[at];
      });
  if (!status.ok()) {  // the operands go: nobody may count on them
    meeting->here[me] = false;
    --meeting->joined;
    FailOthers(rank, status);
    return status;
  }
  lock.Unlock();
  // From here on the operands of all ranks are in use: nothing but their work is waited for. It may
  // be ended, for all.
  Status shared = Guard([&] {
    share(meeting->operands);
    return Status::Ok();
  });
  lock.Lock();
  if (!shared.ok() && meeting->failed.ok()) meeting->failed = std::move(shared);
  if (++meeting->done == size) {
    meetings_.erase(key);
    changed_.NotifyAll();
  }
  while (meeting->done < size) changed_.Wait(mutex_);
  return meeting->failed;
}

Status ProcessGroup::Send(int rank, const RankCall& call, int to, const Tensor& in) {
  Tensor copy = in.Clone();
  MutexLock lock(mutex_);
  const int64_t run = members_[static_cast<size_t>(rank)].run;
  if (const auto failed = failed_.find(run); failed != failed_.end()) return failed->second;
  messages_[{rank, to, call.ring}].push_back({run, std::move(copy)});
  changed_.NotifyAll();
  return Status::Ok();
}

Result<Tensor> ProcessGroup::Receive(int rank, const RankCall& call, int from) {
  MutexLock lock(mutex_);
  const int64_t run = members_[static_cast<size_t>(rank)].run;
  std::deque<Message>& queue = messages_[{from, rank, call.ring}];
  while (!queue.empty() && queue.front().run < run) queue.pop_front();  // nobody took them
  HEDDLE_RETURN_IF_ERROR(Await(
      rank, call, StrCat(call.op, " from rank ", from),
      [&] { return !queue.empty() && queue.front().run == run; },
      [&](int r) { return r == from; }));
  Tensor tensor = std::move(queue.front().tensor);
  queue.pop_front();
  return tensor;
}

namespace {

// The part of [0, n) that falls to one of `ranks`.
std::pair<int64_t, int64_t> PartOf(int rank, int ranks, int64_t n) {
  return {n * rank / ranks, n * (rank + 1) / ranks};
}

using SharedRanks = std::shared_ptr<const ProcessGroup::Ranks>;

// A rank's part in a ring.
class RingRank : public Communicator {
 public:
  RingRank(std::shared_ptr<ProcessGroup> group, SharedRanks members, int rank)
      : group_(std::move(group)),
        members_(std::move(members)),
        in_group_(rank),
        rank_(static_cast<int>(PlaceIn(*members_, rank))) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(members_->size()); }
  Status BeginRun(FunctionRef<Status()> interrupted) override {
    return group_->BeginRun(in_group_, interrupted);
  }
  void EndRun(const Status& status) override { group_->EndRun(in_group_, status); }
  Status Claim(const void* lock, bool alone) override {
    return group_->Claim(in_group_, lock, alone);
  }

  // Each rank reduces a part of the elements, for all.
  Status AllReduce(const RankCall& call, Reduction how, const Tensor& in, Tensor* out) override {
    HEDDLE_RETURN_IF_ERROR(CheckReducible(call, in));
    return Meet(call, {.what = What::kAllReduce, .how = how}, in, out, [&](const auto& all) {
      const auto [begin, end] = PartOf(rank_, size(), in.numel());
      ReduceRange(how, in.dtype(), all.in, all.out, begin, end, 0);
    });
  }
  Status Reduce(const RankCall& call, Reduction how, int64_t root, const Tensor& in,
                Tensor* out) override {
    HEDDLE_RETURN_IF_ERROR(CheckRoot(call, root));
    HEDDLE_RETURN_IF_ERROR(CheckReducible(call, in));
    return Meet(call, {.what = What::kReduce, .how = how, .root = root}, in, out,
                [&](const auto& all) {
                  // The others' operands are read meanwhile, and written by nobody.
                  const auto [begin, end] = PartOf(rank_, size(), in.numel());
                  ReduceRange(how, in.dtype(), all.in, {&all.out[static_cast<size_t>(root)], 1},
                              begin, end, 0);
                  if (rank_ != root) CopyTo(out, in);
                });
  }
  Status ReduceScatter(const RankCall& call, Reduction how, const Tensor& in,
                       Tensor* out) override {
    HEDDLE_RETURN_IF_ERROR(CheckReducible(call, in));
    return Meet(call, {.what = What::kReduceScatter, .how = how}, in, out, [&](const auto& all) {
      const int64_t part = in.numel() / size(), begin = part * rank_;
      ReduceRange(how, in.dtype(), all.in, {&all.out[static_cast<size_t>(rank_)], 1}, begin,
                  begin + part, begin);
    });
  }
  Status AllGather(const RankCall& call, const Tensor& in, Tensor* out) override {
    return Meet(call, {.what = What::kAllGather}, in, out, [&](const auto& all) {
      for (size_t r = 0; r < all.in.size(); ++r)
        Copy(Bytes(out) + r * in.bytes(), all.in[r], in.bytes());
    });
  }
  Status Broadcast(const RankCall& call, int64_t root, const Tensor& in, Tensor* out) override {
    HEDDLE_RETURN_IF_ERROR(CheckRoot(call, root));
    return Meet(call, {.what = What::kBroadcast, .root = root}, in, out, [&](const auto& all) {
      Copy(Bytes(out), all.in[static_cast<size_t>(root)], in.bytes());
    });
  }
  Status Scatter(const RankCall& call, int64_t root, const Tensor& in, Tensor* out) override {
    HEDDLE_RETURN_IF_ERROR(CheckRoot(call, root));
    return Meet(call, {.what = What::kScatter, .root = root}, in, out, [&](const auto& all) {
      const size_t part = in.bytes() / all.in.size();
      Copy(Bytes(out), all.in[static_cast<size_t>(root)] + part * static_cast<size_t>(rank_), part);
    });
  }
  Status AllToAll(const RankCall& call, const Tensor& in, Tensor* out) override {
    return Meet(call, {.what = What::kAllToAll}, in, out, [&](const auto& all) {
      const size_t part = in.bytes() / all.in.size();
      for (size_t r = 0; r < all.in.size(); ++r)
        Copy(Bytes(out) + r * part, all.in[r] + part * static_cast<size_t>(rank_), part);
    });
  }
  Status Barrier(const RankCall& call) override {
    return group_->Meet(in_group_, *members_, call, {.what = What::kBarrier}, nullptr, nullptr,
                        [](const auto&) {});
  }
  Status Send(const RankCall& call, int64_t peer, const Tensor& in) override {
    HEDDLE_RETURN_IF_ERROR(CheckRoot(call, peer));
    return group_->Send(in_group_, call, (*members_)[static_cast<size_t>(peer)], in);
  }
  Result<Tensor> Receive(const RankCall& call, int64_t peer) override {
    HEDDLE_RETURN_IF_ERROR(CheckRoot(call, peer));
    return group_->Receive(in_group_, call, (*members_)[static_cast<size_t>(peer)]);
  }

 private:
  Status Meet(const RankCall& call, ProcessGroup::Kind kind, const Tensor& in, Tensor* out,
              ProcessGroup::Share share) {
    kind.dtype = in.dtype();
    kind.shape = in.shape();
    return group_->Meet(in_group_, *members_, call, kind, static_cast<const std::byte*>(in.raw()),
                        Bytes(out), share);
  }
  static std::byte* Bytes(Tensor* t) { return static_cast<std::byte*>(t->mutable_raw()); }
  static void Copy(std::byte* to, const std::byte* from, size_t bytes) {
    if (bytes > 0 && to != from) WatchedMemcpy(to, from, bytes);
  }
  static void CopyTo(Tensor* to, const Tensor& from) {
    Copy(Bytes(to), static_cast<const std::byte*>(from.raw()), from.bytes());
  }
  Status CheckRoot(const RankCall& call, int64_t root) const {
    if (root >= 0 && root < size()) return Status::Ok();
    return InvalidArgument(call.op, " names rank ", root, " of a group of ", size());
  }
  static Status CheckReducible(const RankCall& call, const Tensor& in) {
    if (IsReducible(in.dtype())) return Status::Ok();
    return Unimplemented(call.op, " cannot reduce ", Name(in.dtype()));
  }

  const std::shared_ptr<ProcessGroup> group_;
  const SharedRanks members_;
  const int in_group_, rank_;  // its number there, and in the ring
};

class ProcessRank final : public RingRank {
 public:
  ProcessRank(const std::shared_ptr<ProcessGroup>& group, SharedRanks all, int rank,
              const std::map<int64_t, SharedRanks>& rings)
      : RingRank(group, std::move(all), rank), group_(group) {
    for (const auto& [ring, ranks] : rings)
      rings_[ring] = PlaceIn(*ranks, rank) < ranks->size()
                         ? std::make_unique<RingRank>(group, ranks, rank)
                         : nullptr;
  }
  ~ProcessRank() override { group_->Leave(rank()); }
  Communicator* Ring(int64_t ring) override {
    const auto at = rings_.find(ring);
    return at == rings_.end() ? this : at->second.get();
  }

 private:
  const std::shared_ptr<ProcessGroup> group_;
  std::map<int64_t, std::unique_ptr<RingRank>> rings_;  // of some ranks; null: not of this one
};

std::vector<std::shared_ptr<Communicator>> MakeRanks(int size, const std::vector<RankRing>& rings) {
  const auto group = std::make_shared<ProcessGroup>(std::max(1, size));
  ProcessGroup::Ranks all(static_cast<size_t>(group->size()));
  std::iota(all.begin(), all.end(), 0);
  const auto members = std::make_shared<const ProcessGroup::Ranks>(std::move(all));
  std::map<int64_t, SharedRanks> of_rings;
  for (const RankRing& ring : rings)
    of_rings[ring.ring] = std::make_shared<const ProcessGroup::Ranks>(ring.ranks);
  std::vector<std::shared_ptr<Communicator>> ranks;
  for (int r : *members)
    ranks.push_back(std::make_shared<ProcessRank>(group, members, r, of_rings));
  return ranks;
}

}  // namespace

std::vector<std::shared_ptr<Communicator>> NewRanks(int size) {
  auto made = NewRanks(size, {});
  if (!made.ok()) throw std::invalid_argument(std::string(made.status().message()));
  return *std::move(made);
}

Result<std::vector<std::shared_ptr<Communicator>>> NewRanks(int size,
                                                            const std::vector<RankRing>& rings) {
  if (size < 1) return InvalidArgument("a group has at least one rank, not ", size);
  if (size > kMostRanks)
    return InvalidArgument("a group of ", size, " ranks: it has at most ", kMostRanks);
  if (rings.size() > kMostRings)
    return InvalidArgument("a group with ", rings.size(), " rings: it has at most ", kMostRings);
  std::set<int64_t> named;
  for (const RankRing& ring : rings) {
    if (!named.insert(ring.ring).second)
      return InvalidArgument("ring ", ring.ring, " is named twice");
    if (ring.ranks.empty()) return InvalidArgument("ring ", ring.ring, " has no ranks");
    std::set<int> members;
    for (int rank : ring.ranks) {
      if (rank < 0 || rank >= size)
        return InvalidArgument("ring ", ring.ring, " names rank ", rank, " of a group of ", size);
      if (!members.insert(rank).second)
        return InvalidArgument("ring ", ring.ring, " names rank ", rank, " twice");
    }
  }
  return MakeRanks(size, rings);
}

}  // namespace heddle
