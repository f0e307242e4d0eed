// box_coder: boxes as offsets from priors and back.
#include "kernels/base/shape_checks.h"
#include "kernels/detection/box_slots.h"

namespace heddle {
namespace {

Status InferCoder(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckBoxes(ctx, "PriorBox"));
  const std::string& type = ctx.Str("code_type");
  const Shape &prior = ctx.InShape("PriorBox"), &target = ctx.InShape("TargetBox");
  if (!prior.is_static() || !target.is_static()) return ctx.Defer();
  if (ctx.InDType("TargetBox") != ctx.InDType("PriorBox"))
    return InvalidArgument("TargetBox must have the dtype of PriorBox");
  if (ctx.HasIn("PriorBoxVar")) {
    HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "PriorBox", "PriorBoxVar"));
  } else if (const size_t n = ctx.Attr<Floats>("variance").size(); n != 0 && n != 4) {
    return InvalidArgument("variance must be empty or have 4 values");
  }
  if (type == "encode_center_size") {
    HEDDLE_RETURN_IF_ERROR(CheckBoxes(ctx, "TargetBox"));
    ctx.SetOut("OutputBox", Shape{target[0], prior[0], 4}, ctx.InDType("TargetBox"));
  } else if (type == "decode_center_size") {
    const int64_t axis = ctx.Int("axis");
    if (target.rank() != 3 || target[2] != 4 || axis < 0 || axis > 1 ||
        target[axis == 0 ? 1 : 0] != prior[0])
      return InvalidArgument("TargetBox ", target.ToString(), " does not fit PriorBox ",
                             prior.ToString(), " with axis ", axis);
    ctx.SetOut("OutputBox", target, ctx.InDType("TargetBox"));
  } else {
    return InvalidArgument("unknown code_type '", type, "'");
  }
  ctx.ShareLoD("TargetBox", "OutputBox");
  return Status::Ok();
}

template <typename T>
struct Centre {
  T x, y, w, h;
  Centre(const T* box, T extra)
      : x(0), y(0), w(box[2] - box[0] + extra), h(box[3] - box[1] + extra) {
    x = box[0] + w / 2;
    y = box[1] + h / 2;
  }
};

template <typename T>
void Encode(const Centre<T>& p, const T* t, T extra, const T* var, T* out) {
  out[0] = ((t[0] + t[2]) / 2 - p.x) / p.w / var[0];
  out[1] = ((t[1] + t[3]) / 2 - p.y) / p.h / var[1];
  out[2] = std::log(std::abs((t[2] - t[0] + extra) / p.w)) / var[2];
  out[3] = std::log(std::abs((t[3] - t[1] + extra) / p.h)) / var[3];
}

template <typename T>
void Decode(const Centre<T>& p, const T* t, T extra, const T* var, T* out) {
  const T x = var[0] * t[0] * p.w + p.x, y = var[1] * t[1] * p.h + p.y;
  const T w = std::exp(var[2] * t[2]) * p.w, h = std::exp(var[3] * t[3]) * p.h;
  out[0] = x - w / 2;
  out[1] = y - h / 2;
  out[2] = x + w / 2 - extra;
  out[3] = y + h / 2 - extra;
}

template <typename T>
struct BoxCoder {
  static Status Run(KernelContext& ctx) {
    const Tensor &prior = ctx.In("PriorBox"), &target = ctx.In("TargetBox");
    Tensor& out = ctx.Out("OutputBox");
    const Tensor* var = ctx.InOpt("PriorBoxVar");
    const Floats& fixed = ctx.Attr<Floats>("variance");
    T same[4];
    for (size_t i = 0; i < 4; ++i) same[i] = fixed.empty() ? T(1) : static_cast<T>(fixed[i]);
    const T extra = ctx.Bool("box_normalized") ? T(0) : T(1);
    const bool encode = ctx.Str("code_type") == "encode_center_size";
    const bool by_row = !encode && ctx.Int("axis") == 1;
    const int64_t rows = out.dim(0), cols = out.dim(1);
    ForEachIndex(
        ctx, rows * cols,
        [&](int64_t i) {
          const int64_t row = i / cols, which = by_row ? row : i % cols;
          const Centre<T> p(prior.data<T>() + which * 4, extra);
          const T* v = var ? var->data<T>() + which * 4 : same;
          T* to = out.mutable_data<T>() + i * 4;
          if (encode)
            Encode(p, target.data<T>() + row * 4, extra, v, to);
          else
            Decode(p, target.data<T>() + i * 4, extra, v, to);
        },
        2048);
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(box_coder) {
  op.Doc("boxes as offsets from prior boxes, and back")
      .Input("PriorBox")
      .Input("PriorBoxVar", kOptional)
      .Input("TargetBox")
      .Output("OutputBox")
      .Attr("code_type", "encode_center_size")
      .Attr("box_normalized", true)
      .Attr("axis", 0)
      .Attr("variance", Floats{})
      .InferShape(InferCoder)
      .Kernels<BoxCoder, float, double>();
}
