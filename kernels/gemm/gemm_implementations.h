// The implementations behind MakeGemm: what each covers, and the function that makes it.
// Precondition of the latter: it covers the case on this machine. Used by select.cc and cost.cc
// alone.
#pragma once

#include "kernels/gemm/select.h"

namespace heddle {

#ifdef HEDDLE_WITH_ONEDNN
inline constexpr bool kWithOnednn = true;
#else
inline constexpr bool kWithOnednn = false;
#endif

// A constant B, packed into panels (gemm_panels.cc).
bool PanelsCover(const GemmCase& c, const Machine& m);
std::unique_ptr<GemmRunner> MakePanelGemm(const PrepareContext& ctx, const GemmCase& c);
// The same, rounded to 8-bit integers (Int8Columns).
bool PanelsInt8Cover(const GemmCase& c, const Machine& m);
std::unique_ptr<GemmRunner> MakeInt8Gemm(const PrepareContext& ctx, const GemmCase& c);
// A B that varies from run to run, also in batches.
bool PanelsVariableCover(const GemmCase& c, const Machine& m);
std::unique_ptr<GemmRunner> MakeVariableGemm(const PrepareContext& ctx, const GemmCase& c);

// oneDNN's matmul primitive (gemm_onednn.cc), with a constant B in oneDNN's layout. nullptr when it
// has none.
bool OnednnGemmCovers(const GemmCase& c, const Machine& m);
std::unique_ptr<GemmRunner> MakeOnednnGemm(const PrepareContext& ctx, const GemmCase& c);
// The same, with A and the constant B rounded to bf16.
bool OnednnBf16GemmCovers(const GemmCase& c, const Machine& m);
std::unique_ptr<GemmRunner> MakeOnednnBf16Gemm(const PrepareContext& ctx, const GemmCase& c);

// BatchedGemm and a pass for the epilogue: covers everything.
std::unique_ptr<GemmRunner> MakePlainGemm(const PrepareContext& ctx, const GemmCase& c);

}  // namespace heddle
