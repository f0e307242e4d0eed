// Resizing by interpolation: nearest, linear in one to three dimensions, cubic; forward and
// gradient.
#pragma once

#include "core/op_def.h"

namespace heddle {

enum class InterpKind { kNearest, kLinear, kCubic };

// `old_scale`: the operators without _v2, whose scale is one number that does not enter the ratio.
// `spatial`: number of resized dimensions, 0 for any.
template <InterpKind kKind, bool kOldScale, int kSpatial>
void DefineInterp(OpDef& op);
template <InterpKind kKind, bool kOldScale, int kSpatial>
void DefineInterpGrad(OpDef& op);

}  // namespace heddle
