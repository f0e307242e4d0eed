#include "kernels/base/shape_arg.h"

#include <algorithm>
#include <array>

#include "kernels/base/index_args.h"

namespace heddle {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 48;

// One dimension out of a list of 1-element tensors.
Result<int64_t> ListedDim(const ShapeContext& ctx, int i) {
  const Tensor* t = ctx.InValue("ShapeTensorList", i);
  if (t == nullptr) return int64_t{-1};
  HEDDLE_RETURN_IF_ERROR(CheckInts(*t, "ShapeTensorList"));
  if (t->numel() != 1)
    return InvalidArgument("ShapeTensorList[", i, "] must hold one element, but has shape ",
                           t->shape().ToString());
  const int64_t v = IntAt(*t, 0);
  if (v < 0) return InvalidArgument("ShapeTensorList[", i, "] is negative: ", v);
  return v;
}

}  // namespace

Status CheckInts(const Tensor& t, std::string_view slot) {
  if (t.dtype() == DType::kI32 || t.dtype() == DType::kI64) return Status::Ok();
  return InvalidArgument("input ", slot, " must be int32 or int64, but is ", Name(t.dtype()));
}

Result<Ints> ReadInts(const Tensor& t, std::string_view slot) {
  HEDDLE_RETURN_IF_ERROR(CheckInts(t, slot));
  return ToInts(t);
}

Result<Shape> CheckedShape(std::span<const int64_t> dims, std::string_view what) {
  if (dims.size() > static_cast<size_t>(Shape::kMaxRank))
    return InvalidArgument(what, " has ", dims.size(), " dimensions; at most ", Shape::kMaxRank,
                           " are possible");
  int64_t numel = 1;
  for (const int64_t d : dims) {
    if (d < 0) return InvalidArgument(what, " has the negative dimension ", d);
    if (__builtin_mul_overflow(numel, d > 0 ? d : 1, &numel) || numel > kMaxElements)
      return ResourceExhausted(what,
                               " has more elements than can be stored: ", Shape(dims).ToString());
  }
  return Shape(dims);
}

Result<DType> CheckedDType(int64_t proto_type) {
  const DType dtype = DTypeFromProto(proto_type);
  if (dtype == DType::kUnknown)
    return InvalidArgument("attribute dtype, ", proto_type, ", is not the number of a data type");
  return dtype;
}

Result<Shape> ReadShapeArg(const ShapeContext& ctx) {
  std::array<int64_t, Shape::kMaxRank> dims;
  if (ctx.HasIn("ShapeTensor")) {
    if (const Tensor* t = ctx.InValue("ShapeTensor")) {
      HEDDLE_RETURN_IF_ERROR(CheckInts(*t, "ShapeTensor"));
      const auto n = static_cast<size_t>(t->numel());
      for (size_t i = 0; i < std::min(n, dims.size()); ++i)
        dims[i] = IntAt(*t, static_cast<int64_t>(i));
      // Too many dimensions are refused without reading them.
      return CheckedShape({dims.data(), n}, "ShapeTensor");
    }
    const Shape& s = ctx.InShape("ShapeTensor");
    if (!s.is_static() || s.numel() > Shape::kMaxRank) return Shape::Unknown();
    dims.fill(-1);
    return Shape(std::span(dims.data(), static_cast<size_t>(s.numel())));
  }
  if (const int n = ctx.InCount("ShapeTensorList"); n > 0) {
    if (n > Shape::kMaxRank) return InvalidArgument("ShapeTensorList has ", n, " dimensions");
    bool known = true;
    for (int i = 0; i < n; ++i) {
      HEDDLE_ASSIGN_OR_RETURN(const int64_t d, ListedDim(ctx, i));
      dims[static_cast<size_t>(i)] = d;
      known = known && d >= 0;
    }
    const std::span listed(dims.data(), static_cast<size_t>(n));
    return known ? CheckedShape(listed, "ShapeTensorList") : Shape(listed);
  }
  return CheckedShape(ctx.IntList("shape"), "attribute shape");
}

void DeclareShapeArg(OpDef& op) {
  op.Input("ShapeTensor", kOptional | kShapeValue);
  op.Input("ShapeTensorList", kOptional | kList | kShapeValue).Attr("shape", Ints{});
}

Status ShapeArgShape(ShapeContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const DType dtype, CheckedDType(ctx.Int("dtype")));
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, ReadShapeArg(ctx));
  ctx.SetOut("Out", shape, dtype);
  return Status::Ok();
}

Status BatchSizeLikeShape(ShapeContext& ctx) {
  const Shape& in = ctx.InShape("Input");
  Ints dims = ctx.IntList("shape");
  const int64_t from = ctx.Int("input_dim_idx"), to = ctx.Int("output_dim_idx");
  if (to < 0 || to >= static_cast<int64_t>(dims.size()))
    return InvalidArgument("output_dim_idx ", to,
                           " is not a dimension of attribute shape, which has ", dims.size());
  int64_t batch = -1;
  if (!ctx.InLoD("Input").empty() && from == 0) {
    batch = static_cast<int64_t>(ctx.InLoD("Input").back().size()) - 1;  // number of sequences
  } else if (in.known_rank()) {
    if (from < 0 || from >= in.rank())
      return InvalidArgument("input_dim_idx ", from,
                             " is not a dimension of Input, whose shape is ", in.ToString());
    batch = in[static_cast<int>(from)];
  }
  dims[static_cast<size_t>(to)] = batch < 0 ? 0 : batch;
  HEDDLE_ASSIGN_OR_RETURN(Shape shape, CheckedShape(dims, "attribute shape"));
  if (batch < 0) shape[static_cast<int>(to)] = -1;
  HEDDLE_ASSIGN_OR_RETURN(const DType dtype, CheckedDType(ctx.Int("dtype")));
  ctx.SetOut("Out", shape, dtype);
  return Status::Ok();
}

}  // namespace heddle
