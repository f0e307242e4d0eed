#include "kernels/rnn/rnn_inference.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory_resource>
#include <new>
#include <string>
#include <vector>

#include "kernels/simd/microkernels.h"

namespace heddle {
namespace {

// The least multiplications that are shared by threads: of a step, and of a whole layer.
constexpr int64_t kStepWork = 128 * 1024;
constexpr int64_t kLayerWork = 256 * 1024;

// Weights [gates * hidden, k] as strips of columns.
std::shared_ptr<const Tensor> PackStrips(const PrepareContext& ctx, const Tensor& w, int64_t gates,
                                         int64_t hidden, int64_t units) {
  const std::string key = "rnn strips of " + std::to_string(units) + " " + w.shape().ToString() +
                          " " + std::to_string(gates);
  return ctx.packs().Get<Tensor>(w, key, [&] {
    const int64_t k = w.dim(1), strips = (hidden + units - 1) / units, width = gates * units;
    auto out = std::make_unique<Tensor>(Tensor::Empty(DType::kF32, {strips, k, width}));
    if (!out->initialized()) throw std::bad_alloc();
    const float* from = w.data<float>();
    float* to = out->mutable_data<float>();
    for (int64_t s = 0; s < strips; ++s)
      for (int64_t g = 0; g < gates; ++g)
        for (int64_t u = 0; u < units; ++u) {
          const int64_t unit = s * units + u;
          const float* row = from + (g * hidden + unit) * k;
          float* column = to + s * k * width + g * units + u;
          for (int64_t i = 0; i < k; ++i) column[i * width] = unit < hidden ? row[i] : 0.f;
        }
    return out.release();
  });
}

Tensor Zeros(int64_t n) {
  Tensor t = Tensor::Empty(DType::kF32, {n});
  if (!t.initialized()) throw std::bad_alloc();
  std::fill_n(t.mutable_data<float>(), n, 0.f);
  return t;
}

// The work space of one direction: the gates' sums over the inputs, the old and the new state, the
// cells.
struct Work {
  float *gates, *h[2], *c;
};

// One direction of a layer.
class Direction {
 public:
  Direction(const PackedRnn& pack, const RnnLayerArgs& args, int index, int64_t out_step, Work work)
      : p_(pack),
        a_(args),
        index_(index),
        out_step_(out_step),
        work_(work),
        kernel_(simd::BestMicrokernels()->RecurrentFor(pack.mode)) {}

  static int64_t WorkSize(const PackedRnn& p, const RnnLayerArgs& a) {
    return a.steps * a.batch * p.columns() + 3 * a.batch * p.padded();
  }

  void Begin() {
    Load(a_.h0[index_], work_.h[0]);
    std::fill_n(work_.h[1], a_.batch * p_.padded(), 0.f);
    if (a_.c0[index_] != nullptr) Load(a_.c0[index_], work_.c);
  }

  // Multiplies the inputs of all steps with the weights of strips [begin, end).
  void Project(int64_t begin, int64_t end) const {
    const int64_t width = p_.strip_width();
    for (int64_t s = begin; s < end; ++s)
      kernel_.project(a_.steps * a_.batch, p_.in, a_.x, p_.in,
                      p_.ih->data<float>() + s * p_.in * width, p_.bias.data<float>() + s * width,
                      work_.gates + s * width, p_.columns());
  }

  // Runs the i-th step of strips [begin, end).
  void Step(int64_t i, int64_t begin, int64_t end) const {
    const int64_t t = index_ == 1 ? a_.steps - 1 - i : i, width = p_.strip_width();
    StripStep s;
    s.batch = a_.batch, s.hidden = p_.hidden, s.padded = p_.padded(), s.t = t;
    s.lengths = a_.lengths;
    s.gates_step = p_.columns(), s.out_step = out_step_;
    // Every other step reads the weights backwards: the last ones are still in the L1 cache.
    s.back = i % 2 == 1;
    for (int64_t n = begin; n < end; ++n) {
      const int64_t strip = s.back ? begin + end - 1 - n : n;
      const int64_t unit = strip * p_.units;
      s.weights = p_.hh->data<float>() + strip * p_.hidden * width;
      s.recurrent_bias =
          p_.mode == RnnMode::kGru ? p_.recurrent_bias.data<float>() + unit : nullptr;
      s.gates = work_.gates + t * a_.batch * p_.columns() + strip * width;
      s.h = work_.h[i % 2];
      s.unit = unit;
      s.h_prev = work_.h[i % 2] + unit;
      s.h_next = work_.h[(i + 1) % 2] + unit;
      s.c = work_.c + unit;
      s.out = a_.out + t * a_.batch * out_step_ + index_ * p_.hidden + unit;
      kernel_.step(s);
    }
  }

  void End() const {
    Store(work_.h[a_.steps % 2], a_.last_h[index_]);
    if (p_.mode == RnnMode::kLstm) Store(work_.c, a_.last_c[index_]);
  }

  void RunAlone() {
    Begin();
    Project(0, p_.strips);
    for (int64_t i = 0; i < a_.steps; ++i) Step(i, 0, p_.strips);
    End();
  }

 private:
  void Load(const float* from, float* to) const {
    for (int64_t b = 0; b < a_.batch; ++b) {
      std::copy_n(from + b * p_.hidden, p_.hidden, to + b * p_.padded());
      std::fill_n(to + b * p_.padded() + p_.hidden, p_.padded() - p_.hidden, 0.f);
    }
  }
  void Store(const float* from, float* to) const {
    if (to == nullptr) return;
    for (int64_t b = 0; b < a_.batch; ++b)
      std::copy_n(from + b * p_.padded(), p_.hidden, to + b * p_.hidden);
  }

  const PackedRnn& p_;
  const RnnLayerArgs& a_;
  int index_;
  int64_t out_step_;
  Work work_;
  StripKernel kernel_;
};

}  // namespace

std::unique_ptr<PackedRnn> PackRnn(const PrepareContext& ctx, RnnMode mode, const Tensor& ih,
                                   const Tensor& hh, const Tensor& bias_ih, const Tensor& bias_hh) {
  auto p = std::make_unique<PackedRnn>();
  const int64_t gates = RnnGates(mode);
  p->mode = mode;
  p->in = ih.dim(1), p->hidden = hh.dim(1);
  p->units = simd::BestMicrokernels()->RecurrentFor(mode).units;
  p->strips = (p->hidden + p->units - 1) / p->units;
  p->ih = PackStrips(ctx, ih, gates, p->hidden, p->units);
  p->hh = PackStrips(ctx, hh, gates, p->hidden, p->units);
  p->bias = Zeros(p->columns());
  const bool gru = mode == RnnMode::kGru;
  if (gru) p->recurrent_bias = Zeros(p->padded());
  const float *b1 = bias_ih.data<float>(), *b2 = bias_hh.data<float>();
  float* to = p->bias.mutable_data<float>();
  for (int64_t unit = 0; unit < p->hidden; ++unit) {
    for (int64_t g = 0; g < gates; ++g) {
      const int64_t from = g * p->hidden + unit;
      const bool apart = gru && g == 2;
      to[unit / p->units * p->strip_width() + g * p->units + unit % p->units] =
          apart ? b1[from] : b1[from] + b2[from];
      if (apart) p->recurrent_bias.mutable_data<float>()[unit] = b2[from];
    }
  }
  return p;
}

void RunRnnLayer(const KernelContext& ctx, std::span<const PackedRnn* const> directions,
                 const RnnLayerArgs& all_steps) {
  const int count = static_cast<int>(directions.size());
  const PackedRnn& first = *directions[0];
  // Behind the end of the longest sequence outputs are zero and states stay as they are.
  RnnLayerArgs args = all_steps;
  args.steps = LongestOf(args.lengths, args.batch, args.steps);
  const int64_t row = args.batch * count * first.hidden;
  std::fill_n(args.out + args.steps * row, (all_steps.steps - args.steps) * row, 0.f);
  const int64_t size = Direction::WorkSize(first, args), states = args.batch * first.padded();
  Tensor hold = ctx.CallScratch(DType::kF32, {count * size});
  // At most two directions, on the stack.
  std::array<std::byte, 2 * sizeof(Direction) + alignof(Direction)> room;
  std::pmr::monotonic_buffer_resource resource(room.data(), room.size());
  std::pmr::vector<Direction> runs(&resource);
  runs.reserve(directions.size());
  for (int d = 0; d < count; ++d) {
    float* at = hold.mutable_data<float>() + d * size;
    float* h = at + args.steps * args.batch * first.columns();
    runs.emplace_back(*directions[static_cast<size_t>(d)], args, d, count * first.hidden,
                      Work{at, {h, h + states}, h + 2 * states});
  }
  const int64_t step_work = count * args.batch * first.columns() * first.hidden;
  const int64_t work = args.steps * (step_work + count * args.batch * first.columns() * first.in);
  if (ctx.threads() == 1 || work < kLayerWork) {
    for (Direction& run : runs) run.RunAlone();
    return;
  }
  if (count > 1 && (ctx.threads() <= count || step_work < kStepWork)) {
    ctx.ParallelFor(count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t d = begin; d < end; ++d) runs[static_cast<size_t>(d)].RunAlone();
    });
    return;
  }
  // Threads share the strips of both directions.
  const auto over_strips = [&](bool share, const auto& fn) {
    const auto some = [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at)
        fn(runs[static_cast<size_t>(at / first.strips)], at % first.strips);
    };
    const int64_t all = count * first.strips;
    if (share)
      ctx.ParallelFor(all, 1, some);
    else
      some(0, all);
  };
  for (Direction& run : runs) run.Begin();
  over_strips(true, [](const Direction& run, int64_t s) { run.Project(s, s + 1); });
  for (int64_t i = 0; i < args.steps; ++i)
    over_strips(step_work >= kStepWork,
                [i](const Direction& run, int64_t s) { run.Step(i, s, s + 1); });
  for (const Direction& run : runs) run.End();
}

}  // namespace heddle
