// Estimated time of each implementation of a convolution, from the case and the machine.
//
// The unit is BaseNs, the time of a direct convolution at the peak speed of a core, and most
// factors are measured ratios to it: they say which implementation wins, not how long a run takes.
#pragma once

#include "kernels/conv/select.h"

namespace heddle::convcost {

double Winograd(const ConvCase& c, const Machine& m);
double Depthwise(const ConvCase& c, const Machine& m);
double Planes(const ConvCase& c, const Machine& m);
double Patches(const ConvCase& c, const Machine& m);
double Direct(const ConvCase& c, const Machine& m);
double Onednn(const ConvCase& c, const Machine& m);
double OnednnParts(const ConvCase& c, const Machine& m);
double OnednnBf16(const ConvCase& c, const Machine& m);
double Im2col(const ConvCase& c, const Machine& m);

}  // namespace heddle::convcost
