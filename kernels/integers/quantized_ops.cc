#include "kernels/integers/quantized_ops.h"

#include <cmath>
#include <limits>

#include "core/memory/lazy_buffer.h"

namespace heddle {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

template <typename T>
Status ReadColumns(const Tensor& t, int64_t columns, bool spread, const char* slot,
                   std::vector<T>* to) {
  const BorrowedContents contents(t);
  const Tensor& from = contents.tensor();
  if (t.numel() != 1 && t.numel() != columns)
    return InvalidArgument(slot, " has shape ", t.shape().ToString(), ", expected 1 or ", columns,
                           " elements");
  const auto read = [&](auto tag) {
    using E = decltype(tag);
    const E* const v = from.data<E>();
    to->resize(static_cast<size_t>(spread ? columns : t.numel()));
    for (size_t i = 0; i < to->size(); ++i) (*to)[i] = static_cast<T>(v[t.numel() == 1 ? 0 : i]);
    return Status::Ok();
  };
  if constexpr (std::is_same_v<T, float>) {
    if (t.dtype() == DType::kF32) return read(float());
  } else {
    if (t.dtype() == DType::kU8) return read(uint8_t());
    if (t.dtype() == DType::kI8) return read(int8_t());
  }
  return InvalidArgument(slot, " is ", Name(t.dtype()), ", expected ",
                         std::is_same_v<T, float> ? "float32" : "uint8 or int8");
}

}  // namespace

void DefineQuantizedResult(OpDef& op) {
  op.Attr("out_dtype", "uint8").Attr("least", -kNoLimit).Attr("most", kNoLimit);
}

Result<DType> ResultTypeOf(const OpContext& ctx) {
  const std::string& name = ctx.Str("out_dtype");
  for (const DType dtype : {DType::kU8, DType::kI8, DType::kF32})
    if (name == Name(dtype)) return dtype;
  return InvalidArgument("out_dtype is '", name, "', expected uint8, int8 or float32");
}

Status CheckBytesIn(const ShapeContext& ctx, Key key) {
  const DType dtype = ctx.InDType(key);
  if (dtype == DType::kU8 || dtype == DType::kI8) return Status::Ok();
  return InvalidArgument(key.name, " is ", Name(dtype), ", expected uint8 or int8");
}

Status CheckPerColumn(const ShapeContext& ctx, Key key, int64_t columns) {
  if (!ctx.HasIn(key) || !ctx.InShape(key).is_static()) return Status::Ok();
  const int64_t n = ctx.InShape(key).numel();
  if (n == 1 || columns < 0 || n == columns) return Status::Ok();
  return InvalidArgument(key.name, " has shape ", ctx.InShape(key).ToString(), ", expected 1 or ",
                         columns, " elements");
}

void QuantizedUse::MoveZeroIntoOffset(const Tensor& y, int axis) {
  if (x_zero == 0) return;
  const std::vector<int64_t> sums = CenteredSums(y, y_zero, axis);
  offset.resize(factor.size());
  for (size_t i = 0; i < offset.size(); ++i)
    offset[i] = static_cast<float>(offset[i] - static_cast<double>(factor[i]) * x_zero * sums[i]);
  x_zero = 0;
  result.offset = true;
}

void QuantizedUse::Fill(IntegerOperands* o) const {
  o->x_zero = x_zero;
  o->factor = factor.data();
  o->offset = result.offset ? offset.data() : nullptr;
}

Result<QuantizedUse> UseOf(const OpContext& ctx, const Tensor* factor, const Tensor* offset,
                           const Tensor* y_zero, Key x_zero, int64_t columns) {
  QuantizedUse use;
  HEDDLE_ASSIGN_OR_RETURN(use.result.dtype, ResultTypeOf(ctx));
  use.result.least = static_cast<float>(ctx.Float("least"));
  use.result.most = static_cast<float>(ctx.Float("most"));
  if (!(use.result.least <= use.result.most))
    return InvalidArgument("least is ", use.result.least, " and most ", use.result.most,
                           ", expected least <= most");
  const int64_t zero = ctx.Int(x_zero);
  if (zero < -128 || zero > 255)
    return InvalidArgument(x_zero.name, " is ", zero, ", expected -128 to 255");
  use.x_zero = static_cast<int32_t>(zero);
  if (factor != nullptr)
    HEDDLE_RETURN_IF_ERROR(ReadColumns(*factor, columns, true, "Factor", &use.factor));
  if (offset != nullptr) {
    HEDDLE_RETURN_IF_ERROR(ReadColumns(*offset, columns, true, "Offset", &use.offset));
    use.result.offset = true;
  }
  if (y_zero != nullptr)
    HEDDLE_RETURN_IF_ERROR(ReadColumns(*y_zero, columns, false, "the zero point", &use.y_zero));
  return use;
}

ConstantOperands::ConstantOperands(const PrepareContext& ctx, Key zero)
    : factor(ctx.ConstIn("Factor")), offset(nullptr), y_zero(nullptr) {
  complete = factor != nullptr;
  if (ctx.HasIn("Offset")) complete = (offset = ctx.ConstIn("Offset")) != nullptr && complete;
  unscaled = !ctx.HasIn(zero) || (y_zero = ctx.ConstIn(zero)) != nullptr;
  complete = complete && unscaled;
}

Status ScalesOfRun::Read(const KernelContext& ctx, const QuantizedUse& use, int64_t columns,
                         Key zero, DType x, IntegerOperands* o) {
  hold_ = ctx.CallScratch(DType::kF32, {2 * columns});
  float* const to = hold_.mutable_data<float>();
  bool finite = true;
  const auto read = [&](const Tensor& from, const char* slot, float* each) {
    if (from.dtype() != DType::kF32 || (from.numel() != 1 && from.numel() != columns))
      return InvalidArgument(slot, " is ", Name(from.dtype()), " ", from.shape().ToString(),
                             ", expected 1 or ", columns, " of float32");
    for (int64_t i = 0; i < columns; ++i) {
      each[i] = from.data<float>()[from.numel() == 1 ? 0 : i];
      finite = finite && std::isfinite(each[i]);
    }
    return Status::Ok();
  };
  HEDDLE_RETURN_IF_ERROR(read(ctx.In("Factor"), "Factor", to));
  o->factor = to;
  if (const Tensor* const offset = ctx.InOpt("Offset")) {
    HEDDLE_RETURN_IF_ERROR(read(*offset, "Offset", to + columns));
    o->offset = to + columns;
  }
  may_give_nan_ = use.result.clips() && !finite;
  o->x_zero = use.x_zero;
  if (const Tensor* const given = ctx.InOpt(zero)) {
    if (given->dtype() != x || given->numel() != 1)
      return InvalidArgument(zero.name, " is ", Name(given->dtype()), " ",
                             given->shape().ToString(), ", expected one of ", Name(x));
    o->x_zero +=
        x == DType::kI8 ? int32_t{*given->data<int8_t>()} : int32_t{*given->data<uint8_t>()};
  }
  return Status::Ok();
}

}  // namespace heddle
