// The lists of implementations that MakeIntegerConv and MakeIntegerGemm choose from.
#pragma once

#include <span>

#include "kernels/base/implementations.h"
#include "kernels/integers/integers.h"

namespace heddle {

using IntegerConvImplementation = Implementation<IntegerConvCase, IntegerRunner>;
using IntegerGemmImplementation = Implementation<IntegerGemmCase, IntegerRunner>;
std::span<const IntegerConvImplementation> IntegerConvImplementations();
std::span<const IntegerGemmImplementation> IntegerGemmImplementations();

// Images have channels last in what follows. oneDNN's primitives, on processors that multiply
// groups of four 8-bit integers. nullptr: oneDNN has none for the case, or the constant minus its
// zero points takes more than 8 bits where oneDNN cannot subtract them.
std::unique_ptr<IntegerRunner> MakeOnednnIntegerConv(const PrepareContext& ctx,
                                                     const IntegerConvCase& c);
std::unique_ptr<IntegerRunner> MakeOnednnIntegerGemm(const PrepareContext& ctx,
                                                     const IntegerGemmCase& c);
// Products of 16-bit integers (kernels/simd/int16.h): every case, on every processor.
std::unique_ptr<IntegerRunner> MakeWordConv(const IntegerConvCase& c);
std::unique_ptr<IntegerRunner> MakeWordGemm(const IntegerGemmCase& c);

// `inner`, which takes and gives images with channels last, for images of `c` with channels second.
std::unique_ptr<IntegerRunner> WithChannelsFirst(const IntegerConvCase& c,
                                                 std::unique_ptr<IntegerRunner> inner);

}  // namespace heddle
