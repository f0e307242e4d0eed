// Cells of recurrent networks with all their gates, and a sequence of them.
#include <cmath>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/gemm/gemm.h"
#include "kernels/onnx/operands.h"

namespace heddle {
namespace {

float Sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

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
void Step(const KernelContext& ctx, const LstmWeights& p, const float* x, const float* cs_prev,
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
      const float i = Sigmoid(gate(0) + (p.peephole ? p.wci[u] * before : 0));
      const float f = Sigmoid(gate(2) + p.forget_bias + (p.peephole ? p.wcf[u] * before : 0));
      const float ci = std::tanh(gate(1));
      float cs = ci * i + before * f;
      if (p.clip > 0) cs = std::min(std::max(cs, -p.clip), p.clip);
      const float o = Sigmoid(gate(3) + (p.peephole ? p.wco[u] * cs : 0)), co = std::tanh(cs);
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

template <bool kSequence>
Status LstmShape(ShapeContext& ctx) {
  const Shape &x = ctx.InShape("x"), &cs = ctx.InShape("cs_prev");
  if (!x.known_rank() || !cs.known_rank()) return ctx.Defer();
  if (x.rank() != (kSequence ? 3 : 2) || cs.rank() != 2)
    return InvalidArgument("x has shape ", x.ToString(), " and cs_prev ", cs.ToString());
  const Shape out = kSequence ? Shape{x[0], cs[0], cs[1]} : cs;
  for (const Key gate : kGates) ctx.SetOut(gate, out, ctx.InDType("x"));
  return Status::Ok();
}

template <bool kSequence>
Status Lstm(KernelContext& ctx) {
  const Tensor &x = ctx.In("x"), &cs_prev = ctx.In("cs_prev"), &h_prev = ctx.In("h_prev");
  const int64_t batch = cs_prev.dim(0), units = cs_prev.dim(1), inputs = x.dim(-1);
  const int64_t steps = kSequence ? x.dim(0) : 1;
  if (x.dim(-2) != batch)
    return InvalidArgument("x has shape ", x.shape().ToString(), " for a batch of ", batch);
  HEDDLE_RETURN_IF_ERROR(CheckShape(cs_prev, {batch, units}, "cs_prev"));
  HEDDLE_RETURN_IF_ERROR(CheckShape(h_prev, {batch, units}, "h_prev"));
  HEDDLE_ASSIGN_OR_RETURN(const LstmWeights p, WeightsOf(ctx, inputs, units));
  int64_t used = steps;
  if constexpr (kSequence) {
    HEDDLE_ASSIGN_OR_RETURN(used, IntIn(ctx, "seq_len_max", steps));
    if (used < 0 || used > steps)
      return InvalidArgument("seq_len_max is ", used, ", expected 0 to ", steps);
  }
  float* outs[7];
  for (size_t k = 0; k < 7; ++k) {
    Tensor& out = ctx.Out(kGates[k]);
    outs[k] = out.mutable_data<float>();
    if (kSequence) ZeroBytes(ctx, out.mutable_raw(), out.bytes());
  }
  Tensor joined = ctx.Scratch(DType::kF32, {batch, inputs + units});
  Tensor sums = ctx.Scratch(DType::kF32, {batch, 4 * units});
  const float *cs = cs_prev.data<float>(), *h = h_prev.data<float>();
  for (int64_t t = 0; t < used && batch * units > 0; ++t) {
    const int64_t at = t * batch * units;
    const Gates to{outs[0] + at, outs[1] + at, outs[2] + at, outs[3] + at,
                   outs[4] + at, outs[5] + at, outs[6] + at};
    Step(ctx, p, x.data<float>() + t * batch * inputs, cs, h, batch, inputs, units,
         joined.mutable_data<float>(), sums.mutable_data<float>(), to);
    cs = to.cs;
    h = to.h;
  }
  return Status::Ok();
}

void DefineLstm(OpDef& op, double clip) {
  op.Input("x").Input("cs_prev").Input("h_prev").Input("w").Input("wci").Input("wcf").Input("wco");
  op.Input("b").KernelKey("x");
  for (const Key gate : kGates) op.Output(gate.name);
  op.Attr("forget_bias", 1.0).Attr("cell_clip", clip).Attr("use_peephole", false);
}

Status GruShape(ShapeContext& ctx) {
  for (const Key out : {Key("r"), Key("u"), Key("c"), Key("h")})
    ctx.SetOut(out, ctx.InShape("h_prev"), ctx.InDType("h_prev"));
  return Status::Ok();
}
Status Gru(KernelContext& ctx) {
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
    r[i] = Sigmoid(sums[row * 2 * units + k] + b_ru[k]);
    u[i] = Sigmoid(sums[row * 2 * units + units + k] + b_ru[units + k]);
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

HEDDLE_OP(tf_lstm_block_cell) {
  op.Doc("one step of an LSTM with all its gates");
  DefineLstm(op, 3.0);
  op.InferShape(LstmShape<false>).Kernel(DType::kF32, Lstm<false>);
}
HEDDLE_OP(tf_block_lstm) {
  op.Doc("the steps of an LSTM with all their gates; zeros behind seq_len_max");
  op.Input("seq_len_max");
  DefineLstm(op, 3.0);
  op.InferShape(LstmShape<true>).Kernel(DType::kF32, Lstm<true>);
}
HEDDLE_OP(tf_gru_block_cell) {
  op.Doc("one step of a GRU with all its gates").Input("x").Input("h_prev").Input("w_ru");
  op.Input("w_c").Input("b_ru").Input("b_c").Output("r").Output("u").Output("c").Output("h");
  op.InferShape(GruShape).KernelKey("x").Kernel(DType::kF32, Gru);
}

HEDDLE_EXAMPLES(tf_lstm_block_cell, R"(
example peepholes
attr use_peephole BOOLEAN true
in x float32 [2, 1] -0.07 -0.25
in cs_prev float32 [2, 2] -0.72 0.73 -0.99 0.01
in h_prev float32 [2, 2] 0.80 -0.84 0.11 0.23
in w float32 [3, 8] -0.92 -0.24 0.41 -0.10 0.45 -0.69 -0.52 -0.78 0.01 0.85 0.18 0.55 -0.23 0.49
  -0.80 -0.42 0.35 0.45 -0.16 -0.82 -0.47 -0.58 -0.44 0.62
in wci float32 [2] -0.60 0.77
in wcf float32 [2] 0.76 -0.89
in wco float32 [2] -0.24 -0.02
in b float32 [8] -0.95 -0.15 0.81 -0.78 0.19 -0.76 0.16 0.79
out i float32 [2, 2] 0.32309163 0.67500275 0.48890185 0.5286436
out cs float32 [2, 2] -0.24636671 0.68796194 -0.24978954 -0.36846003
out f float32 [2, 2] 0.69468194 0.62663317 0.54777884 0.5803231
out o float32 [2, 2] 0.49628204 0.49351057 0.540101 0.7481499
out ci float32 [2, 2] 0.785549 0.34150925 0.59830314 -0.70796895
out co float32 [2, 2] -0.24150027 0.5966711 -0.24472083 -0.35264397
out h float32 [2, 2] -0.119852245 0.2944635 -0.13217397 -0.26383054

example a clipped cell
attr cell_clip FLOAT 0.5
attr forget_bias FLOAT 0
in x float32 [1, 2] 2 -1
in cs_prev float32 [1, 1] 3
in h_prev float32 [1, 1] 0.5
in w float32 [3, 4] -0.59 -0.98 -0.83 0.08 -0.97 -0.83 -0.01 0.84 -0.16 -0.20 0.28 -0.81
in wci float32 [1] 0
in wcf float32 [1] 0
in wco float32 [1] 0
in b float32 [4] 0.16 -0.65 0.22 0.92
out i float32 [1, 1] 0.46754572
out cs float32 [1, 1] 0.20128977
out f float32 [1, 1] 0.21585281
out o float32 [1, 1] 0.45884338
out ci float32 [1, 1] -0.9544921
out co float32 [1, 1] 0.19861454
out h float32 [1, 1] 0.09113297
)")

HEDDLE_EXAMPLES(tf_block_lstm, R"(
example three steps
in seq_len_max int64 [] 3
in x float32 [3, 1, 2] -0.89 0.11 0.21 -0.70 -0.46 0.99
in cs_prev float32 [1, 2] 1.00 -0.76
in h_prev float32 [1, 2] 0.41 0.90
in w float32 [4, 8] -0.53 0.22 -0.91 -0.27 0.35 0.18 0.55 -0.83 -0.31 0.73 0.17 -0.10 -0.20 0.97
  0.15 -0.96 0.60 -0.34 -0.13 -0.57 -0.11 -0.35 -0.82 0.26 -0.79 0.57 -0.95 0.56 0.62 -0.01 0.42
  -0.50
in wci float32 [2] 0 0
in wcf float32 [2] 0 0
in wco float32 [2] 0 0
in b float32 [8] 0.48 -0.15 -0.54 0.93 -0.20 -0.25 0.72 -0.26
out i float32 [3, 1, 2] 0.61125726 0.5269987 0.67207205 0.33398607 0.5617274 0.6415913
out cs float32 [3, 1, 2] 0.39023584 -0.011020303 -0.18793407 0.21969268 -0.14950949 0.6965233
out f float32 [3, 1, 2] 0.72698915 0.6327424 0.72842896 0.508626 0.6296803 0.8412485
out o float32 [3, 1, 2] 0.57170236 0.5074245 0.63505477 0.5733974 0.6822871 0.28470087
out ci float32 [3, 1, 2] -0.5509191 0.8915846 -0.702593 0.6745727 -0.055491544 0.7975594
out co float32 [3, 1, 2] 0.37156355 -0.011019858 -0.18575233 0.21622513 -0.14840537 0.60215634
out h float32 [3, 1, 2] 0.21242376 -0.0055917455 -0.117962904 0.12398293 -0.101255074 0.17143443
)")

HEDDLE_EXAMPLES(tf_gru_block_cell, R"(
example two rows
in x float32 [2, 1] 0.34 -0.66
in h_prev float32 [2, 2] 0.69 -0.48 -0.90 0.95
in w_ru float32 [3, 4] -0.65 0.89 0.97 0.21 -0.98 -0.88 -0.58 -0.22 0.22 0.93 -0.29 -0.72
in w_c float32 [3, 2] 0.12 -0.73 -0.83 0.11 0.39 -0.87
in b_ru float32 [4] -0.10 0.41 0.53 -0.23
in b_c float32 [2] 0.77 -0.66
out r float32 [2, 2] 0.24921562 0.4155666 0.8053384 0.8172909
out u float32 [2, 2] 0.64538175 0.50879914 0.5340223 0.29846877
out c float32 [2, 2] 0.530097 -0.6142661 0.9209419 -0.73218423
out h float32 [2, 2] 0.6332955 -0.5459516 -0.051481664 -0.2301048
)")
