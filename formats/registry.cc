#include "formats/registry.h"

#include "formats/paddle/format.h"
#ifndef HEDDLE_WITHOUT_PIR
#include "formats/pir/format.h"
#endif

namespace heddle::formats {

std::span<const Format* const> Formats() {
  static const Format* const kAll[] = {
      &paddle::ProgramDescFormat(),  // .pdmodel
#ifndef HEDDLE_WITHOUT_PIR
      &pir::PirFormat(),  // .json
#endif
  };
  return kAll;
}

const Format& FormatOf(const ir::Program& program) {
  return program.source ? program.source->format() : *Formats()[0];
}

}  // namespace heddle::formats
