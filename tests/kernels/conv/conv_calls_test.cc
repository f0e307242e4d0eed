// Convolutions in several calls: they compute what one call does.
#include "kernels/conv/conv_calls.h"

#include <gtest/gtest.h>

#include <random>

#include "core/kernel_context.h"
#include "kernels/base/ceil_div.h"
#include "memory/pool_allocator.h"
#include "scheduler/host_pool.h"

namespace heddle::testing {
namespace {

// Plain loops, under the name of a library that computes a case in one call.
class OneCall final : public ConvRunner {
 public:
  struct Calls {
    int64_t count = 0;
    double work = 0, longest = 0;
  };
  OneCall(const ConvGeometry& g, ConvDirection direction, bool adds, Calls* calls)
      : g_(g), direction_(direction), adds_(adds), calls_(calls) {}
  std::string name() const override { return "onednn, plainly"; }
  void Run(const KernelContext&, const ConvOperands& o) const override {
    ++calls_->count;
    calls_->work += g_.work();
    calls_->longest = std::max(calls_->longest, g_.work());
    const auto *src = static_cast<const float*>(o.src),
               *filter = static_cast<const float*>(o.filter);
    auto* dst = static_cast<float*>(o.dst);
    const int64_t results = direction_ == ConvDirection::kForward ? Out(g_.batch, 0, {0, 0, 0})
                            : direction_ == ConvDirection::kBackwardData
                                ? In(g_.batch, 0, {0, 0, 0})
                                : g_.out_c * (g_.in_c / g_.groups) * g_.kernel_size();
    for (int64_t i = 0; i < results; ++i)
      dst[i] = adds_ ? static_cast<const float*>(o.residual)[i] : 0;
    ForEach([&](int64_t in, int64_t out, int64_t w) {
      if (direction_ == ConvDirection::kForward) dst[out] += src[in] * filter[w];
      if (direction_ == ConvDirection::kBackwardData) dst[in] += src[out] * filter[w];
      if (direction_ == ConvDirection::kBackwardFilter) dst[w] += src[in] * filter[out];
    });
  }

 private:
  using Place = std::array<int64_t, 3>;
  int64_t At(int64_t channels, const Place& size, int64_t n, int64_t c, const Place& p) const {
    const int64_t all = size[0] * size[1] * size[2], at = (p[0] * size[1] + p[1]) * size[2] + p[2];
    return g_.channels_last ? (n * all + at) * channels + c : (n * channels + c) * all + at;
  }
  int64_t In(int64_t n, int64_t c, const Place& p) const { return At(g_.in_c, g_.in, n, c, p); }
  int64_t Out(int64_t n, int64_t c, const Place& p) const { return At(g_.out_c, g_.out, n, c, p); }

  template <typename Fn>
  void ForEach(Fn&& fn) const {
    const int64_t ins = g_.in_c / g_.groups, outs = g_.out_c / g_.groups;
    for (int64_t n = 0; n < g_.batch; ++n)
      for (int64_t o = 0; o < g_.out_c; ++o)
        for (int64_t c = 0; c < ins; ++c)
          for (int64_t p = 0; p < g_.out_size(); ++p)
            for (int64_t k = 0; k < g_.kernel_size(); ++k) {
              const Place out = Unfolded(p, g_.out), tap = Unfolded(k, g_.kernel);
              Place in;
              bool inside = true;
              for (int d = 0; d < 3; ++d) {
                in[d] = out[d] * g_.stride[d] - g_.pad_lo[d] + tap[d] * g_.dilation[d];
                inside = inside && in[d] >= 0 && in[d] < g_.in[d];
              }
              if (inside)
                fn(In(n, o / outs * ins + c, in), Out(n, o, out),
                   (o * ins + c) * g_.kernel_size() + k);
            }
  }
  static Place Unfolded(int64_t i, const Place& size) {
    return {i / (size[1] * size[2]), i / size[2] % size[1], i % size[2]};
  }

  const ConvGeometry g_;
  const ConvDirection direction_;
  const bool adds_;
  Calls* const calls_;
};

ConvGeometry RandomGeometry(std::mt19937_64& random) {
  const auto draw = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  ConvGeometry g;
  g.channels_last = draw(0, 1) == 1;
  g.spatial = static_cast<int>(draw(2, 3));
  g.batch = draw(1, 3);
  g.groups = draw(1, 2);
  g.in_c = g.groups * draw(1, 2), g.out_c = g.groups * draw(1, 2);
  for (int d = 3 - g.spatial; d < 3; ++d) {
    g.kernel[d] = draw(1, 3), g.stride[d] = draw(1, 3), g.dilation[d] = draw(1, 2);
    g.pad_lo[d] = draw(0, 2), g.pad_hi[d] = draw(0, 2);
    const int64_t reach = (g.kernel[d] - 1) * g.dilation[d] + 1;
    g.in[d] = std::max<int64_t>(1, draw(1, 9) + reach - g.pad_lo[d] - g.pad_hi[d]);
    g.in[d] = std::max(g.in[d], reach - g.pad_lo[d] - g.pad_hi[d]);
    g.out[d] = (g.in[d] + g.pad_lo[d] + g.pad_hi[d] - reach) / g.stride[d] + 1;
  }
  return g;
}

// Sums of such numbers are exact in any order.
std::vector<float> Integers(int64_t n, std::mt19937_64& random) {
  std::vector<float> v(static_cast<size_t>(n));
  for (float& x : v) x = static_cast<float>(static_cast<int>(random() % 17) - 8);
  return v;
}

TEST(ConvInCalls, ComputesWhatOneCallDoes) {
  std::mt19937_64 random(47);
  PoolAllocator allocator;
  InlineIntraOp intra(2);
  Services services;
  services.intra = &intra;
  services.allocator = &allocator;
  const BoundOp op;
  const KernelContext ctx(op, nullptr, services, nullptr);
  int cut = 0;
  for (int i = 0; i < 1500; ++i) {
    const ConvGeometry g = RandomGeometry(random);
    const auto direction = static_cast<ConvDirection>(random() % 3);
    Epilogue epilogue;
    epilogue.residual = random() % 2 == 0;
    const ConvCase c{g, DType::kF32, direction, nullptr, epilogue, 2, false};
    OneCall::Calls calls;
    const auto make = [&](const ConvCase& part) -> Result<std::unique_ptr<ConvRunner>> {
      return std::unique_ptr<ConvRunner>(
          std::make_unique<OneCall>(part.g, part.direction, part.epilogue.residual, &calls));
    };
    const int64_t in = g.batch * g.in_c * g.in_size(), out = g.batch * g.out_c * g.out_size(),
                  weights = g.out_c * (g.in_c / g.groups) * g.kernel_size();
    const bool forward = direction == ConvDirection::kForward,
               sums = direction == ConvDirection::kBackwardFilter;
    const auto src = Integers(forward || sums ? in : out, random);
    const auto filter = Integers(sums ? out : weights, random);
    const auto residual = Integers(forward ? out : sums ? weights : in, random);
    // A residual may be the result's memory.
    const bool in_place = random() % 2 == 0;
    const auto run = [&](const ConvRunner& runner) {
      std::vector<float> dst = residual;
      runner.Run(ctx, {src.data(), filter.data(), nullptr,
                       !epilogue.residual ? nullptr
                       : in_place         ? dst.data()
                                          : residual.data(),
                       dst.data()});
      return dst;
    };
    const auto whole = make(c);
    const std::vector<float> expected = run(**whole);
    calls = {};
    const auto parts = MakeConvInCalls(c, make, g.work() / static_cast<double>(1 + random() % 12));
    ASSERT_TRUE(parts.ok());
    EXPECT_EQ(run(**parts), expected)
        << "case " << i << ", direction " << static_cast<int>(direction);
    cut += calls.count > 1 ? 1 : 0;
    if (direction == ConvDirection::kBackwardData) {
      EXPECT_LE(calls.work, 1.5 * g.work());
    }
  }
  EXPECT_GT(cut, 500);
}

// Strips of a gradient whose windows reach over the whole image would each be all of the work.
TEST(ConvInCalls, WindowsAsLargeAsImagesAreCutByChannelsOrGroups) {
  constexpr int64_t kParts = 8;
  for (const int64_t groups : {1, 8})
    for (const bool channels_last : {false, true}) {
      ConvGeometry g;
      g.channels_last = channels_last;
      g.spatial = 3;
      g.batch = 2;
      g.groups = groups;
      g.in_c = 8;
      g.out_c = 16;
      g.kernel = {9, 9, 9};
      g.in = {11, 11, 11};
      g.out = {3, 3, 3};
      const ConvCase c{g, DType::kF32, ConvDirection::kBackwardData, nullptr, {}, 1, false};
      OneCall::Calls calls;
      const auto make = [&](const ConvCase& part) -> Result<std::unique_ptr<ConvRunner>> {
        return std::unique_ptr<ConvRunner>(
            std::make_unique<OneCall>(part.g, part.direction, false, &calls));
      };
      std::mt19937_64 random(7);
      const auto src = Integers(g.batch * g.out_c * g.out_size(), random);
      const auto filter = Integers(g.out_c * (g.in_c / groups) * g.kernel_size(), random);
      std::vector<float> whole(static_cast<size_t>(g.batch * g.in_c * g.in_size())), cut = whole;
      PoolAllocator allocator;
      InlineIntraOp intra(1);
      Services services;
      services.intra = &intra;
      services.allocator = &allocator;
      const BoundOp op;
      const KernelContext ctx(op, nullptr, services, nullptr);
      (*make(c))->Run(ctx, {src.data(), filter.data(), nullptr, nullptr, whole.data()});
      calls = {};
      const auto parts = MakeConvInCalls(c, make, g.work() / (2 * kParts));
      ASSERT_TRUE(parts.ok());
      (*parts)->Run(ctx, {src.data(), filter.data(), nullptr, nullptr, cut.data()});
      EXPECT_EQ(cut, whole);
      EXPECT_EQ(calls.work, g.work());
      EXPECT_EQ(calls.longest, g.work() / (2 * kParts));
    }
}

}  // namespace
}  // namespace heddle::testing
