// Sparse tensors in coordinate form: made from indices and values, made dense, taken apart, and the
// operators that Paddle's static programs use on them.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "core/operands/slot_kinds.h"
#include "core/shapes.h"
#include "kernels/base/convert.h"
#include "kernels/base/shape_checks.h"
#include "kernels/sparse/coo.h"

namespace heddle {
namespace {

size_t EntryBytes(const CooTensor& x) {
  return static_cast<size_t>(x.width()) * SizeOf(x.values.dtype());
}
const std::byte* Entry(const CooTensor& x, size_t i) {
  return x.values.data<std::byte>() + i * EntryBytes(x);
}

// The shape given, or the smallest one that holds all indices.
Result<Shape> ShapeOf(const KernelContext& ctx, const Labels& indices, int64_t axes, int64_t n) {
  const Ints& given = ctx.IntList("shape");
  Shape shape;
  const Tensor& values = ctx.In("values");
  const auto rank = static_cast<size_t>(axes + values.rank() - 1);
  if (rank > static_cast<size_t>(Shape::kMaxRank)) return InvalidArgument("too many axes");
  if (given.empty()) {
    for (const int64_t d : Watched(axes)) {
      const int64_t* row = indices.data() + d * n;
      shape.push_back(n == 0 ? 0 : *std::max_element(row, row + n) + 1);
    }
    for (int d = 1; d < values.rank(); ++d) shape.push_back(values.dim(d));
    return shape;
  }
  if (given.size() != rank)
    return InvalidArgument("shape has ", given.size(), " axes; indices and values make ", rank);
  for (const int64_t d : given) shape.push_back(d);
  for (int d = 1; d < values.rank(); ++d)
    if (shape[static_cast<int>(axes) + d - 1] != values.dim(d))
      return InvalidArgument("values ", values.shape().ToString(), " do not fit shape ",
                             shape.ToString());
  return shape;
}

// Positions in the sparse axes are numbers of 64 bits.
Status CheckAxes(const Shape& shape, int sparse_dim) {
  int64_t cells = 1;
  for (int d = 0; d < shape.rank(); ++d)
    if (shape[d] < 0 || (d < sparse_dim && __builtin_mul_overflow(cells, shape[d], &cells)))
      return InvalidArgument("shape ", shape.ToString(), " is not that of a sparse tensor");
  return Status::Ok();
}

Status Make(KernelContext& ctx) {
  const Tensor &values = ctx.In("values"), &indices = ctx.In("indices");
  if (indices.rank() != 2 || indices.dim(0) < 1 || values.rank() < 1 ||
      values.dim(0) != indices.dim(1))
    return InvalidArgument("indices ", indices.shape().ToString(), " and values ",
                           values.shape().ToString(), " do not fit");
  if (indices.dtype() != DType::kI64 && indices.dtype() != DType::kI32)
    return InvalidArgument("indices must be int32 or int64");
  const Labels numbers(ctx, indices);
  const int64_t axes = indices.dim(0), n = indices.dim(1);
  CooTensor out;
  HEDDLE_ASSIGN_OR_RETURN(out.shape, ShapeOf(ctx, numbers, axes, n));
  out.sparse_dim = static_cast<int>(axes);
  HEDDLE_RETURN_IF_ERROR(CheckAxes(out.shape, out.sparse_dim));
  out.index_dtype = indices.dtype();
  out.at.assign(static_cast<size_t>(n), 0);
  for (int d = 0; d < out.sparse_dim; ++d)
    for (const int64_t i : Watched(n)) {
      const int64_t c = numbers[d * n + i];
      if (c < 0 || c >= out.shape[d])
        return OutOfRange("index ", c, " of axis ", d, " is not in [0, ", out.shape[d], ")");
      out.at[static_cast<size_t>(i)] = out.at[static_cast<size_t>(i)] * out.shape[d] + c;
    }
  out.values = values.Clone();
  PutCoo(ctx, "out", std::move(out));
  return Status::Ok();
}

Status ToDense(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const CooTensor* x, CooIn(ctx, "x"));
  Tensor& out = ctx.Alloc("out", x->values.dtype(), x->shape);
  WatchedMemset(out.mutable_raw(), 0, out.bytes());
  const size_t bytes = EntryBytes(*x);
  for (size_t i = 0; i < x->at.size(); ++i)
    WatchedMemcpy(out.mutable_data<std::byte>() + static_cast<size_t>(x->at[i]) * bytes,
                  Entry(*x, i), bytes);
  return Status::Ok();
}

Status Values(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const CooTensor* x, CooIn(ctx, "x"));
  Tensor& out = ctx.Alloc("out", x->values.dtype(), x->values.shape());
  if (out.bytes() > 0) WatchedMemcpy(out.mutable_raw(), x->values.raw(), out.bytes());
  return Status::Ok();
}

Status Indices(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const CooTensor* x, CooIn(ctx, "x"));
  Tensor wide = ctx.Scratch(DType::kI64, Shape{x->sparse_dim, x->count()});
  for (size_t i = 0; i < x->at.size(); ++i) {
    const auto c = x->Coordinates(x->at[i]);
    for (size_t d = 0; d < c.size(); ++d)
      wide.mutable_data<int64_t>()[static_cast<int64_t>(d) * x->count() + static_cast<int64_t>(i)] =
          c[d];
  }
  Tensor& out = ctx.Alloc("out", x->index_dtype, wide.shape());
  ConvertElements(ctx, wide.raw(), DType::kI64, out.mutable_raw(), out.dtype(), wide.numel());
  return Status::Ok();
}

Status Unsupported(const CooTensor& x) {
  return Unimplemented("no kernel for sparse ", Name(x.values.dtype()), " values");
}

Status Relu(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const CooTensor* x, CooIn(ctx, "x"));
  CooTensor out = x->Frame();
  out.values = x->NewValues(ctx, x->values.dtype(), x->count());
  const bool known = VisitDType<float, double>(x->values.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (const auto part : Stretches(out.values.numel()))
      for (int64_t i = part.begin; i < part.end; ++i)
        out.values.mutable_data<T>()[i] = std::max(x->values.data<T>()[i], T(0));
  });
  if (!known) return Unsupported(*x);
  PutCoo(ctx, "out", std::move(out));
  return Status::Ok();
}

Status IsNan(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const CooTensor* x, CooIn(ctx, "x"));
  CooTensor out = x->Frame();
  out.values = x->NewValues(ctx, DType::kBool, x->count());
  const DType dtype = x->values.dtype();
  const bool known = VisitDType<float, double, float16, int32_t, int64_t>(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (const auto part : Stretches(out.values.numel()))
      for (int64_t i = part.begin; i < part.end; ++i) {
        const auto v = static_cast<ComputeType<T>>(x->values.data<T>()[i]);
        out.values.mutable_data<bool>()[i] = v != v;
      }
  });
  if (!known) return Unsupported(*x);
  PutCoo(ctx, "out", std::move(out));
  return Status::Ok();
}

// Over the last axis, of the entries that are there.
Status Softmax(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const CooTensor* x, CooIn(ctx, "x"));
  const int64_t axis = ctx.Int("axis");
  if (x->sparse_dim != x->shape.rank() || (axis != -1 && axis != x->sparse_dim - 1))
    return Unimplemented("softmax along another axis than the last, sparse one");
  CooTensor out = x->Frame();
  out.values = x->NewValues(ctx, x->values.dtype(), x->count());
  const bool known = VisitDType<float, double>(x->values.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    struct Line {
      T top = -std::numeric_limits<T>::infinity(), sum = T(0);
    };
    std::map<int64_t, Line> lines;
    const int64_t length = std::max<int64_t>(x->shape[x->sparse_dim - 1], 1);
    const T* from = x->values.data<T>();
    T* to = out.values.mutable_data<T>();
    for (size_t i = 0; i < x->at.size(); ++i) {
      Line& line = lines[x->at[i] / length];
      line.top = std::max(line.top, from[i]);
    }
    for (size_t i = 0; i < x->at.size(); ++i) {
      Line& line = lines[x->at[i] / length];
      line.sum += to[i] = std::exp(from[i] - line.top);
    }
    for (size_t i = 0; i < x->at.size(); ++i) to[i] /= lines[x->at[i] / length].sum;
  });
  if (!known) return Unsupported(*x);
  PutCoo(ctx, "out", std::move(out));
  return Status::Ok();
}

// Entries of one position added up; positions in ascending order. `add(i, to)` adds entry i.
template <typename T>
class Adder {
 public:
  Adder(const KernelContext& ctx, const CooTensor& frame) : ctx_(ctx), frame_(frame) {}
  void Note(int64_t position) { place_.emplace(position, 0); }
  // All positions are noted now.
  void Begin() {
    frame_.at.clear();
    for (auto& [position, index] : place_) {
      index = frame_.count();
      frame_.at.push_back(position);
    }
    frame_.values = frame_.NewValues(ctx_, kDTypeOf<T>, frame_.count());
    WatchedFill(frame_.values.template mutable_data<T>(), frame_.values.numel(), T(0));
  }
  T* At(int64_t position) {
    return frame_.values.template mutable_data<T>() + place_[position] * frame_.width();
  }
  CooTensor Take() { return std::move(frame_); }

 private:
  const KernelContext& ctx_;
  CooTensor frame_;
  std::map<int64_t, int64_t> place_;
};

template <typename T>
CooTensor Union(const KernelContext& ctx, const CooTensor& x, const CooTensor& y) {
  Adder<T> sum(ctx, x.Frame());
  for (const CooTensor* t : {&x, &y})
    for (const int64_t p : t->at) sum.Note(p);
  sum.Begin();
  for (const CooTensor* t : {&x, &y})
    for (size_t i = 0; i < t->at.size(); ++i) {
      T* to = sum.At(t->at[i]);
      const T* from = t->values.data<T>() + static_cast<int64_t>(i) * t->width();
      for (int64_t k = 0; k < t->width(); ++k) to[k] += from[k];
    }
  return sum.Take();
}

// With a dense y: added to every entry that is there (a bias).
template <typename T>
Status AddDense(const KernelContext& ctx, const CooTensor& x, const Tensor& y) {
  if (y.dtype() != kDTypeOf<T> || y.numel() < 1 || x.width() % y.numel() != 0)
    return InvalidArgument("y ", y.shape().ToString(), " does not fit entries of ", x.width());
  CooTensor out = x.Frame();
  out.values = x.NewValues(ctx, kDTypeOf<T>, x.count());
  for (const auto part : Stretches(out.values.numel()))
    for (int64_t i = part.begin; i < part.end; ++i)
      out.values.template mutable_data<T>()[i] = x.values.data<T>()[i] + y.data<T>()[i % y.numel()];
  PutCoo(ctx, "out", std::move(out));
  return Status::Ok();
}

Status Add(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const CooTensor* x, CooIn(ctx, "x"));
  const CooTensor* y = CooInOpt(ctx, "y");
  if (y != nullptr && (!(y->shape == x->shape) || y->sparse_dim != x->sparse_dim ||
                       y->values.dtype() != x->values.dtype()))
    return InvalidArgument("x and y must have one shape and dtype");
  Status status;
  const DType dtype = x->values.dtype();
  const bool known = VisitDType<float, double, int16_t, int32_t, int64_t>(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (y != nullptr)
      PutCoo(ctx, "out", Union<T>(ctx, *x, *y));
    else
      status = AddDense<T>(ctx, *x, ctx.In("y"));
  });
  return known ? status : Unsupported(*x);
}

// Which sparse axes go.
Result<std::vector<bool>> SummedAxes(const KernelContext& ctx, const CooTensor& x) {
  const Ints& axes = ctx.IntList("axis");
  std::vector<bool> summed(static_cast<size_t>(x.sparse_dim), axes.empty());
  for (const int64_t a : axes) {
    HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(a, x.shape.rank()));
    if (axis >= x.sparse_dim) return Unimplemented("a sum over a dense axis");
    summed[static_cast<size_t>(axis)] = true;
  }
  return summed;
}

template <typename T>
CooTensor SumOver(const KernelContext& ctx, const CooTensor& x, const std::vector<bool>& summed) {
  const bool keep = ctx.Bool("keepdim");
  CooTensor frame;
  frame.index_dtype = x.index_dtype;
  for (int d = 0; d < x.sparse_dim; ++d)
    if (!summed[static_cast<size_t>(d)] || keep)
      frame.shape.push_back(summed[static_cast<size_t>(d)] ? 1 : x.shape[d]);
  if (frame.shape.rank() == 0) frame.shape.push_back(1);
  frame.sparse_dim = frame.shape.rank();
  for (int d = x.sparse_dim; d < x.shape.rank(); ++d) frame.shape.push_back(x.shape[d]);
  std::vector<int64_t> at;
  for (const int64_t p : x.at) {
    LookForInterrupt();
    const auto c = x.Coordinates(p);
    int64_t q = 0;
    for (size_t d = 0; d < c.size(); ++d)
      if (!summed[d]) q = q * x.shape[static_cast<int>(d)] + c[d];
    at.push_back(q);
  }
  Adder<T> sum(ctx, frame);
  for (const int64_t q : at) sum.Note(q);
  sum.Begin();
  for (size_t i = 0; i < at.size(); ++i) {
    T* to = sum.At(at[i]);
    const T* from = x.values.data<T>() + static_cast<int64_t>(i) * x.width();
    for (int64_t k = 0; k < x.width(); ++k) to[k] += from[k];
  }
  return sum.Take();
}

Status Sum(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const CooTensor* x, CooIn(ctx, "x"));
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<bool> summed, SummedAxes(ctx, *x));
  CooTensor in = x->Frame();
  in.values = x->values;
  const int64_t proto = ctx.Int("dtype");
  const DType dtype = proto >= 0                          ? DTypeFromProto(proto)
                      : in.values.dtype() == DType::kBool ? DType::kI64
                                                          : in.values.dtype();
  if (dtype == DType::kUnknown) return InvalidArgument("dtype ", proto, " is not known");
  if (dtype != in.values.dtype()) {
    in.values = x->NewValues(ctx, dtype, x->count());
    ConvertElements(ctx, x->values.raw(), x->values.dtype(), in.values.mutable_raw(), dtype,
                    in.values.numel());
  }
  const bool known = VisitDType<float, double, int16_t, int32_t, int64_t>(dtype, [&](auto tag) {
    PutCoo(ctx, "out", SumOver<typename decltype(tag)::type>(ctx, in, summed));
  });
  return known ? Status::Ok() : Unsupported(in);
}

Status Slice(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const CooTensor* x, CooIn(ctx, "x"));
  const Ints &axes = ctx.IntList("axes"), &starts = ctx.IntList("starts"),
             &ends = ctx.IntList("ends");
  if (starts.size() != axes.size() || ends.size() != axes.size())
    return InvalidArgument("axes, starts and ends must be equally many");
  CooTensor out = x->Frame();
  std::vector<int64_t> first(static_cast<size_t>(x->sparse_dim), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(axes[i], x->shape.rank()));
    if (axis >= x->sparse_dim) return Unimplemented("a slice of a dense axis");
    const int64_t n = x->shape[axis];
    const auto bound = [n](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + n : v, 0, n); };
    first[static_cast<size_t>(axis)] = bound(starts[i]);
    out.shape[axis] = std::max<int64_t>(bound(ends[i]) - bound(starts[i]), 0);
  }
  std::vector<size_t> kept;
  out.at.clear();
  for (size_t i = 0; i < x->at.size(); ++i) {
    const auto c = x->Coordinates(x->at[i]);
    int64_t p = 0;
    bool inside = true;
    for (size_t d = 0; d < c.size(); ++d) {
      const int64_t k = c[d] - first[d], n = out.shape[static_cast<int>(d)];
      inside = inside && k >= 0 && k < n;
      p = p * n + k;
    }
    if (!inside) continue;
    out.at.push_back(p);
    kept.push_back(i);
  }
  out.values = x->NewValues(ctx, x->values.dtype(), out.count());
  const size_t bytes = EntryBytes(*x);
  for (size_t i = 0; i < kept.size(); ++i)
    WatchedMemcpy(out.values.mutable_data<std::byte>() + i * bytes, Entry(*x, kept[i]), bytes);
  PutCoo(ctx, "out", std::move(out));
  return Status::Ok();
}

Status Reshape(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const CooTensor* x, CooIn(ctx, "x"));
  if (x->sparse_dim != x->shape.rank()) return Unimplemented("another shape with dense axes");
  const Ints& given = ctx.IntList("shape");
  if (given.empty() || given.size() > static_cast<size_t>(Shape::kMaxRank))
    return InvalidArgument("shape has ", given.size(), " axes");
  CooTensor out = x->Frame();
  out.shape = Shape();
  int open = -1;
  int64_t known = 1;
  for (size_t i = 0; i < given.size(); ++i) {
    const bool copy = given[i] == 0 && static_cast<int>(i) < x->shape.rank();
    out.shape.push_back(copy ? x->shape[static_cast<int>(i)] : given[i]);
    if (given[i] == -1 && open < 0)
      open = static_cast<int>(i);
    else
      known *= out.shape[static_cast<int>(i)];
  }
  if (open >= 0) out.shape[open] = known > 0 ? x->shape.numel() / known : 0;
  for (const int64_t d : out.shape)
    if (d < 0) return InvalidArgument("shape may hold one -1");
  if (out.shape.numel() != x->shape.numel())
    return InvalidArgument(x->shape.ToString(), " cannot become ", out.shape.ToString());
  out.sparse_dim = out.shape.rank();
  out.values = x->values;
  PutCoo(ctx, "out", std::move(out));
  return Status::Ok();
}

void Define(OpDef& op, const char* doc, KernelFn fn, unsigned out = kOtherOnly) {
  op.Doc(doc).Input("x", kAnyKind | kOtherOnly).Output("out", out).AnyKernel(fn);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(sparse_sparse_coo_tensor) {
  op.Doc("a sparse tensor of `values` at `indices`, one column each");
  op.Input("values")
      .Input("indices")
      .Output("out", kOtherOnly)
      .Attr("shape", Ints{})
      .AnyKernel(Make);
}
HEDDLE_OP(sparse_to_dense) { Define(op, "x with its zeros", ToDense, 0); }
HEDDLE_OP(sparse_values) { Define(op, "the values of a sparse tensor", Values, 0); }
HEDDLE_OP(sparse_indices) { Define(op, "where the values of a sparse tensor are", Indices, 0); }
HEDDLE_OP(sparse_relu) { Define(op, "max(x, 0) of a sparse tensor", Relu); }
HEDDLE_OP(sparse_isnan) { Define(op, "which values of a sparse tensor are NaN", IsNan); }
HEDDLE_OP(sparse_softmax) {
  Define(op, "softmax over the entries of each row of a sparse tensor", Softmax);
  op.Attr("axis", -1);
}
HEDDLE_OP(sparse_add) {
  op.Doc("x + y of sparse tensors; a dense y is added to each entry that is there");
  op.Input("x", kAnyKind | kOtherOnly).Input("y", kAnyKind | kTakesOther);
  op.Output("out", kOtherOnly).AnyKernel(Add);
}
HEDDLE_OP(sparse_sum) {
  Define(op, "the sum of a sparse tensor over sparse axes", Sum);
  op.Attr("axis", Ints{}).Attr("dtype", -1).Attr("keepdim", false);
}
HEDDLE_OP(sparse_slice) {
  Define(op, "a box out of a sparse tensor", Slice);
  op.Attr("axes", Ints{}).Attr("starts", Ints{}).Attr("ends", Ints{});
}
HEDDLE_OP(sparse_reshape) {
  Define(op, "a sparse tensor in another shape", Reshape);
  op.Attr("shape", Ints{});
}
