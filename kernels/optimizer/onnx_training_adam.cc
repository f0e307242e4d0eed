// The optimizers of ONNX's training operators: tensors, gradients and what the rule remembers come
// in one list, each kind for all tensors.
#include <cmath>

#include "kernels/base/check.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

// `kinds` lists of tensors come in: parameters, gradients, states; all but the gradients go out.
Status OptimizerShape(ShapeContext& ctx, int kinds) {
  const int count = ctx.InCount("inputs"), n = count / kinds;
  if (count == 0 || count % kinds != 0 || ctx.OutCount("outputs") != n * (kinds - 1))
    return InvalidArgument("has ", count, " inputs and ", ctx.OutCount("outputs"),
                           " outputs, expected ", kinds, " and ", kinds - 1, " for each tensor");
  if (!AllStatic(ctx, {"inputs"})) return ctx.Defer();
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < kinds; ++k) {
      if (!(ctx.InShape("inputs", k * n + i) == ctx.InShape("inputs", i)))
        return InvalidArgument("inputs[", k * n + i, "] has shape ",
                               ctx.InShape("inputs", k * n + i).ToString(), ", tensor ", i, " ",
                               ctx.InShape("inputs", i).ToString());
      if (k == 1) continue;
      ctx.SetOut("outputs", ctx.InShape("inputs", i), ctx.InDType("inputs", i),
                 (k == 0 ? 0 : k - 1) * n + i);
    }
  return Status::Ok();
}

struct Rates {
  double rate = 0;
  int64_t step = 0;
};
Result<Rates> RatesOf(const KernelContext& ctx) {
  Rates r;
  HEDDLE_ASSIGN_OR_RETURN(r.rate, NumberIn(ctx, "R", 0));
  HEDDLE_ASSIGN_OR_RETURN(r.step, IntIn(ctx, "T", 0));
  return r;
}

// update(x, g, states, new x, new states) for every element of every tensor.
template <typename T, int kStates, typename Update>
Status ForEachParameter(KernelContext& ctx, const Update& update) {
  const int n = ctx.InCount("inputs") / (kStates + 2);
  for (int i = 0; i < n; ++i) {
    std::array<const T*, kStates + 2> in;
    std::array<T*, kStates + 1> out;
    for (int k = 0; k < kStates + 2; ++k) {
      HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {&ctx.In("inputs", k * n + i)}));
      in[static_cast<size_t>(k)] = ctx.In("inputs", k * n + i).template data<T>();
    }
    for (int k = 0; k < kStates + 1; ++k)
      out[static_cast<size_t>(k)] = ctx.Out("outputs", k * n + i).template mutable_data<T>();
    for (int64_t j = 0, size = ctx.In("inputs", i).numel(); j < size; ++j) {
      std::array<double, kStates + 1> next{static_cast<double>(in[0][j])};
      for (size_t k = 1; k < next.size(); ++k) next[k] = static_cast<double>(in[k + 1][j]);
      update(static_cast<double>(in[1][j]), &next);
      for (size_t k = 0; k < next.size(); ++k) out[k][j] = static_cast<T>(next[k]);
    }
  }
  return Status::Ok();
}

template <typename T>
struct OnnxAdagrad {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const Rates r, RatesOf(ctx));
    const double rate = r.rate / (1 + static_cast<double>(r.step) * ctx.Float("decay_factor"));
    const double norm = ctx.Float("norm_coefficient"), epsilon = ctx.Float("epsilon");
    return ForEachParameter<T, 1>(ctx, [=](double grad, auto* v) {
      auto& [x, squares] = *v;
      const double g = norm * x + grad;
      squares += g * g;
      x -= rate * g / (std::sqrt(squares) + epsilon);
    });
  }
};

template <typename T>
struct OnnxAdam {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const Rates r, RatesOf(ctx));
    const double alpha = ctx.Float("alpha"), beta = ctx.Float("beta");
    const double epsilon = ctx.Float("epsilon"), norm = ctx.Float("norm_coefficient");
    const double after = ctx.Float("norm_coefficient_post");
    const auto t = static_cast<double>(r.step);
    const double rate =
        r.step > 0 ? r.rate * std::sqrt(1 - std::pow(beta, t)) / (1 - std::pow(alpha, t)) : r.rate;
    return ForEachParameter<T, 2>(ctx, [=](double grad, auto* v) {
      auto& [x, mean, square] = *v;
      const double g = norm * x + grad;
      mean = alpha * mean + (1 - alpha) * g;
      square = beta * square + (1 - beta) * g * g;
      x = (1 - after) * (x - rate * mean / (std::sqrt(square) + epsilon));
    });
  }
};

template <typename T>
struct OnnxMomentum {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const Rates r, RatesOf(ctx));
    const std::string& mode = ctx.Str("mode");
    if (mode != "standard" && mode != "nesterov")
      return InvalidArgument("mode is '", mode, "', expected standard or nesterov");
    const bool nesterov = mode == "nesterov";
    const double alpha = ctx.Float("alpha"), norm = ctx.Float("norm_coefficient");
    const double beta = r.step > 0 ? ctx.Float("beta") : 1, rate = r.rate;
    return ForEachParameter<T, 1>(ctx, [=](double grad, auto* v) {
      auto& [x, momentum] = *v;
      const double g = norm * x + grad;
      momentum = alpha * momentum + beta * g;
      x -= rate * (nesterov ? g + alpha * momentum : momentum);
    });
  }
};

template <int kKinds>
void DefineOptimizer(OpDef& op, const char* doc) {
  op.Doc(doc).Input("R").Input("T").Input("inputs", kList).Output("outputs", kList);
  op.InferShape([](ShapeContext& ctx) { return OptimizerShape(ctx, kKinds); });
  op.KernelKey("inputs").Attr("norm_coefficient", 0.0);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_training_adagrad) {
  DefineOptimizer<3>(op, "steps by the root of the squares of all gradients so far");
  op.Attr("decay_factor", 0.0).Attr("epsilon", 1e-6).Kernels<OnnxAdagrad, float, double>();
}
HEDDLE_OP(onnx_training_adam) {
  DefineOptimizer<4>(op, "steps by means of gradients and of their squares");
  op.Attr("alpha", 0.9).Attr("beta", 0.999).Attr("epsilon", 1e-6);
  op.Attr("norm_coefficient_post", 0.0).Kernels<OnnxAdam, float, double>();
}
HEDDLE_OP(onnx_training_momentum) {
  DefineOptimizer<3>(op, "steps by what is left of the steps before");
  op.Attr("alpha", 0.0).Attr("beta", 0.0).Attr("mode", "standard");
  op.Kernels<OnnxMomentum, float, double>();
}
