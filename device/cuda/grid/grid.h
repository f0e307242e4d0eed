// The interface of kernels: a grid runs a body for each element, or by a group of threads for each
// row. Bodies and the functions that set them up are the same code for a card and for the host.
// nvcc turns a grid into a launch, a build without nvcc (HEDDLE_GRID_ON_HOST, for the tests) into a
// loop, in which a group is one thread or, to test barriers, a few.
//
// A body is a functor of plain numbers and pointers. Nothing may throw in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/error.h"
#include "device/cuda/grid/grid_body.h"
#include "device/cuda/grid/queue.h"
#include "heddle/tensor.h"

namespace heddle::HEDDLE_GRID {

// Threads that share a row. Every thread of the group must call each Reduce.
class Group {
 public:
  static constexpr int kMost = 256;
  struct alignas(16) Slot {
    unsigned char bytes[16];
  };

  HEDDLE_BODY Group(int rank, int size, Slot* slots, void* barrier)
      : rank_(rank), size_(size), slots_(slots), barrier_(barrier) {}
  HEDDLE_BODY int rank() const { return rank_; }
  HEDDLE_BODY int size() const { return size_; }  // a power of two

  // op over all threads' values, the same for all; op must be commutative and associative.
  template <typename T, typename Op>
  HEDDLE_BODY T Reduce(T value, Op op) {
    static_assert(sizeof(T) <= sizeof(Slot));
    if (size_ == 1) return value;
    T* const at = reinterpret_cast<T*>(slots_);
    constexpr int kStep = static_cast<int>(sizeof(Slot) / sizeof(T));
    at[rank_ * kStep] = value;
    Barrier();
    for (int half = size_ / 2; half > 0; half /= 2) {
      if (rank_ < half) at[rank_ * kStep] = op(at[rank_ * kStep], at[(rank_ + half) * kStep]);
      Barrier();
    }
    const T all = at[0];
    Barrier();  // before the slots are used again
    return all;
  }
  HEDDLE_BODY void Barrier() { GroupBarrier(barrier_); }

 private:
  int rank_, size_;
  Slot* slots_;
  void* barrier_;
};

#ifdef __CUDACC__

template <typename Body>
__global__ void EachKernel(int64_t n, Body body) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step)
    body(i);
}

template <typename Body>
__global__ void GroupsKernel(int64_t rows, Body body) {
  __shared__ Group::Slot slots[Group::kMost];
  Group group(static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x), slots, nullptr);
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) body(group, row);
}

constexpr int64_t kMostBlocks = 1 << 20;

// body(i) for 0 <= i < n, in any order.
template <typename Body>
Status Each(Queue& queue, int64_t n, const Body& body) {
  constexpr int64_t kThreads = 256;
  if (n <= 0) return Status::Ok();
  const int64_t blocks = (n + kThreads - 1) / kThreads;
  EachKernel<<<static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks),
               static_cast<unsigned>(kThreads), 0, queue.stream()>>>(n, body);
  return queue.Launched();
}

// body(group, row) for 0 <= row < rows; `work` elements in each row.
template <typename Body>
Status Groups(Queue& queue, int64_t rows, int64_t work, const Body& body) {
  if (rows <= 0) return Status::Ok();
  unsigned threads = 32;
  while (threads < Group::kMost && static_cast<int64_t>(threads) * 4 < work) threads *= 2;
  GroupsKernel<<<static_cast<unsigned>(rows < kMostBlocks ? rows : kMostBlocks), threads, 0,
                 queue.stream()>>>(rows, body);
  return queue.Launched();
}

#elif defined(HEDDLE_GRID_ON_HOST)

template <typename Body>
Status Each(Queue& queue, int64_t n, const Body& body) {
  for (int64_t i = 0; i < n; ++i) body(i);
  return queue.Launched();
}

template <typename Body>
Status Groups(Queue& queue, int64_t rows, int64_t, const Body& body) {
  queue.RunGroup([&](int rank, int size, void* slots, void* barrier) {
    Group group(rank, size, static_cast<Group::Slot*>(slots), barrier);
    for (int64_t row = 0; row < rows; ++row) body(group, row);
  });
  return queue.Launched();
}

#endif

}  // namespace heddle::HEDDLE_GRID
