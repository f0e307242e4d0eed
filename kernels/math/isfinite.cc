// Tests of every element (isnan_v2, isinf_v2, isfinite_v2) and of whole tensors (isnan, isinf,
// isfinite).
#include <cmath>

#include "core/interrupts.h"
#include "core/operands/slot_kinds.h"
#include "core/shapes.h"
#include "kernels/base/visit_one_of.h"
#include "kernels/elementwise/convert.h"

namespace heddle {
namespace {

struct IsNan {
  static constexpr bool kAll = false;
  template <typename T>
  static bool Test(T v) {
    return v != v;
  }
};
struct IsInf {
  static constexpr bool kAll = false;
  template <typename T>
  static bool Test(T v) {
    return std::fabs(v) == std::numeric_limits<T>::infinity();
  }
};
struct IsFinite {
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

HEDDLE_OP(isnan_v2) { DefineTest(op, "Which elements are NaN.", EachShape, RunEach<IsNan>); }
HEDDLE_OP(isinf_v2) { DefineTest(op, "Which elements are infinite.", EachShape, RunEach<IsInf>); }
HEDDLE_OP(isfinite_v2) {
  DefineTest(op, "Which elements are finite.", EachShape, RunEach<IsFinite>);
}
HEDDLE_OP(isnan) { DefineTest(op, "Whether any element is NaN.", WholeShape, RunWhole<IsNan>); }
HEDDLE_OP(isinf) {
  DefineTest(op, "Whether any element is infinite.", WholeShape, RunWhole<IsInf>);
}
HEDDLE_OP(isfinite) { DefineTest(op, "Whether all are finite.", WholeShape, RunWhole<IsFinite>); }

HEDDLE_EXAMPLES(isnan_v2, R"(
example float32 2x4
in X float32 [2, 4] 8 2 4 9 6 3 1 4
out Out bool [2, 4] 0*8

example float32 6
in X float32 [6] -0.4 0.43 -0.12 0.71 -0.68 0.15
out Out bool [6] 0*6

example float64 4x3
in X float64 [4, 3] 0.486 0.416 0.206 0.556 0.276 0.765 0.835 0.346 0.626 0.696 0.136 0.905
out Out bool [4, 3] 0*12

example int64 4
in X int64 [4] 8*4
out Out bool [4] 0*4

example int32 2x4
in X int32 [2, 4] 8 5 5 6 9 1 8 6
out Out bool [2, 4] 0*8

example bfloat16 2x4
in X bfloat16 [2, 4] 8 2 4 9 6 3 1 4
out Out bool [2, 4] 0*8

example float16 2x4
in X float16 [2, 4] 8 2 4 9 6 3 1 4
out Out bool [2, 4] 0*8
)")

HEDDLE_EXAMPLES(isinf_v2, R"(
example float32 4x3
in X float32 [4, 3] 0*4 1 -3 -3 1 1 -1 -1 1
out Out bool [4, 3] 0*12

example float64 4x3
in X float64 [4, 3] 1 -1 0 -3 1 1 1 0 0 -1 0 -3
out Out bool [4, 3] 0*12

example int64 4
in X int64 [4] 1*4
out Out bool [4] 0*4

example float64 3
in X float64 [3] -2.659260036932778 -1.8325814637483102 -0.2613647641344075
out Out bool [3] 0 0 0

example int32 4x3
in X int32 [4, 3] 1 1 0 -3 -3 -2 1 0 -3 0 1 1
out Out bool [4, 3] 0*12

example bfloat16 4x3
in X bfloat16 [4, 3] 0*4 1 -3 -3 1 1 -1 -1 1
out Out bool [4, 3] 0*12

example float16 4x3
in X float16 [4, 3] 0*4 1 -3 -3 1 1 -1 -1 1
out Out bool [4, 3] 0*12
)")

HEDDLE_EXAMPLES(isfinite_v2, R"(
example float32 1x1x7
in X float32 [1, 1, 7] 0.327 0.022 0.429 0.123 0.53 -0.08 0.225
out Out bool [1, 1, 7] 1*7

example float32 4x3
in X float32 [4, 3] 0.444 0.169 0.375 0.857 0.307 0.238 0.719 0.788 0.582 0.926 0.651 0.513
out Out bool [4, 3] 1*12

example float64 1x1x7
in X float64 [1, 1, 7] 0.327 0.022 0.429 0.123 0.53 -0.08 0.225
out Out bool [1, 1, 7] 1*7

example int32 1x1x7
in X int32 [1, 1, 7] 0*7
out Out bool [1, 1, 7] 1*7

example int64 1x1x7
in X int64 [1, 1, 7] 0*7
out Out bool [1, 1, 7] 1*7

example bfloat16 1x1x7
in X bfloat16 [1, 1, 7] 0.326 0.022 0.43 0.123 0.53 -0.08 0.225
out Out bool [1, 1, 7] 1*7

example float16 1x1x7
in X float16 [1, 1, 7] 0.327 0.022 0.429 0.123 0.53 -0.08 0.225
out Out bool [1, 1, 7] 1*7
)")

HEDDLE_EXAMPLES(isnan, R"(
example with NaN, float32
in X float32 [2, 3] 1.5 nan 2 0 1 2
from isnan_v2 X=X -> Out=each
from reduce_any X=each -> Out=all
attr reduce_all BOOLEAN true
from reshape2 X=all -> Out=Out XShape=shape
attr shape INTS [1]
out Out bool [1] 1

example with infinity, float32
in X float32 [2, 3] 1 inf -3 0 1 2
from isnan_v2 X=X -> Out=each
from reduce_any X=each -> Out=all
attr reduce_all BOOLEAN true
from reshape2 X=all -> Out=Out XShape=shape
attr shape INTS [1]
out Out bool [1] 0

example with infinity, float64
in X float64 [2, 3] 1 inf -3 0 1 2
from isnan_v2 X=X -> Out=each
from reduce_any X=each -> Out=all
attr reduce_all BOOLEAN true
from reshape2 X=all -> Out=Out XShape=shape
attr shape INTS [1]
out Out bool [1] 0

example finite, float32
in X float32 [2, 3] 1 2 3 0 1 2
from isnan_v2 X=X -> Out=each
from reduce_any X=each -> Out=all
attr reduce_all BOOLEAN true
from reshape2 X=all -> Out=Out XShape=shape
attr shape INTS [1]
out Out bool [1] 0

example int32
in X int32 [2, 2] 1 0 4 2
from isnan_v2 X=X -> Out=each
from reduce_any X=each -> Out=all
attr reduce_all BOOLEAN true
from reshape2 X=all -> Out=Out XShape=shape
attr shape INTS [1]
out Out bool [1] 0

example int64
in X int64 [2, 2] 6 2 7 6
from isnan_v2 X=X -> Out=each
from reduce_any X=each -> Out=all
attr reduce_all BOOLEAN true
from reshape2 X=all -> Out=Out XShape=shape
attr shape INTS [1]
out Out bool [1] 0

example float32 nan
in X float32 [2, 3] 1.5 nan 2 0 1 2
out Out bool [1] 1

example float32 inf
in X float32 [2, 3] 1 inf -3 0 1 2
out Out bool [1] 0

example float32 2
in X float32 [2, 3] 1 2 3 0 1 2
out Out bool [1] 0

example int32, no. 2
in X int32 [2, 2] 1 9 6 6
out Out bool [1] 0

example float64
in X float64 [2] -inf 1
out Out bool [1] 0

example int64, no. 2
in X int64 [2, 2] 1 1 4 1
out Out bool [1] 0
)")

HEDDLE_EXAMPLES(isinf, R"(
example with NaN, float32
in X float32 [2, 3] 1.5 nan 2 0 1 2
from isinf_v2 X=X -> Out=each
from reduce_any X=each -> Out=all
attr reduce_all BOOLEAN true
from reshape2 X=all -> Out=Out XShape=shape
attr shape INTS [1]
out Out bool [1] 0

example with infinity, float32
in X float32 [2, 3] 1 inf -3 0 1 2
from isinf_v2 X=X -> Out=each
from reduce_any X=each -> Out=all
attr reduce_all BOOLEAN true
from reshape2 X=all -> Out=Out XShape=shape
attr shape INTS [1]
out Out bool [1] 1

example with infinity, float64
in X float64 [2, 3] 1 inf -3 0 1 2
from isinf_v2 X=X -> Out=each
from reduce_any X=each -> Out=all
attr reduce_all BOOLEAN true
from reshape2 X=all -> Out=Out XShape=shape
attr shape INTS [1]
out Out bool [1] 1

example finite, float32
in X float32 [2, 3] 1 2 3 0 1 2
from isinf_v2 X=X -> Out=each
from reduce_any X=each -> Out=all
attr reduce_all BOOLEAN true
from reshape2 X=all -> Out=Out XShape=shape
attr shape INTS [1]
out Out bool [1] 0

example int32
in X int32 [2, 2] 8 0 5 2
from isinf_v2 X=X -> Out=each
from reduce_any X=each -> Out=all
attr reduce_all BOOLEAN true
from reshape2 X=all -> Out=Out XShape=shape
attr shape INTS [1]
out Out bool [1] 0

example int64
in X int64 [2, 2] 0 7 8 6
from isinf_v2 X=X -> Out=each
from reduce_any X=each -> Out=all
attr reduce_all BOOLEAN true
from reshape2 X=all -> Out=Out XShape=shape
attr shape INTS [1]
out Out bool [1] 0

example float32 nan
in X float32 [2, 3] 1.5 nan 2 0 1 2
out Out bool [1] 0

example float32 inf
in X float32 [2, 3] 1 inf -3 0 1 2
out Out bool [1] 1

example float32 2
in X float32 [2, 3] 1 2 3 0 1 2
out Out bool [1] 0

example int32, no. 2
in X int32 [2, 2] 2 0 6 5
out Out bool [1] 0

example float64
in X float64 [2] -inf 1
out Out bool [1] 1

example int64, no. 2
in X int64 [2, 2] 0 0 5 3
out Out bool [1] 0
)")

HEDDLE_EXAMPLES(isfinite, R"(
example with NaN, float32
in X float32 [2, 3] 1.5 nan 2 0 1 2
from isfinite_v2 X=X -> Out=each
from reduce_all X=each -> Out=all
attr reduce_all BOOLEAN true
from reshape2 X=all -> Out=Out XShape=shape
attr shape INTS [1]
out Out bool [1] 0

example with infinity, float32
in X float32 [2, 3] 1 inf -3 0 1 2
from isfinite_v2 X=X -> Out=each
from reduce_all X=each -> Out=all
attr reduce_all BOOLEAN true
from reshape2 X=all -> Out=Out XShape=shape
attr shape INTS [1]
out Out bool [1] 0

example with infinity, float64
in X float64 [2, 3] 1 inf -3 0 1 2
from isfinite_v2 X=X -> Out=each
from reduce_all X=each -> Out=all
attr reduce_all BOOLEAN true
from reshape2 X=all -> Out=Out XShape=shape
attr shape INTS [1]
out Out bool [1] 0

example finite, float32
in X float32 [2, 3] 1 2 3 0 1 2
from isfinite_v2 X=X -> Out=each
from reduce_all X=each -> Out=all
attr reduce_all BOOLEAN true
from reshape2 X=all -> Out=Out XShape=shape
attr shape INTS [1]
out Out bool [1] 1

example int32
in X int32 [2, 2] 2 7 7 5
from isfinite_v2 X=X -> Out=each
from reduce_all X=each -> Out=all
attr reduce_all BOOLEAN true
from reshape2 X=all -> Out=Out XShape=shape
attr shape INTS [1]
out Out bool [1] 1

example int64
in X int64 [2, 2] 2 3 8 3
from isfinite_v2 X=X -> Out=each
from reduce_all X=each -> Out=all
attr reduce_all BOOLEAN true
from reshape2 X=all -> Out=Out XShape=shape
attr shape INTS [1]
out Out bool [1] 1
)")
