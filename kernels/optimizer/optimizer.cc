#include "kernels/optimizer/optimizer.h"

#include <algorithm>
#include <numeric>

#include "core/interrupts.h"
#include "kernels/base/visit_one_of.h"

namespace heddle {

Status InferUpdate(ShapeContext& ctx, std::initializer_list<KeyPair> full,
                   std::initializer_list<KeyPair> scalars) {
  const Shape& param = ctx.InShape("Param");
  const auto check = [&](Key key, int64_t want) {
    const Shape& s = ctx.InShape(key);
    if (s.is_static() && want >= 0 && s.numel() != want)
      return InvalidArgument(key.name, " ", s.ToString(), " must have ", want,
                             " elements, Param is ", param.ToString());
    return Status::Ok();
  };
  const int64_t numel = param.is_static() ? param.numel() : -1;
  if (!HasGradRows(ctx)) HEDDLE_RETURN_IF_ERROR(check("Grad", numel));
  HEDDLE_RETURN_IF_ERROR(check("LearningRate", 1));
  const DType grad = ctx.InDType("Grad");
  if (grad != DType::kUnknown && grad != ctx.InDType("Param"))
    return InvalidArgument("Grad must have the dtype of Param");
  for (const KeyPair& p : full) {
    if (!ctx.HasIn(p.in)) continue;
    HEDDLE_RETURN_IF_ERROR(check(p.in, numel));
    if (ctx.InDType(p.in) != ctx.InDType("Param"))
      return InvalidArgument(p.in.name, " must have the dtype of Param");
    if (ctx.HasOut(p.out)) ctx.SetOut(p.out, ctx.InShape(p.in), ctx.InDType(p.in));
  }
  for (const KeyPair& p : scalars) {
    if (!ctx.HasIn(p.in)) continue;
    HEDDLE_RETURN_IF_ERROR(check(p.in, 1));
    if (ctx.HasOut(p.out)) ctx.SetOut(p.out, ctx.InShape(p.in), ctx.InDType(p.in));
  }
  return Status::Ok();
}

namespace {
double FirstOf(const Tensor& t) {
  double value = 0;
  VisitOneOf<float, double, float16, bfloat16, int32_t, int64_t>(
      "a scalar", t.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        value = static_cast<double>(static_cast<ComputeType<T>>(*t.data<T>()));
      });
  return value;
}
}  // namespace

Result<double> ScalarOf(const KernelContext& ctx, Key key) {
  const Tensor& t = ctx.In(key);
  if (t.numel() < 1) return InvalidArgument(key.name, " must hold a value");
  return FirstOf(t);
}

double ScalarOr(const KernelContext& ctx, Key operand, Key attr) {
  const Tensor* t = ctx.InOpt(operand);
  return t && t->numel() > 0 ? FirstOf(*t) : ctx.Float(attr);
}

bool Flag(const KernelContext& ctx, Key key) {
  const Tensor* t = ctx.InOpt(key);
  return t && t->dtype() == DType::kBool && t->numel() > 0 && *t->data<bool>();
}

void KeepMaster(const KernelContext& ctx, int i) {
  const Tensor* master = ctx.InOpt("MasterParam", i);
  Tensor* out = ctx.OutOpt("MasterParamOut", i);
  if (master != nullptr && out != nullptr) CopyWhenApart(*master, *out);
}

void KeepMasters(KernelContext& ctx) {
  for (int i = 0, count = ctx.InCount("MasterParam"); i < count; ++i) KeepMaster(ctx, i);
}

Status CheckMasters(const KernelContext& ctx) {
  const Tensor* master = ctx.InOpt("MasterParam");
  if (master == nullptr || master->dtype() == ctx.In("Param").dtype()) return Status::Ok();
  return Unimplemented("MasterParam is ", Name(master->dtype()), " for a Param of ",
                       Name(ctx.In("Param").dtype()));
}

OpDef& DeclareUpdate(OpDef& op) {
  op.Input("Param").Input("Grad", kAnyKind | kTakesRows).Input("LearningRate");
  return op.Output("ParamOut").Inplace("Param", "ParamOut");
}
OpDef& DeclareRowUpdate(OpDef& op) {
  return DeclareUpdate(op).Input("GradRows", kOptional).Attr("each_row", false);
}

const Tensor* SteppedMaster(const KernelContext& ctx, const Tensor& param) {
  const Tensor* held = ctx.Bool("multi_precision") ? ctx.InOpt("MasterParam") : nullptr;
  const bool fits = held != nullptr && ctx.OutOpt("MasterParamOut") != nullptr &&
                    held->dtype() == param.dtype() && held->numel() == param.numel();
  return fits ? held : nullptr;
}

void HandMasterOn(KernelContext& ctx, const Tensor* stepped) {
  if (stepped == nullptr) return KeepMasters(ctx);
  const Tensor& param = ctx.Out("ParamOut");
  if (param.bytes() > 0)
    WatchedMemcpy(ctx.OutOpt("MasterParamOut")->mutable_raw(), param.raw(), param.bytes());
}

void SetMastersLike(ShapeContext& ctx) {
  for (int i = 0, count = ctx.InCount("MasterParam"); i < count; ++i)
    if (ctx.InVar("MasterParam", i) != nullptr && i < ctx.OutCount("MasterParamOut"))
      ctx.SetOut("MasterParamOut", ctx.InShape("MasterParam", i), ctx.InDType("MasterParam", i), i);
}

bool HasGradRows(const OpContext& ctx) {
  return ctx.def().FindInput("GradRows") >= 0 && ctx.InVar("GradRows") != nullptr;
}

Result<SelectedRows> GivenRows(const KernelContext& ctx, const Tensor& param) {
  const Tensor &ids = ctx.In("GradRows"), &grad = ctx.In("Grad");
  if (ids.dtype() != DType::kI64 && ids.dtype() != DType::kI32)
    return InvalidArgument("GradRows must hold integers, not ", Name(ids.dtype()));
  const int64_t n = ids.numel();
  SelectedRows rows;
  rows.height = param.rank() < 1 ? 0 : param.dim(0);
  const int64_t width = rows.height == 0 ? 0 : param.numel() / rows.height;
  if (grad.numel() != n * width || grad.dtype() != param.dtype())
    return InvalidArgument("Grad ", grad.shape().ToString(), " must hold ", n, " rows of ", width,
                           " elements, as many as GradRows names, of Param's dtype");
  rows.rows.reserve(static_cast<size_t>(n));
  for (const auto part : Stretches(n))
    for (int64_t i = part.begin; i < part.end; ++i)
      rows.rows.push_back(ids.dtype() == DType::kI64 ? ids.data<int64_t>()[i]
                                                     : ids.data<int32_t>()[i]);
  rows.value = grad.Reshaped(Shape{n, width});
  return rows;
}

Result<MergedRows> MergeRows(const SelectedRows& in) {
  for (int64_t r : in.rows)
    if (r < 0 || r >= in.height)
      return OutOfRange("selected row ", r, " is not in [0, ", in.height, ")");
  if (in.value.rank() < 1 || in.value.dim(0) != static_cast<int64_t>(in.rows.size()))
    return InvalidArgument("selected rows hold ", in.rows.size(), " rows, but values of shape ",
                           in.value.shape().ToString());
  std::vector<int64_t> order(in.rows.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  LookCount looks;
  std::stable_sort(order.begin(), order.end(), looks.In([&](int64_t a, int64_t b) {
    return in.rows[static_cast<size_t>(a)] < in.rows[static_cast<size_t>(b)];
  }));
  MergedRows out;
  for (int64_t at : order) {
    LookForInterrupt();
    const int64_t row = in.rows[static_cast<size_t>(at)];
    if (out.rows.empty() || out.rows.back() != row) {
      out.rows.push_back(row);
      out.sources.emplace_back();
    }
    out.sources.back().push_back(at);
  }
  return out;
}

template <typename T>
Result<Gradient<T>> Gradient<T>::Of(KernelContext& ctx, const Value* grad, const Tensor& param,
                                    bool lazy) {
  Gradient g;
  g.numel_ = param.numel();
  g.lazy_ = lazy;
  if (grad == nullptr || !grad->initialized()) return InvalidArgument("Grad holds nothing");
  SelectedRows given;
  if (HasGradRows(ctx)) {
    HEDDLE_ASSIGN_OR_RETURN(given, GivenRows(ctx, param));
  } else if (grad->is_tensor()) {
    const Tensor& t = grad->tensor();
    if (t.numel() != param.numel() || t.dtype() != param.dtype())
      return InvalidArgument("Grad ", t.shape().ToString(), " must have Param's dtype and shape ",
                             param.shape().ToString());
    g.dense_ = t.data<T>();
    return g;
  }
  if (!HasGradRows(ctx) && !grad->is_rows())
    return InvalidArgument("Grad must be a tensor or selected rows");
  const SelectedRows& rows = HasGradRows(ctx) ? given : grad->rows();
  if (param.rank() < 1 || rows.height != param.dim(0))
    return InvalidArgument("Grad's height ", rows.height, " must be the first dimension of Param ",
                           param.shape().ToString());
  g.width_ = rows.height == 0 ? 0 : param.numel() / rows.height;
  const auto count = static_cast<int64_t>(rows.rows.size());
  if (rows.value.numel() != count * g.width_ || rows.value.dtype() != param.dtype())
    return InvalidArgument("Grad's rows ", rows.value.shape().ToString(), " must have ", g.width_,
                           " elements each and Param's dtype");
  if (ctx.def().FindAttr("each_row") >= 0 && ctx.Bool("each_row")) {
    for (const auto part : Stretches(count))
      for (int64_t i = part.begin; i < part.end; ++i)
        if (const int64_t r = rows.rows[static_cast<size_t>(i)]; r < 0 || r >= rows.height)
          return OutOfRange("GradRows holds ", r, " at position ", i, ", expected 0 to ",
                            rows.height - 1);
    g.lazy_ = true;
    g.rows_ = rows.rows;
    g.merged_ = rows.value;
    return g;
  }
  HEDDLE_ASSIGN_OR_RETURN(MergedRows merged, MergeRows(rows));
  const auto unique = static_cast<int64_t>(merged.rows.size());
  g.merged_ = ctx.Scratch(param.dtype(), Shape{unique, g.width_});
  AddMerged<T>(rows, merged, g.width_, g.merged_.mutable_data<T>());
  g.rows_ = std::move(merged.rows);
  g.zeros_.assign(static_cast<size_t>(g.width_), T(0));
  if (g.width_ == 0) g.numel_ = 0;
  return g;
}

template class Gradient<float>;
template class Gradient<double>;
template class Gradient<float16>;
template class Gradient<bfloat16>;

}  // namespace heddle
