// Tensors of the C API.
#include <span>

#include "capi/handles.h"
#include "heddle/read_only.h"

namespace {

using heddle::BufferRef;
using heddle::DType;
using heddle::Shape;
using heddle::Status;
using heddle::StatusCode;
using heddle::Tensor;
using heddle::capi::Guard;

static_assert(HEDDLE_UNKNOWN == static_cast<int>(DType::kUnknown));
static_assert(HEDDLE_FLOAT32 == static_cast<int>(DType::kF32));
static_assert(HEDDLE_COMPLEX128 == static_cast<int>(DType::kC128));
static_assert(HEDDLE_MAX_RANK == Shape::kMaxRank);

bool IsDType(heddle_dtype dtype) { return dtype >= HEDDLE_BOOL && dtype < HEDDLE_UNKNOWN; }

Status Invalid(const std::string& what) { return Status(StatusCode::kInvalidArgument, what); }

// Shape and dtype of a new tensor, checked.
Status CheckMeta(heddle_dtype dtype, int rank, const int64_t* dims, Shape& shape) {
  if (!IsDType(dtype)) return Invalid("tensor: " + std::to_string(dtype) + " is not a dtype");
  if (rank < 0 || rank > Shape::kMaxRank)
    return Invalid("tensor: rank " + std::to_string(rank) + " is not within 0 and " +
                   std::to_string(Shape::kMaxRank));
  if (rank > 0 && dims == nullptr) return Invalid("tensor: dims is NULL");
  int64_t bytes = static_cast<int64_t>(SizeOf(static_cast<DType>(dtype)));
  bool fits = true;
  for (int i = 0; i < rank; ++i) {
    if (dims[i] < 0)
      return Invalid("tensor: dimension " + std::to_string(i) + " is " + std::to_string(dims[i]));
    // As NumPy counts: products of some of the dimensions are taken, also where another is 0.
    if (dims[i] > 0) fits = fits && !__builtin_mul_overflow(bytes, dims[i], &bytes);
  }
  if (!fits) return Invalid("tensor: more bytes than there are addresses");
  shape = Shape(std::span(dims, static_cast<size_t>(rank)));
  return Status::Ok();
}

struct Dims {
  const int64_t* list;
  int rank;
};
struct Last {
  void (*release)(void*);
  void* argument;
};

// Any address that is not NULL stands for no elements.
template <typename T>
T* AnyAddress(T* data) {
  static char nothing;
  return data == nullptr ? &nothing : data;
}

// `wrap(bytes, function)` makes the buffer, which calls the function once.
template <typename Wrap>
heddle_error* WrapMemory(const std::string& function, heddle_dtype dtype, Dims dims, Last last,
                         heddle_tensor** tensor, const void* data, Wrap&& wrap) {
  bool handed_over = false;  // `last` will be called by the tensor
  heddle_error* error = Guard([&]() -> Status {
    if (tensor == nullptr) return Invalid(function + ": tensor is NULL");
    Shape shape;
    HEDDLE_RETURN_IF_ERROR(CheckMeta(dtype, dims.rank, dims.list, shape));
    if (data == nullptr && shape.numel() > 0) return Invalid(function + ": data is NULL");
    auto handle = std::make_unique<heddle_tensor>();
    std::function<void()> call;
    if (last.release != nullptr) call = [last] { last.release(last.argument); };
    const auto type = static_cast<DType>(dtype);
    const size_t bytes = static_cast<size_t>(shape.numel()) * SizeOf(type);
    handle->tensor = Tensor(type, shape, wrap(bytes, std::move(call)));
    handed_over = true;
    *tensor = handle.release();
    return Status::Ok();
  });
  if (error != nullptr && !handed_over && last.release != nullptr) last.release(last.argument);
  return error;
}

}  // namespace

size_t heddle_dtype_size(heddle_dtype dtype) {
  return IsDType(dtype) ? SizeOf(static_cast<DType>(dtype)) : 0;
}

const char* heddle_dtype_name(heddle_dtype dtype) {
  // Name() refers to literals, which end with a 0.
  return Name(IsDType(dtype) ? static_cast<DType>(dtype) : DType::kUnknown).data();
}

heddle_error* heddle_tensor_new(heddle_dtype dtype, int rank, const int64_t* dims,
                                heddle_tensor** tensor) {
  return Guard([&]() -> Status {
    if (tensor == nullptr) return Invalid("heddle_tensor_new: tensor is NULL");
    Shape shape;
    HEDDLE_RETURN_IF_ERROR(CheckMeta(dtype, rank, dims, shape));
    Tensor made = Tensor::Empty(static_cast<DType>(dtype), shape);
    if (!made.initialized())
      return Status(StatusCode::kResourceExhausted,
                    "no memory for a tensor of shape " + shape.ToString());
    *tensor = new heddle_tensor{std::move(made)};
    return Status::Ok();
  });
}

heddle_error* heddle_tensor_wrap(heddle_dtype dtype, int rank, const int64_t* dims, void* data,
                                 void (*release)(void*), void* argument, heddle_tensor** tensor) {
  return WrapMemory("heddle_tensor_wrap", dtype, {dims, rank}, {release, argument}, tensor, data,
                    [data](size_t bytes, std::function<void()> last) {
                      return BufferRef::Wrap(AnyAddress(data), bytes, std::move(last));
                    });
}

heddle_error* heddle_tensor_wrap_const(heddle_dtype dtype, int rank, const int64_t* dims,
                                       const void* data, void (*release)(void*), void* argument,
                                       heddle_tensor** tensor) {
  return WrapMemory("heddle_tensor_wrap_const", dtype, {dims, rank}, {release, argument}, tensor,
                    data, [data](size_t bytes, std::function<void()> last) {
                      return heddle::WrapReadOnly(AnyAddress(data), bytes, std::move(last));
                    });
}

heddle_error* heddle_tensor_share(const heddle_tensor* tensor, heddle_tensor** other) {
  return Guard([&]() -> Status {
    if (tensor == nullptr || other == nullptr)
      return Invalid("heddle_tensor_share: a handle is NULL");
    *other = new heddle_tensor{tensor->tensor, tensor->is_const};
    return Status::Ok();
  });
}

heddle_dtype heddle_tensor_dtype(const heddle_tensor* tensor) {
  return tensor == nullptr ? HEDDLE_UNKNOWN : static_cast<heddle_dtype>(tensor->tensor.dtype());
}
int heddle_tensor_rank(const heddle_tensor* tensor) {
  return tensor == nullptr ? -1 : tensor->tensor.rank();
}
const int64_t* heddle_tensor_dims(const heddle_tensor* tensor) {
  return tensor == nullptr ? nullptr : tensor->tensor.shape().begin();
}
int64_t heddle_tensor_numel(const heddle_tensor* tensor) {
  return tensor == nullptr ? 0 : tensor->tensor.numel();
}
size_t heddle_tensor_bytes(const heddle_tensor* tensor) {
  return tensor == nullptr ? 0 : tensor->tensor.bytes();
}
void* heddle_tensor_data(heddle_tensor* tensor) {
  if (tensor == nullptr) return nullptr;
  if (heddle_tensor_is_const(tensor)) {
    Tensor own;
    heddle_error_free(Guard([&]() -> Status {
      own = tensor->tensor.Clone();
      return Status::Ok();
    }));
    if (!own.initialized()) return nullptr;
    *tensor = {std::move(own), false};
  }
  return tensor->tensor.mutable_raw();
}
const void* heddle_tensor_const_data(const heddle_tensor* tensor) {
  return tensor == nullptr ? nullptr : tensor->tensor.raw();
}

int heddle_tensor_is_const(const heddle_tensor* tensor) {
  if (tensor == nullptr) return 0;
  return tensor->is_const || heddle::IsReadOnly(tensor->tensor) ? 1 : 0;
}

int heddle_tensor_lod_levels(const heddle_tensor* tensor) {
  return tensor == nullptr ? 0 : static_cast<int>(tensor->tensor.lod().size());
}

const size_t* heddle_tensor_lod(const heddle_tensor* tensor, int level, size_t* count) {
  static const heddle::LoD kNone;
  const heddle::LoD& lod = tensor == nullptr ? kNone : tensor->tensor.lod();
  const bool there = level >= 0 && static_cast<size_t>(level) < lod.size();
  if (count != nullptr) *count = there ? lod[level].size() : 0;
  return there ? lod[level].data() : nullptr;
}

heddle_error* heddle_tensor_add_lod(heddle_tensor* tensor, const size_t* offsets, size_t count) {
  return Guard([&]() -> Status {
    if (tensor == nullptr || offsets == nullptr)
      return Invalid("heddle_tensor_add_lod: a handle is NULL");
    HEDDLE_RETURN_IF_ERROR(
        heddle::capi::CheckCount("heddle_tensor_add_lod: count", count, sizeof(*offsets)));
    if (count < 1 || offsets[0] != 0) return Invalid("sequence offsets begin with 0");
    for (size_t i = 1; i < count; ++i)
      if (offsets[i] < offsets[i - 1]) return Invalid("sequence offsets must not fall");
    heddle::LoD lod = tensor->tensor.lod();
    lod.emplace_back(offsets, offsets + count);
    tensor->tensor.set_lod(std::move(lod));
    return Status::Ok();
  });
}

void heddle_tensor_free(heddle_tensor* tensor) { delete tensor; }
