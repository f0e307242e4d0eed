#include "core/shapes.h"

#include "core/interrupts.h"

namespace heddle {

Status SameShape(ShapeContext& ctx) {
  const BoundOp& op = ctx.op();
  for (size_t o = 0; o < op.out.size(); ++o) {
    if (op.out[o] == kNoSlot) continue;
    const Value* in = nullptr;
    for (uint32_t s : op.in)
      if (in == nullptr && s != kNoSlot) in = ctx.frame()[s];
    if (in == nullptr) return InvalidArgument("has no input to take the output's shape from");
    if (in->is_tensor()) {
      ctx.SetOutAt(o, in->tensor().shape(), in->tensor().dtype());
      if (o == 0 && in->tensor().has_lod()) ctx.SetOutLoDAt(o, in->tensor().lod());
    }
    break;
  }
  return Status::Ok();
}

namespace {

// A kernel for any dtype copies elements, so input and output must have the same dtype.
Status CheckGradDTypes(const ShapeContext& ctx, DType dtype) {
  const OpDef& def = ctx.def();
  const BoundOp& op = ctx.op();
  if (def.kernel(DType::kUnknown) == nullptr || dtype == DType::kUnknown) return Status::Ok();
  for (size_t s = 0; s < def.inputs().size(); ++s) {
    const SlotDef& slot = def.inputs()[s];
    if (!slot.name.ends_with("@GRAD")) continue;
    for (uint32_t i = op.in_begin[s]; i < op.in_begin[s + 1]; ++i) {
      const Value* v = op.in[i] == kNoSlot ? nullptr : ctx.frame()[op.in[i]];
      const DType in = v != nullptr && v->is_tensor() ? v->tensor().dtype() : DType::kUnknown;
      if (in != DType::kUnknown && in != dtype)
        return InvalidArgument("'", slot.name, "' is ", Name(in), ", but the gradient is of ",
                               Name(dtype));
    }
  }
  return Status::Ok();
}

}  // namespace

Status GradLikeInputs(ShapeContext& ctx) {
  const OpDef& def = ctx.def();
  const BoundOp& op = ctx.op();
  constexpr std::string_view kGrad = "@GRAD";
  for (size_t s = 0; s < def.outputs().size(); ++s) {
    const std::string& name = def.outputs()[s].name;
    if (!name.ends_with(kGrad)) continue;
    int from = def.FindInput(name.substr(0, name.size() - kGrad.size()));
    const bool absent = from < 0 || op.in_begin[from] == op.in_begin[from + 1];
    if (absent) {  // the forward input is not kept: the shape is that of the incoming gradient
      from = -1;
      for (size_t i = 0; i < def.inputs().size() && from < 0; ++i)
        if (def.inputs()[i].name.ends_with(kGrad) && op.in_begin[i] < op.in_begin[i + 1])
          from = static_cast<int>(i);
    }
    if (from < 0) return InvalidArgument("has no input to take the shape of '", name, "' from");
    for (uint32_t i = op.out_begin[s]; i < op.out_begin[s + 1]; ++i) {
      const uint32_t in = op.in_begin[from] + (i - op.out_begin[s]);
      if (op.out[i] == kNoSlot || in >= op.in_begin[from + 1] || op.in[in] == kNoSlot) continue;
      const Value& v = *ctx.frame()[op.in[in]];
      if (!v.is_tensor()) continue;
      HEDDLE_RETURN_IF_ERROR(CheckGradDTypes(ctx, v.tensor().dtype()));
      ctx.SetOutAt(i, v.tensor().shape(), v.tensor().dtype());
      if (v.tensor().has_lod()) ctx.SetOutLoDAt(i, v.tensor().lod());
    }
  }
  return Status::Ok();
}

Result<Shape> BroadcastShape(const Shape& a, const Shape& b, int64_t axis) {
  if (!a.known_rank() || !b.known_rank()) return Shape::Unknown();
  if (a == b) return a;  // for any axis
  if (a.rank() < b.rank()) return BroadcastShape(b, a, axis);
  int b_rank = b.rank();
  int64_t start = axis < 0 ? a.rank() - b.rank() : axis;
  if (axis >= 0)
    while (b_rank > 0 && start + b_rank > a.rank() && b[b_rank - 1] == 1) --b_rank;
  if (start < 0 || start + b_rank > a.rank())
    return InvalidArgument("shapes ", a.ToString(), " and ", b.ToString(),
                           " do not fit each other with axis ", axis);
  Shape out = a;
  for (int i = 0; i < b_rank; ++i) {
    int64_t& d = out[static_cast<int>(start) + i];
    const int64_t e = b[i];
    if (d == e || e == 1) continue;
    if (d == 1) {
      d = e;
    } else if (d < 0 || e < 0) {
      d = d < 0 ? e : d;  // the known one, since it is not 1
    } else {
      return InvalidArgument("shapes ", a.ToString(), " and ", b.ToString(),
                             " cannot be broadcast together (axis ", axis, "): ", d, " against ",
                             e);
    }
  }
  return out;
}

Result<int> NormalAxis(int64_t axis, int rank) {
  const int r = rank == 0 ? 1 : rank;
  if (axis < -r || axis >= r)
    return OutOfRange("axis ", axis, " is not in [", -r, ", ", r - 1, "] of a tensor of rank ",
                      rank);
  return static_cast<int>(axis < 0 ? axis + r : axis);
}

Ints ToInts(const Tensor& t) {
  Ints out;
  out.reserve(static_cast<size_t>(t.numel()));
  for (const auto part : Stretches(t.numel()))
    for (int64_t i = part.begin; i < part.end; ++i)
      out.push_back(t.dtype() == DType::kI64 ? t.data<int64_t>()[i] : t.data<int32_t>()[i]);
  return out;
}

namespace {
struct Pair {
  int64_t proto;
  DType dtype;
};
constexpr Pair kPairs[] = {{0, DType::kBool},  {1, DType::kI16},  {2, DType::kI32},
                           {3, DType::kI64},   {4, DType::kF16},  {5, DType::kF32},
                           {6, DType::kF64},   {20, DType::kU8},  {21, DType::kI8},
                           {22, DType::kBF16}, {23, DType::kC64}, {24, DType::kC128}};
}  // namespace

DType DTypeFromProto(int64_t proto_type) {
  for (const Pair& p : kPairs)
    if (p.proto == proto_type) return p.dtype;
  return DType::kUnknown;
}

int64_t DTypeToProto(DType dtype) {
  for (const Pair& p : kPairs)
    if (p.dtype == dtype) return p.proto;
  return -1;
}

}  // namespace heddle
