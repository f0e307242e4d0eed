// Convolutions in several calls, between which a run can be ended: by images, and large images by
// strips of rows, or by channels of the result where strips would repeat most of the work.
#pragma once

#include <memory>

#include "core/function_ref.h"
#include "kernels/conv/select.h"

namespace heddle {

using MakeConvCall = FunctionRef<Result<std::unique_ptr<ConvRunner>>(const ConvCase&)>;

// Multiplications of a call: some 10 to 20 ms of one thread. Images are not cut for less than twice
// as many.
inline constexpr double kConvCallWork = 4e8;

// Returns what `make` makes for the case. If that would be one call of more than `call_work`,
// returns a runner of several calls, which `make` makes for parts of the case. Sums of a filter's
// gradient are rounded once for each part; all other results are those of one call.
Result<std::unique_ptr<ConvRunner>> MakeConvInCalls(const ConvCase& c, MakeConvCall make,
                                                    double call_work = kConvCallWork);

}  // namespace heddle
