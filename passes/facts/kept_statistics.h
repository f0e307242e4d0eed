// Batch normalisation that reads its running statistics and does not change them.
#pragma once

#include "core/programs/ir.h"

namespace heddle::passes {

// Whether the outputs MeanOut and VarianceOut of `op`, if they are the variables of Mean and
// Variance, keep their values.
inline bool KeepsStatistics(const ir::Op& op) {
  return op.type() == "batch_norm" &&
         ((op.Attr<bool>("is_test") && !op.Attr<bool>("trainable_statistics")) ||
          op.Attr<bool>("use_global_stats"));
}

// Whether output slot `slot` of such an operator is Mean or Variance under the same name.
inline bool IsKeptStatistic(const ir::Op& op, size_t slot) {
  const std::string& name = op.def->outputs()[slot].name;
  if (name != "MeanOut" && name != "VarianceOut") return false;
  return op.outputs[slot] == op.In(name == "MeanOut" ? "Mean" : "Variance");
}

}  // namespace heddle::passes
