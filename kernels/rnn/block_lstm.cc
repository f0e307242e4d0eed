// Cells of recurrent networks with all their gates, and a sequence of them.
#include <cmath>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/gemm/gemm.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

float BlockSigmoid(float x) { return 1 / (1 + std::exp(-x)); }

Status CheckShape(const Tensor& t, const Shape& want, const char* slot) {
  if (t.shape() == want && t.dtype() == DType::kF32) return Status::Ok();
  return InvalidArgument(slot, " is ", Name(t.dtype()), " ", t.shape().ToString(),
                         ", expected float32 ", want.ToString());
}

// [x, h] of each row.
void Join(const float* x, int64_t inputs, const float* h, int64_t units, int64_t batch, float* to) {
  for (const int64_t b : Watched(batch)) {
    WatchedCopy(x + b * inputs, inputs, to + b * (inputs + units));
    WatchedCopy(h + b * units, units, to + b * (inputs + units) + inputs);
  }
}

// The seven results of a cell, in the order of the operator's outputs.
struct Gates {
  float *i, *cs, *f, *o, *ci, *co, *h;
};
struct LstmWeights {
  const float *w, *wci, *wcf, *wco, *b;
  float forget_bias, clip;
  bool peephole;
};
Result<LstmWeights> WeightsOf(const KernelContext& ctx, int64_t inputs, int64_t units) {
  HEDDLE_RETURN_IF_ERROR(CheckShape(ctx.In("w"), {inputs + units, 4 * units}, "w"));
  HEDDLE_RETURN_IF_ERROR(CheckShape(ctx.In("b"), {4 * units}, "b"));
  HEDDLE_RETURN_IF_ERROR(CheckShape(ctx.In("wci"), {units}, "wci"));
  HEDDLE_RETURN_IF_ERROR(CheckShape(ctx.In("wcf"), {units}, "wcf"));
  HEDDLE_RETURN_IF_ERROR(CheckShape(ctx.In("wco"), {units}, "wco"));
  return LstmWeights{ctx.In("w").data<float>(),
                     ctx.In("wci").data<float>(),
                     ctx.In("wcf").data<float>(),
                     ctx.In("wco").data<float>(),
                     ctx.In("b").data<float>(),
                     static_cast<float>(ctx.Float("forget_bias")),
                     static_cast<float>(ctx.Float("cell_clip")),
                     ctx.Bool("use_peephole")};
}

// `joined` and `sums` are work space. Gates lie as input, cell, forget, output.
void BlockStep(const KernelContext& ctx, const LstmWeights& p, const float* x, const float* cs_prev,
               const float* h_prev, int64_t batch, int64_t inputs, int64_t units, float* joined,
               float* sums, const Gates& to) {
  Join(x, inputs, h_prev, units, batch, joined);
  ParallelGemm<float>(ctx, GemmDims::Dense(batch, 4 * units, inputs + units), 1, joined, p.w, 0,
                      sums);
  for (const int64_t b : Watched(batch))
    for (int64_t u = 0; u < units; ++u) {
      const int64_t at = b * units + u;
      const auto gate = [&](int64_t k) {
        return sums[b * 4 * units + k * units + u] + p.b[k * units + u];
      };
      const float before = cs_prev[at];
      const float i = BlockSigmoid(gate(0) + (p.peephole ? p.wci[u] * before : 0));
      const float f = BlockSigmoid(gate(2) + p.forget_bias + (p.peephole ? p.wcf[u] * before : 0));
      const float ci = std::tanh(gate(1));
      float cs = ci * i + before * f;
      if (p.clip > 0) cs = std::min(std::max(cs, -p.clip), p.clip);
      const float o = BlockSigmoid(gate(3) + (p.peephole ? p.wco[u] * cs : 0)), co = std::tanh(cs);
      to.i[at] = i;
      to.cs[at] = cs;
      to.f[at] = f;
      to.o[at] = o;
      to.ci[at] = ci;
      to.co[at] = co;
      to.h[at] = o * co;
    }
}

constexpr Key kGates[] = {"i", "cs", "f", "o", "ci", "co", "h"};

// x is one step [batch, inputs] or a sequence of them.
Status LstmShape(ShapeContext& ctx) {
  const Shape &x = ctx.InShape("x"), &cs = ctx.InShape("cs_prev");
  if (!x.known_rank() || !cs.known_rank()) return ctx.Defer();
  if ((x.rank() != 2 && x.rank() != 3) || cs.rank() != 2)
    return InvalidArgument("x has shape ", x.ToString(), " and cs_prev ", cs.ToString());
  const Shape out = x.rank() == 3 ? Shape{x[0], cs[0], cs[1]} : cs;
  for (const Key gate : kGates) ctx.SetOut(gate, out, ctx.InDType("x"));
  return Status::Ok();
}

Status LstmBlock(KernelContext& ctx) {
  const Tensor &x = ctx.In("x"), &cs_prev = ctx.In("cs_prev"), &h_prev = ctx.In("h_prev");
  const int64_t batch = cs_prev.dim(0), units = cs_prev.dim(1), inputs = x.dim(-1);
  const int64_t steps = x.rank() == 3 ? x.dim(0) : 1;
  if (x.dim(-2) != batch)
    return InvalidArgument("x has shape ", x.shape().ToString(), " for a batch of ", batch);
  HEDDLE_RETURN_IF_ERROR(CheckShape(cs_prev, {batch, units}, "cs_prev"));
  HEDDLE_RETURN_IF_ERROR(CheckShape(h_prev, {batch, units}, "h_prev"));
  HEDDLE_ASSIGN_OR_RETURN(const LstmWeights p, WeightsOf(ctx, inputs, units));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t used, IntIn(ctx, "seq_len_max", steps));
  if (used < 0 || used > steps)
    return InvalidArgument("seq_len_max is ", used, ", expected 0 to ", steps);
  float* outs[7];
  for (size_t k = 0; k < 7; ++k) {
    Tensor& out = ctx.Out(kGates[k]);
    outs[k] = out.mutable_data<float>();
    if (used < steps) ZeroBytes(ctx, out.mutable_raw(), out.bytes());
  }
  Tensor joined = ctx.Scratch(DType::kF32, {batch, inputs + units});
  Tensor sums = ctx.Scratch(DType::kF32, {batch, 4 * units});
  const float *cs = cs_prev.data<float>(), *h = h_prev.data<float>();
  for (int64_t t = 0; t < used && batch * units > 0; ++t) {
    const int64_t at = t * batch * units;
    const Gates to{outs[0] + at, outs[1] + at, outs[2] + at, outs[3] + at,
                   outs[4] + at, outs[5] + at, outs[6] + at};
    BlockStep(ctx, p, x.data<float>() + t * batch * inputs, cs, h, batch, inputs, units,
              joined.mutable_data<float>(), sums.mutable_data<float>(), to);
    cs = to.cs;
    h = to.h;
  }
  return Status::Ok();
}

Status GruShape(ShapeContext& ctx) {
  for (const Key out : {Key("r"), Key("u"), Key("c"), Key("h")})
    ctx.SetOut(out, ctx.InShape("h_prev"), ctx.InDType("h_prev"));
  return Status::Ok();
}
Status GruBlock(KernelContext& ctx) {
  const Tensor &x = ctx.In("x"), &h_prev = ctx.In("h_prev");
  if (x.rank() != 2 || h_prev.rank() != 2 || x.dim(0) != h_prev.dim(0))
    return InvalidArgument("x has shape ", x.shape().ToString(), " and h_prev ",
                           h_prev.shape().ToString());
  const int64_t batch = x.dim(0), inputs = x.dim(1), units = h_prev.dim(1);
  HEDDLE_RETURN_IF_ERROR(CheckShape(ctx.In("w_ru"), {inputs + units, 2 * units}, "w_ru"));
  HEDDLE_RETURN_IF_ERROR(CheckShape(ctx.In("w_c"), {inputs + units, units}, "w_c"));
  HEDDLE_RETURN_IF_ERROR(CheckShape(ctx.In("b_ru"), {2 * units}, "b_ru"));
  HEDDLE_RETURN_IF_ERROR(CheckShape(ctx.In("b_c"), {units}, "b_c"));
  if (batch * units == 0) return Status::Ok();
  Tensor joined_t = ctx.Scratch(DType::kF32, {batch, inputs + units});
  Tensor sums_t = ctx.Scratch(DType::kF32, {batch, 2 * units});
  float *joined = joined_t.mutable_data<float>(), *sums = sums_t.mutable_data<float>();
  const float* before = h_prev.data<float>();
  float *r = ctx.Out("r").mutable_data<float>(), *u = ctx.Out("u").mutable_data<float>();
  float *c = ctx.Out("c").mutable_data<float>(), *h = ctx.Out("h").mutable_data<float>();
  Join(x.data<float>(), inputs, before, units, batch, joined);
  ParallelGemm<float>(ctx, GemmDims::Dense(batch, 2 * units, inputs + units), 1, joined,
                      ctx.In("w_ru").data<float>(), 0, sums);
  const float *b_ru = ctx.In("b_ru").data<float>(), *b_c = ctx.In("b_c").data<float>();
  for (const int64_t i : Watched(batch * units)) {
    const int64_t row = i / units, k = i % units;
    r[i] = BlockSigmoid(sums[row * 2 * units + k] + b_ru[k]);
    u[i] = BlockSigmoid(sums[row * 2 * units + units + k] + b_ru[units + k]);
    joined[row * (inputs + units) + inputs + k] = before[i] * r[i];
  }
  ParallelGemm<float>(ctx, GemmDims::Dense(batch, units, inputs + units), 1, joined,
                      ctx.In("w_c").data<float>(), 0, sums);
  for (const int64_t i : Watched(batch * units)) {
    c[i] = std::tanh(sums[i] + b_c[i % units]);
    h[i] = u[i] * before[i] + (1 - u[i]) * c[i];
  }
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(block_lstm) {
  op.Doc("a step of an LSTM, or several, with all their gates; zeros behind seq_len_max");
  op.Input("x").Input("cs_prev").Input("h_prev").Input("w").Input("wci").Input("wcf").Input("wco");
  op.Input("b").Input("seq_len_max", kOptional).KernelKey("x");
  for (const Key gate : kGates) op.Output(gate.name);
  op.Attr("forget_bias", 1.0).Attr("cell_clip", 3.0).Attr("use_peephole", false);
  op.InferShape(LstmShape).Kernel(DType::kF32, LstmBlock);
}
HEDDLE_OP(block_gru) {
  op.Doc("one step of a GRU with all its gates").Input("x").Input("h_prev").Input("w_ru");
  op.Input("w_c").Input("b_ru").Input("b_c").Output("r").Output("u").Output("c").Output("h");
  op.InferShape(GruShape).KernelKey("x").Kernel(DType::kF32, GruBlock);
}
