#include "kernels/folds/reduce.h"

#include <algorithm>

#include "core/interrupts.h"
#include "kernels/folds/reduce_loops.h"

namespace heddle {
namespace {

constexpr int64_t kPiece = 1 << 14;          // elements of a row summed in one go
constexpr int64_t kColumns = 256;            // accumulators side by side
constexpr int64_t kPartial = 64;             // rows added before the partial sum joins the total
constexpr int64_t kSplitElements = 1 << 18;  // from here a reduction to few outputs is cut up
constexpr int64_t kParts = 32;
constexpr int64_t kGrainElements = 1 << 15;

// A reduction cut into units (an output, or up to kColumns neighbouring ones) and segments (what is
// added to a unit in one call of an inner loop).
class Reduction {
 public:
  Reduction(const ReducePlan& plan, const ReduceLoops& loops, const void* x, void* out)
      : plan_(plan),
        loops_(loops),
        x_(static_cast<const std::byte*>(x)),
        out_(static_cast<std::byte*>(out)) {
    blocks_ = plan.inner_reduced ? 1 : (plan.inner + kColumns - 1) / kColumns;
    pieces_ = plan.inner_reduced ? (plan.inner + kPiece - 1) / kPiece : 1;
    units_ = plan.kept_count * blocks_;
    segments_ = plan.reduced_count * pieces_;
  }

  void Run(const KernelContext& ctx) const {
    const int64_t per_unit =
        plan_.count() * (plan_.inner_reduced ? 1 : std::min(plan_.inner, kColumns));
    if (units_ < kParts && units_ * per_unit >= kSplitElements && segments_ > 1) {
      RunInParts(ctx);
      return;
    }
    const int64_t grain = std::max<int64_t>(1, kGrainElements / std::max<int64_t>(1, per_unit));
    ctx.ParallelFor(units_, grain, [&](int64_t begin, int64_t end) {
      alignas(64) std::byte acc[kColumns * kMaxAccumulator];
      for (int64_t u = begin; u < end; ++u) {
        Accumulate(u, 0, segments_, acc);
        Finish(u, acc);
      }
    });
  }

 private:
  int64_t Width(int64_t unit) const {
    if (plan_.inner_reduced) return 1;
    return std::min(kColumns, plan_.inner - (unit % blocks_) * kColumns);
  }
  static int64_t Offset(int64_t index, int rank, const ReducePlan::Dims& dims,
                        const ReducePlan::Dims& strides) {
    int64_t offset = 0;
    for (int i = rank - 1; i >= 0; --i) {
      offset += index % dims[i] * strides[i];
      index /= dims[i];
    }
    return offset;
  }

  // Adds segments [begin, end) of a unit up in `acc`.
  void Accumulate(int64_t unit, int64_t begin, int64_t end, void* acc) const {
    const int64_t width = Width(unit);
    const int64_t base =
        Offset(unit / blocks_, plan_.kept_rank, plan_.kept_dims, plan_.kept_strides);
    loops_.init(acc, width);
    if (plan_.inner_reduced) {
      for (const int64_t s : Watched(begin, end)) {
        const int64_t at = s % pieces_ * kPiece;
        loops_.row(x_ + (base + Outer(s / pieces_) + at) * loops_.in_size,
                   std::min(kPiece, plan_.inner - at), acc);
      }
      return;
    }
    const std::byte* x = x_ + (base + unit % blocks_ * kColumns) * loops_.in_size;
    if (end - begin <= kPartial) {
      for (int64_t s = begin; s < end; ++s)
        loops_.column(x + Outer(s) * loops_.in_size, width, acc);
      return;
    }
    alignas(64) std::byte partial[kColumns * kMaxAccumulator];
    for (int64_t b = begin; b < end; b += kPartial) {
      LookForInterrupt();
      loops_.init(partial, width);
      for (int64_t s = b, e = std::min(end, b + kPartial); s < e; ++s)
        loops_.column(x + Outer(s) * loops_.in_size, width, partial);
      loops_.merge(partial, width, acc);
    }
  }
  int64_t Outer(int64_t segment) const {
    if (plan_.reduced_rank == 1) return segment * plan_.reduced_strides[0];
    return Offset(segment, plan_.reduced_rank, plan_.reduced_dims, plan_.reduced_strides);
  }
  void Finish(int64_t unit, const void* acc) const {
    const int64_t at =
        plan_.inner_reduced ? unit : unit / blocks_ * plan_.inner + unit % blocks_ * kColumns;
    loops_.finish(acc, Width(unit), plan_.count(), out_ + at * loops_.out_size);
  }

  // Few outputs of many elements: a fixed number of partial results, merged in order.
  void RunInParts(const KernelContext& ctx) const {
    const int64_t parts = std::min(kParts, segments_);
    const int64_t stride = kColumns * loops_.acc_size;
    Tensor scratch = ctx.CallScratch(DType::kU8, Shape{units_ * parts * stride});
    auto* accs = static_cast<std::byte*>(scratch.mutable_raw());
    ctx.ParallelFor(units_ * parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t p = i % parts;
        Accumulate(i / parts, segments_ * p / parts, segments_ * (p + 1) / parts,
                   accs + i * stride);
      }
    });
    for (int64_t u = 0; u < units_; ++u) {
      std::byte* total = accs + u * parts * stride;
      for (int64_t p = 1; p < parts; ++p) loops_.merge(total + p * stride, Width(u), total);
      Finish(u, total);
    }
  }

  const ReducePlan& plan_;
  const ReduceLoops& loops_;
  const std::byte* x_;
  std::byte* out_;
  int64_t blocks_, pieces_, units_, segments_;
};

}  // namespace

ReducePlan MakeReducePlan(std::span<const int64_t> dims, uint32_t reduced) {
  ReducePlan plan;
  int64_t stride = 1;
  bool have_inner = false;
  bool last_reduced = true;
  for (int i = static_cast<int>(dims.size()) - 1; i >= 0; --i) {
    const int64_t d = dims[i];
    const bool red = (reduced >> i & 1u) != 0;
    if (d == 1) continue;
    int64_t* merged = nullptr;  // the dimension that this one continues
    if (have_inner && red == last_reduced) {
      if (plan.kept_rank + plan.reduced_rank == 0)
        merged = &plan.inner;
      else
        merged = red ? &plan.reduced_dims[0] : &plan.kept_dims[0];
    }
    if (merged != nullptr) {
      *merged *= d;
    } else if (!have_inner) {
      plan.inner = d;
      plan.inner_reduced = red;
      have_inner = true;
    } else {
      // Dimensions come from the inside out; index 0 is the outermost.
      auto& list = red ? plan.reduced_dims : plan.kept_dims;
      auto& strides = red ? plan.reduced_strides : plan.kept_strides;
      int& rank = red ? plan.reduced_rank : plan.kept_rank;
      std::copy_backward(list.begin(), list.begin() + rank, list.begin() + rank + 1);
      std::copy_backward(strides.begin(), strides.begin() + rank, strides.begin() + rank + 1);
      list[0] = d;
      strides[0] = stride;
      ++rank;
    }
    if (red)
      plan.reduced_count *=
          merged == &plan.inner || (plan.kept_rank + plan.reduced_rank == 0) ? 1 : d;
    else
      plan.kept_count *= merged == &plan.inner || (plan.kept_rank + plan.reduced_rank == 0) ? 1 : d;
    last_reduced = red;
    stride *= d;
  }
  return plan;
}

ReducePlan MakeReducePlan(const BroadcastPlan& plan, bool of_x) {
  uint32_t reduced = 0;
  const auto& strides = of_x ? plan.x_strides : plan.y_strides;
  for (int i = 0; i < plan.rank; ++i)
    if (strides[i] == 0) reduced |= 1u << i;
  return MakeReducePlan(std::span(plan.dims.data(), static_cast<size_t>(plan.rank)), reduced);
}

void RunReduce(const KernelContext& ctx, const ReducePlan& plan, const ReduceLoops& loops,
               const void* x, void* out) {
  if (plan.outputs() == 0) return;
  Reduction(plan, loops, x, out).Run(ctx);
}

const ReduceLoops* SumLoops(DType dtype) {
  const ReduceLoops* loops = nullptr;
  VisitDType<float, double, int32_t, int64_t, float16, bfloat16, int16_t, int8_t, uint8_t, bool,
             std::complex<float>, std::complex<double>>(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    loops = &ReduceLoop<SumReduction, T, T>::kLoops;
  });
  return loops;
}

}  // namespace heddle
