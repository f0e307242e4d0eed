// Convolutions in several calls, between which a run can be ended: by images, and large images by
// strips of rows.
#pragma once

#include <memory>

#include "core/function_ref.h"
#include "kernels/conv/select.h"

namespace heddle {

using MakeConvCall = FunctionRef<Result<std::unique_ptr<ConvRunner>>(const ConvCase&)>;

// Multiplications of a call: some tens of ms of one thread. Images are not cut for less than twice
// as many.
inline constexpr double kConvCallWork = 1e9;

// What `make` makes for the case, or, where that would be a call of more than `call_work`, a runner
// of several that it makes for parts of it. Sums of a filter's gradient are rounded once for each
// part; all else is as it would be in one call.
Result<std::unique_ptr<ConvRunner>> MakeConvInCalls(const ConvCase& c, MakeConvCall make,
                                                    double call_work = kConvCallWork);

}  // namespace heddle
