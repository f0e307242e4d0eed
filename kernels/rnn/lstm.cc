// lstm, fusion_lstm and fused_embedding_fc_lstm: long short-term memory over sequences; gates in
// the order candidate, input, forget, output.
#include "core/interrupts.h"
#include "kernels/sequence/sequence_batch.h"

namespace heddle {
namespace {

template <typename T>
struct Cell {
  int64_t size;
  GateActivation gate, cell, candidate;
  const T* weight;    // [size, 4 size]
  const T* peephole;  // [3 size] for input, forget and output gate, or null

  // Runs one step of one sequence. `g` [4 size] holds the projected input; `h` and `c` are updated.
  void Step(T* g, T* h, T* c, bool first) const {
    const int64_t d = size;
    if (!first)
      AddProduct(MatrixMap<T>(g, 1, 4 * d), ConstMatrixMap<T>(h, 1, d),
                 ConstMatrixMap<T>(weight, d, 4 * d));
    for (int64_t k = 0; k < d; ++k) {
      const T before = c[k];
      const T in = g[d + k] + (peephole ? peephole[k] * before : T(0));
      const T forget = g[2 * d + k] + (peephole ? peephole[d + k] * before : T(0));
      g[k] = Activate(candidate, g[k]);
      g[d + k] = Activate(gate, in);
      g[2 * d + k] = Activate(gate, forget);
      c[k] = g[2 * d + k] * before + g[d + k] * g[k];
      g[3 * d + k] = Activate(gate, g[3 * d + k] + (peephole ? peephole[2 * d + k] * c[k] : T(0)));
      h[k] = g[3 * d + k] * Activate(cell, c[k]);
    }
  }
};

Status CheckLstmOperands(const ShapeContext& ctx, int64_t d) {
  const Shape& bias = ctx.InShape("Bias");
  const int64_t want = (ctx.Bool("use_peepholes") ? 7 : 4) * d;
  if (bias.is_static() && bias.numel() < want)
    return InvalidArgument("Bias ", bias.ToString(), " must have ", want, " elements");
  if (ctx.HasIn("H0") != ctx.HasIn("C0"))
    return InvalidArgument("H0 and C0 must be given together");
  for (Key key : {Key("H0"), Key("C0")})
    if (ctx.HasIn(key) && ctx.InShape(key).known_rank() && ctx.InShape(key).dim(-1) != d)
      return InvalidArgument(key.name, " must have ", d, " columns");
  return Status::Ok();
}

Status InferLstm(ShapeContext& ctx) {
  const Shape &x = ctx.InShape("Input"), &w = ctx.InShape("Weight");
  if (!x.known_rank() || !w.is_static()) return ctx.Defer();
  if (x.rank() != 2 || w.rank() != 2 || w[1] != 4 * w[0] || x[1] != w[1])
    return InvalidArgument("Input ", x.ToString(), " and Weight ", w.ToString(),
                           " must be [T, 4 D] and [D, 4 D]");
  HEDDLE_RETURN_IF_ERROR(CheckLstmOperands(ctx, w[0]));
  const DType dtype = ctx.InDType("Input");
  ctx.SetOut("Hidden", Shape{x[0], w[0]}, dtype);
  ctx.SetOut("Cell", Shape{x[0], w[0]}, dtype);
  ctx.SetOut("BatchGate", x, dtype);
  ctx.SetOut("BatchCellPreAct", Shape{x[0], w[0]}, dtype);
  ctx.ShareLoD("Input", "Hidden");
  ctx.ShareLoD("Input", "Cell");
  return Status::Ok();
}

Status InferFusion(ShapeContext& ctx) {
  const Shape &x = ctx.InShape("X"), &wx = ctx.InShape("WeightX"), &wh = ctx.InShape("WeightH");
  if (!x.known_rank() || !wx.is_static() || !wh.is_static()) return ctx.Defer();
  if (x.rank() != 2 || wx.rank() != 2 || wh.rank() != 2 || wx[0] != x[1] || wx[1] != 4 * wh[0] ||
      wh[1] != wx[1])
    return InvalidArgument("X ", x.ToString(), ", WeightX ", wx.ToString(), " and WeightH ",
                           wh.ToString(), " do not fit each other");
  HEDDLE_RETURN_IF_ERROR(CheckLstmOperands(ctx, wh[0]));
  const DType dtype = ctx.InDType("X");
  ctx.SetOut("Hidden", Shape{x[0], wh[0]}, dtype);
  ctx.SetOut("Cell", Shape{x[0], wh[0]}, dtype);
  for (Key unused : {Key("XX"), Key("BatchedInput"), Key("BatchedHidden"), Key("BatchedCell"),
                     Key("ReorderedH0"), Key("ReorderedC0"), Key("CheckedCell")})
    if (ctx.HasOut(unused)) ctx.SetOut(unused, Shape{0}, dtype);
  ctx.ShareLoD("X", "Hidden");
  ctx.ShareLoD("X", "Cell");
  return Status::Ok();
}

Status InferEmbedding(ShapeContext& ctx) {
  const Shape &ids = ctx.InShape("Ids"), &table = ctx.InShape("Embeddings");
  const Shape& wh = ctx.InShape("WeightH");
  if (!ids.known_rank() || !table.is_static() || !wh.is_static()) return ctx.Defer();
  if (ids.rank() != 2 || (ids[1] >= 0 && ids[1] != 1) || table.rank() != 2 || wh.rank() != 2 ||
      table[1] != 4 * wh[0] || wh[1] != table[1])
    return InvalidArgument("Ids ", ids.ToString(), ", Embeddings ", table.ToString(),
                           " and WeightH ", wh.ToString(), " do not fit each other");
  HEDDLE_RETURN_IF_ERROR(CheckLstmOperands(ctx, wh[0]));
  ctx.SetOut("Hidden", Shape{ids[0], wh[0]}, ctx.InDType("Embeddings"));
  ctx.SetOut("Cell", Shape{ids[0], wh[0]}, ctx.InDType("Embeddings"));
  ctx.ShareLoD("Ids", "Hidden");
  ctx.ShareLoD("Ids", "Cell");
  return Status::Ok();
}

template <typename T>
Result<Cell<T>> CellOf(KernelContext& ctx, const Tensor& weight) {
  Cell<T> c;
  c.size = weight.dim(0);
  HEDDLE_ASSIGN_OR_RETURN(c.gate, GateActivationOf(ctx.Str("gate_activation")));
  HEDDLE_ASSIGN_OR_RETURN(c.cell, GateActivationOf(ctx.Str("cell_activation")));
  HEDDLE_ASSIGN_OR_RETURN(c.candidate, GateActivationOf(ctx.Str("candidate_activation")));
  c.weight = weight.data<T>();
  c.peephole = ctx.Bool("use_peepholes") ? ctx.In("Bias").template data<T>() + 4 * c.size : nullptr;
  return c;
}

// Runs all sequences. `gates` holds the projected inputs with biases, in sequence order.
template <typename T>
Status RunSequences(KernelContext& ctx, const Cell<T>& cell, const Offsets& offsets, T* gates) {
  const int64_t d = cell.size, count = SequenceCount(offsets);
  const Tensor *h0 = ctx.InOpt("H0"), *c0 = ctx.InOpt("C0");
  if ((h0 && h0->numel() != count * d) || (c0 && c0->numel() != count * d))
    return InvalidArgument("H0 and C0 must be [", count, ", ", d, "]");
  T* hidden = ctx.Out("Hidden").template mutable_data<T>();
  T* cells = ctx.Out("Cell").template mutable_data<T>();
  const bool reverse = ctx.Bool("is_reverse");
  std::vector<T> h(static_cast<size_t>(d)), c(h.size());
  for (int64_t s = 0; s < count; ++s) {
    std::fill(h.begin(), h.end(), T(0));
    std::fill(c.begin(), c.end(), T(0));
    if (h0) std::copy_n(h0->data<T>() + s * d, d, h.data());
    if (c0) std::copy_n(c0->data<T>() + s * d, d, c.data());
    const int64_t length = Length(offsets, s);
    for (int64_t t = 0; t < length; ++t) {
      const int64_t row = Begin(offsets, s) + (reverse ? length - 1 - t : t);
      cell.Step(gates + row * 4 * d, h.data(), c.data(), t == 0 && !h0);
      std::copy_n(h.data(), d, hidden + row * d);
      std::copy_n(c.data(), d, cells + row * d);
    }
  }
  return Status::Ok();
}

// Copies rows into the order in which the batched steps read them.
template <typename T>
void Reorder(const SequenceBatch& batch, const T* from, int64_t width, T* to) {
  for (size_t i = 0; i < batch.row.size(); ++i)
    std::copy_n(from + batch.row[i] * width, width, to + static_cast<int64_t>(i) * width);
}

template <typename T>
struct Lstm {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("Input");
    HEDDLE_ASSIGN_OR_RETURN(const Offsets* const offsets, OffsetsOf(x, "Input"));
    HEDDLE_ASSIGN_OR_RETURN(const Cell<T> cell, CellOf<T>(ctx, ctx.In("Weight")));
    const int64_t d = cell.size;
    Matrix<T> gates = MatrixAt<T>(x, 0);
    gates.rowwise() += ConstMatrixMap<T>(ctx.In("Bias").template data<T>(), 1, 4 * d).row(0);
    HEDDLE_RETURN_IF_ERROR(RunSequences(ctx, cell, *offsets, gates.data()));
    const SequenceBatch batch(*offsets, ctx.Bool("is_reverse"));
    if (Tensor* out = ctx.OutOpt("BatchGate"))
      Reorder(batch, gates.data(), 4 * d, out->template mutable_data<T>());
    if (Tensor* out = ctx.OutOpt("BatchCellPreAct")) {
      T* to = out->template mutable_data<T>();
      Reorder(batch, ctx.Out("Cell").template data<T>(), d, to);
      for (const auto part : Stretches(out->numel()))
        for (int64_t i = part.begin; i < part.end; ++i) to[i] = Activate(cell.cell, to[i]);
    }
    return Status::Ok();
  }
};

template <typename T>
struct FusionLstm {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const Offsets* const offsets, OffsetsOf(x, "X"));
    HEDDLE_ASSIGN_OR_RETURN(const Cell<T> cell, CellOf<T>(ctx, ctx.In("WeightH")));
    Matrix<T> gates = Product<T>(MatrixAt<T>(x, 0), MatrixAt<T>(ctx.In("WeightX"), 0));
    gates.rowwise() +=
        ConstMatrixMap<T>(ctx.In("Bias").template data<T>(), 1, 4 * cell.size).row(0);
    return RunSequences(ctx, cell, *offsets, gates.data());
  }
};

// The rows of the table are projected inputs with biases; Bias is read for its peepholes only.
template <typename T>
struct EmbeddingLstm {
  static Status Run(KernelContext& ctx) {
    const Tensor &ids = ctx.In("Ids"), &table = ctx.In("Embeddings");
    HEDDLE_ASSIGN_OR_RETURN(const Offsets* const offsets, OffsetsOf(ids, "Ids"));
    HEDDLE_ASSIGN_OR_RETURN(const Cell<T> cell, CellOf<T>(ctx, ctx.In("WeightH")));
    const int64_t width = 4 * cell.size;
    std::vector<T> gates;
    for (int64_t id : ToInts(ids)) {
      LookForInterrupt();
      if (id < 0 || id >= table.dim(0))
        return OutOfRange("id ", id, " is not in [0, ", table.dim(0), ")");
      const T* row = table.data<T>() + id * width;
      gates.insert(gates.end(), row, row + width);
    }
    return RunSequences(ctx, cell, *offsets, gates.data());
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(lstm) {
  op.Doc("long short-term memory over sequences of projected inputs")
      .Input("Input")
      .Input("H0", kOptional)
      .Input("C0", kOptional)
      .Input("Weight")
      .Input("Bias")
      .Output("Hidden")
      .Output("Cell")
      .Output("BatchGate", kOptional)
      .Output("BatchCellPreAct", kOptional)
      .Attr("use_peepholes", true)
      .Attr("is_reverse", false)
      .Attr("is_test", false)
      .Attr("gate_activation", "sigmoid")
      .Attr("cell_activation", "tanh")
      .Attr("candidate_activation", "tanh")
      .InferShape(InferLstm)
      .Kernels<Lstm, float, double>();
}

HEDDLE_OP(fusion_lstm) {
  op.Doc("lstm with the projection of its inputs")
      .Input("X")
      .Input("WeightX")
      .Input("WeightH")
      .Input("Bias")
      .Input("H0", kOptional)
      .Input("C0", kOptional)
      .Output("Hidden")
      .Output("Cell")
      .Output("XX", kOptional)
      .Output("BatchedInput", kOptional)
      .Output("BatchedHidden", kOptional)
      .Output("BatchedCell", kOptional)
      .Output("ReorderedH0", kOptional)
      .Output("ReorderedC0", kOptional)
      .Output("CheckedCell", kOptional)
      .Attr("use_peepholes", true)
      .Attr("is_reverse", false)
      .Attr("use_seq", true)
      .Attr("gate_activation", "sigmoid")
      .Attr("cell_activation", "tanh")
      .Attr("candidate_activation", "tanh")
      .Attr("Scale_data", 1.0)
      .Attr("Shift_data", 0.0)
      .Attr("Scale_weights", Floats{1.0})
      .Attr("force_fp32_output", false)
      .InferShape(InferFusion)
      .Kernels<FusionLstm, float, double>();
}

HEDDLE_OP(fused_embedding_fc_lstm) {
  op.Doc("lstm over rows of a table of projected inputs").Input("Ids").Input("Embeddings");
  op.Input("WeightH").Input("Bias").Input("H0", kOptional).Input("C0", kOptional);
  op.Output("Hidden").Output("Cell").Attr("use_peepholes", true).Attr("is_reverse", false);
  op.Attr("use_seq", true).Attr("gate_activation", "sigmoid").Attr("cell_activation", "tanh");
  op.Attr("candidate_activation", "tanh").KernelKey("Embeddings").InferShape(InferEmbedding);
  op.Kernels<EmbeddingLstm, float, double>();
}
