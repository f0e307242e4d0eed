// The host's side of device/cuda/grid/queue.h: groups are threads, products are loops over what
// BLAS documents.
#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "device/cuda/grid/queue.h"
#include "device/cuda/grid/real.h"
#include "tests/grid/lt_on_host.h"

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

namespace {

// Element (row, col) of a matrix by columns.
float At(const void* data, DType type, int64_t at) {
  switch (type) {
    case DType::kF16:
      return LoadReal(static_cast<const float16*>(data)[at]);
    case DType::kBF16:
      return LoadReal(static_cast<const bfloat16*>(data)[at]);
    default:
      return static_cast<const float*>(data)[at];
  }
}
void Set(void* data, DType type, int64_t at, float value) {
  switch (type) {
    case DType::kF16:
      return StoreReal(value, static_cast<float16*>(data) + at);
    case DType::kBF16:
      return StoreReal(value, static_cast<bfloat16*>(data) + at);
    default:
      static_cast<float*>(data)[at] = value;
  }
}

Status Check(const ColumnMajorGemm& g) {
  if (g.lda < std::max<int64_t>(1, g.trans_a ? g.k : g.m) ||
      g.ldb < std::max<int64_t>(1, g.trans_b ? g.n : g.k) || g.ldc < std::max<int64_t>(1, g.m))
    return InvalidArgument("a leading dimension is too small");
  if (!IsReal(g.type) || (g.c_type != g.type && g.c_type != DType::kF32))
    return InvalidArgument("no product of ", Name(g.type), " gives ", Name(g.c_type));
  return Status::Ok();
}

// A column of op(a) op(b): rows [0, m).
template <typename T>
void Column(const ColumnMajorGemm& g, const T* a, const T* b, int64_t j, float* to) {
  for (int64_t i = 0; i < g.m; ++i) {
    float sum = 0;
    for (int64_t k = 0; k < g.k; ++k)
      sum += LoadReal(a[g.trans_a ? k + i * g.lda : i + k * g.lda]) *
             LoadReal(b[g.trans_b ? j + k * g.ldb : k + j * g.ldb]);
    to[i] = sum;
  }
}

// d = last(alpha op(a) op(b) + beta c, row), in float32, rounded once.
template <typename Last>
Status Products(const ColumnMajorGemm& g, const void* c, Last last) {
  HEDDLE_RETURN_IF_ERROR(Check(g));
  std::vector<float> column(static_cast<size_t>(g.m));
  return VisitReal(g.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t p = 0; p < g.batch; ++p)
      for (int64_t j = 0; j < g.n; ++j) {
        Column(g, static_cast<const T*>(g.a) + p * g.a_step,
               static_cast<const T*>(g.b) + p * g.b_step, j, column.data());
        for (int64_t i = 0; i < g.m; ++i) {
          const int64_t at = p * g.c_step + i + j * g.ldc;
          const float before = g.beta == 0 ? 0 : g.beta * At(c, g.c_type, at);
          Set(g.c, g.c_type, at, last(g.alpha * column[static_cast<size_t>(i)] + before, i));
        }
      }
    return Status::Ok();
  });
}

}  // namespace

Status Queue::Gemm(const ColumnMajorGemm& g) {
  return Products(g, g.c, [](float x, int64_t) { return x; });
}

Result<bool> Queue::Multiply(const LtProduct& p) {
  auto* const lt = static_cast<LtOnHost*>(lt_);
  const LtChoice* const choice = lt != nullptr ? lt->Find(p) : nullptr;
  if (choice == nullptr) return false;
  HEDDLE_RETURN_IF_ERROR(lt->Run(p, *choice));
  return true;
}

const LtChoice* LtOnHost::Find(const LtProduct& p) {
  const int before = choices_;
  const LtChoice* const found = Get(p);
  late_ += choices_ - before;
  return found;
}

std::optional<LtChoice> LtOnHost::Choose(const LtProduct& p) {
  ++choices_;
  if (refuses_) return std::nullopt;
  LtChoice choice;
  choice.algorithm[0] = KeyOf(p).kinds;
  return choice;
}

Status LtOnHost::Run(const LtProduct& p, const LtChoice& choice) {
  ++products_;
  if (choice.algorithm[0] != KeyOf(p).kinds)
    return InvalidArgument("the algorithm was chosen for another product");
  const DType type = p.gemm.c_type;
  return Products(p.gemm, p.c, [&](float x, int64_t row) {
    if (p.bias != nullptr) x += At(p.bias, type, row);
    switch (p.activation) {
      case LtActivation::kRelu:
        return x > 0 ? x : 0;
      case LtActivation::kGelu:
        return 0.5f * x * (1 + std::tanh(0.7978845608f * (x + 0.044715f * x * x * x)));
      default:
        return x;
    }
  });
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
