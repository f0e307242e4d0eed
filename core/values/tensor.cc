#include "heddle/tensor.h"

#include <new>
#include <stdexcept>
#include <string>

#include "core/memory/bytes.h"
#include "core/memory/large_memory.h"
#include "heddle/dtype.h"
#include "heddle/read_only.h"
#include "heddle/shape.h"

namespace heddle {

std::string_view Name(DType t) {
  constexpr std::string_view kNames[kNumDTypes] = {
      "bool",     "uint8",   "int8",    "int16",     "int32",      "int64",  "float16",
      "bfloat16", "float32", "float64", "complex64", "complex128", "unknown"};
  return kNames[static_cast<int>(t)];
}

void Shape::insert(int at, int64_t d) {
  if (rank_ >= kMaxRank) return;
  for (int i = rank_; i > at; --i) dims_[i] = dims_[i - 1];
  dims_[at] = d;
  ++rank_;
}

void Shape::erase(int at) {
  for (int i = at; i + 1 < rank_; ++i) dims_[i] = dims_[i + 1];
  --rank_;
}

std::string Shape::ToString() const {
  if (rank_ < 0) return "[?...]";
  std::string s = "[";
  for (int i = 0; i < rank_; ++i) {
    if (i > 0) s += ", ";
    s += dims_[i] < 0 ? "?" : std::to_string(dims_[i]);
  }
  return s + "]";
}

namespace {

constexpr size_t kAlign = 64;

struct WrappedBuffer : Buffer {
  WrappedBuffer(void* data, size_t bytes, std::function<void()> r)
      : Buffer(data, bytes, &Destroy), release(std::move(r)) {}
  static void Destroy(Buffer* b) {
    auto* self = static_cast<WrappedBuffer*>(b);
    if (self->release) self->release();
    delete self;
  }
  std::function<void()> release;
};

// A separate type, by which IsReadOnly recognises it.
struct ReadOnlyBuffer : Buffer {
  ReadOnlyBuffer(const void* data, size_t bytes, std::function<void()> r)
      : Buffer(const_cast<void*>(data), bytes, &Destroy), release(std::move(r)) {}
  static void Destroy(Buffer* b) {
    auto* self = static_cast<ReadOnlyBuffer*>(b);
    if (self->release) self->release();
    delete self;
  }
  std::function<void()> release;
};

// Header and data are in one block; the data begins at the next multiple of 64.
static_assert(sizeof(Buffer) <= kAlign);
void DestroyHeap(Buffer* b) {
  const size_t bytes = b->bytes();
  b->~Buffer();
  ReturnMemory(b, kAlign + bytes + kAlign);
}

}  // namespace

BufferRef BufferRef::Allocate(size_t bytes) {
  if (bytes >= kImpossibleBytes) return BufferRef();
  void* block = TakeMemory(kAlign + bytes + kAlign);
  if (block == nullptr) return BufferRef();
  return BufferRef(new (block)
                       Buffer(static_cast<std::byte*>(block) + kAlign, bytes, &DestroyHeap));
}

BufferRef BufferRef::Wrap(void* data, size_t bytes, std::function<void()> release) {
  return BufferRef(new WrappedBuffer(data, bytes, std::move(release)));
}

BufferRef WrapReadOnly(const void* data, size_t bytes, std::function<void()> release) {
  return BufferRef(new ReadOnlyBuffer(data, bytes, std::move(release)));
}

bool IsReadOnly(const Tensor& t) {
  return t.buffer() && t.buffer()->IsDestroyedBy(&ReadOnlyBuffer::Destroy);
}

bool IsBorrowed(const Tensor& t) {
  const Buffer* const buffer = t.buffer().get();
  if (buffer == nullptr) return t.raw() != nullptr;
  if (buffer->IsDestroyedBy(&WrappedBuffer::Destroy))
    return !static_cast<const WrappedBuffer*>(buffer)->release;
  return buffer->IsDestroyedBy(&ReadOnlyBuffer::Destroy) &&
         !static_cast<const ReadOnlyBuffer*>(buffer)->release;
}

Tensor Tensor::Empty(DType dtype, const Shape& shape) {
  BufferRef buffer = BufferRef::Allocate(BytesFor(dtype, shape));
  return buffer ? Tensor(dtype, shape, std::move(buffer)) : Tensor();
}

Tensor Tensor::Zeros(DType dtype, const Shape& shape) {
  Tensor t = Empty(dtype, shape);
  if (t.initialized()) std::memset(t.mutable_raw(), 0, t.bytes());
  return t;
}

Tensor Tensor::Wrap(void* data, DType dtype, const Shape& shape, std::function<void()> release) {
  const size_t bytes = static_cast<size_t>(shape.numel()) * SizeOf(dtype);
  return Tensor(dtype, shape, BufferRef::Wrap(data, bytes, std::move(release)));
}

Tensor Tensor::WrapStrided(void* data, DType dtype, const Shape& shape,
                           std::vector<int64_t> strides, std::function<void()> release) {
  Tensor t = Wrap(data, dtype, shape, std::move(release));
  int64_t dense = 1;
  bool row_major = true;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    if (shape[i] > 1 && strides[i] != dense) row_major = false;
    dense *= shape[i];
  }
  if (!row_major && dense > 0) {
    auto extra = std::make_shared<Extra>();
    extra->strides = std::move(strides);
    t.extra_ = std::move(extra);
  }
  return t;
}

const std::vector<int64_t>& Tensor::strides() const {
  static const std::vector<int64_t> kNone;
  return extra_ ? extra_->strides : kNone;
}

bool Tensor::is_contiguous() const { return !extra_ || extra_->strides.empty(); }

Tensor Tensor::Contiguous() const { return is_contiguous() ? *this : Clone(); }

namespace {

void CopyStrided(const std::byte* src, const int64_t* strides, std::byte*& dst, const Shape& shape,
                 int axis, size_t size) {
  if (axis == shape.rank()) {
    std::memcpy(dst, src, size);
    dst += size;
    return;
  }
  for (int64_t i = 0; i < shape[axis]; ++i)
    CopyStrided(src + i * strides[axis] * static_cast<int64_t>(size), strides, dst, shape, axis + 1,
                size);
}

}  // namespace

Tensor Tensor::Clone() const {
  if (!initialized()) return Tensor();
  Tensor t = Empty(dtype_, shape_);
  if (!t.initialized()) return t;
  if (is_contiguous()) {
    if (bytes() > 0) std::memcpy(t.mutable_raw(), data_, bytes());
  } else {
    std::byte* dst = t.data_;
    CopyStrided(data_, extra_->strides.data(), dst, shape_, 0, SizeOf(dtype_));
  }
  if (has_lod()) t.set_lod(lod());
  return t;
}

Tensor Tensor::Reshaped(const Shape& shape) const {
  Tensor t = *this;
  t.shape_ = shape;
  return t;
}

void Tensor::CheckRead(DType as, size_t size) const {
  if (numel() == 0) return;
  if (data_ == nullptr) throw std::invalid_argument("an operand is read that holds nothing");
  throw std::invalid_argument(
      "an operand " + shape_.ToString() + " is " + std::string(Name(dtype_)) + ", but is read as " +
      (as == DType::kUnknown ? "elements of " + std::to_string(size) + " bytes"
                             : std::string(Name(as))));
}

const LoD& Tensor::lod() const {
  static const LoD kNone;
  return extra_ ? extra_->lod : kNone;
}

void Tensor::set_lod(LoD lod) {
  if (lod.empty() && is_contiguous()) {
    extra_.reset();
    return;
  }
  auto extra = std::make_shared<Extra>();
  if (extra_) extra->strides = extra_->strides;
  extra->lod = std::move(lod);
  extra_ = std::move(extra);
}

}  // namespace heddle
