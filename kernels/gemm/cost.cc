#include "kernels/gemm/cost.h"

#include <algorithm>

#include "kernels/gemm/gemm_implementations.h"
#include "kernels/simd/microkernels.h"

namespace heddle::gemmcost {
namespace {

double BaseNs(const GemmCase& c, const Machine& m) {
  const double work = std::max(1.0, static_cast<double>(c.g.work()));
  return work / simd::MicrokernelsFor(m)->lanes / m.vector_fmas_per_cycle / m.cycles_per_ns;
}

// The time of the part of the epilogue that heddle computes after oneDNN.
double FollowingNs(const GemmCase& c, const Machine& m) {
  if (!FollowsOnednn(c.epilogue)) return 0;
  return static_cast<double>(c.g.batch * c.g.one.m * c.g.one.n) * kCyclesToFollow / m.cycles_per_ns;
}

// oneDNN makes code for every new case: a lean program does without. Products that may be rounded
// to bf16 need it nevertheless.
bool AvoidsCode(const GemmCase& c) { return c.lean && !c.epilogue.bf16; }

// Rows of A that begin a multiple of this many floats apart share few places in the caches, and are
// copied apart first.
constexpr int64_t kCopied = 512;

// Whether heddle's panels are faster than oneDNN.
bool PanelsWin(const GemmCase& c, const Machine& m) {
  const int64_t rows = c.g.one.m, depth = c.g.one.k;
  const int64_t most = simd::MicrokernelsFor(m)->tile_rows;  // rows that are kept in registers
  // If all rows fit a block of registers, the panels read the packed matrix once, at the speed of
  // memory; oneDNN takes up to twice as long.
  if (rows <= most) return true;
  // Operators that no pass has touched leave other products to oneDNN, so that results at level 0
  // stay the same.
  if (c.use.unfused) return false;
  // With a few blocks of rows and an A that stays in the first cache, the panels prefetch what they
  // read next while they multiply.
  constexpr int64_t kFewBlocks = 4, kNearFloats = 1 << 15;
  if (rows <= kFewBlocks * most && rows * depth <= kNearFloats) return true;
  // A call of oneDNN takes half a microsecond before it multiplies anything.
  constexpr int64_t kShortCall = 1 << 19;
  if (c.g.work() < kShortCall) return true;
  // M <= 256 and K <= 600 without a copy of A: both are about as fast, but oneDNN generates code
  // first, and operators after it find less of their data in the caches.
  constexpr int64_t kSomeRows = 256, kShortRows = 600;
  if (rows <= kSomeRows && depth <= kShortRows && depth % kCopied != 0) return true;
  // Pieces of A need not be joined first. Each stays in L1 while it is multiplied with a block of
  // B, and all of them stay in L2 from panel to panel.
  constexpr int64_t kPiecesFloats = 1 << 18;
  const int64_t piece = c.use.piece;
  return piece > 0 && rows <= kFewBlocks * most && rows * piece <= kNearFloats &&
         rows * depth <= kPiecesFloats;
}

}  // namespace

// Asked for by name (--precision int8): it saves memory, which is not weighed here.
double PanelsInt8(const GemmCase& c, const Machine& m) {
  constexpr double kAskedFor = 0.1;
  return kAskedFor * BaseNs(c, m);
}

double Panels(const GemmCase& c, const Machine& m) {
  constexpr double kGain = 0.9, kLoss = 1.15;
  const bool wins = !kWithOnednn || AvoidsCode(c) || (!c.epilogue.bf16 && PanelsWin(c, m));
  return (wins ? kGain : kLoss) * BaseNs(c, m);
}

// Panels that are packed in every run.
double PanelsVariable(const GemmCase& c, const Machine& m) {
  constexpr double kPacking = 1.2;
  return kPacking * BaseNs(c, m);
}

double Onednn(const GemmCase& c, const Machine& m) {
  // Below this many multiplications a call costs more than it saves; a fused epilogue makes up for
  // some of that.
  constexpr int64_t kLeastWork = 64 * 64 * 64, kLeastFusedWork = 32 * 32 * 32;
  constexpr double kCall = 1.5, kMakesCode = 4;
  const bool small = c.g.work() < (c.epilogue.empty() ? kLeastWork : kLeastFusedWork);
  return (small ? kCall : 1) * (AvoidsCode(c) ? kMakesCode : 1) * BaseNs(c, m) + FollowingNs(c, m);
}

// Rounding must pay: an operand is rounded once for all columns.
double OnednnBf16(const GemmCase& c, const Machine& m) {
  constexpr int64_t kLeastWork = 1 << 21, kLeastColumns = 32;
  constexpr double kGain = 0.5, kLoss = 1.5;
  const bool pays = c.g.work() >= kLeastWork && c.g.one.n >= kLeastColumns;
  return (pays ? kGain : kLoss) * BaseNs(c, m);
}

// Gemm's own tiles, or for large products oneDNN's sgemm, which is made once for all shapes; Eigen
// in builds without oneDNN.
double Plain(const GemmCase& c, const Machine& m) {
  constexpr double kPlain = 1.1, kMakesCode = 3, kEigen = 2;
  const bool large = IsLarge(c.g.one);
  const double factor = large && !kWithOnednn    ? kEigen
                        : large && AvoidsCode(c) ? kMakesCode
                                                 : kPlain;
  return factor * BaseNs(c, m);
}

}  // namespace heddle::gemmcost
