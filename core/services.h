// Interfaces, implemented by the executor, that a running kernel may use.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/function_ref.h"
#include "heddle/tensor.h"

namespace heddle {

// Parallelism inside a kernel, on the threads that also run whole kernels concurrently.
class IntraOp {
 public:
  virtual ~IntraOp() = default;
  virtual int threads() const = 0;
  // Calls fn(begin, end) over a partition of [0, n) into at most threads() pieces of at least
  // `grain` items, and returns when all are done. The partition depends on n, grain and threads()
  // alone, so results are the same from run to run. An exception of a piece is rethrown here.
  virtual void ParallelFor(int64_t n, int64_t grain, FunctionRef<void(int64_t, int64_t)> fn) = 0;
  // To be called before the primitives library, outside of pieces: threads that stay for the next
  // ParallelFor go where they can help the library. Without the call it only takes longer.
  virtual void LendToLibrary() {}
};

// Memory for tensors of unknown size. Throws std::bad_alloc.
class TensorAllocator {
 public:
  virtual ~TensorAllocator() = default;
  virtual BufferRef Allocate(size_t bytes) = 0;
  // The same for memory that will be used completely: nothing beyond it is taken, but page faults
  // take more time.
  virtual BufferRef AllocateTight(size_t bytes) { return Allocate(bytes); }
};

// The run to which a kernel belongs. It runs sub-blocks for control flow: `block` is the program's
// block id.
class BlockRunner {
 public:
  virtual ~BlockRunner() = default;
  virtual Status RunBlock(int block) = 0;
  // kCancelled or kDeadlineExceeded if the run is to end. May be called on any thread of the run.
  virtual Status Interrupted() const { return Status::Ok(); }
};

// Random numbers: one engine per run, used in program order by the operators with kRandom.
struct RandomState {
  std::mt19937_64 engine;
};

struct ContentsOrigin;

// Keeps packed weights for later processes. Threads: any.
class PackStore {
 public:
  virtual ~PackStore() = default;
  using MakeRoom = FunctionRef<BufferRef(size_t bytes)>;  // throws std::bad_alloc
  // The copy kept under `key`, read into memory from `room`; empty: there is none. `key` states
  // everything, besides `origin`, on which the copy depends.
  virtual BufferRef Find(const ContentsOrigin& origin, const std::string& key, MakeRoom room) = 0;
  // Keeps a copy, to which nothing is written any more.
  virtual void Keep(const ContentsOrigin& origin, const std::string& key, BufferRef packed) = 0;
};

// Copies derived from parameters (packed weights), shared by all plans of a program. Thread-safe.
class PackCache {
 public:
  explicit PackCache(std::shared_ptr<PackStore> store = nullptr) : store_(std::move(store)) {}
  // nullptr: copies live as long as this cache.
  PackStore* store() const { return store_.get(); }

  // The copy of `source` under `key`, made by `make` if it is absent. `key` states everything,
  // besides the source, on which the result depends.
  template <typename T, typename Make>
  std::shared_ptr<const T> Get(const Tensor& source, const std::string& key, Make&& make) {
    const std::string id = key + '@' + std::to_string(reinterpret_cast<uintptr_t>(source.raw()));
    std::lock_guard lock(mutex_);
    Entry& e = entries_[id];
    if (!e.value) e = Entry{source.buffer(), std::shared_ptr<const T>(make())};
    return std::static_pointer_cast<const T>(e.value);
  }

 private:
  struct Entry {
    BufferRef source;  // keeps the address from being reused
    std::shared_ptr<const void> value;
  };
  const std::shared_ptr<PackStore> store_;
  std::mutex mutex_;
  std::unordered_map<std::string, Entry> entries_;
};

struct Machine;
struct ForcedImplementations;

struct Services {
  IntraOp* intra = nullptr;
  TensorAllocator* allocator = nullptr;
  const BufferRef* arena = nullptr;  // the run's, see BoundOp::spare
  BlockRunner* blocks = nullptr;
  RandomState* random = nullptr;
  PackCache* packs = nullptr;
  bool lean = false;  // see CompileOptions::lean
  // The machine that implementations are chosen for; nullptr: this one (core/machine.h).
  const Machine* machine = nullptr;
  // Implementations on which the caller insists; nullptr: none (core/machine.h).
  const ForcedImplementations* forced = nullptr;
};

}  // namespace heddle
