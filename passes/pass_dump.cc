#include "passes/pass_dump.h"

#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "passes/ir_text.h"

namespace heddle::passes {

Result<PassDump> PassDump::Make(const PassOptions& options) {
  PassDump dump;
  dump.dir_ = options.dump_dir;
  dump.dot_ = options.dump_dot;
  dump.all_ = options.dump_filter.empty();
  try {
    dump.filter_ = std::regex(options.dump_filter);
  } catch (const std::regex_error&) {
    return InvalidArgument("dump filter '", options.dump_filter, "' is no regular expression");
  }
  return dump;
}

void PassDump::BeginGrouping(PassGrouping grouping, const ir::Program& program) {
  grouping_ = Name(grouping);
  pending_ = true;
  before_text_ = ir::ToText(program);
  if (dot_) before_dot_ = ir::ToDot(program);
}

Status PassDump::AfterPass(const std::string& name, const ir::Program& program) {
  if (!all_ && !std::regex_search(name, filter_)) return Status::Ok();
  if (pending_) HEDDLE_RETURN_IF_ERROR(Write("before", before_text_, before_dot_));
  pending_ = false;
  return Write(name, ir::ToText(program), dot_ ? ir::ToDot(program) : "");
}

Status PassDump::EndGrouping(const ir::Program& program) {
  if (pending_) return Status::Ok();
  return Write("after", ir::ToText(program), dot_ ? ir::ToDot(program) : "");
}

Status PassDump::Write(const std::string& what, const std::string& text, const std::string& dot) {
  const std::string number = (number_ < 10 ? "0" : "") + std::to_string(number_);
  ++number_;
  const std::filesystem::path stem =
      std::filesystem::path(dir_) / (number + "_" + grouping_ + "_" + what);
  for (const char* ending : {".txt", ".dot"}) {
    const std::string& content = ending[1] == 't' ? text : dot;
    if (content.empty()) continue;
    std::ofstream file(stem.string() + ending, std::ios::binary);
    if (!(file << content).flush()) return NotFound("cannot write ", stem.string(), ending);
  }
  return Status::Ok();
}

}  // namespace heddle::passes
