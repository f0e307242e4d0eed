// A file's operator in the words of heddle's operator of the same meaning.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "core/op_def.h"
#include "formats/lowering/op_maker.h"

namespace heddle::formats {

// Calls fn(word) for each word of a text whose words one space separates.
template <typename Fn>
void ForEachWord(std::string_view text, Fn&& fn) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    fn(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

struct Words {
  std::string_view type;  // heddle's operator
  // Its slots, separated by spaces, in the order of the file's operands and results. Empty: in the
  // order of the definition.
  std::string_view inputs = {}, outputs = {};
  // Its attributes, separated by spaces. "name": the file has the same name. "name<other": the file
  // calls the attribute `other`. "name=value": the file's operator means that value where it says
  // nothing else.
  std::string_view attributes = {};

  // The slots of the definition in the file's order.
  std::vector<const SlotDef*> Inputs(const OpDef& def) const;
  std::vector<const SlotDef*> Outputs(const OpDef& def) const;
  // What the file calls one of heddle's attributes; its own name where no word says another.
  std::string_view InFile(std::string_view attribute) const;
  // heddle's name of an attribute that the file calls `other`; empty: no word names it.
  std::string_view Named(std::string_view other) const;
  // Adds the values of "name=value" to the attributes that lack them.
  void AddMeant(const OpDef& def, Attrs* attrs) const;
};

}  // namespace heddle::formats
