#include "scheduler/kernel_arena.h"

#ifdef HEDDLE_WITH_ONEDNN

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <optional>
#include <thread>
#include <utility>

#include "core/interrupts.h"
#include "core/thread_annotations.h"
#include "core/threads/at_fork.h"
#include "core/threads/library_place.h"
#include "core/threads/near_list.h"
#include "scheduler/pieces.h"
#include "scheduler/team.h"

namespace heddle {
namespace {

// Executes the pieces on the threads of the surrounding arena. A worker that has come for a piece
// stays for some microseconds: it then begins the next kernel's pieces at once, where TBB takes
// about a microsecond to hand over a task.
class ArenaIntraOp final : public IntraOp {
 public:
  ArenaIntraOp(int threads, tbb::task_arena& arena)
      : threads_(threads),
        arena_(arena),
        team_(threads - 1, [this] { CallOne(); }),
        inside_(std::make_unique<Inside[]>(static_cast<size_t>(threads))) {}
  ~ArenaIntraOp() override {
    team_.Dismiss();
    if (calls_) arena_.execute([&] { calls_->wait(); });
  }
  int threads() const override { return threads_; }
  void ParallelFor(int64_t n, int64_t grain, FunctionRef<void(int64_t, int64_t)> fn) override {
    const Partition cut(n, grain, threads_);
    if (cut.pieces <= 1 || !calls_) return RunWhole(n, grain, fn);
    Pieces pieces(cut, grain, fn);
    const auto work = [&](int) {
      const int me = Me();
      const bool nested = std::exchange(inside_[me].pieces, true);
      pieces.Work();
      inside_[me].pieces = nested;
    };
    if (!team_.Run(work, static_cast<int>(cut.pieces))) {
      // The team is taken: the caller is itself inside a piece, or another caller has the team.
      tbb::parallel_for(
          int64_t{0}, cut.pieces, [&](int64_t) { work(0); }, tbb::static_partitioner());
    }
    pieces.Rethrow();
  }
  void LendToLibrary() override { team_.Dismiss(); }

 private:
  struct alignas(64) Inside {
    bool pieces = false;  // the thread in this place of the arena is executing pieces
  };
  int Me() const {
    return std::clamp(tbb::this_task_arena::current_thread_index(), 0, threads_ - 1);
  }
  void CallOne() {
    if (!calls_) return team_.Decline();
    calls_->run([this] {
      // TBB may give this task to a thread that waits inside a piece. Such a thread must not stay
      // here.
      if (inside_[Me()].pieces) return team_.Decline();
      team_.Serve();
    });
  }

  const int threads_;
  tbb::task_arena& arena_;
  Team team_;
  std::unique_ptr<Inside[]> inside_;
  // Allocated separately, since its destructor may throw. A child process has none: TBB's threads
  // stay behind.
  std::unique_ptr<tbb::task_group> calls_ = std::make_unique<tbb::task_group>();
  const AtFork at_fork_{nullptr, nullptr, [this] {
                          LeaveBehind(calls_);
                          team_.ForgetThreads();
                        }};
};

// TBB ends with the process, and a thread in its first TBB work would then fail. So exit and fork
// wait for that work, and once exit has begun no first work starts.
//
// In a child process TBB would wait for ever: it counts on workers that do not exist there, and a
// lock that one of them held at the fork stays held. So a child of a process that used TBB does its
// own loops without it; only calls of the primitives library still go through TBB.
class FirstWork {
 public:
  static FirstWork& Of() {
    static FirstWork* const one = [] {
      auto* const made = new FirstWork;
      std::atexit([] { Of().Close(); });
      return made;
    }();
    return *one;
  }
  template <typename Fn>
  void Do(Fn&& fn) {
    MutexLock lock(mutex_);
    if (closed_ || left_behind()) return;
    NoteUse();
    fn();
  }
  // To be called before every other use of TBB.
  void NoteUse() {
    if (!in_use_.load(std::memory_order_relaxed)) in_use_ = true;
  }
  // Whether this is a child of the process in which TBB was started.
  bool left_behind() const { return left_behind_.load(std::memory_order_relaxed); }

 private:
  void Close() {
    MutexLock lock(mutex_);
    closed_ = true;
  }
  Mutex mutex_;
  bool closed_ HEDDLE_GUARDED_BY(mutex_) = false;
  std::atomic<bool> in_use_{false}, left_behind_{false};
  const AtFork at_fork_{mutex_, [this] { left_behind_ = in_use_.load(); }};
};

}  // namespace

struct KernelArena::Impl final : LibraryPlace {
  Impl(int threads, bool workers)
      : arena(std::in_place, threads, static_cast<unsigned>(workers ? 1 : threads)) {
    // TBB starts no more workers than there are processors unless told; a caller who asks for more
    // threads gets them. hardware_concurrency reads a file, so an arena of one thread does not ask.
    if (workers && threads > 1 && !FirstWork::Of().left_behind() &&
        threads > static_cast<int>(std::thread::hardware_concurrency()))
      limit = std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism,
                                                    static_cast<size_t>(threads));
  }
  std::unique_ptr<tbb::global_control> limit;
  std::optional<tbb::task_arena> arena;  // none in a child process
  // With one thread per call, callers need not wait for each other: each gets an arena of its own,
  // and only for calls of the library.
  void Run(FunctionRef<void()> fn) override {
    std::unique_ptr<tbb::task_arena> own;
    {
      MutexLock lock(mutex);
      if (!single.empty()) own = single.Take();
    }
    FirstWork::Of().NoteUse();
    if (!own) own = std::make_unique<tbb::task_arena>(1, 1);
    own->execute([&] { fn(); });
    MutexLock lock(mutex);
    single.Put(std::move(own));
  }
  Mutex mutex;
  NearList<std::unique_ptr<tbb::task_arena>> single HEDDLE_GUARDED_BY(mutex);
  const AtFork at_fork{mutex, [this]() HEDDLE_NO_THREAD_SAFETY_ANALYSIS {
                         LeaveBehind(limit);
                         LeaveBehind(arena);
                         LeaveBehind(single);
                       }};
};

KernelArena::KernelArena(int threads, bool workers, HostPool& pool)
    : impl_(std::make_unique<Impl>(threads, workers)) {
  const bool left_behind = FirstWork::Of().left_behind();  // made before the process may end
  if (left_behind) impl_->arena.reset();
  if (!workers || threads == 1)
    own_ = std::make_unique<InlineIntraOp>(threads);
  else if (!left_behind)
    own_ = std::make_unique<ArenaIntraOp>(threads, *impl_->arena);
  intra_ = own_ ? own_.get() : &pool;
}

void KernelArena::Execute(FunctionRef<void()> fn) {
  if (intra_->threads() == 1 || !impl_->arena) {
    LibraryPlace::Guard guard(impl_.get());
    return fn();
  }
  // Isolated: a thread that waits inside a kernel must not take up another caller's run, which
  // could want a lock this one holds.
  FirstWork::Of().NoteUse();
  // When the arena is full, TBB has a thread inside call the function. That thread may be working
  // for another run, with interrupts of its own.
  Interrupts* const mine = Interrupts::Current();
  impl_->arena->execute([&] {
    const Interrupts::Scope scope(mine);
    tbb::this_task_arena::isolate([&] { fn(); });
  });
}

bool KernelArena::BoundsLibrary() { return true; }

// At its first use TBB loads libraries and reads the machine's topology; it starts threads when
// there is work to share.
void KernelArena::WarmUp() {
  try {
    FirstWork::Of().Do([] {
      tbb::task_arena(2).execute([] {
        tbb::parallel_for(
            0, 2, [](int) {}, tbb::static_partitioner());
      });
    });
  } catch (...) {  // no memory or no threads: whoever needs them gets the error
  }
}

#else

namespace heddle {

struct KernelArena::Impl {};

KernelArena::KernelArena(int threads, bool workers, HostPool& pool) : intra_(&pool) {
  if (!workers) {
    own_ = std::make_unique<InlineIntraOp>(threads);
    intra_ = own_.get();
  }
}

void KernelArena::Execute(FunctionRef<void()> fn) { fn(); }

bool KernelArena::BoundsLibrary() { return false; }

void KernelArena::WarmUp() {}

#endif

KernelArena::~KernelArena() = default;

}  // namespace heddle
