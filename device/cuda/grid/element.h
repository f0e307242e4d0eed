// The element-wise operators that kernels know by number, and their attributes.
#pragma once

#include <cstdint>

#include "device/cuda/grid/grid_body.h"

namespace heddle::HEDDLE_GRID {

enum class Element : uint8_t {
  // of x
  kRelu,
  kSigmoid,
  kTanh,
  kExp,
  kLog,
  kSqrt,
  kRsqrt,
  kAbs,
  kSquare,
  kReciprocal,
  kErf,
  kGelu,
  kGeluTanh,
  kScale,
  kClip,
  kHardSwish,
  kHardSwishDividedFirst,
  kHardSigmoid,
  kSwish,
  kLeakyRelu,
  kElu,
  kSoftplus,
  kLogSigmoid,
  kSoftsign,
  kMish,
  kPow,
  kFloor,
  kCeil,
  kRound,
  kSin,
  kCos,
  kStanh,
  kTanhShrink,
  // of x or y, and dy
  kReluGrad,
  kSigmoidGrad,
  kTanhGrad,
  kExpGrad,
  kLogGrad,
  kSqrtGrad,
  kRsqrtGrad,
  kAbsGrad,
  kSquareGrad,
  kReciprocalGrad,
  kGeluGrad,
  kGeluTanhGrad,
  kClipGrad,
  kHardSwishGrad,
  kHardSigmoidGrad,
  kSwishGrad,
  kLeakyReluGrad,
  kEluGrad,
  kSoftplusGrad,
  kLogSigmoidGrad,
  kSoftsignGrad,
  kPowGrad,
  kSinGrad,
  kCosGrad,
  // of x and y
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMax,
  kMin,
  kMaxKeepsNan,
  kMinKeepsNan,
  kElementPow,
  kMod,
  kFloorDiv,
};

// An operator's attributes as numbers.
struct ElementArgs {
  float a = 0, b = 0, c = 0;
};

}  // namespace heddle::HEDDLE_GRID
