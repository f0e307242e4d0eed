// Tests of every element (isnan_v2, isinf_v2, isfinite_v2) and of whole tensors (isnan, isinf,
// isfinite).
#include <cmath>

#include "core/interrupts.h"
#include "core/operands/slot_kinds.h"
#include "core/shapes.h"
#include "kernels/base/convert.h"
#include "kernels/base/visit_one_of.h"

namespace heddle {
namespace {

struct NanTest {
  static constexpr bool kAll = false;
  template <typename T>
  static bool Test(T v) {
    return v != v;
  }
};
struct InfTest {
  static constexpr bool kAll = false;
  template <typename T>
  static bool Test(T v) {
    return std::fabs(v) == std::numeric_limits<T>::infinity();
  }
};
struct FiniteTest {
  static constexpr bool kAll = true;
  template <typename T>
  static bool Test(T v) {
    return std::fabs(v) < std::numeric_limits<T>::infinity();
  }
};

// Integers are finite.
template <typename P, typename T>
bool TestElement(T v) {
  if constexpr (std::is_integral_v<T>)
    return P::kAll;
  else
    return P::Test(static_cast<ComputeType<T>>(v));
}

template <typename P>
Status RunEach(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  bool* y = ctx.Out("Out").mutable_data<bool>();
  VisitOneOf<float, double, float16, bfloat16, bool, uint8_t, int8_t, int16_t, int32_t, int64_t>(
      "X", x.dtype(), [&](auto tag) {
        const auto* a = x.data<typename decltype(tag)::type>();
        ctx.ParallelFor(x.numel(), 1 << 16, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) y[i] = TestElement<P>(a[i]);
        });
      });
  return Status::Ok();
}

// Infinite elements of the signs that the attributes name.
Status RunInfinite(KernelContext& ctx) {
  const bool negative = ctx.Bool("negative"), positive = ctx.Bool("positive");
  if (negative && positive) return RunEach<InfTest>(ctx);
  const Tensor& x = ctx.In("X");
  bool* y = ctx.Out("Out").mutable_data<bool>();
  std::fill_n(y, x.numel(), false);
  if (!negative && !positive) return Status::Ok();
  VisitDType<float, double, float16, bfloat16>(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ComputeType<T>;
    const C wanted =
        negative ? -std::numeric_limits<C>::infinity() : std::numeric_limits<C>::infinity();
    const T* a = x.data<T>();
    ctx.ParallelFor(x.numel(), 1 << 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = static_cast<C>(a[i]) == wanted;
    });
  });
  return Status::Ok();
}

// Any element is NaN / infinite; all are finite.
template <typename P>
Status RunWhole(KernelContext& ctx) {
  const Value& in = *ctx.InVar("X");
  const Tensor& x = in.is_rows() ? in.rows().value : ctx.In("X");
  bool found = false;
  VisitOneOf<float, double, float16, bfloat16, bool, uint8_t, int8_t, int16_t, int32_t, int64_t>(
      "X", x.dtype(), [&](auto tag) {
        const auto* a = x.data<typename decltype(tag)::type>();
        for (const auto part : Stretches(x.numel()))
          for (int64_t i = part.begin; i < part.end; ++i) found |= TestElement<P>(a[i]) != P::kAll;
      });
  ctx.Out("Out").mutable_data<bool>()[0] = found != P::kAll;
  return Status::Ok();
}

Status EachShape(ShapeContext& ctx) {
  ctx.SetOut("Out", ctx.InShape("X"), DType::kBool);
  ctx.ShareLoD("X", "Out");
  return Status::Ok();
}
Status WholeShape(ShapeContext& ctx) {
  if (ctx.InVar("X") == nullptr) return InvalidArgument("input X is missing");
  ctx.SetOut("Out", {1}, DType::kBool);
  return Status::Ok();
}

void DefineTest(OpDef& op, const char* doc, InferShapeFn shape, KernelFn kernel) {
  op.Doc(doc).Input("X", kAnyKind | kTakesRows).Output("Out").InferShape(shape);
  op.Kernel({DType::kBool, DType::kU8, DType::kI8, DType::kI16, DType::kI32, DType::kI64,
             DType::kF16, DType::kBF16, DType::kF32, DType::kF64},
            kernel);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(isnan_v2) { DefineTest(op, "Which elements are NaN.", EachShape, RunEach<NanTest>); }
HEDDLE_OP(isinf_v2) {
  DefineTest(op, "Which elements are infinite, of the signs named.", EachShape, RunInfinite);
  op.Attr("negative", true).Attr("positive", true);
}
HEDDLE_OP(isfinite_v2) {
  DefineTest(op, "Which elements are finite.", EachShape, RunEach<FiniteTest>);
}
HEDDLE_OP(isnan) { DefineTest(op, "Whether any element is NaN.", WholeShape, RunWhole<NanTest>); }
HEDDLE_OP(isinf) {
  DefineTest(op, "Whether any element is infinite.", WholeShape, RunWhole<InfTest>);
}
HEDDLE_OP(isfinite) { DefineTest(op, "Whether all are finite.", WholeShape, RunWhole<FiniteTest>); }
