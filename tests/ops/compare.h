// Values against each other. Each function returns what is wrong, empty when nothing is; the first
// element that differs is named with its index and both values.
#pragma once

#include <complex>
#include <string>

#include "tests/ops/example.h"

namespace heddle::testing {

// An element of any dtype; integers above 2^53 lose digits.
std::complex<double> ElementAt(const Tensor& t, int64_t i);

// Equal kind, dtypes, shapes, LoD and bits; but NaN is NaN, whatever its bits.
std::string SameElements(const Value& got, const Value& want);

// `got` is what the output expects, by its check. `close` replaces the dtype's tolerance. Sequence
// offsets are compared where the output has some.
std::string Matches(const Value& got, const ExampleOutput& want,
                    const std::optional<Tolerance>& close);

// Equal shapes, and LoD where `want` has one; floating-point elements within `tolerance`, whose
// atol counts relative to the largest finite element of `want` where that is above 1. Dtypes may
// differ.
std::string Near(const Tensor& got, const Tensor& want, const Tolerance& tolerance);

}  // namespace heddle::testing
