// nbit_matmul: a product with a matrix of integers of 2, 4 or 8 bits, which is multiplied as it is
// stored. An operator of heddle, for MatMulNBits of com.microsoft and for what a pass makes.
#include "core/memory/lazy_buffer.h"
#include "core/operands/any_address.h"
#include "core/shape_context.h"
#include "kernels/base/convert.h"
#include "kernels/base/visit_one_of.h"
#include "kernels/gemm/nbit_columns.h"

namespace heddle {
namespace {

Result<NbitForm> FormOf(const OpContext& ctx) {
  const std::string& form = ctx.Str("form");
  if (form == "fields") return NbitForm::kFields;
  if (form == "columns") return NbitForm::kColumns;
  if (form == "rows") return NbitForm::kRows;
  return InvalidArgument("form is '", form, "', expected fields, columns or rows");
}

template <typename Context>
Result<NbitMatrix> MatrixOf(const Context& ctx) {
  NbitMatrix m;
  m.k = ctx.Int("terms");
  m.n = ctx.Int("columns");
  m.bits = static_cast<int>(ctx.Int("bits"));
  m.block = ctx.Int("block_size") == 0 ? m.k : ctx.Int("block_size");
  HEDDLE_ASSIGN_OR_RETURN(m.form, FormOf(ctx));
  if (m.k < 1 || m.n < 1)
    return InvalidArgument("terms is ", m.k, " and columns ", m.n, ", expected at least 1");
  return m;
}

// The same with what depends on operands, checked.
Result<NbitMatrix> MatrixOf(const OpContext& ctx, DType w, DType scale, const DType* zero) {
  HEDDLE_ASSIGN_OR_RETURN(NbitMatrix m, MatrixOf(ctx));
  const bool fields = m.form == NbitForm::kFields;
  if (w != DType::kU8 && (fields || w != DType::kI8))
    return InvalidArgument("W is ", Name(w), ", expected uint8", fields ? "" : " or int8");
  if (!IsFloat(scale) || scale == DType::kF64)
    return InvalidArgument("Scale is ", Name(scale), ", expected float32, float16 or bfloat16");
  m.is_signed = w == DType::kI8;
  m.has_zero = zero != nullptr;
  if (zero == nullptr) return m;
  m.zero_type = IsFloat(*zero) ? DType::kF32 : *zero;
  if (m.zero_type != w && !(IsFloat(*zero) && *zero != DType::kF64))
    return InvalidArgument("Zero is ", Name(*zero), ", expected ", Name(w), " or float32");
  return m;
}

Status NbitMatmulShape(ShapeContext& ctx) {
  const bool has_zero = ctx.HasIn("Zero");
  const DType zero = has_zero ? ctx.InDType("Zero") : DType::kU8;
  HEDDLE_ASSIGN_OR_RETURN(const NbitMatrix m, MatrixOf(ctx, ctx.InDType("W"), ctx.InDType("Scale"),
                                                       has_zero ? &zero : nullptr));
  if (ctx.InShape("W").is_static() && ctx.InShape("Scale").is_static() &&
      (!has_zero || ctx.InShape("Zero").is_static()))
    HEDDLE_RETURN_IF_ERROR(
        m.Check(ctx.InShape("W"), ctx.InShape("Scale"), has_zero ? &ctx.InShape("Zero") : nullptr));
  if (ctx.HasIn("Bias") && ctx.InShape("Bias").is_static() && ctx.InShape("Bias").numel() != m.n)
    return InvalidArgument("Bias has shape ", ctx.InShape("Bias").ToString(), ", expected ", m.n,
                           " elements");
  Shape out = ctx.InShape("X");
  if (!out.known_rank()) return ctx.Defer();
  if (out.rank() < 1 || (out[out.rank() - 1] >= 0 && out[out.rank() - 1] != m.k))
    return InvalidArgument("X has shape ", out.ToString(), ", expected ", m.k,
                           " elements along the last dimension");
  out[out.rank() - 1] = m.n;
  ctx.SetOut("Out", out, ctx.InDType("X"));
  return Status::Ok();
}

// A constant of floats in memory, as float32.
Tensor FloatsOf(const Tensor& t) {
  Tensor wide = Tensor::Empty(DType::kF32, t.shape());
  VisitOneOf<float, float16, bfloat16>("a constant", t.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < t.numel(); ++i)
      wide.mutable_data<float>()[i] = static_cast<float>(t.data<T>()[i]);
  });
  return wide;
}

struct NbitState final : KernelState {
  std::unique_ptr<GemmRunner> runner;  // null: an operand is no constant
};

Result<std::unique_ptr<KernelState>> PrepareNbitMatmul(PrepareContext& ctx) {
  auto state = std::make_unique<NbitState>();
  const bool has_zero = ctx.HasIn("Zero");
  const Tensor *const w = ctx.ConstIn("W"), *const scale = ctx.ConstIn("Scale");
  const Tensor* const zero = has_zero ? ctx.ConstIn("Zero") : nullptr;
  const Shape& x = ctx.InShape("X");
  if (w == nullptr || scale == nullptr || (has_zero && zero == nullptr) || x.numel() == 0)
    return std::unique_ptr<KernelState>(std::move(state));
  const DType zero_type = has_zero ? zero->dtype() : DType::kU8;
  HEDDLE_ASSIGN_OR_RETURN(const NbitMatrix m, MatrixOf(ctx, w->dtype(), scale->dtype(),
                                                       has_zero ? &zero_type : nullptr));
  const Tensor factors = FloatsOf(BorrowedContents(*scale).tensor());
  Tensor zeros;
  if (has_zero) {
    const BorrowedContents contents(*zero);
    zeros = IsFloat(zero_type) ? FloatsOf(contents.tensor()) : contents.tensor().Clone();
  }
  HEDDLE_ASSIGN_OR_RETURN(
      state->runner, MakeNbitGemm(ctx, x.numel() / m.k, m, *w, factors, has_zero ? &zeros : nullptr,
                                  ctx.HasIn("Bias")));
  state->facts().implementation = state->runner->name();
  ctx.MarkPacked("W", state.get());
  ctx.MarkPacked("Scale", state.get());
  if (has_zero) ctx.MarkPacked("Zero", state.get());
  return std::unique_ptr<KernelState>(std::move(state));
}

Status NbitMatmul(KernelContext& ctx) {
  const auto& state = ctx.State<NbitState>();
  const Tensor& x = ctx.In("X");
  const Tensor* const bias = ctx.InOpt("Bias");
  float* const to = ctx.Out("Out").mutable_data<float>();
  const float* const addend = bias != nullptr ? bias->data<float>() : nullptr;
  if (state.runner != nullptr) {
    state.runner->Run(ctx, x.data<float>(), nullptr, addend, nullptr, to);
    return Status::Ok();
  }
  if (x.numel() == 0) return Status::Ok();
  const Tensor &w = ctx.In("W"), &scale = ctx.In("Scale");
  const Tensor* const zero = ctx.InOpt("Zero");
  const DType zero_type = zero != nullptr ? zero->dtype() : DType::kU8;
  HEDDLE_ASSIGN_OR_RETURN(const NbitMatrix m, MatrixOf(ctx, w.dtype(), scale.dtype(),
                                                       zero != nullptr ? &zero_type : nullptr));
  if (scale.dtype() != DType::kF32 || (bias != nullptr && bias->dtype() != DType::kF32) ||
      (IsFloat(zero_type) && zero_type != DType::kF32))
    return InvalidArgument("Scale, a Zero of floats and Bias are to have the type of X, float32");
  return RunNbitGemm(ctx, x.numel() / m.k, m, w, scale, zero, x.data<float>(), addend, to);
}

double NbitMatmulCost(const ShapeContext& ctx) {
  if (!ctx.InShape("X").is_static()) return 0;
  const auto columns = static_cast<double>(ctx.Int("columns"));
  // Less than this many rows take as long as reading the matrix does.
  constexpr double kRowsToRead = 2, kWorkPerNs = 40;
  const double rows =
      static_cast<double>(ctx.InShape("X").numel()) / static_cast<double>(ctx.Int("terms"));
  return 80 + (rows + kRowsToRead) * static_cast<double>(ctx.Int("terms")) * columns / kWorkPerNs;
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(nbit_matmul) {
  op.Doc(
      "X [.., terms] times a matrix [terms, columns] whose elements are (W - Zero) * Scale, plus "
      "Bias. Blocks of block_size terms (0: all) have a Scale, and a Zero, for each column; one "
      "Scale may be for all. form rows: W has a byte for each element, [terms, columns], and Scale "
      "is [blocks, columns]; columns: W is [columns, terms] and Scale [columns, blocks]; fields: "
      "each byte of uint8 holds 8 / bits elements, the first in the lowest bits, of a column after "
      "another, each in whole blocks; Zero holds fields, too, whole bytes for each column, or "
      "floats; without it, it is half of the range");
  op.Input("X").Input("W", kAnyAddress).Input("Scale").Input("Zero", kOptional | kAnyAddress);
  op.Input("Bias", kOptional);
  op.Output("Out").Attr("terms", 0).Attr("columns", 0).Attr("bits", 8).Attr("block_size", 0);
  op.Attr("form", "fields").KernelKey("X").Cost(NbitMatmulCost);
  op.InferShape(NbitMatmulShape).Prepare(PrepareNbitMatmul);
  op.Kernel(DType::kF32, NbitMatmul).Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
