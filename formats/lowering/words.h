// A file's operator in the words of heddle's operator of the same meaning.
#pragma once

#include <string_view>
#include <vector>

#include "core/op_def.h"
#include "formats/lowering/op_maker.h"

namespace heddle::formats {

struct Words {
  std::string_view type;  // heddle's operator
  // Its slots, separated by spaces, in the order of the file's operands and results. Empty: in the
  // order of the definition.
  std::string_view inputs = {}, outputs = {};
  // Its attributes, separated by spaces. "name=value": the file's operator always means that value.
  // "name<other": the file calls the attribute `other`.
  std::string_view attributes = {};

  // The slots of the definition in the file's order.
  std::vector<const SlotDef*> Inputs(const OpDef& def) const;
  std::vector<const SlotDef*> Outputs(const OpDef& def) const;
  // What the file calls one of heddle's attributes, and the other way round.
  std::string_view InFile(std::string_view attribute) const;
  std::string_view Here(std::string_view attribute) const;
  // Adds the values that the file's operator means where it says nothing else.
  void AddAlways(const OpDef& def, Attrs* attrs) const;
};

}  // namespace heddle::formats
