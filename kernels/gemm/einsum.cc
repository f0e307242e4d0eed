#include "kernels/gemm/einsum_plan.h"

namespace heddle {
namespace {

std::vector<Shape> OperandShapes(const ShapeContext& ctx, Key key) {
  std::vector<Shape> shapes;
  for (int i = 0; i < ctx.InCount(key); ++i) shapes.push_back(ctx.InShape(key, i));
  return shapes;
}

Status Infer(ShapeContext& ctx) {
  const std::vector<Shape> shapes = OperandShapes(ctx, "Operands");
  for (const Shape& s : shapes)
    if (!s.is_static()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const EinsumPlan plan, PlanEinsum(ctx.Str("equation"), shapes));
  const DType dtype = ctx.InDType("Operands");
  ctx.SetOut("Out", plan.out_shape, dtype);
  for (int i = 0; i < ctx.InCount("Operands"); ++i) {
    if (ctx.InDType("Operands", i) != dtype)
      return InvalidArgument("all Operands must have the same dtype");
    const Shape& s = shapes[static_cast<size_t>(i)];
    if (i < ctx.OutCount("InnerCache")) ctx.SetOut("InnerCache", s, dtype, i);
    if (i < ctx.OutCount("XShape")) ctx.SetOut("XShape", s, dtype, i);
  }
  return Status::Ok();
}

// The gradient is given no operands, only the caches: they hold the operands as they were.
template <typename T>
struct Einsum {
  static Status Run(KernelContext& ctx) {
    std::vector<Shape> shapes;
    std::vector<const T*> data;
    for (int i = 0; i < ctx.InCount("Operands"); ++i) {
      const Tensor& x = ctx.In("Operands", i);
      shapes.push_back(x.shape());
      data.push_back(x.data<T>());
      if (Tensor* cache = ctx.OutOpt("InnerCache", i))
        if (x.bytes() > 0) std::memcpy(cache->mutable_raw(), x.raw(), x.bytes());
    }
    HEDDLE_ASSIGN_OR_RETURN(const EinsumPlan plan, PlanEinsum(ctx.Str("equation"), shapes));
    Contract<T>(plan, data, ctx.Out("Out").template mutable_data<T>());
    return Status::Ok();
  }
};

Status InferGrad(ShapeContext& ctx) {
  const std::vector<Shape> shapes = OperandShapes(ctx, "InnerCache");
  for (const Shape& s : shapes)
    if (!s.is_static()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const EinsumPlan plan, PlanEinsum(ctx.Str("equation"), shapes));
  const Shape& dout = ctx.InShape("Out@GRAD");
  if (dout.is_static() && dout.numel() != plan.out_shape.numel())
    return InvalidArgument("Out@GRAD ", dout.ToString(), " should have shape ",
                           plan.out_shape.ToString());
  for (int i = 0; i < ctx.InCount("InnerCache"); ++i)
    if (i < ctx.OutCount("Operands@GRAD"))
      ctx.SetOut("Operands@GRAD", shapes[static_cast<size_t>(i)], ctx.InDType("InnerCache"), i);
  return Status::Ok();
}

template <typename T>
struct EinsumGrad {
  static Status Run(KernelContext& ctx) {
    std::vector<Shape> shapes;
    std::vector<const T*> data;
    for (int i = 0; i < ctx.InCount("InnerCache"); ++i) {
      shapes.push_back(ctx.In("InnerCache", i).shape());
      data.push_back(ctx.In("InnerCache", i).template data<T>());
    }
    HEDDLE_ASSIGN_OR_RETURN(const EinsumPlan plan, PlanEinsum(ctx.Str("equation"), shapes));
    const T* dout = ctx.In("Out@GRAD").template data<T>();
    for (int i = 0; i < static_cast<int>(data.size()); ++i) {
      Tensor* dx = ctx.OutOpt("Operands@GRAD", i);
      if (dx == nullptr) continue;
      std::vector<const T*> operands{dout};
      for (size_t k = 0; k < data.size(); ++k)
        if (static_cast<int>(k) != i) operands.push_back(data[k]);
      if (dx->bytes() > 0) std::memset(dx->mutable_raw(), 0, dx->bytes());
      Contract<T>(GradientPlan(plan, i), operands, dx->template mutable_data<T>());
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(einsum) {
  op.Doc("sums of products by index notation, for one or two operands")
      .Input("Operands", kList)
      .Output("Out")
      .Output("InnerCache", kList | kOptional)
      .Output("XShape", kList | kOptional)
      .Attr("equation", "")
      .InferShape(Infer)
      .Kernels<Einsum, float, double>();
}

HEDDLE_OP(einsum_grad) {
  op.Input("x_shape", kList | kOptional | kNoBuffer)
      .Input("InnerCache", kList)
      .Input("Out@GRAD")
      .Output("Operands@GRAD", kList)
      .Attr("equation", "")
      .KernelKey("InnerCache")
      .InferShape(InferGrad)
      .Kernels<EinsumGrad, float, double>();
}
