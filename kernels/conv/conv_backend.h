// The implementations behind MakeConv: what each covers, and the function that makes it.
// Precondition of the latter: it covers the case on this machine. Used by select.cc alone.
#pragma once

#include "kernels/conv/select.h"

namespace heddle {

// Winograd's method, channels last, kernels 3x3, 5x5, 1x3 and 1x5 of stride 1.
bool WinogradCovers(const ConvCase& c, const Machine& m);
std::unique_ptr<ConvRunner> MakeWinogradConv(const PrepareContext& ctx, const ConvCase& c);

// Depthwise convolutions 3x3 and 5x5, channels last.
bool DepthwiseCovers(const ConvCase& c, const Machine& m);
std::unique_ptr<ConvRunner> MakeDepthwiseConv(const PrepareContext& ctx, const ConvCase& c);

// At most 8 output channels, one group, a constant filter, and neighbouring pixels side by side.
bool PlanesCover(const ConvCase& c, const Machine& m);
std::unique_ptr<ConvRunner> MakePlanesConv(const PrepareContext& ctx, const ConvCase& c);

// Transposed convolutions, channels last: a patch of the output for each pixel of the input.
bool PatchesCover(const ConvCase& c, const Machine& m);
// A pixel has its patch to itself: the kernel is as large as its stride.
bool PatchesAreApart(const ConvGeometry& g);
std::unique_ptr<ConvRunner> MakePatchConv(const PrepareContext& ctx, const ConvCase& c);

// Direct convolution, channels last, one group, with a constant filter.
bool DirectCovers(const ConvCase& c, const Machine& m);
std::unique_ptr<ConvRunner> MakeDirectConv(const PrepareContext& ctx, const ConvCase& c);

// oneDNN's primitives. nullptr when oneDNN has only its reference loops for the case.
bool OnednnCovers(const ConvCase& c, const Machine& m);
std::unique_ptr<ConvRunner> MakeOnednnConv(const PrepareContext& ctx, const ConvCase& c);
// oneDNN's 1x1 convolution, each thread with pixels of its own.
bool OnednnPartsCover(const ConvCase& c, const Machine& m);
std::unique_ptr<ConvRunner> MakeOnednnPartsConv(const PrepareContext& ctx, const ConvCase& c);
// oneDNN's, with the input and the constant filter rounded to bf16.
bool OnednnBf16Covers(const ConvCase& c, const Machine& m);
std::unique_ptr<ConvRunner> MakeOnednnBf16Conv(const PrepareContext& ctx, const ConvCase& c);

// Matrix products over unrolled windows: covers everything.
std::unique_ptr<ConvRunner> MakeIm2colConv(const PrepareContext& ctx, const ConvCase& c);

}  // namespace heddle
