// Classes and rows drawn by a sequence of Philox, as TensorFlow draws them.
#include "core/interrupts.h"
#include "kernels/random/philox_words.h"

namespace heddle {
namespace philox {

// Takes so many blocks of the operator's sequence, of which State counts those that are used.
Philox Take(KernelContext& ctx, uint64_t blocks) {
  const auto seed = static_cast<uint64_t>(ctx.Int("seed")),
             seed2 = static_cast<uint64_t>(ctx.Int("seed2"));
  const auto used = static_cast<uint64_t>(ctx.In("State").data<int64_t>()[0]);
  const bool seeded = seed != 0 || seed2 != 0;
  ctx.Out("StateOut").mutable_data<int64_t>()[0] =
      static_cast<int64_t>(seeded ? used + blocks : used);
  if (!seeded) {
    const uint64_t first = ctx.random()();
    return Philox::OfKey(first, ctx.random()());
  }
  Philox generator = Philox::OfKey(seed, seed2);
  generator.Skip(used);
  return generator;
}
Philox TakeFor(KernelContext& ctx, int64_t elements) {
  constexpr uint64_t kBlocksForElement = 256;
  return Take(ctx, static_cast<uint64_t>(elements) * kBlocksForElement);
}

Status KeepState(ShapeContext& ctx) {
  const Shape& state = ctx.InShape("State");
  if (ctx.InDType("State") != DType::kI64 || (state.is_static() && state.numel() != 1))
    return InvalidArgument("State is ", Name(ctx.InDType("State")), " ", state.ToString(),
                           ", expected one int64");
  ctx.SetOut("StateOut", Shape{1}, DType::kI64);
  return Status::Ok();
}

void DefineState(OpDef& op) {
  op.Traits(kRandom).Input("State").Output("StateOut").Inplace("State", "StateOut");
  op.Attr("seed", 0).Attr("seed2", 0);
}

}  // namespace philox

namespace {

using namespace philox;

Status MultinomialShape(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(KeepState(ctx));
  if (!Known(ctx, "num_samples")) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts samples, IntsIn(ctx, "num_samples"));
  const Shape& logits = ctx.InShape("logits");
  if (samples.size() != 1 || samples[0] < 0 || (logits.known_rank() && logits.rank() != 2))
    return InvalidArgument("logits is ", logits.ToString(), " and num_samples has ", samples.size(),
                           " elements; a matrix and a number are expected");
  if (!logits.known_rank() || logits[0] < 0) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, MakeShape({logits[0], samples[0]}, "num_samples"));
  ctx.SetOut("output", shape, DTypeFromProto(ctx.Int("output_dtype")));
  return Status::Ok();
}

// Classes by the exponentials of their logits; those that are not finite are never drawn.
template <typename T>
struct StatefulMultinomial {
  static Status Run(KernelContext& ctx) {
    const Tensor& logits = ctx.In("logits");
    Tensor& out = ctx.Out("output");
    const int64_t rows = logits.dim(0), classes = logits.dim(1), samples = out.dim(1);
    if (out.dtype() != DType::kI32 && out.dtype() != DType::kI64)
      return Unimplemented("classes as ", Name(out.dtype()));
    if (classes == 0 && out.numel() > 0) return InvalidArgument("logits has no classes");
    Words words(TakeFor(ctx, 2 * rows * ((samples + 3) / 4 * 4)));  // two words for each
    std::vector<double> reach(static_cast<size_t>(classes));
    for (const int64_t r : Watched(rows)) {
      const T* row = logits.data<T>() + r * classes;
      double most = std::numeric_limits<T>::lowest(), sum = 0;
      for (int64_t c = 0; c < classes; ++c)
        if (std::isfinite(row[c])) most = std::max(most, static_cast<double>(row[c]));
      for (int64_t c = 0; c < classes; ++c) {
        if (std::isfinite(row[c])) sum += std::exp(static_cast<double>(row[c]) - most);
        reach[static_cast<size_t>(c)] = sum;
      }
      for (int64_t s = 0; s < samples; ++s) {
        const uint32_t high = words(), low = words();
        const double found = UnitDouble(high, low) * sum;
        const auto at = std::upper_bound(reach.begin(), reach.end(), found) - reach.begin();
        if (out.dtype() == DType::kI32)
          out.mutable_data<int32_t>()[r * samples + s] = static_cast<int32_t>(at);
        else
          out.mutable_data<int64_t>()[r * samples + s] = at;
      }
    }
    return Status::Ok();
  }
};

Status ShuffleShape(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(KeepState(ctx));
  ctx.SetOut("output", ctx.InShape("value"), ctx.InDType("value"));
  return Status::Ok();
}

// Swaps each row but the last with one of those from it on.
Status Shuffle(KernelContext& ctx) {
  const Tensor& value = ctx.In("value");
  Tensor& out = ctx.Out("output");
  const int64_t rows = value.rank() == 0 ? 1 : value.dim(0);
  std::vector<int64_t> order(static_cast<size_t>(rows));
  for (int64_t i = 0; i < rows; ++i) order[static_cast<size_t>(i)] = i;
  Words words(Take(ctx, rows > 1 ? static_cast<uint64_t>(rows + 2) / 4 : 0));
  if (rows > 1) {
    for (int64_t i = 0; i + 1 < rows; ++i)
      std::swap(order[static_cast<size_t>(i)],
                order[static_cast<size_t>(i + words() % static_cast<uint64_t>(rows - i))]);
  }
  if (value.bytes() == 0) return Status::Ok();
  const size_t row = value.bytes() / static_cast<size_t>(rows);
  const auto* from = static_cast<const std::byte*>(value.raw());
  auto* to = static_cast<std::byte*>(out.mutable_raw());
  for (int64_t at : order) {
    LookForInterrupt();
    CopyBytes(ctx, from + static_cast<size_t>(at) * row, to, row);
    to += row;
  }
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_multinomial) {
  op.Doc("classes of each row, drawn by the exponentials of logits; State as for philox_sequence");
  op.Input("logits").Input("num_samples", kShapeValue).Output("output");
  DefineState(op);
  op.InferShape(MultinomialShape);
  op.Attr("output_dtype", 3).KernelKey("logits").Kernels<StatefulMultinomial, float, double>();
}
HEDDLE_OP(tf_random_shuffle) {
  op.Doc("the rows of value in another order; State as for philox_sequence");
  op.Input("value").Output("output");
  DefineState(op);
  op.InferShape(ShuffleShape).AnyKernel(Shuffle);
}
