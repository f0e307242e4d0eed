#include "device/cuda/grid/element_table.h"

#include <unordered_map>
#include <utility>

namespace heddle::HEDDLE_GRID {
namespace {

float Number(const OpContext& ctx, Key key) { return static_cast<float>(ctx.Float(key)); }

ElementArgs Scale(const OpContext& ctx) {
  ElementArgs g{Number(ctx, "scale"), Number(ctx, "bias")};
  if (!ctx.Bool("bias_after_scale")) g.b *= g.a;
  return g;
}
ElementArgs Clip(const OpContext& ctx) { return {Number(ctx, "min"), Number(ctx, "max")}; }
ElementArgs Brelu(const OpContext& ctx) { return {Number(ctx, "t_min"), Number(ctx, "t_max")}; }
ElementArgs HardSwish(const OpContext& ctx) {
  return {Number(ctx, "threshold"), Number(ctx, "scale"), Number(ctx, "offset")};
}
ElementArgs HardSigmoid(const OpContext& ctx) {
  return {Number(ctx, "slope"), Number(ctx, "offset")};
}
ElementArgs Relu6(const OpContext& ctx) { return {0, Number(ctx, "threshold")}; }
ElementArgs Swish(const OpContext& ctx) { return {Number(ctx, "beta")}; }
ElementArgs Silu(const OpContext&) { return {1}; }
ElementArgs LeakyRelu(const OpContext& ctx) {
  ElementArgs g{1, Number(ctx, "alpha")};
  if (ctx.Int("op_version") == 0 && g.b > 1) std::swap(g.a, g.b);
  return g;
}
ElementArgs Elu(const OpContext& ctx) { return {Number(ctx, "alpha")}; }
ElementArgs Softplus(const OpContext& ctx) {
  return {Number(ctx, "beta"), Number(ctx, "threshold")};
}
ElementArgs Mish(const OpContext& ctx) { return {Number(ctx, "threshold")}; }
ElementArgs Pow(const OpContext& ctx) { return {Number(ctx, "factor")}; }
ElementArgs Stanh(const OpContext& ctx) { return {Number(ctx, "scale_a"), Number(ctx, "scale_b")}; }

constexpr ElementOp kOps[] = {
    {"relu", Element::kRelu},
    {"sigmoid", Element::kSigmoid},
    {"tanh", Element::kTanh},
    {"exp", Element::kExp},
    {"log", Element::kLog},
    {"sqrt", Element::kSqrt},
    {"rsqrt", Element::kRsqrt},
    {"abs", Element::kAbs},
    {"square", Element::kSquare},
    {"reciprocal", Element::kReciprocal},
    {"erf", Element::kErf},
    {"gelu", Element::kGelu},
    {"scale", Element::kScale, Scale},
    {"clip", Element::kClip, Clip},
    {"brelu", Element::kClip, Brelu},
    {"relu6", Element::kClip, Relu6},
    {"hard_swish", Element::kHardSwish, HardSwish},
    {"hard_sigmoid", Element::kHardSigmoid, HardSigmoid},
    {"swish", Element::kSwish, Swish},
    {"silu", Element::kSwish, Silu},
    {"leaky_relu", Element::kLeakyRelu, LeakyRelu},
    {"elu", Element::kElu, Elu},
    {"softplus", Element::kSoftplus, Softplus},
    {"logsigmoid", Element::kLogSigmoid},
    {"softsign", Element::kSoftsign},
    {"mish", Element::kMish, Mish},
    {"pow", Element::kPow, Pow},
    {"floor", Element::kFloor},
    {"ceil", Element::kCeil},
    {"round", Element::kRound},
    {"sin", Element::kSin},
    {"cos", Element::kCos},
    {"stanh", Element::kStanh, Stanh},
    {"tanh_shrink", Element::kTanhShrink},
    {"relu_grad", Element::kReluGrad, nullptr, "Out"},
    {"sigmoid_grad", Element::kSigmoidGrad, nullptr, "Out"},
    {"tanh_grad", Element::kTanhGrad, nullptr, "Out"},
    {"exp_grad", Element::kExpGrad, nullptr, "Out"},
    {"log_grad", Element::kLogGrad, nullptr, "X"},
    {"sqrt_grad", Element::kSqrtGrad, nullptr, "Out"},
    {"rsqrt_grad", Element::kRsqrtGrad, nullptr, "Out"},
    {"abs_grad", Element::kAbsGrad, nullptr, "X"},
    {"square_grad", Element::kSquareGrad, nullptr, "X"},
    {"reciprocal_grad", Element::kReciprocalGrad, nullptr, "Out"},
    {"gelu_grad", Element::kGeluGrad, nullptr, "X"},
    {"clip_grad", Element::kClipGrad, Clip, "X"},
    {"relu6_grad", Element::kClipGrad, Relu6, "Out"},
    {"hard_swish_grad", Element::kHardSwishGrad, HardSwish, "X"},
    {"hard_sigmoid_grad", Element::kHardSigmoidGrad, HardSigmoid, "Out"},
    {"swish_grad", Element::kSwishGrad, Swish, "X"},
    {"silu_grad", Element::kSwishGrad, Silu, "X"},
    {"leaky_relu_grad", Element::kLeakyReluGrad, LeakyRelu, "X"},
    {"elu_grad", Element::kEluGrad, Elu, "X"},
    {"softplus_grad", Element::kSoftplusGrad, Softplus, "X"},
    {"logsigmoid_grad", Element::kLogSigmoidGrad, nullptr, "X"},
    {"softsign_grad", Element::kSoftsignGrad, nullptr, "X"},
    {"pow_grad", Element::kPowGrad, Pow, "X"},
    {"sin_grad", Element::kSinGrad, nullptr, "X"},
    {"cos_grad", Element::kCosGrad, nullptr, "X"},
};

constexpr std::pair<std::string_view, Element> kBroadcastOps[] = {
    {"elementwise_add", Element::kAdd}, {"grad_add", Element::kAdd},
    {"elementwise_sub", Element::kSub}, {"elementwise_mul", Element::kMul},
    {"elementwise_div", Element::kDiv}, {"elementwise_max", Element::kMax},
    {"elementwise_min", Element::kMin}, {"elementwise_pow", Element::kElementPow},
    {"elementwise_mod", Element::kMod}, {"elementwise_floordiv", Element::kFloorDiv},
};

}  // namespace

const ElementOp* FindElementOp(std::string_view name) {
  static const auto* const map = [] {
    auto* m = new std::unordered_map<std::string_view, const ElementOp*>;
    for (const ElementOp& op : kOps) m->emplace(op.name, &op);
    return m;
  }();
  const auto found = map->find(name);
  return found == map->end() ? nullptr : found->second;
}

Element ElementOf(const ElementOp& op, const OpContext& attrs) {
  if (op.op == Element::kGelu && attrs.Bool("approximate")) return Element::kGeluTanh;
  if (op.op == Element::kGeluGrad && attrs.Bool("approximate")) return Element::kGeluTanhGrad;
  return op.op;
}

bool FindBroadcastOp(std::string_view name, Element* op) {
  for (const auto& [known, element] : kBroadcastOps)
    if (known == name) {
      *op = element;
      return true;
    }
  return false;
}

}  // namespace heddle::HEDDLE_GRID
