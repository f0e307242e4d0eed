#include "core/scalar_steps.h"

#include <iterator>

#include "core/tables/static_name_table.h"

namespace heddle {

#define HEDDLE_DECLARE_SCALAR(name, file) extern const ScalarOp kScalarOp_##name;
#include "kernels/all_scalars.inc"
#undef HEDDLE_DECLARE_SCALAR

namespace {

#define HEDDLE_DECLARE_SCALAR(name, file) #name "\0"
constexpr char kNames[] =
#include "kernels/all_scalars.inc"
    ;
#undef HEDDLE_DECLARE_SCALAR
#define HEDDLE_DECLARE_SCALAR(name, file) &kScalarOp_##name,
constexpr const ScalarOp* kScalars[] = {
#include "kernels/all_scalars.inc"
};
#undef HEDDLE_DECLARE_SCALAR

constexpr StaticNameTable<std::size(kScalars), sizeof(kNames)> kTable(kNames);
static_assert(kTable.unique());

}  // namespace

const ScalarOp* FindScalarOp(std::string_view op) {
  const size_t at = kTable.Find(op);
  return at == kTable.kNone ? nullptr : kScalars[at];
}

}  // namespace heddle
