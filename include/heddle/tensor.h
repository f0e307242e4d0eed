// Tensor: dtype, shape, optional strides and sequence offsets (LoD) over a shared buffer.
//
// Ownership: a Tensor holds a reference to its Buffer; copying a Tensor shares the buffer.
// Threads: the reference count is atomic; concurrent reads of one buffer are fine, a write needs
// the caller's own synchronisation. A Tensor object itself is not synchronised.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "heddle/dtype.h"
#include "heddle/shape.h"
#include "heddle/status.h"

namespace heddle {

// Sequence offsets, outermost level first; every level starts with 0.
using LoD = std::vector<std::vector<size_t>>;

// Reference-counted memory. Its maker supplies `destroy`, which the last owner calls.
class Buffer {
 public:
  using Destroy = void (*)(Buffer*);
  Buffer(void* data, size_t bytes, Destroy destroy)
      : data_(data), bytes_(bytes), destroy_(destroy) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  void AddRef() { refs_.fetch_add(1, std::memory_order_relaxed); }
  // The release/acquire pair orders every use of the memory before its destruction.
  void Release() {
    if (refs_.fetch_sub(1, std::memory_order_release) == 1) {
      (void)refs_.load(std::memory_order_acquire);
      destroy_(this);
    }
  }
  bool unique() const { return refs_.load(std::memory_order_acquire) == 1; }
  // Distinguishes kinds of buffers.
  bool IsDestroyedBy(Destroy destroy) const { return destroy_ == destroy; }

 private:
  std::atomic<int> refs_{1};
  void* data_;
  size_t bytes_;
  Destroy destroy_;
};

// Owning pointer to a Buffer.
class BufferRef {
 public:
  BufferRef() = default;
  explicit BufferRef(Buffer* adopted) : buffer_(adopted) {}  // takes over one reference
  BufferRef(const BufferRef& o) : buffer_(o.buffer_) {
    if (buffer_) buffer_->AddRef();
  }
  BufferRef(BufferRef&& o) noexcept : buffer_(std::exchange(o.buffer_, nullptr)) {}
  BufferRef& operator=(BufferRef o) noexcept {
    std::swap(buffer_, o.buffer_);
    return *this;
  }
  ~BufferRef() {
    if (buffer_) buffer_->Release();
  }
  // Heap memory aligned to 64 bytes; an empty reference: there is not enough memory.
  static BufferRef Allocate(size_t bytes);
  // External memory: `release` is called once, when the last Tensor is destroyed.
  static BufferRef Wrap(void* data, size_t bytes, std::function<void()> release);

  explicit operator bool() const { return buffer_ != nullptr; }
  Buffer* operator->() const { return buffer_; }
  Buffer* get() const { return buffer_; }
  void reset() { *this = BufferRef(); }

 private:
  Buffer* buffer_ = nullptr;
};

class Tensor {
 public:
  Tensor() = default;  // empty: initialized() is false
  // Uninitialised memory; initialized() is false if there is not enough memory.
  static Tensor Empty(DType dtype, const Shape& shape);
  static Tensor Zeros(DType dtype, const Shape& shape);
  template <typename T>
  static Tensor Of(DType dtype, const Shape& shape, const std::vector<T>& values);
  // A tensor in `buffer`, from byte `offset` on.
  Tensor(DType dtype, const Shape& shape, BufferRef buffer, size_t offset = 0)
      : dtype_(dtype),
        shape_(shape),
        data_(static_cast<std::byte*>(buffer->data()) + offset),
        buffer_(std::move(buffer)) {}
  // User memory, without a copy. `release` may be empty if the caller keeps the memory alive.
  static Tensor Wrap(void* data, DType dtype, const Shape& shape,
                     std::function<void()> release = {});
  // User memory with strides, in elements.
  static Tensor WrapStrided(void* data, DType dtype, const Shape& shape,
                            std::vector<int64_t> strides, std::function<void()> release = {});

  bool initialized() const { return buffer_ || data_ != nullptr; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  int64_t dim(int i) const { return shape_.dim(i); }
  int64_t numel() const { return shape_.numel(); }
  size_t bytes() const { return static_cast<size_t>(numel()) * SizeOf(dtype_); }

  // The elements as T. Throws std::invalid_argument if the dtype is another one, or the tensor is
  // empty. To move elements as bits, T may also be uint8_t or a type without a dtype, such as
  // uint32_t, that is not larger than an element.
  template <typename T>
  const T* data() const {
    if (!IsReadAs<T>()) [[unlikely]]
      CheckRead(kDTypeOf<T>, sizeof(T));
    return reinterpret_cast<const T*>(data_);
  }
  template <typename T>
  T* mutable_data() {
    if (!IsReadAs<T>()) [[unlikely]]
      CheckRead(kDTypeOf<T>, sizeof(T));
    return reinterpret_cast<T*>(data_);
  }
  const void* raw() const { return data_; }
  void* mutable_raw() { return data_; }

  // Strides in elements; empty = row-major without gaps, which is what all kernels get.
  const std::vector<int64_t>& strides() const;
  bool is_contiguous() const;
  // This tensor if it is contiguous, else a row-major copy.
  Tensor Contiguous() const;
  // A copy in its own memory (including LoD); not initialized() if there is not enough memory.
  Tensor Clone() const;
  // The same memory with another shape. Precondition: equal numel, contiguous.
  Tensor Reshaped(const Shape& shape) const;

  const LoD& lod() const;
  bool has_lod() const { return extra_ && !extra_->lod.empty(); }
  void set_lod(LoD lod);

  const BufferRef& buffer() const { return buffer_; }
  // Moves the tensor to other memory; for executors, which plan memory ahead.
  void Bind(void* data) { data_ = static_cast<std::byte*>(data); }
  void Bind(BufferRef buffer) {
    data_ = static_cast<std::byte*>(buffer->data());
    buffer_ = std::move(buffer);
  }
  void SetMeta(DType dtype, const Shape& shape) {
    dtype_ = dtype;
    shape_ = shape;
  }
  // Takes over what `o` is, but keeps nothing of `o`'s sequence offsets.
  void ClearLod() { set_lod({}); }

 private:
  struct Extra {
    std::vector<int64_t> strides;
    LoD lod;
  };
  template <typename T>
  bool IsReadAs() const {
    if (data_ == nullptr) return false;
    if constexpr (kDTypeOf<T> == DType::kUnknown || kDTypeOf<T> == DType::kU8)
      return SizeOf(dtype_) >= sizeof(T);
    else
      return dtype_ == kDTypeOf<T>;
  }
  // Throws unless the tensor has no elements.
  void CheckRead(DType as, size_t size) const;

  DType dtype_ = DType::kUnknown;
  Shape shape_;
  std::byte* data_ = nullptr;
  BufferRef buffer_;
  std::shared_ptr<const Extra> extra_;  // nullptr for a plain tensor
};

// `values` are stored unconverted: sizeof(T) must be SizeOf(dtype).
template <typename T>
Tensor Tensor::Of(DType dtype, const Shape& shape, const std::vector<T>& values) {
  Tensor t = Empty(dtype, shape);
  if (t.initialized() && !values.empty())
    std::memcpy(t.data_, values.data(), std::min(t.bytes(), values.size() * sizeof(T)));
  return t;
}

}  // namespace heddle
