// The host's side of device/cuda/grid/queue.h: groups are threads, products are loops over what
// BLAS documents.
#include <barrier>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "device/cuda/grid/queue.h"

namespace heddle::grid_on_host {
namespace {
using Barrier = std::barrier<>;
}  // namespace

void GroupBarrier(void* barrier) {
  if (barrier != nullptr) static_cast<Barrier*>(barrier)->arrive_and_wait();
}

void Queue::RunGroup(const std::function<void(int, int, void*, void*)>& run) {
  struct alignas(16) Slot {
    unsigned char bytes[16];
  };
  std::vector<Slot> slots(static_cast<size_t>(group_));
  if (group_ == 1) return run(0, 1, slots.data(), nullptr);
  Barrier barrier(group_);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < group_; ++rank)
    threads.emplace_back([&, rank] {
      run(rank, group_, slots.data(), &barrier);
      barrier.arrive_and_drop();
    });
  for (std::thread& t : threads) t.join();
}

Status Queue::Gemm(const ColumnMajorGemm& g) {
  if (g.lda < std::max<int64_t>(1, g.trans_a ? g.k : g.m) ||
      g.ldb < std::max<int64_t>(1, g.trans_b ? g.n : g.k) || g.ldc < std::max<int64_t>(1, g.m))
    return InvalidArgument("a leading dimension is too small");
  for (int64_t p = 0; p < g.batch; ++p) {
    const float *const a = g.a + p * g.a_step, *const b = g.b + p * g.b_step;
    float* const c = g.c + p * g.c_step;
    for (int64_t j = 0; j < g.n; ++j)
      for (int64_t i = 0; i < g.m; ++i) {
        float sum = 0;
        for (int64_t k = 0; k < g.k; ++k)
          sum += a[g.trans_a ? k + i * g.lda : i + k * g.lda] *
                 b[g.trans_b ? j + k * g.ldb : k + j * g.ldb];
        float& to = c[i + j * g.ldc];
        to = g.alpha * sum + (g.beta == 0 ? 0 : g.beta * to);
      }
  }
  return Status::Ok();
}

Status Queue::Zero(void* to, size_t bytes) {
  if (bytes > 0) std::memset(to, 0, bytes);
  return Status::Ok();
}
Status Queue::Copy(void* to, const void* from, size_t bytes) {
  if (bytes > 0) std::memmove(to, from, bytes);
  return Status::Ok();
}
Result<void*> Queue::Allocate(size_t bytes) {
  void* const memory = std::malloc(bytes);
  if (memory == nullptr) return ResourceExhausted("no memory for ", bytes, " bytes");
  std::memset(memory, 0x7E, bytes);  // whoever relies on its contents is found out
  return memory;
}
void Queue::Free(void* memory) { std::free(memory); }

}  // namespace heddle::grid_on_host
