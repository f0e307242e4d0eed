// Definitions of the convolution operators, which differ in their names and number of dimensions.
#pragma once

#include "core/op_def.h"

namespace heddle {

void DefineConv(OpDef& op, int spatial);
void DefineConvGrad(OpDef& op, int spatial);
void DefineConvDoubleGrad(OpDef& op, int spatial);
void DefineConvTranspose(OpDef& op, int spatial);
void DefineConvTransposeGrad(OpDef& op, int spatial);
void DefineConvTransposeDoubleGrad(OpDef& op, int spatial);

}  // namespace heddle
