#include "kernels/fused/element_loop.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/base/call_heap.h"
#include "kernels/base/work_space.h"

namespace heddle {
namespace {

constexpr size_t kStackBytes = 32 << 10;  // work space of a thread that needs no allocation

// `between` has a tensor for each of ElementLoops::between.
std::byte* ElementAddress(const KernelContext& ctx, ElementPlace p, std::span<Tensor> between) {
  const auto tensor = [&](uint32_t slot) -> Tensor& { return ctx.frame()[slot]->tensor(); };
  switch (p.kind) {
    case ElementPlace::kInput:  // only read
      return static_cast<std::byte*>(
          const_cast<void*>(std::as_const(tensor(ctx.op().in[p.index])).raw()));
    case ElementPlace::kOutput:
      return static_cast<std::byte*>(tensor(ctx.op().out[p.index]).mutable_raw());
    case ElementPlace::kBetween:
      break;
  }
  return static_cast<std::byte*>(between[p.index].mutable_raw());
}

template <typename T>
class Runner {
 public:
  Runner(const KernelContext& ctx, const ElementLoop& loop, std::span<Tensor> between)
      : ctx_(ctx), l_(loop), between_(between) {}

  // Tiles [first, last).
  void Run(int64_t first, int64_t last) const {
    WithWorkSpace<kStackBytes>(WorkBytes(), [&](std::byte* work) { RunIn(work, first, last); });
  }

 private:
  static constexpr int64_t kGroup = TileStep::kGroup;
  static constexpr size_t kGroupBytes = kGroup * sizeof(T);

  size_t Tiles() const { return l_.registers + l_.spreads.size(); }
  size_t TileBytes() const { return static_cast<size_t>(l_.tile) * sizeof(T); }
  // Tiles, a group for each stream (see RunRest), the table of addresses, and for each spread the
  // row that its tile holds.
  size_t WorkBytes() const {
    return Tiles() * TileBytes() + l_.streams.size() * (kGroupBytes + sizeof(std::byte*)) +
           Tiles() * sizeof(std::byte*) + l_.spreads.size() * sizeof(int64_t);
  }

  std::byte* Address(ElementPlace p) const { return ElementAddress(ctx_, p, between_); }

  void RunIn(std::byte* work, int64_t first, int64_t last) const {
    const size_t tiles = Tiles(), streams = l_.streams.size();
    std::byte* const groups = work + tiles * TileBytes();
    auto** const at = reinterpret_cast<std::byte**>(groups + streams * kGroupBytes);
    auto* const row_in = reinterpret_cast<int64_t*>(at + tiles + streams);
    std::fill_n(row_in, l_.spreads.size(), -1);
    for (size_t i = 0; i < tiles; ++i) at[i] = work + i * TileBytes();
    const size_t begin = static_cast<size_t>(first * l_.tile) * sizeof(T);
    for (size_t i = 0; i < streams; ++i) at[tiles + i] = Address(l_.streams[i].place) + begin;
    for (const auto& s : l_.spreads)
      if (s.filled_once && !s.one) Fill(s, 0, l_.tile, at[l_.registers + (&s - l_.spreads.data())]);
    for (int64_t t = first; t < last; ++t) {
      const int64_t n = std::min(l_.tile, l_.numel - t * l_.tile), whole = n & -kGroup;
      for (size_t i = 0; i < l_.spreads.size(); ++i)
        if (!l_.spreads[i].filled_once || l_.spreads[i].one)
          at[l_.registers + i] = Spread(l_.spreads[i], t * l_.tile, n,
                                        work + (l_.registers + i) * TileBytes(), &row_in[i]);
      if (whole > 0)
        for (const TileStep& step : l_.steps) step.fn(step, at, whole);
      if (whole < n) RunRest(groups, at, whole, n - whole);
      for (size_t i = 0; i < streams; ++i) at[tiles + i] += TileBytes();
    }
  }

  // The last elements, fewer than a group: streams go through groups of their own, so that nothing
  // outside the tensors is touched.
  void RunRest(std::byte* groups, std::byte** at, int64_t done, int64_t n) const {
    const size_t tiles = Tiles(), offset = static_cast<size_t>(done) * sizeof(T),
                 bytes = static_cast<size_t>(n) * sizeof(T);
    for (size_t i = 0; i < l_.spreads.size(); ++i)
      if (!l_.spreads[i].one) at[l_.registers + i] += offset;
    for (size_t i = 0; i < l_.streams.size(); ++i) {
      std::byte* const group = groups + i * kGroupBytes;
      std::memset(group, 0, kGroupBytes);
      if (l_.streams[i].read) std::memcpy(group, at[tiles + i] + offset, bytes);
      at[tiles + i] = group;
    }
    for (const TileStep& step : l_.steps) step.fn(step, at, kGroup);
    const size_t begin = static_cast<size_t>(l_.numel - n) * sizeof(T);
    for (size_t i = 0; i < l_.streams.size(); ++i)
      if (l_.streams[i].written)
        std::memcpy(Address(l_.streams[i].place) + begin, groups + i * kGroupBytes, bytes);
  }

  // The spread operand's elements [begin, begin + n): where they lie, or `tile` filled with them.
  // `*row`: of which row all of the tile is, -1 for none.
  std::byte* Spread(const ElementLoop::Spread& s, int64_t begin, int64_t n, std::byte* tile,
                    int64_t* row) const {
    const int64_t cols = s.plan.cols, at = begin / cols, col = begin % cols;
    if (s.one) return Address(s.from) + static_cast<size_t>(RowOffset(s.plan, at)) * sizeof(T);
    if (col + n > cols || n < l_.tile) {
      *row = -1;
    } else if (s.plan.y_strides[static_cast<size_t>(s.plan.rank - 1)] != 0) {
      return Address(s.from) + static_cast<size_t>(RowOffset(s.plan, at) + col) * sizeof(T);
    } else if (*row == at) {
      return tile;
    } else {
      *row = at;
    }
    Fill(s, begin, n, tile);
    return tile;
  }

  // Elements [begin, begin + n) of the spread operand, and zeros to the next whole group.
  void Fill(const ElementLoop::Spread& s, int64_t begin, int64_t n, std::byte* to) const {
    const T* const from = reinterpret_cast<const T*>(Address(s.from));
    const BroadcastPlan& plan = s.plan;
    T* out = reinterpret_cast<T*>(to);
    std::fill(out + n, out + ((n + kGroup - 1) & -kGroup), T(0));
    const bool moves = plan.y_strides[static_cast<size_t>(plan.rank - 1)] != 0;
    for (int64_t row = begin / plan.cols, col = begin % plan.cols; n > 0; ++row, col = 0) {
      const int64_t length = std::min(n, plan.cols - col);
      const T* const x = from + RowOffset(plan, row);
      if (moves)
        std::copy_n(x + col, length, out);
      else
        std::fill_n(out, length, *x);
      out += length;
      n -= length;
    }
  }

  // Offset of row `row` of the broadcast operand. Rows beyond the last wrap around, which happens
  // when a tile that is filled once is longer than the tensor.
  static int64_t RowOffset(const BroadcastPlan& plan, int64_t row) {
    int64_t offset = 0;
    for (int i = plan.rank - 2; i >= 0; --i) {
      const auto k = static_cast<size_t>(i);
      offset += row % plan.dims[k] * plan.y_strides[k];
      row /= plan.dims[k];
    }
    return offset;
  }

  const KernelContext& ctx_;
  const ElementLoop& l_;
  const std::span<Tensor> between_;
};

template <typename T>
void RunTyped(const KernelContext& ctx, const ElementLoop& loop, std::span<Tensor> between) {
  const Runner<T> runner(ctx, loop, between);
  const int64_t tiles = (loop.numel + loop.tile - 1) / loop.tile;
  ctx.ParallelFor(tiles, loop.grain, [&](int64_t first, int64_t last) { runner.Run(first, last); });
}

constexpr size_t kFewTiles = 16, kFewStreams = 16;
constexpr int64_t kFewElements = 256, kFewRows = 4;

// A step that reads a row computes row by row; all others compute all elements at once.
template <typename T>
void RunSmall(const KernelContext& ctx, const ElementLoop& loop) {
  alignas(64) std::byte work[kFewTiles * kFewElements * sizeof(T)];
  std::byte* at[kFewTiles + kFewStreams];
  const uint32_t *const in = ctx.op().in.begin(), *const out = ctx.op().out.begin();
  const auto address = [&](ElementPlace place) {
    const uint32_t* const slots = place.kind == ElementPlace::kInput ? in : out;
    return static_cast<std::byte*>(ctx.frame()[slots[place.index]]->tensor().mutable_raw());
  };
  std::byte** next = at;
  for (uint32_t i = 0; i < loop.registers; ++i)
    *next++ = work + i * static_cast<size_t>(loop.numel) * sizeof(T);
  for (const ElementLoop::Spread& spread : loop.spreads) *next++ = address(spread.from);
  std::byte** const streams = next;
  for (const ElementLoop::Stream& stream : loop.streams) *next++ = address(stream.place);
  const int64_t all = loop.numel;
  if (loop.reads_row.empty()) {
    for (const TileStep& step : loop.steps) step.fn(step, at, all);
    return;
  }
  const int64_t n = loop.tile;
  for (size_t i = 0; i < loop.steps.size(); ++i) {
    const TileStep& step = loop.steps[i];
    if (!loop.reads_row[i]) {
      step.fn(step, at, all);
      continue;
    }
    std::byte* row[kFewTiles + kFewStreams];
    std::copy(at, next, row);
    for (int64_t done = 0; done < all; done += n) {
      step.fn(step, row, n);
      const size_t bytes = static_cast<size_t>(n) * sizeof(T);
      for (uint32_t r = 0; r < loop.registers; ++r) row[r] += bytes;
      for (std::byte** stream = row + (streams - at); stream < row + (next - at); ++stream)
        *stream += bytes;
    }
  }
}

void RunOneLoop(const KernelContext& ctx, const ElementLoop& loop, DType dtype,
                std::span<Tensor> between) {
  if (loop.reduce != nullptr)
    return RunReduce(ctx, loop.reduce_plan, *loop.reduce, ElementAddress(ctx, loop.from, between),
                     ElementAddress(ctx, loop.to, between));
  if (loop.small)
    return dtype == DType::kF32 ? RunSmall<float>(ctx, loop) : RunSmall<double>(ctx, loop);
  if (loop.numel == 0) return;
  if (dtype == DType::kF32)
    RunTyped<float>(ctx, loop, between);
  else
    RunTyped<double>(ctx, loop, between);
}

// Any number of loops, which may hand tensors to later ones.
[[gnu::noinline]] void RunLoopChain(const KernelContext& ctx, const ElementLoops& state) {
  if (state.between.empty()) {
    for (const ElementLoop& loop : state.loops) RunOneLoop(ctx, loop, state.dtype, {});
    return;
  }
  CallHeap heap(ctx);
  std::pmr::vector<Tensor> between(&heap);
  for (const Shape& shape : state.between) between.push_back(ctx.Scratch(state.dtype, shape));
  for (const ElementLoop& loop : state.loops) RunOneLoop(ctx, loop, state.dtype, between);
}

bool IsSmall(const ElementLoop& loop) {
  if (loop.reduce != nullptr || loop.numel == 0 || loop.numel > kFewElements) return false;
  const int64_t n = std::min(loop.tile, loop.numel);
  if (n % TileStep::kGroup != 0 || loop.numel % n != 0 || loop.numel / n > kFewRows) return false;
  const auto in_place = [n](const ElementLoop::Spread& s) {  // every tile reads the same
    for (int i = 0; i + 1 < s.plan.rank; ++i)
      if (s.plan.y_strides[static_cast<size_t>(i)] != 0) return false;
    return s.from.kind == ElementPlace::kInput &&
           (s.one ||
            (s.plan.cols == n && s.plan.y_strides[static_cast<size_t>(s.plan.rank - 1)] != 0));
  };
  return std::all_of(loop.spreads.begin(), loop.spreads.end(), in_place) &&
         loop.registers + loop.spreads.size() <= kFewTiles && loop.streams.size() <= kFewStreams &&
         std::none_of(loop.streams.begin(), loop.streams.end(), [](const auto& stream) {
           return stream.place.kind == ElementPlace::kBetween;
         });
}

// Whether the step reads a row that is the same for all rows of the result.
bool ReadsRow(const ElementLoop& loop, const TileStep& step) {
  return std::any_of(std::begin(step.in), std::end(step.in), [&](uint32_t in) {
    const uint32_t spread = in - loop.registers;
    return in >= loop.registers && spread < loop.spreads.size() && !loop.spreads[spread].one;
  });
}

}  // namespace

void RunElementLoops(const KernelContext& ctx, const ElementLoops& state) {
  if (state.loops.size() != 1 || !state.loops.front().small) return RunLoopChain(ctx, state);
  const ElementLoop& loop = state.loops.front();
  return state.dtype == DType::kF32 ? RunSmall<float>(ctx, loop) : RunSmall<double>(ctx, loop);
}

void FindSmall(ElementLoop* loop) {
  loop->small = IsSmall(*loop);
  loop->reads_row.clear();
  if (!loop->small || loop->tile >= loop->numel) return;
  for (const TileStep& step : loop->steps) loop->reads_row.push_back(ReadsRow(*loop, step));
  if (std::none_of(loop->reads_row.begin(), loop->reads_row.end(), [](bool b) { return b; }))
    loop->reads_row.clear();
}

}  // namespace heddle
