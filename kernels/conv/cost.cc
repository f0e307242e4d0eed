#include "kernels/conv/cost.h"

#include <algorithm>

#include "kernels/base/ceil_div.h"
#include "kernels/conv/conv_backend.h"
#include "kernels/simd/microkernels.h"

namespace heddle::convcost {
namespace {

// Cycles that a core needs to issue this many multiply-adds.
double Cycles(double work, const Machine& m) {
  return work / simd::MicrokernelsFor(m)->lanes / m.vector_fmas_per_cycle;
}
// Direct kernels, heddle's as oneDNN's, take 1.15 times as long as their multiply-adds alone:
// bounds of rows, loads and stores. Measured over the layers of the residual networks.
constexpr double kDirectOverhead = 1.15;
double BaseNs(const ConvCase& c, const Machine& m) {
  return Cycles(std::max(1.0, c.g.work()), m) * kDirectOverhead / m.cycles_per_ns;
}

// The time of the part of the epilogue that heddle computes after oneDNN.
double FollowingNs(const ConvCase& c, const Machine& m) {
  if (!FollowsOnednn(c.epilogue)) return 0;
  const ConvGeometry& g = c.g;
  const int64_t results =
      c.direction == ConvDirection::kForward ? g.out_c * g.out_size() : g.in_c * g.in_size();
  return static_cast<double>(g.batch * results) * kCyclesToFollow / m.cycles_per_ns;
}

// The cost of an implementation that covers a case and must not be chosen for it.
constexpr double kSlow = 20;

// For so few pixels the set-up of oneDNN and the distribution to threads take longer than the sums.
constexpr int64_t kFewPixels = 40;
bool IsSmall(const ConvGeometry& g) { return g.batch * g.out_size() <= kFewPixels; }

// For one image with few channels, oneDNN splits the output channels over threads, so that every
// thread reads all pixels and writes to all cache lines; not with larger windows. Very few output
// channels make it worse.
constexpr int64_t kFewInputs = 32, kManyChannels = 32, kVeryFewChannels = 8;
bool OnednnSharesBadly(const ConvCase& c) {
  const ConvGeometry& g = c.g;
  return c.threads > 1 && g.batch == 1 && g.in_c * g.kernel_size() <= kFewInputs &&
         g.kernel_size() > 1 && (g.out_c >= kManyChannels || g.out_c <= kVeryFewChannels);
}

// For sums of at most this length, the slower activation of oneDNN shows.
constexpr int64_t kShortSum = 640;
int64_t LengthOfSum(const ConvGeometry& g) { return g.in_c / g.groups * g.kernel_size(); }
bool OnednnActivatesSlowly(const ConvGeometry& g, Activation a) {
  switch (a) {
    case Activation::kSwish:
    case Activation::kSigmoid:
    case Activation::kTanh:
    case Activation::kGeluTanh:
    case Activation::kMish:
      return LengthOfSum(g) <= kShortSum;
    default:
      return false;
  }
}

// The factor by which the epilogue makes a sum longer. oneDNN computes a hard swish that divides
// last by three of its functions.
double ActivatingOnednn(const ConvCase& c, const Machine& m) {
  constexpr double kThreeFunctions = 4;  // cycles a vector
  if (c.epilogue.activation != Activation::kHardSwish || c.epilogue.limit == 1) return 1;
  const auto sum = static_cast<double>(std::max<int64_t>(1, LengthOfSum(c.g)));
  return 1 + kThreeFunctions * m.vector_fmas_per_cycle / sum;
}

// Whether a copy of the filter several times as large, and work space, are small beside the images.
bool FilterIsSmall(const ConvGeometry& g) {
  constexpr int64_t kShare = 24, kLarge = 1 << 19;
  const int64_t values = g.batch * (g.in_c * g.in_size() + g.out_c * g.out_size());
  return values >= kLarge && kShare * g.out_c * g.in_c / g.groups * g.kernel_size() <= values;
}

}  // namespace

// Transforming a window of one vector of channels takes this many cycles, in and out, and a sixth
// of them for a window of one row. The products take 1.12 times as long as their multiply-adds. A
// gain of less than a tenth does not count, since the method costs memory.
double Winograd(const ConvCase& c, const Machine& m) {
  constexpr double kInputCycles = 130, kOutputCycles = 180, kProductOverhead = 1.12;
  constexpr double kLeastGain = 0.9;
  const ConvGeometry& g = c.g;
  const int64_t lanes = simd::MicrokernelsFor(m)->lanes;
  if (g.in_c < lanes || g.out_c < lanes || (c.lean && !FilterIsSmall(g)))
    return kSlow * BaseNs(c, m);
  const bool row = g.kernel[1] == 1;
  const int tile = simd::WinogradTileOf(g.kernel[2]);
  const int points = row ? simd::kWinogradWindow : simd::kWinogradPoints;
  const int64_t step = g.dilation[2];  // columns between those of a window have their own
  const double tiles = static_cast<double>(g.batch * CeilDiv(g.out[1], row ? 1 : tile) *
                                           CeilDiv(g.out[2], tile * step) * step);
  const double in = static_cast<double>(CeilDiv(g.in_c, lanes));
  const double out = static_cast<double>(CeilDiv(g.out_c, lanes));
  const double filter = points * static_cast<double>(g.in_c) * out;  // vectors
  const double products = filter * tiles / m.vector_fmas_per_cycle * kProductOverhead;
  // The transformed filter is larger than the plain one, four times with 3x3, and often comes from
  // memory.
  const double reading = filter * m.cycles_to_read_vector;
  const double cycles =
      std::max(products, reading) +
      tiles * (in * kInputCycles + out * kOutputCycles) * (row ? 1. / simd::kWinogradWindow : 1);
  return cycles / kLeastGain / m.cycles_per_ns;
}

// oneDNN's depthwise loops take longer for every shape that these cover.
double Depthwise(const ConvCase& c, const Machine& m) {
  constexpr double kGain = 0.9;
  return kGain * BaseNs(c, m);
}

// With so few channels, other loops leave a part of their vectors unused. Copying planes pays if
// several taps read a pixel, and rows are longer than a few vectors.
double Planes(const ConvCase& c, const Machine& m) {
  constexpr int64_t kLeastTaps = 5, kLeastVectors = 2;
  constexpr double kGain = 0.85;
  const int64_t lanes = simd::MicrokernelsFor(m)->lanes;
  const bool pays = c.g.kernel_size() >= kLeastTaps && c.g.out[2] >= kLeastVectors * lanes &&
                    2 * c.g.out_c <= lanes;
  return (pays ? kGain : kSlow) * BaseNs(c, m);
}

// Patches that overlap are added one by one. That pays with few channels, with which oneDNN fills
// little of a vector, and in cases so small that a call of oneDNN takes most of the time.
double Patches(const ConvCase& c, const Machine& m) {
  constexpr int64_t kVeryFew = 4, kSome = 16, kPatchPixels = 100;
  constexpr double kGain = 0.9, kAdding = 1.5;
  const ConvGeometry& g = c.g;
  const bool few =
      g.in_c <= kVeryFew || (g.in_c <= kSome && g.batch * g.out_size() <= kPatchPixels);
  return (PatchesAreApart(g) || few ? kGain : kAdding) * BaseNs(c, m);
}

// Long sums take some hundredths longer than with oneDNN, 3 to 10 of them, most where the filter is
// larger than the pixels; measured over the layers of residual networks and of text recognition.
// What little heddle computes after oneDNN does not make up for it. Sums of some microseconds do
// not make up for a call of oneDNN, which looks up its arguments and its work space.
double Direct(const ConvCase& c, const Machine& m) {
  constexpr int64_t kLongSum = 96;
  constexpr double kLoss = 1.06, kLeastNs = 20'000;
  const double ns = BaseNs(c, m);
  return (LengthOfSum(c.g) > kLongSum && ns >= kLeastNs ? kLoss : 1) * ns;
}

double Onednn(const ConvCase& c, const Machine& m) {
  // In the cases above oneDNN takes at least a fifth longer than its sums.
  constexpr double kBehind = 1.2;
  // oneDNN generates code for every new case, which takes about as long as a first run.
  constexpr double kMakesCode = 2;
  const bool behind =
      IsSmall(c.g) || OnednnSharesBadly(c) || OnednnActivatesSlowly(c.g, c.epilogue.activation);
  return (c.lean ? kMakesCode : 1) * (behind ? kBehind : ActivatingOnednn(c, m)) * BaseNs(c, m) +
         FollowingNs(c, m);
}

// Left to itself, oneDNN may let all threads read all pixels, or have work for only some of them.
// With parts, a thread mostly reads what it wrote in the instruction before. Every thread reads all
// of the filter, which therefore must not be large.
double OnednnParts(const ConvCase& c, const Machine& m) {
  constexpr int64_t kLeastPixels = 24;           // of a part
  constexpr int64_t kMostFilterBytes = 1 << 20;  // larger ones leave a core's own cache
  constexpr double kGain = 0.98, kLoss = 1.5;
  const ConvGeometry& g = c.g;
  const bool pays = g.batch * g.out_size() >= kLeastPixels * c.threads &&
                    g.in_c * g.out_c * 4 <= kMostFilterBytes;
  return (pays ? kGain : kLoss) * Onednn(c, m);
}

// With fewer multiplications, rounding the input takes longer than it saves. A whole vector of
// channels is computed, however few there are.
double OnednnBf16(const ConvCase& c, const Machine& m) {
  constexpr double kLeastWork = 1 << 21, kGain = 0.25, kLoss = 1.5;
  const ConvGeometry& g = c.g;
  if (g.work() < kLeastWork) return kLoss * BaseNs(c, m);
  const int64_t lanes = simd::MicrokernelsFor(m)->lanes;
  const int64_t made = (c.direction == ConvDirection::kForward ? g.out_c : g.in_c) / g.groups;
  const double vectors = static_cast<double>(CeilDiv(made, lanes) * lanes);
  return kGain * vectors / static_cast<double>(made) * BaseNs(c, m);
}

// Windows are copied as often as the kernel has taps.
double Im2col(const ConvCase& c, const Machine& m) {
  constexpr double kCopies = 10;
  return kCopies * BaseNs(c, m);
}

}  // namespace heddle::convcost
