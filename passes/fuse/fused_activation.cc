#include "passes/fuse/fused_activation.h"

#include <cmath>
#include <limits>

#include "passes/version_view.h"

namespace heddle::passes {

namespace {

// The operator as an activation, for any values of its numbers.
std::optional<FusedActivation> Named(const ir::Op& op) {
  const std::string& t = op.type();
  auto number = [&](const char* name) { return op.Attr<double>(name); };
  // A clip keeps NaN, as this relu does.
  constexpr double kNoLimit = std::numeric_limits<double>::infinity();
  if (t == "relu" && op.Attr<bool>("keep_nan")) return FusedActivation{"clip", 0, kNoLimit};
  if (t == "relu" || t == "sigmoid" || t == "tanh") return FusedActivation{t};
  if (t == "silu") return FusedActivation{"swish", 1, 0};
  if (t == "relu6") return FusedActivation{"clip", 0, number("threshold")};
  if (t == "clip" && HasOnlyInput(op, "X") && !op.Attr<bool>("finite") &&
      number("min") <= number("max"))
    return FusedActivation{t, number("min"), number("max")};
  if (t == "leaky_relu" && (op.Attr<int64_t>("op_version") > 0 || number("alpha") <= 1))
    return FusedActivation{t, number("alpha")};
  if (t == "swish") return FusedActivation{t, number("beta")};
  if (t == "hard_sigmoid") return FusedActivation{t, number("slope"), number("offset")};
  if (t == "hard_swish" && !op.Attr<bool>("divide_first"))
    return FusedActivation{"hard_swish_divided_last"};
  if (t == "hard_swish") return FusedActivation{t, 1.0 / 6, 0.5};
  if (t == "gelu") return FusedActivation{t, op.Attr<bool>("approximate") ? 1.0 : 0.0};
  if (t == "mish" && number("threshold") >= 20) return FusedActivation{t};
  return std::nullopt;
}

// Whether a fused operator with these numbers computes the same as the operator for every x. It
// multiplies both sides of leaky_relu, so that an infinite slope would give NaN for positive
// numbers; and zeros stand for the default constants.
bool MeansTheSame(const FusedActivation& a) {
  const bool numbers =
      std::isfinite(static_cast<float>(a.alpha)) && std::isfinite(static_cast<float>(a.beta));
  if (a.name == "hard_sigmoid") return numbers && (a.alpha != 0 || a.beta != 0);
  if (a.name == "swish") return numbers && a.alpha != 0;
  return numbers || (a.name == "clip" && !std::isnan(a.alpha) && !std::isnan(a.beta));
}

}  // namespace

std::optional<FusedActivation> AsActivation(const ir::Op& op) {
  std::optional<FusedActivation> activation = Named(op);
  if (activation && !MeansTheSame(*activation)) activation.reset();
  return activation;
}

void SetActivation(const FusedActivation& activation, ir::Op* fused) {
  fused->attrs[fused->def->FindAttr("fuse_activation")] = activation.name;
  fused->attrs[fused->def->FindAttr("fuse_alpha")] = activation.alpha;
  fused->attrs[fused->def->FindAttr("fuse_beta")] = activation.beta;
}

}  // namespace heddle::passes
