// Operators with two operands that broadcast: arithmetic, comparisons, logic, and the gradients of
// arithmetic.
#include <cmath>

#include "core/shapes.h"
#include "device/cuda/grid/element_table.h"
#include "device/cuda/grid/kernel_table.h"
#include "device/cuda/grid/reduce.h"

namespace heddle::HEDDLE_GRID {
namespace {

int64_t AxisOf(const OpContext& ctx) {
  return ctx.def().FindAttr("axis") >= 0 ? ctx.Int("axis") : -1;
}

// Operands X, Y and one of the result's own shape.
struct Operands3 {
  Steps x, y, out;
};
Operands3 StepsOf(const Shape& x, const Shape& y, const Shape& out, int64_t axis) {
  const Alignment at = Align(x, y, axis);
  return {Spread(x, out, at.x), Spread(y, out, at.y), RowMajor(out)};
}

template <typename Fn, typename T, typename Out>
struct BinaryBody {
  Strides<2> strides;
  const T* x;
  const T* y;
  Out* out;
  HEDDLE_BODY void operator()(int64_t i) const {
    const auto p = strides.At(static_cast<uint32_t>(i));
    out[i] = Fn::template Apply<T>(x[p.at[0]], y[p.at[1]]);
  }
};

template <typename Fn, typename T, typename Out>
Status Binary(Queue& queue, KernelContext& ctx) {
  const Tensor &x = ctx.In("X"), &y = ctx.In("Y");
  Tensor& out = ctx.Out("Out");
  const Operands3 s = StepsOf(x.shape(), y.shape(), out.shape(), AxisOf(ctx));
  return Each(queue, out.numel(),
              BinaryBody<Fn, T, Out>{MakeStrides<2>(out.shape(), {s.x, s.y}), x.data<T>(),
                                     y.data<T>(), out.mutable_data<Out>()});
}

template <Element kOp>
struct Arithmetic {
  template <typename T>
  HEDDLE_BODY static T Apply(T x, T y) {
    return element_internal::OfTwo<T>(kOp, x, y);
  }
};

template <Element kOp>
Status Floats(Queue& queue, KernelContext& ctx) {
  return Binary<Arithmetic<kOp>, float, float>(queue, ctx);
}
template <Element kOp>
Status Numbers(Queue& queue, KernelContext& ctx) {
  switch (ctx.In("X").dtype()) {
    case DType::kF32:
      return Floats<kOp>(queue, ctx);
    case DType::kI32:
      return Binary<Arithmetic<kOp>, int32_t, int32_t>(queue, ctx);
    case DType::kI64:
      return Binary<Arithmetic<kOp>, int64_t, int64_t>(queue, ctx);
    default:
      return Unimplemented("no CUDA kernel for ", Name(ctx.In("X").dtype()));
  }
}

template <typename T>
HEDDLE_BODY bool Same(T a, T b) {
  if constexpr (std::is_same_v<T, float>)
    return a == b || fabs(static_cast<double>(a - b)) < 1e-8;
  else
    return a == b;
}
#define HEDDLE_PREDICATE(name, expression)    \
  struct name {                               \
    template <typename T>                     \
    HEDDLE_BODY static bool Apply(T a, T b) { \
      return expression;                      \
    }                                         \
  }
HEDDLE_PREDICATE(Less, a < b);
HEDDLE_PREDICATE(LessEqual, a <= b);
HEDDLE_PREDICATE(Greater, a > b);
HEDDLE_PREDICATE(GreaterEqual, a >= b);
HEDDLE_PREDICATE(Equal, Same<T>(a, b));
HEDDLE_PREDICATE(NotEqual, !Same<T>(a, b));
HEDDLE_PREDICATE(And, a != T(0) && b != T(0));
HEDDLE_PREDICATE(Or, a != T(0) || b != T(0));
HEDDLE_PREDICATE(Xor, (a != T(0)) != (b != T(0)));
#undef HEDDLE_PREDICATE

template <typename Fn>
Status Predicate(Queue& queue, KernelContext& ctx) {
  switch (ctx.In("X").dtype()) {
    case DType::kF32:
      return Binary<Fn, float, bool>(queue, ctx);
    case DType::kI32:
      return Binary<Fn, int32_t, bool>(queue, ctx);
    case DType::kI64:
      return Binary<Fn, int64_t, bool>(queue, ctx);
    case DType::kBool:
      return Binary<Fn, bool, bool>(queue, ctx);
    default:
      return Unimplemented("no CUDA kernel for ", Name(ctx.In("X").dtype()));
  }
}

bool SameDTypes(const CallView& call) { return call.InDType("X") == call.InDType("Y"); }

// --- gradients ---

// Of d(result) for one operand. Operands: X, Y, and those of the result's shape.
#define HEDDLE_GRAD(name, expression)                                         \
  struct name {                                                               \
    HEDDLE_BODY static float Apply(float x, float y, float out, float dout) { \
      (void)x, (void)y, (void)out;                                            \
      return expression;                                                      \
    }                                                                         \
  }
HEDDLE_GRAD(Pass, dout);
HEDDLE_GRAD(Minus, -dout);
HEDDLE_GRAD(TimesX, dout* x);
HEDDLE_GRAD(TimesY, dout* y);
HEDDLE_GRAD(DivX, dout / y);
HEDDLE_GRAD(DivY, -dout*(out / y));
HEDDLE_GRAD(MaxX, x > y ? dout : 0);
HEDDLE_GRAD(MaxY, x <= y ? dout : 0);
HEDDLE_GRAD(MinX, x < y ? dout : 0);
HEDDLE_GRAD(MinY, x >= y ? dout : 0);
HEDDLE_GRAD(PowX, dout* y* powf(x, y - 1));
HEDDLE_GRAD(PowY, dout* logf(x) * powf(x, y));
#undef HEDDLE_GRAD

template <typename Fn>
struct GradMap {
  const float* x;
  const float* y;
  const float* out;
  const float* dout;
  // Places: X, Y, the result.
  HEDDLE_BODY float operator()(const Strides<3>::Places& p) const {
    return Fn::Apply(x == nullptr ? 0 : x[p.at[0]], y == nullptr ? 0 : y[p.at[1]],
                     out == nullptr ? 0 : out[p.at[2]], dout[p.at[2]]);
  }
};

// The gradient of operand `of` (0: X, 1: Y), summed over what it was repeated along.
template <typename Fn>
Status OneGrad(Queue& queue, const Shape& shape, const Operands3& s, int of, const GradMap<Fn>& map,
               Tensor* d) {
  if (d == nullptr) return Status::Ok();
  const Steps steps[3] = {s.x, s.y, s.out};
  Strides<3> kept, reduced;
  Cut<3>(
      shape, steps, [&](int i) { return steps[of].at[i] != 0 || shape[i] == 1; }, &kept, &reduced);
  if (kept.numel != d->numel())
    return InvalidArgument("a gradient has ", d->numel(), " elements, expected ", kept.numel);
  return ReduceInto<SumOp>(queue, kept, reduced, map, d->mutable_data<float>());
}

// `kReadsXY`, `kReadsOut`: what the gradients look at.
template <typename OfX, typename OfY, bool kReadsXY, bool kReadsOut>
Status BinaryGrad(Queue& queue, KernelContext& ctx) {
  const Tensor &x = ctx.In("X"), &y = ctx.In("Y"), &dout = ctx.In("Out@GRAD");
  const Operands3 s = StepsOf(x.shape(), y.shape(), dout.shape(), AxisOf(ctx));
  const float* const xs = kReadsXY ? x.data<float>() : nullptr;
  const float* const ys = kReadsXY ? y.data<float>() : nullptr;
  const float* const outs = kReadsOut ? ctx.In("Out").data<float>() : nullptr;
  const float* const douts = dout.data<float>();
  // X@GRAD may lie in the memory of Out@GRAD, so it is last.
  HEDDLE_RETURN_IF_ERROR(
      OneGrad(queue, dout.shape(), s, 1, GradMap<OfY>{xs, ys, outs, douts}, ctx.OutOpt("Y@GRAD")));
  return OneGrad(queue, dout.shape(), s, 0, GradMap<OfX>{xs, ys, outs, douts},
                 ctx.OutOpt("X@GRAD"));
}

// The result's gradient has the result's shape, and all are floats.
bool CoversGrad(const CallView& call) {
  if (call.InDType("X") != DType::kF32 || call.InDType("Y") != DType::kF32) return false;
  const auto shape = BroadcastShape(call.InShape("X"), call.InShape("Y"), AxisOf(call));
  return shape.ok() && *shape == call.InShape("Out@GRAD");
}

constexpr uint32_t kNumbers = Of(DType::kF32) | Of(DType::kI32) | Of(DType::kI64);
constexpr uint32_t kComparable = kNumbers | Of(DType::kBool);

}  // namespace

void AddBinaryKernels(KernelList* list) {
  list->insert(list->end(),
               {
                   {"elementwise_add", Numbers<Element::kAdd>, SameDTypes, kNumbers},
                   {"grad_add", Numbers<Element::kAdd>, SameDTypes, kNumbers},
                   {"elementwise_sub", Numbers<Element::kSub>, SameDTypes, kNumbers},
                   {"elementwise_mul", Numbers<Element::kMul>, SameDTypes, kNumbers},
                   {"elementwise_max", Numbers<Element::kMax>, SameDTypes, kNumbers},
                   {"elementwise_min", Numbers<Element::kMin>, SameDTypes, kNumbers},
                   {"elementwise_div", Floats<Element::kDiv>, SameDTypes},
                   {"elementwise_pow", Floats<Element::kElementPow>, SameDTypes},
                   {"elementwise_mod", Floats<Element::kMod>, SameDTypes},
                   {"elementwise_floordiv", Floats<Element::kFloorDiv>, SameDTypes},
                   {"less_than", Predicate<Less>, SameDTypes, kComparable},
                   {"less_equal", Predicate<LessEqual>, SameDTypes, kComparable},
                   {"greater_than", Predicate<Greater>, SameDTypes, kComparable},
                   {"greater_equal", Predicate<GreaterEqual>, SameDTypes, kComparable},
                   {"equal", Predicate<Equal>, SameDTypes, kComparable},
                   {"not_equal", Predicate<NotEqual>, SameDTypes, kComparable},
                   {"logical_and", Predicate<And>, SameDTypes, kComparable},
                   {"logical_or", Predicate<Or>, SameDTypes, kComparable},
                   {"logical_xor", Predicate<Xor>, SameDTypes, kComparable},
                   {"elementwise_add_grad", BinaryGrad<Pass, Pass, false, false>, CoversGrad},
                   {"elementwise_sub_grad", BinaryGrad<Pass, Minus, false, false>, CoversGrad},
                   {"elementwise_mul_grad", BinaryGrad<TimesY, TimesX, true, false>, CoversGrad},
                   {"elementwise_div_grad", BinaryGrad<DivX, DivY, true, true>, CoversGrad},
                   {"elementwise_max_grad", BinaryGrad<MaxX, MaxY, true, false>, CoversGrad},
                   {"elementwise_min_grad", BinaryGrad<MinX, MinY, true, false>, CoversGrad},
                   {"elementwise_pow_grad", BinaryGrad<PowX, PowY, true, false>, CoversGrad},
               });
}

}  // namespace heddle::HEDDLE_GRID
