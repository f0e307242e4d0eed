// ONNX's reductions. The axes are an operand; an empty list means all axes, or none at all.
#include "kernels/base/check.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/operands/element_types.h"
#include "kernels/operands/operands.h"
#include "kernels/reduce/reduce_op.h"

namespace heddle {
namespace {

template <typename Context>
Result<uint32_t> ReducedAxes(const Context& ctx) {
  const int rank = ShapeIn(ctx, "data").rank();
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts given, IntsIn(ctx, "axes"));
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts axes, NormalAxes(given, rank, "axes"));
  if (axes.empty()) return ctx.Int("noop_with_empty_axes") != 0 ? 0U : (1U << rank) - 1;
  uint32_t mask = 0;
  for (const int64_t a : axes) mask |= 1U << a;
  return mask;
}

Status OnnxReduceShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("data");
  if (!x.known_rank() || !Known(ctx, "axes")) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const uint32_t mask, ReducedAxes(ctx));
  ctx.SetOut("reduced", ReducedShape(x, mask, ctx.Int("keepdims") != 0), ctx.InDType("data"));
  return Status::Ok();
}

// A result that integers are cut from: those that it is too great for hold their greatest number,
// those that it is too small for their least.
struct Real {
  double value;
  template <typename T>
  static T Cut(double x) {
    constexpr T kMost = std::numeric_limits<T>::max();
    if (x >= static_cast<double>(kMost)) return kMost;
    if constexpr (std::is_same_v<T, uint64_t>)  // beyond the greatest int64, too
      return x >= 0 ? static_cast<uint64_t>(x) : 0;
    else
      return ConvertTo<T>(x);
  }
  explicit operator double() const { return value; }
  explicit operator float() const { return static_cast<float>(value); }
  explicit operator int32_t() const { return Cut<int32_t>(value); }
  explicit operator int64_t() const { return Cut<int64_t>(value); }
  explicit operator uint32_t() const { return static_cast<uint32_t>(Cut<int64_t>(value)); }
  explicit operator uint64_t() const { return Cut<uint64_t>(value); }
};

// Everything is added and multiplied in double: what cancels out leaves nothing. Unsigned integers,
// of which ONNX Runtime has no sums and no products, wrap.
template <typename T>
using WrapsOrDouble = std::conditional_t<std::is_unsigned_v<T>, T, double>;
template <typename A>
auto CutFrom(A a) {
  if constexpr (std::is_same_v<A, double>)
    return Real{a};
  else
    return a;
}

struct OnnxSum : SumReduction {
  static constexpr bool kHasUnsignedForm = true, kOneIsItself = true;
  template <typename T>
  using Acc = WrapsOrDouble<T>;
  template <typename A>
  static auto Finish(A a, int64_t) {
    return CutFrom(a);
  }
};
struct OnnxMean : SumReduction {
  static constexpr bool kHasUnsignedForm = true, kOneIsItself = true;
  template <typename T>
  using Acc = double;
  // The mean of no floats is NaN, the mean of no integers 0.
  struct Quotient : Real {
    bool empty;
    explicit operator int32_t() const { return empty ? 0 : Cut<int32_t>(value); }
    explicit operator int64_t() const { return empty ? 0 : Cut<int64_t>(value); }
    explicit operator uint32_t() const {
      return static_cast<uint32_t>(static_cast<int64_t>(*this));
    }
    explicit operator uint64_t() const { return empty ? 0 : Cut<uint64_t>(value); }
  };
  static Quotient Finish(double a, int64_t count) {
    return {{a / static_cast<double>(count)}, count == 0};
  }
};
struct OnnxProd : ProdReduction {
  static constexpr bool kHasUnsignedForm = true, kOneIsItself = true;
  template <typename T>
  using Acc = WrapsOrDouble<T>;
  template <typename A>
  static auto Finish(A a, int64_t) {
    return CutFrom(a);
  }
};
// Unsigned operands are their own absolute values: their reader makes sums of them.
struct OnnxL1 : SumReduction {
  template <typename T>
  using Acc = double;
  template <typename A, typename T>
  static A Load(T x) {
    return std::fabs(static_cast<double>(x));
  }
  static Real Finish(double a, int64_t) { return {a}; }
};
struct OnnxSumSquare : OnnxSum {
  static constexpr bool kOneIsItself = false;
  template <typename A, typename T>
  static A Load(T x) {
    return MulFn::Apply(static_cast<A>(x), static_cast<A>(x));
  }
};
// Functions of a sum; integers are cut.
struct OnnxL2 : OnnxSumSquare {
  template <typename T>
  using Acc = double;
  static Real Finish(double a, int64_t) { return {std::sqrt(a)}; }
};
struct OnnxLogSum : OnnxSum {
  static constexpr bool kOneIsItself = false;
  template <typename T>
  using Acc = double;
  static Real Finish(double a, int64_t) { return {std::log(a)}; }
};
// The greatest value so far and the sum of the others' exponentials in relation to it.
struct Exponents {
  double most, sum;
  explicit operator double() const { return sum == 0 ? most : most + std::log(sum); }
  template <typename T>
  explicit operator T() const {
    return static_cast<T>(Real{static_cast<double>(*this)});
  }
};
struct OnnxLogSumExp : SumReduction {
  static constexpr bool kHasUnsignedForm = true;
  template <typename T>
  using Acc = Exponents;
  template <typename A>
  static A Init() {
    return {-std::numeric_limits<double>::infinity(), 0};
  }
  template <typename A, typename T>
  static A Load(T x) {
    return {static_cast<double>(x), 1};
  }
  template <typename A>
  static A Combine(A a, A b) {
    if (a.sum == 0) return b;
    if (b.sum == 0) return a;
    if (a.most == b.most) return {a.most, a.sum + b.sum};  // infinities too
    if (std::isnan(a.most) || std::isnan(b.most)) return {a.most + b.most, 1};
    return a.most > b.most ? A{a.most, a.sum + b.sum * std::exp(b.most - a.most)}
                           : A{b.most, b.sum + a.sum * std::exp(a.most - b.most)};
  }
};

// Results that depend on whether the operands are unsigned: elem_type says so.
template <typename R>
constexpr bool kHasUnsignedForm = requires {
  R::kHasUnsignedForm;
};
// Whether the reduction of one element is the element, all of its digits.
template <typename R>
constexpr bool IsItself() {
  if constexpr (requires { R::kOneIsItself; }) return R::kOneIsItself;
  return false;
}

template <typename R, typename T>
Status RunOnnxReduce(KernelContext& ctx) {
  const Tensor& x = ctx.In("data");
  HEDDLE_ASSIGN_OR_RETURN(const uint32_t mask, ReducedAxes(ctx));
  if (IsItself<R>() && mask == 0) {
    CopyBytes(ctx, ctx.Out("reduced").mutable_raw(), x.raw(), static_cast<int64_t>(x.bytes()));
    return Status::Ok();
  }
  const ReducePlan plan = MakeReducePlan(x.shape().dims(), mask);
  if constexpr (kHasUnsignedForm<R> && std::is_integral_v<T>) {
    HEDDLE_ASSIGN_OR_RETURN(const ElementType type, StoredAs(ctx.Int("elem_type"), x.dtype()));
    if (IsUnsigned(type)) {
      using U = std::make_unsigned_t<T>;
      RunReduce(ctx, plan, ReduceLoop<R, U, U>::kLoops, x.raw(), ctx.Out("reduced").mutable_raw());
      return Status::Ok();
    }
  }
  RunReduce(ctx, plan, ReduceLoop<R, T, T>::kLoops, x.raw(), ctx.Out("reduced").mutable_raw());
  return Status::Ok();
}

// Of all axes but the first two, however many there are.
Status OnnxGlobalReduceShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  if (x.rank() < 2) return InvalidArgument("X has shape ", x.ToString(), ", expected [n, c, ...]");
  ctx.SetOut("Y", ReducedShape(x, (1U << x.rank()) - 4, true), ctx.InDType("X"));
  return Status::Ok();
}

template <typename R, typename T>
Status RunOnnxGlobalReduce(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  const ReducePlan plan = MakeReducePlan(x.shape().dims(), (1U << x.rank()) - 4);
  RunReduce(ctx, plan, ReduceLoop<R, T, T>::kLoops, x.raw(), ctx.Out("Y").mutable_raw());
  return Status::Ok();
}

template <typename R>
void DefineOnnxGlobalReduce(OpDef& op, const char* doc) {
  op.Doc(doc).Input("X").Output("Y").InferShape(OnnxGlobalReduceShape);
  op.Kernel(DType::kF32, &RunOnnxGlobalReduce<R, float>);
  op.Kernel(DType::kF64, &RunOnnxGlobalReduce<R, double>);
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}

template <typename R, typename... Ts>
void DefineOnnxReduce(OpDef& op, const char* doc) {
  op.Doc(doc).Input("data").Input("axes", kOptional | kShapeValue).Output("reduced");
  op.Attr("keepdims", 1).Attr("noop_with_empty_axes", 0);
  if constexpr (kHasUnsignedForm<R>) op.Attr("elem_type", 0);
  op.InferShape(OnnxReduceShape);
  (op.Kernel(kDTypeOf<Ts>, &RunOnnxReduce<R, Ts>), ...);
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_reduce_sum) {
  DefineOnnxReduce<OnnxSum, float, double, int32_t, int64_t>(op, "sums over axes");
}
HEDDLE_OP(onnx_reduce_mean) {
  DefineOnnxReduce<OnnxMean, float, double, int32_t, int64_t>(op, "means over axes");
}
HEDDLE_OP(onnx_reduce_prod) {
  DefineOnnxReduce<OnnxProd, float, double, int32_t, int64_t>(op, "products over axes");
}
HEDDLE_OP(onnx_reduce_max) {
  DefineOnnxReduce<MaxReduction, float, double, int8_t, uint8_t, int16_t, int32_t, int64_t>(
      op, "greatest elements over axes; NaN wins");
  op.Kernel(DType::kBool, &RunOnnxReduce<AnyReduction, bool>);
}
HEDDLE_OP(onnx_reduce_min) {
  DefineOnnxReduce<MinReduction, float, double, int8_t, uint8_t, int16_t, int32_t, int64_t>(
      op, "smallest elements over axes; NaN wins");
  op.Kernel(DType::kBool, &RunOnnxReduce<AllReduction, bool>);
}
HEDDLE_OP(onnx_reduce_l1) {
  DefineOnnxReduce<OnnxL1, float, double, int32_t, int64_t>(op, "sums of absolute values");
}
HEDDLE_OP(onnx_reduce_l2) {
  DefineOnnxReduce<OnnxL2, float, double, int32_t, int64_t>(op, "roots of sums of squares");
}
HEDDLE_OP(onnx_reduce_sum_square) {
  DefineOnnxReduce<OnnxSumSquare, float, double, int32_t, int64_t>(op, "sums of squares");
}
HEDDLE_OP(onnx_reduce_log_sum) {
  DefineOnnxReduce<OnnxLogSum, float, double, int32_t, int64_t>(op, "logarithms of sums");
}
HEDDLE_OP(onnx_reduce_log_sum_exp) {
  DefineOnnxReduce<OnnxLogSumExp, float, double, int32_t, int64_t>(
      op, "logarithms of sums of exponentials");
}
HEDDLE_OP(onnx_global_average_pool) {
  DefineOnnxGlobalReduce<OnnxMean>(op, "means over all axes but the first two");
}
HEDDLE_OP(onnx_global_max_pool) {
  DefineOnnxGlobalReduce<MaxReduction>(
      op, "greatest elements over all axes but the first two; NaN wins");
}
