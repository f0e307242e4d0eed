#include <cstddef>
#include <iterator>
#include <string_view>

#include "core/error.h"
#include "core/op_registry.h"
#include "core/tables/packed_rows.h"
#include "heddle/operators.h"
#include "heddle/program.h"

namespace heddle {
namespace {

// The operators with examples, sorted, and how many each has.
constexpr std::string_view kWithExamples[][1] = {
#define HEDDLE_DECLARE_EXAMPLES(name, count) {#name},
#include "kernels/all_examples.inc"
#undef HEDDLE_DECLARE_EXAMPLES
};
constexpr PackedRows<std::size(kWithExamples), 1, BytesOfRows(kWithExamples)> kExamples(
    kWithExamples);
constexpr int kExampleCounts[] = {
#define HEDDLE_DECLARE_EXAMPLES(name, count) count,
#include "kernels/all_examples.inc"
#undef HEDDLE_DECLARE_EXAMPLES
};

}  // namespace

Result<OperatorFacts> FactsOfOp(const std::string& type) {
  const OpDef* def = FindOp(type);
  if (def == nullptr) return NotFound("heddle has no operator '", type, "'");
  OperatorFacts facts;
  facts.name = type;
  HEDDLE_ASSIGN_OR_RETURN(facts.file, SourceOfOp(type));
  if (const size_t at = kExamples.LowerBound(type); kExamples.Is(at, type))
    facts.examples = kExampleCounts[at];
  for (int d = 0; d < kNumDTypes - 1; ++d) {
    const auto dtype = static_cast<DType>(d);
    if (def->kernel(dtype) != nullptr) facts.dtypes.push_back(dtype);
  }
  if (FindOp(type + "_grad") != nullptr) facts.gradient = type + "_grad";
  return facts;
}

}  // namespace heddle
