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

HEDDLE_EXAMPLES(box_coder, R"(
example float32 2x4, code_type decode_center_size
attr code_type STRING "decode_center_size"
in PriorBox float32 [2, 4] 4.04 7.59 6.7 3.15 5.81 8.47 2.27 4.93
in TargetBox float32 [1, 2, 4] 0.05 -0.32 -0.13 0.43 0.61 -0.69 0.24 -0.51
out OutputBox float32 [1, 2, 4] 4.335133 10.203512 6.6708665 3.3780882 4.130711 10.205478
  -0.36951113 8.079722

example float32 3x4, no box_normalized
attr box_normalized BOOLEAN false
in PriorBox float32 [3, 4] 3.36 0.88 2.74 7.07 2.12 1.5 5.83 6.45 4.59 7.69 5.21 3.97
in PriorBoxVar float32 [3, 4] 0.251 0.264 0.278 0.141 0.237 0.127 0.196 0.209 0.182 0.223 0.154
  0.168
in TargetBox float32 [1, 4] 4.09 5.2 2.98 1.86
out OutputBox float32 [1, 3, 4] -0.15726423 -0.4978505 -4.4593163 -7.961279 -0.84209 -1.2505789
  -19.16817 -4.465265 -6.325465 4.616196 -17.465584 -0.8957209

example float32 3x2x4, axis 1, no box_normalized, code_type decode_center_size
attr axis INT 1
attr box_normalized BOOLEAN false
attr code_type STRING "decode_center_size"
attr variance FLOATS [0.90534157, 0.20763586, 0.2924894, 0.5200102]
in PriorBox float32 [3, 4] 0.461 0.843 0.232 0.69 0.155 0.766 0.537 0.614 0.919 0.384 0.308 0.079
in TargetBox float32 [3, 2, 4] 0.68 0.04 0.6 0.08 0.56 0.44 0.4 0.24 0.12 0.88 0.28 0.72 0.8 0.84
  0.52 0.48 0.96 0.76 0.2 0.36 0.92 0.64 0.16 0.32
out OutputBox float32 [3, 2, 4] 0.8617004 0.83204514 0.7806047 0.71502423 0.80404407 0.8640882
  0.67073655 0.8236753 0.24616903 0.7283954 0.7461145 0.96149707 1.0424349 0.7936915 1.6514564
  0.882115 1.2453735 0.42213246 0.6578078 0.2602141 1.233685 0.41344187 0.64132214 0.23427105

example float64 2x4, code_type decode_center_size
attr code_type STRING "decode_center_size"
in PriorBox float64 [2, 4] 4.04 7.59 6.7 3.15 5.81 8.47 2.27 4.93
in TargetBox float64 [1, 2, 4] 0.05 -0.32 -0.13 0.43 0.61 -0.69 0.24 -0.51
out OutputBox float64 [1, 2, 4] 4.335133076875653 10.203511702277185 6.670866923124347
  3.3780882977228153 4.130710996068887 10.205477174497712 -0.36951099606888604 8.07972282550229
)")
