// Attention as a recurrence: a matrix for each head that keys and values are written to, and
// queries read from.
#include <cmath>
#include <vector>

#include "core/interrupts.h"
#include "kernels/base/call_heap.h"
#include "kernels/base/check.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

struct LinearPlan {
  int64_t batch = 0, steps = 0, q_heads = 0, heads = 0, keys = 0, values = 0;
  bool decays = false, corrects = false;
};

template <typename Context>
Result<LinearPlan> LinearPlanOf(const Context& ctx) {
  const Shape &q = ShapeIn(ctx, "query"), &k = ShapeIn(ctx, "key"), &v = ShapeIn(ctx, "value");
  const std::string& rule = ctx.Str("update_rule");
  LinearPlan p;
  p.decays = rule == "gated" || rule == "gated_delta";
  p.corrects = rule == "delta" || rule == "gated_delta";
  if (!p.decays && !p.corrects && rule != "linear")
    return InvalidArgument("update_rule is '", rule,
                           "', expected linear, gated, delta or gated_delta");
  if (Has(ctx, "decay") != p.decays || Has(ctx, "beta") != p.corrects)
    return InvalidArgument("update_rule '", rule, "' does not go with the operands decay and beta");
  p.q_heads = ctx.Int("q_num_heads");
  p.heads = ctx.Int("kv_num_heads");
  if (p.q_heads < 1 || p.heads < 1 || p.q_heads % p.heads != 0)
    return InvalidArgument("q_num_heads is ", p.q_heads, ", expected a multiple of kv_num_heads ",
                           p.heads);
  if (q.rank() != 3 || k.rank() != 3 || v.rank() != 3 || q[2] % p.q_heads != 0 ||
      v[2] % p.heads != 0)
    return InvalidArgument("query ", q.ToString(), ", key ", k.ToString(), " and value ",
                           v.ToString(), " are not made of such heads");
  p.batch = q[0];
  p.steps = q[1];
  p.keys = q[2] / p.q_heads;
  p.values = v[2] / p.heads;
  if (!(k == Shape{p.batch, p.steps, p.heads * p.keys}) || v[0] != p.batch || v[1] != p.steps)
    return InvalidArgument("query ", q.ToString(), ", key ", k.ToString(), " and value ",
                           v.ToString(), " do not fit each other");
  const auto rows = [&](Key key, int64_t a, int64_t b) -> Status {
    const Shape& s = ShapeIn(ctx, key);
    if (s.rank() == 3 && s[0] == p.batch && s[1] == p.steps && (s[2] == a || s[2] == b))
      return Status::Ok();
    return InvalidArgument("input ", key.name, " has shape ", s.ToString(), ", expected [", p.batch,
                           ", ", p.steps, ", ", a, " or ", b, "]");
  };
  if (p.decays) HEDDLE_RETURN_IF_ERROR(rows("decay", p.heads, p.heads * p.keys));
  if (p.corrects) HEDDLE_RETURN_IF_ERROR(rows("beta", p.heads, 1));
  const Shape state{p.batch, p.heads, p.keys, p.values};
  if (Has(ctx, "past_state") && !(ShapeIn(ctx, "past_state") == state))
    return InvalidArgument("past_state has shape ", ShapeIn(ctx, "past_state").ToString(),
                           ", expected ", state.ToString());
  return p;
}

Status LinearAttentionShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"query", "key", "value", "past_state", "decay", "beta"})) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const LinearPlan p, LinearPlanOf(ctx));
  ctx.SetOut("output", {p.batch, p.steps, p.q_heads * p.values}, ctx.InDType("query"));
  if (ctx.HasOut("present_state"))
    ctx.SetOut("present_state", {p.batch, p.heads, p.keys, p.values},
               ctx.InDType(ctx.HasIn("past_state") ? Key("past_state") : Key("query")));
  return Status::Ok();
}

template <typename T>
struct LinearAttention {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const LinearPlan p, LinearPlanOf(ctx));
    const Tensor *past = ctx.InOpt("past_state"), *decay = ctx.InOpt("decay");
    const Tensor* beta = ctx.InOpt("beta");
    HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {&ctx.In("key"), &ctx.In("value"), past, decay,
                                                    beta, ctx.OutOpt("present_state")}));
    ctx.ParallelFor(p.batch * p.heads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) Head(ctx, p, i / p.heads, i % p.heads);
    });
    return Status::Ok();
  }

  static void Head(const KernelContext& ctx, const LinearPlan& p, int64_t b, int64_t h) {
    const Tensor *past = ctx.InOpt("past_state"), *decay = ctx.InOpt("decay");
    const Tensor* beta = ctx.InOpt("beta");
    const int64_t size = p.keys * p.values, group = p.q_heads / p.heads;
    CallHeap heap(ctx);
    std::pmr::vector<T> state(static_cast<size_t>(size), T(0), &heap);
    std::pmr::vector<T> fresh(static_cast<size_t>(p.values), &heap);
    if (past != nullptr)
      std::copy_n(past->data<T>() + (b * p.heads + h) * size, size, state.begin());
    const double given = ctx.Float("scale");
    const T scale = static_cast<T>(given != 0 ? given : 1 / std::sqrt(static_cast<double>(p.keys)));
    T* out = ctx.Out("output").template mutable_data<T>();
    for (const int64_t t : Watched(p.steps)) {
      const int64_t token = b * p.steps + t;
      const T* key = ctx.In("key").template data<T>() + (token * p.heads + h) * p.keys;
      const T* value = ctx.In("value").template data<T>() + (token * p.heads + h) * p.values;
      if (decay != nullptr) Decay(*decay, p, token, h, state.data());
      std::copy_n(value, p.values, fresh.begin());
      if (beta != nullptr) {
        const int64_t each = beta->dim(2);
        const T rate = beta->data<T>()[token * each + (each == 1 ? 0 : h)];
        for (int64_t m = 0; m < p.values; ++m) {
          T known = 0;
          for (int64_t d = 0; d < p.keys; ++d)
            known += state[static_cast<size_t>(d * p.values + m)] * key[d];
          fresh[static_cast<size_t>(m)] = rate * (value[m] - known);
        }
      }
      for (int64_t d = 0; d < p.keys; ++d)
        for (int64_t m = 0; m < p.values; ++m)
          state[static_cast<size_t>(d * p.values + m)] += key[d] * fresh[static_cast<size_t>(m)];
      for (int64_t g = h * group; g < (h + 1) * group; ++g) {
        const T* query = ctx.In("query").template data<T>() + (token * p.q_heads + g) * p.keys;
        T* to = out + (token * p.q_heads + g) * p.values;
        for (int64_t m = 0; m < p.values; ++m) {
          T sum = 0;
          for (int64_t d = 0; d < p.keys; ++d)
            sum += query[d] * state[static_cast<size_t>(d * p.values + m)];
          to[m] = scale * sum;
        }
      }
    }
    if (Tensor* present = ctx.OutOpt("present_state"))
      std::copy_n(state.begin(), size, present->mutable_data<T>() + (b * p.heads + h) * size);
  }

  static void Decay(const Tensor& decay, const LinearPlan& p, int64_t token, int64_t h, T* state) {
    const bool each_key = decay.dim(2) != p.heads;
    for (const int64_t d : Watched(p.keys)) {
      const T g = std::exp(
          decay.data<T>()[each_key ? (token * p.heads + h) * p.keys + d : token * p.heads + h]);
      for (int64_t m = 0; m < p.values; ++m) state[d * p.values + m] *= g;
    }
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(linear_attention) {
  op.Doc("linear attention with a state per head that decays and corrects what it holds");
  op.Input("query").Input("key").Input("value").Input("past_state", kOptional);
  op.Input("decay", kOptional).Input("beta", kOptional);
  op.Output("output").Output("present_state", kOptional);
  op.Attr("q_num_heads", 0).Attr("kv_num_heads", 0).Attr("scale", 0.0);
  op.Attr("chunk_size", 64).Attr("update_rule", "gated_delta");
  op.InferShape(LinearAttentionShape).Kernels<LinearAttention, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
