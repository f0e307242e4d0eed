// Convolutions by whichever way is the fastest here, as measured.
#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/kernel_tuner.h"
#include "core/lazy_buffer.h"
#include "kernels/conv/conv_backend.h"

namespace heddle {
namespace {

using Runner = std::unique_ptr<ConvRunner>;

struct Case {
  const PrepareContext& ctx;
  const ConvGeometry& g;
  ConvDirection direction;
  const Tensor* filter;
  const Epilogue& epilogue;
};

// In the order in which they are taken without measuring, but for what Winograd's method declines.
struct Way {
  const char* name;
  Runner (*make)(const Case& c);
};
constexpr Way kWays[] = {
    {"winograd",
     [](const Case& c) {
       return MakeWinogradConv(c.ctx, c.g, c.direction, c.filter, c.epilogue, true);
     }},
    {"depthwise",
     [](const Case& c) {
       return MakeDepthwiseConv(c.ctx, c.g, c.direction, c.filter, c.epilogue);
     }},
    {"patches",
     [](const Case& c) { return MakePatchConv(c.ctx, c.g, c.direction, c.filter, c.epilogue); }},
    {"library",
     [](const Case& c) { return MakeLibraryConv(c.ctx, c.g, c.direction, c.filter, c.epilogue); }},
    {"direct",
     [](const Case& c) { return MakeDirectConv(c.ctx, c.g, c.direction, c.filter, c.epilogue); }},
};

// Everything that the times depend on, besides the machine.
std::string KeyOf(const Case& c) {
  const ConvGeometry& g = c.g;
  const auto three = [](const std::array<int64_t, 3>& a) {
    return StrCat(a[0], "x", a[1], "x", a[2]);
  };
  const Epilogue& e = c.epilogue;
  return StrCat("conv f32 direction ", static_cast<int>(c.direction),
                g.channels_last ? " nhwc" : " nchw", " spatial ", g.spatial, " batch ", g.batch,
                " groups ", g.groups, " channels ", g.in_c, "-", g.out_c, " in ", three(g.in),
                " kernel ", three(g.kernel), " stride ", three(g.stride), " dilation ",
                three(g.dilation), " pads ", three(g.pad_lo), "-", three(g.pad_hi), " activation ",
                static_cast<int>(e.activation), e.bias ? " bias" : "",
                e.residual ? " residual" : "", e.linear() ? " linear" : "");
}

// Memory for one side of the convolution, with numbers that are neither 0 nor denormal.
Tensor Operand(int64_t n) {
  Tensor t = Tensor::Empty(DType::kF32, {std::max<int64_t>(1, n)});
  if (!t.initialized()) throw std::bad_alloc();
  for (int64_t i = 0; i < n; ++i)
    t.mutable_data<float>()[i] = static_cast<float>(i % 17 - 8) / 8 + 0.01f;
  return t;
}

Runner Measure(const Case& c, KernelTuner& tuner, const std::string& key) {
  std::vector<Runner> runners;
  std::vector<std::string> names;
  // Some of the ways read it while they are measured.
  if (const Status s = MakeResident(*c.filter); !s.ok()) throw std::runtime_error(s.message());
  const auto usual = MakeWinogradConv(c.ctx, c.g, c.direction, c.filter, c.epilogue);
  for (const Way& way : kWays) {
    Runner runner = way.make(c);
    if (!runner) continue;
    names.push_back(way.name);
    runners.push_back(std::move(runner));
  }
  if (runners.size() < 2) return nullptr;
  // What is taken without measuring comes first: a tie is decided for it.
  if (!usual && names[0] == kWays[0].name) {
    std::rotate(names.begin(), names.begin() + 1, names.end());
    std::rotate(runners.begin(), runners.begin() + 1, runners.end());
  }
  const bool forward = c.direction == ConvDirection::kForward;
  const int64_t in = c.g.batch * c.g.in_c * c.g.in_size(),
                out = c.g.batch * c.g.out_c * c.g.out_size();
  const Tensor src = Operand(forward ? in : out), bias = Operand(forward ? c.g.out_c : c.g.in_c),
               residual = Operand(c.epilogue.residual ? (forward ? out : in) : 1);
  Tensor dst = Operand(forward ? out : in);
  const ConvOperands operands{src.raw(), c.filter->raw(), c.epilogue.bias ? bias.raw() : nullptr,
                              c.epilogue.residual ? residual.raw() : nullptr, dst.mutable_raw()};
  const int choice = tuner.Measure(key, names, [&](int i, Services& services) {
    const KernelContext run(c.ctx.op(), c.ctx.frame(), services, nullptr);
    runners[static_cast<size_t>(i)]->Run(run, operands);
  });
  return std::move(runners[static_cast<size_t>(choice)]);
}

}  // namespace

Runner MakeTunedConv(const PrepareContext& ctx, const ConvGeometry& g, ConvDirection direction,
                     const Tensor* filter, const Epilogue& epilogue) {
  if (filter == nullptr || direction == ConvDirection::kBackwardFilter) return nullptr;
  KernelTuner* const tuner = TunerOf(ctx.packs());
  if (tuner == nullptr || g.batch * g.in_c * g.in_size() == 0 || g.out_c * g.out_size() == 0)
    return nullptr;
  const Case c{ctx, g, direction, filter, epilogue};
  const std::string key = KeyOf(c);
  const std::string kept = tuner->Kept(key);
  for (const Way& way : kWays)
    if (kept == way.name) return way.make(c);
  return tuner->measures() ? Measure(c, *tuner, key) : nullptr;
}

}  // namespace heddle
