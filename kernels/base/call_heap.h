// Memory for lists that a kernel needs during one call: the run's instead of the process's heap,
// which every thread shares. What is small lies on the stack.
//
//   CallHeap heap(ctx);
//   std::pmr::vector<int64_t> order(n, &heap);
//
// Ownership: memory goes with the heap, so it must outlive its lists. Threads: one.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <memory_resource>
#include <new>
#include <utility>

#include "core/kernel_context.h"

namespace heddle {

class CallHeap final : public std::pmr::memory_resource {
 public:
  explicit CallHeap(const KernelContext& ctx) : ctx_(ctx) {}
  ~CallHeap() override {
    while (newest_ != nullptr) {
      const Tensor memory = std::move(newest_->memory);  // holds the block itself
      Block* const older = newest_->older;
      std::destroy_at(newest_);
      newest_ = older;
    }
  }
  CallHeap(const CallHeap&) = delete;
  CallHeap& operator=(const CallHeap&) = delete;

 private:
  struct Block {
    Tensor memory;
    Block* older;
  };
  static constexpr size_t kOnStack = 1 << 10, kLeast = 4 << 10, kAlign = alignof(std::max_align_t);

  void* do_allocate(size_t bytes, size_t alignment) override {
    if (alignment > kAlign) throw std::bad_alloc();
    const size_t need = (bytes + kAlign - 1) / kAlign * kAlign;
    if (need > left_) Enlarge(need);
    std::byte* const at = next_;
    next_ += need;
    left_ -= need;
    return at;
  }
  // Only the newest piece comes back before the end.
  void do_deallocate(void* piece, size_t bytes, size_t) override {
    const size_t had = (bytes + kAlign - 1) / kAlign * kAlign;
    if (static_cast<std::byte*>(piece) + had != next_) return;
    next_ -= had;
    left_ += had;
  }
  bool do_is_equal(const memory_resource& o) const noexcept override { return this == &o; }

  void Enlarge(size_t need) {
    constexpr size_t kHead = (sizeof(Block) + kAlign - 1) / kAlign * kAlign;
    const size_t bytes = kHead + std::max({need, kLeast, 2 * size_});
    Tensor memory = ctx_.Scratch(DType::kU8, Shape{static_cast<int64_t>(bytes)});
    auto* const at = static_cast<std::byte*>(memory.mutable_raw());
    newest_ = new (at) Block{std::move(memory), newest_};
    next_ = at + kHead;
    left_ = size_ = bytes - kHead;
  }

  const KernelContext& ctx_;
  alignas(kAlign) std::array<std::byte, kOnStack> on_stack_;
  std::byte* next_ = on_stack_.data();
  size_t left_ = kOnStack, size_ = kOnStack;
  Block* newest_ = nullptr;
};

}  // namespace heddle
