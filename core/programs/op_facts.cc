#include "core/error.h"
#include "core/op_registry.h"
#include "heddle/operators.h"
#include "heddle/program.h"

namespace heddle {

Result<OperatorFacts> FactsOfOp(const std::string& type) {
  const OpDef* def = FindOp(type);
  if (def == nullptr) return NotFound("heddle has no operator '", type, "'");
  OperatorFacts facts;
  facts.name = type;
  HEDDLE_ASSIGN_OR_RETURN(facts.file, SourceOfOp(type));
  for (int d = 0; d < kNumDTypes - 1; ++d) {
    const auto dtype = static_cast<DType>(d);
    if (def->kernel(dtype) != nullptr) facts.dtypes.push_back(dtype);
  }
  if (FindOp(type + "_grad") != nullptr) facts.gradient = type + "_grad";
  return facts;
}

}  // namespace heddle
