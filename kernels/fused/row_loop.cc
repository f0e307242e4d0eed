#include "kernels/fused/row_loop.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/base/work_space.h"
#include "kernels/folds/reduce_loops.h"

namespace heddle {
namespace {

constexpr size_t kRowStackBytes = 48 << 10;  // work space of a thread that needs no allocation
constexpr int64_t kRowPiece = 1 << 14;       // as RunReduce takes rows in

template <typename R>
const ReduceLoops* RowLoopsOf(DType dtype) {
  if (dtype == DType::kF32) return &ReduceLoop<R, float, float>::kLoops;
  return dtype == DType::kF64 ? &ReduceLoop<R, double, double>::kLoops : nullptr;
}

class RowRunner {
 public:
  RowRunner(const KernelContext& ctx, const RowLoop& loop)
      : ctx_(ctx), l_(loop), size_(SizeOf(loop.dtype)) {}

  // Blocks [first, last).
  void Run(int64_t first, int64_t last) const {
    const size_t bytes = l_.work_bytes + l_.places.size() * sizeof(std::byte*);
    WithWorkSpace<kRowStackBytes>(bytes, [&](std::byte* work) { RunIn(work, first, last); });
  }

 private:
  using Place = RowLoop::Place;
  using Action = RowLoop::Action;

  static int64_t InGroups(int64_t n) { return (n + TileStep::kGroup - 1) & -TileStep::kGroup; }
  size_t RowBytes() const { return static_cast<size_t>(l_.cols) * size_; }
  // The distance of two rows' values.
  size_t StepOf(RowLoop::Extent e) const {
    return e == RowLoop::kFull ? RowBytes() : e == RowLoop::kRow ? size_ : 0;
  }

  size_t RegisterBytes(RowLoop::Extent e) const {
    return static_cast<size_t>(InGroups(e == RowLoop::kFull ? l_.block * l_.cols : l_.block)) *
           size_;
  }

  const std::byte* Input(const Place& p) const {
    return static_cast<const std::byte*>(
        std::as_const(ctx_.frame()[ctx_.op().in[p.slot]]->tensor()).raw());
  }
  std::byte* Output(const Place& p) const {
    return static_cast<std::byte*>(ctx_.frame()[ctx_.op().out[p.slot]]->tensor().mutable_raw());
  }

  void RunIn(std::byte* work, int64_t first, int64_t last) const {
    auto** const at = reinterpret_cast<std::byte**>(work + l_.work_bytes);
    for (size_t i = 0; i < l_.places.size(); ++i) {
      const Place& p = l_.places[i];
      at[i] = work + p.offset;
      if (p.where == RowLoop::kInput) at[i] = const_cast<std::byte*>(Input(p));
      if (p.where == RowLoop::kOutput) at[i] = Output(p);
    }
    for (const uint32_t i : l_.padded) std::memset(at[i], 0, RegisterBytes(l_.places[i].extent));
    for (const uint32_t i : l_.filled) Fill(l_.places[i], at[i]);
    if (first > 0) Move(at, first);
    for (int64_t b = first; b < last; ++b) {
      const int64_t row = b * l_.block, rows = std::min(l_.block, l_.rows - row);
      for (const uint32_t i : l_.taken) {
        const size_t step = StepOf(l_.places[i].extent);
        std::memcpy(at[i], Input(l_.places[i]) + static_cast<size_t>(row) * step,
                    static_cast<size_t>(rows) * step);
      }
      for (const Action& a : l_.actions) Do(a, at, rows);
      for (const uint32_t i : l_.given) {
        const size_t step = StepOf(l_.places[i].extent);
        std::memcpy(Output(l_.places[i]) + static_cast<size_t>(row) * step, at[i],
                    static_cast<size_t>(rows) * step);
      }
      if (b + 1 < last) Move(at, 1);
    }
  }

  // Moves the addresses on by some blocks.
  void Move(std::byte** at, int64_t blocks) const {
    for (const uint32_t i : l_.moving)
      at[i] += static_cast<size_t>(blocks * l_.block) * StepOf(l_.places[i].extent);
  }

  // Fills a register with as many copies as it has room for.
  void Fill(const Place& p, std::byte* to) const {
    const std::byte* const from = Input(p);
    const size_t piece = p.tensor == RowLoop::kColumn ? RowBytes() : size_;
    const size_t bytes = static_cast<size_t>(l_.block) * StepOf(p.extent);
    for (size_t done = 0; done < bytes; done += piece) std::memcpy(to + done, from, piece);
  }

  void Do(const Action& a, std::byte** at, int64_t rows) const {
    switch (a.what) {
      case Action::kStep: {
        std::byte* operands[TileStep::kMaxIn + 1];
        for (int k = 0; k <= a.operands; ++k) operands[k] = at[a.at[static_cast<size_t>(k)]];
        a.step.fn(a.step, operands, InGroups(a.extent == RowLoop::kFull ? rows * l_.cols : rows));
        return;
      }
      case Action::kEachRow:
        return EachRow(a, at, rows);
      case Action::kReduce:
        return Reduce(a, at, rows);
      case Action::kSpread:
        return l_.dtype == DType::kF32 ? Spread<float>(a, at, rows) : Spread<double>(a, at, rows);
    }
  }

  void EachRow(const Action& a, std::byte** at, int64_t rows) const {
    std::byte* operands[TileStep::kMaxIn + 1];
    size_t steps[TileStep::kMaxIn + 1];
    for (int k = 0; k <= a.operands; ++k) {
      const uint32_t place = a.at[static_cast<size_t>(k)];
      operands[k] = at[place];
      steps[k] = StepOf(l_.places[place].extent);
    }
    const int64_t n = InGroups(l_.cols);
    for (int64_t r = 0; r < rows; ++r) {
      a.step.fn(a.step, operands, n);
      for (int k = 0; k <= a.operands; ++k) operands[k] += steps[k];
    }
  }

  void Reduce(const Action& a, std::byte** at, int64_t rows) const {
    const std::byte* x = at[a.at[0]];
    std::byte* out = at[a.at[1]];
    alignas(64) std::byte acc[kMaxAccumulator];
    for (int64_t r = 0; r < rows; ++r, x += RowBytes(), out += size_) {
      a.reduce->init(acc, 1);
      for (int64_t i = 0; i < l_.cols; i += kRowPiece)
        a.reduce->row(x + static_cast<size_t>(i) * size_, std::min(kRowPiece, l_.cols - i), acc);
      a.reduce->finish(acc, 1, l_.cols, out);
    }
  }

  template <typename T>
  void Spread(const Action& a, std::byte** at, int64_t rows) const {
    const T* const from = reinterpret_cast<const T*>(at[a.at[0]]);
    T* to = reinterpret_cast<T*>(at[a.at[1]]);
    for (int64_t r = 0; r < rows; ++r, to += l_.cols) std::fill_n(to, l_.cols, from[r]);
  }

  const KernelContext& ctx_;
  const RowLoop& l_;
  const size_t size_;
};

}  // namespace

const ReduceLoops* FindRowReduction(std::string_view op, DType dtype, int64_t elements) {
  if (op == "reduce_sum" && dtype == DType::kF32 && elements <= kFewToSum)
    return &ReduceLoop<SumTo<double>, float, float>::kLoops;
  if (op == "reduce_sum") return RowLoopsOf<SumReduction>(dtype);
  if (op == "reduce_mean") return RowLoopsOf<MeanReduction>(dtype);
  if (op == "reduce_max") return RowLoopsOf<MaxReduction>(dtype);
  if (op == "reduce_min") return RowLoopsOf<MinReduction>(dtype);
  return nullptr;
}

void RunRowLoop(const KernelContext& ctx, const RowLoop& loop) {
  const RowRunner runner(ctx, loop);
  const int64_t blocks = (loop.rows + loop.block - 1) / loop.block;
  ctx.ParallelFor(blocks, loop.grain,
                  [&](int64_t first, int64_t last) { runner.Run(first, last); });
}

}  // namespace heddle
