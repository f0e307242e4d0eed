// The services that a running kernel may use, as interfaces that the executor implements.
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

// Parallelism inside a kernel, on the same threads that run whole kernels side by side.
class IntraOp {
 public:
  virtual ~IntraOp() = default;
  virtual int threads() const = 0;
  // Calls fn(begin, end) over a partition of [0, n) into at most threads() pieces of at least
  // `grain` items, and returns when all are done. The partition depends on n, grain and threads()
  // alone, so results are the same from run to run. An exception of a piece is rethrown here.
  virtual void ParallelFor(int64_t n, int64_t grain, FunctionRef<void(int64_t, int64_t)> fn) = 0;
  // To be called before the primitives library is, from outside pieces: threads that stay near for
  // the next ParallelFor go where they find the library's work. Leaving it out costs time only.
  virtual void LendToLibrary() {}
};

// Memory for tensors of unknown size. Throws std::bad_alloc.
class TensorAllocator {
 public:
  virtual ~TensorAllocator() = default;
  virtual BufferRef Allocate(size_t bytes) = 0;
  // The same, for what will be used to the last byte: nothing behind it takes memory, at the price
  // of more time for pages.
  virtual BufferRef AllocateTight(size_t bytes) { return Allocate(bytes); }
};

// The run that a kernel is part of. Runs sub-blocks, for control flow: `block` is the program's
// block id.
class BlockRunner {
 public:
  virtual ~BlockRunner() = default;
  virtual Status RunBlock(int block) = 0;
  // kCancelled or kDeadlineExceeded when the run is to end. Any thread of the run.
  virtual Status Interrupted() const { return Status::Ok(); }
};

// Random numbers. One engine per run, drawn from in program order by the operators marked random.
struct RandomState {
  std::mt19937_64 engine;
};

struct ContentsOrigin;

// Keeps packed weights for later processes. Threads: any.
class PackStore {
 public:
  virtual ~PackStore() = default;
  using MakeRoom = FunctionRef<BufferRef(size_t bytes)>;  // throws std::bad_alloc
  // The copy kept under `key`, read into memory that `room` gives; empty when there is none. `key`
  // names everything besides `origin` that the copy depends on.
  virtual BufferRef Find(const ContentsOrigin& origin, const std::string& key, MakeRoom room) = 0;
  // `packed` is not written to any more.
  virtual void Keep(const ContentsOrigin& origin, const std::string& key, BufferRef packed) = 0;
};

// Derived copies of parameters (packed weights), shared by all plans of a program. Thread-safe.
class PackCache {
 public:
  explicit PackCache(std::shared_ptr<PackStore> store = nullptr) : store_(std::move(store)) {}
  // nullptr: copies live as long as this cache.
  PackStore* store() const { return store_.get(); }

  // The entry for `key` over the memory of `source`, made by `make` when absent. `key` says
  // everything the result depends on besides the source.
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
    BufferRef source;  // keeps the address from being used by another tensor
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
  const BufferRef* arena = nullptr;  // of the run, see BoundOp::spare
  BlockRunner* blocks = nullptr;
  RandomState* random = nullptr;
  PackCache* packs = nullptr;
  bool lean = false;  // see CompileOptions::lean
  // The machine that implementations are chosen for; nullptr: this one (core/machine.h).
  const Machine* machine = nullptr;
  // Implementations that the caller insists on; nullptr: none (core/machine.h).
  const ForcedImplementations* forced = nullptr;
};

}  // namespace heddle
