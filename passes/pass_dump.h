// Writes programs to files while passes change them.
#pragma once

#include <regex>
#include <string>
#include <string_view>

#include "core/programs/ir.h"
#include "heddle/pass.h"

namespace heddle::passes {

// Writes numbered files, in order: 00_PRE_PLACEMENT_before, 01_PRE_PLACEMENT_cse, …
class PassDump {
 public:
  // An error if the filter is not a regular expression.
  static Result<PassDump> Make(const PassOptions& options);

  bool enabled() const { return !dir_.empty(); }
  void BeginGrouping(PassGrouping grouping, const ir::Program& program);
  Status AfterPass(const std::string& name, const ir::Program& program);
  // Writes the program at the end of a grouping, if a pass of the grouping was written.
  Status EndGrouping(const ir::Program& program);

 private:
  Status Write(const std::string& what, const std::string& text, const std::string& dot);

  std::string dir_;
  bool dot_ = false, all_ = true;
  std::regex filter_;
  std::string grouping_, before_text_, before_dot_;
  bool pending_ = false;  // the grouping's first program is not written yet
  int number_ = 0;
};

}  // namespace heddle::passes
