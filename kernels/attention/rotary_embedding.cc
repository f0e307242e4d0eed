// Rotary position embeddings, gated units and causal convolutions of language models.
#include <cmath>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/call_heap.h"
#include "kernels/base/check.h"
#include "kernels/base/index_args.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

// X as [batch, heads, length, size], or [batch, length, heads * size].
struct RotaryPlan {
  int64_t batch = 0, heads = 0, length = 0, size = 0, half = 0;
  bool packed = false;
};

template <typename Context>
Result<RotaryPlan> RotaryPlanOf(const Context& ctx) {
  const Shape& x = ShapeIn(ctx, "X");
  RotaryPlan p;
  const int64_t heads = ctx.Int("num_heads");
  if (x.rank() == 4) {
    p = {x[0], x[1], x[2], x[3], 0, false};
  } else if (x.rank() == 3 && heads > 0 && x[2] % heads == 0) {
    p = {x[0], heads, x[1], x[2] / heads, 0, true};
  } else {
    return InvalidArgument("X has shape ", x.ToString(), " and num_heads is ", heads,
                           ", expected rank 4, or rank 3 and a divisor of the last dimension");
  }
  const int64_t given = ctx.Int("rotary_embedding_dim");
  const int64_t turned = given == 0 ? p.size : given;
  if (turned < 0 || turned > p.size || turned % 2 != 0)
    return InvalidArgument("rotary_embedding_dim is ", given, ", expected an even number up to ",
                           p.size);
  p.half = turned / 2;
  const bool by_position = Has(ctx, "position_ids");
  for (const Key& key : {Key("cos_cache"), Key("sin_cache")}) {
    const Shape& s = ShapeIn(ctx, key);
    const bool good = by_position
                          ? s.rank() == 2 && s[1] == p.half
                          : s.rank() == 3 && s[0] == p.batch && s[1] == p.length && s[2] == p.half;
    if (!good)
      return InvalidArgument(key.name, " has shape ", s.ToString(), ", which does not fit ", p.half,
                             " turned pairs of X ", x.ToString());
  }
  if (ShapeIn(ctx, "cos_cache") != ShapeIn(ctx, "sin_cache"))
    return InvalidArgument("cos_cache has shape ", ShapeIn(ctx, "cos_cache").ToString(),
                           ", sin_cache ", ShapeIn(ctx, "sin_cache").ToString());
  if (by_position) {
    const Shape& s = ShapeIn(ctx, "position_ids");
    if (s.rank() != 2 || s[0] != p.batch || s[1] != p.length)
      return InvalidArgument("position_ids has shape ", s.ToString(), ", expected [", p.batch, ", ",
                             p.length, "]");
  }
  return p;
}

Status RotaryShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"X", "cos_cache", "sin_cache", "position_ids"})) return ctx.Defer();
  HEDDLE_RETURN_IF_ERROR(RotaryPlanOf(ctx).status());
  ctx.SetOut("Y", ctx.InShape("X"), ctx.InDType("X"));
  return Status::Ok();
}

template <typename T>
struct Rotary {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const RotaryPlan p, RotaryPlanOf(ctx));
    const Tensor &x = ctx.In("X"), &cos = ctx.In("cos_cache"), &sin = ctx.In("sin_cache");
    HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {&cos, &sin}));
    const Tensor* ids = ctx.InOpt("position_ids");
    if (ids != nullptr) {
      HEDDLE_RETURN_IF_ERROR(CheckIntDType(ids->dtype(), "position_ids"));
      for (const auto part : Stretches(ids->numel()))
        for (int64_t i = part.begin; i < part.end; ++i)
          if (IntAt(*ids, i) < 0 || IntAt(*ids, i) >= std::min(cos.dim(0), sin.dim(0)))
            return OutOfRange("position_ids holds ", IntAt(*ids, i), ", the caches have ",
                              cos.dim(0), " positions");
    }
    const bool interleaved = ctx.Int("interleaved") != 0;
    const T *from = x.data<T>(), *c = cos.data<T>(), *s = sin.data<T>();
    T* to = ctx.Out("Y").template mutable_data<T>();
    const int64_t step = interleaved ? 2 : 1, other = interleaved ? 1 : p.half;
    ctx.ParallelFor(p.batch * p.length, 64, [&](int64_t begin, int64_t end) {
      for (int64_t token = begin; token < end; ++token) {
        const int64_t position = (ids == nullptr ? token : IntAt(*ids, token)) * p.half;
        for (int64_t h = 0; h < p.heads; ++h) {
          const int64_t at =
              (p.packed ? token * p.heads + h
                        : (token / p.length * p.heads + h) * p.length + token % p.length) *
              p.size;
          for (int64_t k = 0; k < p.half; ++k) {
            const int64_t a = at + k * step, b = a + other;
            const T u = from[a], v = from[b];
            to[a] = c[position + k] * u - s[position + k] * v;
            to[b] = s[position + k] * u + c[position + k] * v;
          }
          std::copy(from + at + 2 * p.half, from + at + p.size, to + at + 2 * p.half);
        }
      }
    });
    return Status::Ok();
  }
};

Status SwiGluShape(ShapeContext& ctx) {
  if (ctx.InShape("A").is_static() && ctx.InShape("B").is_static() &&
      !(ctx.InShape("A") == ctx.InShape("B")))
    return InvalidArgument("A ", ctx.InShape("A").ToString(), " and B ",
                           ctx.InShape("B").ToString(), " must have one shape");
  ctx.SetOut("Y", ctx.InShape("A"), ctx.InDType("A"));
  return Status::Ok();
}

template <typename T>
struct SwiGlu {
  static Status Run(KernelContext& ctx) {
    const Tensor &a = ctx.In("A"), &b = ctx.In("B");
    HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {&b}));
    const T alpha = static_cast<T>(ctx.Float("alpha"));
    const T *x = a.data<T>(), *y = b.data<T>();
    T* to = ctx.Out("Y").template mutable_data<T>();
    ctx.ParallelFor(a.numel(), 1 << 12, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = x[i] / (T(1) + std::exp(-alpha * x[i])) * y[i];
    });
    return Status::Ok();
  }
};

Status CausalConvShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"input", "weight", "bias", "past_state"})) return ctx.Defer();
  const Shape &x = ctx.InShape("input"), &w = ctx.InShape("weight");
  if (x.rank() != 3 || w.rank() != 3 || w[0] != x[1] || w[1] != 1 || w[2] < 1)
    return InvalidArgument("weight ", w.ToString(), " does not fit input ", x.ToString(),
                           ", expected [C, 1, k] and [N, C, L]");
  const Shape state{x[0], x[1], w[2] - 1};
  if (ctx.HasIn("past_state") && !(ctx.InShape("past_state") == state))
    return InvalidArgument("past_state has shape ", ctx.InShape("past_state").ToString(),
                           ", expected ", state.ToString());
  if (ctx.HasIn("bias") && ctx.InShape("bias").numel() != x[1])
    return InvalidArgument("bias has shape ", ctx.InShape("bias").ToString(), ", expected [", x[1],
                           "]");
  ctx.SetOut("output", x, ctx.InDType("input"));
  if (ctx.HasOut("present_state"))
    ctx.SetOut("present_state", state,
               ctx.InDType(ctx.HasIn("past_state") ? Key("past_state") : Key("input")));
  return Status::Ok();
}

// Each channel's last elements of before and the new ones, and the sums over k of them.
template <typename T>
struct CausalConv {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("input"), &w = ctx.In("weight");
    const Tensor *bias = ctx.InOpt("bias"), *past = ctx.InOpt("past_state");
    Tensor* present = ctx.OutOpt("present_state");
    HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {&w, bias, past, present}));
    const std::string& activation = ctx.Str("activation");
    const bool silu = activation == "silu" || activation == "swish";
    if (!silu && activation != "none")
      return InvalidArgument("activation is '", activation, "', expected none, silu or swish");
    const int64_t channels = x.dim(1), length = x.dim(2), k = w.dim(2), before = k - 1;
    T* to = ctx.Out("output").template mutable_data<T>();
    ctx.ParallelFor(
        x.dim(0) * channels, 1 + 16384 / (1 + length * k), [&](int64_t begin, int64_t end) {
          CallHeap heap(ctx);
          std::pmr::vector<T> line(static_cast<size_t>(before + length), &heap);
          for (int64_t i = begin; i < end; ++i) {
            if (past == nullptr)
              WatchedFill(line.begin(), before, T(0));
            else
              WatchedCopy(past->data<T>() + i * before, before, line.begin());
            WatchedCopy(x.data<T>() + i * length, length, line.begin() + before);
            const T* taps = w.data<T>() + i % channels * k;
            for (int64_t t = 0; t < length; ++t) {
              T sum = bias == nullptr ? T(0) : bias->data<T>()[i % channels];
              for (int64_t j = 0; j < k; ++j) sum += taps[j] * line[static_cast<size_t>(t + j)];
              to[i * length + t] = silu ? sum / (T(1) + std::exp(-sum)) : sum;
            }
            if (present != nullptr)
              WatchedCopy(line.end() - before, before, present->mutable_data<T>() + i * before);
          }
        });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(rotary_embedding) {
  op.Doc("pairs of each head turned by the angle of their position");
  op.Input("X").Input("cos_cache").Input("sin_cache").Input("position_ids", kOptional).Output("Y");
  op.Attr("interleaved", 0).Attr("num_heads", 0).Attr("rotary_embedding_dim", 0);
  op.InferShape(RotaryShape).Kernels<Rotary, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(swiglu) {
  op.Doc("A times the sigmoid of alpha A, times B").Input("A").Input("B").Output("Y");
  op.Attr("alpha", 1.0).InferShape(SwiGluShape).Kernels<SwiGlu, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(causal_conv) {
  op.Doc("convolution of each channel with what came before, and what the next call needs");
  op.Input("input").Input("weight").Input("bias", kOptional).Input("past_state", kOptional);
  op.Output("output").Output("present_state", kOptional).Attr("activation", "none");
  op.InferShape(CausalConvShape).Kernels<CausalConv, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
