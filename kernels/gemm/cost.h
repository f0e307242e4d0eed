// Estimated time of each implementation of a matrix product, from the case and the machine.
//
// The unit is the time of the multiply-adds at the full speed of a core, BaseNs, and the factors
// are measured ratios to it: they say which implementation wins, not how long a run takes.
#pragma once

#include "kernels/gemm/select.h"

namespace heddle::gemmcost {

double PanelsInt8(const GemmCase& c, const Machine& m);
double Panels(const GemmCase& c, const Machine& m);
double PanelsVariable(const GemmCase& c, const Machine& m);
double Onednn(const GemmCase& c, const Machine& m);
double OnednnBf16(const GemmCase& c, const Machine& m);
double Plain(const GemmCase& c, const Machine& m);

}  // namespace heddle::gemmcost
