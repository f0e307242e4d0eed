#include "formats/paddle/format.h"

#include <filesystem>
#include <set>

#include "core/file.h"
#include "formats/paddle/op_demands.h"
#include "formats/paddle/params.h"
#include "formats/wire_fields.h"

namespace heddle::paddle {
namespace {

namespace fs = std::filesystem;

class ProgramDescs : public formats::Format {
 public:
  std::string_view name() const override { return "paddle"; }

  // The fields of a ProgramDesc are messages: blocks (1), which begin with their number; a version
  // (4), a message with one field; and operator versions (5), which are pairs.
  bool Recognises(std::string_view bytes) const override {
    if (bytes.empty() || (bytes[0] != '\x0a' && bytes[0] != '\x22' && bytes[0] != '\x2a'))
      return false;
    const char inner = bytes[0] == '\x2a' ? '\x0a' : '\x08';
    uint64_t length = 0;
    bytes.remove_prefix(1);
    return wire::TakeVarint(&bytes, &length) && (length == 0 || bytes.starts_with(inner));
  }
  Result<std::shared_ptr<const formats::ProgramSource>> Parse(
      const formats::ParseRequest& request) const override {
    return ParseProgramDesc(request.bytes, request.builder);
  }
  Result<std::string> Write(const ir::Program& program) const override {
    return WriteProgramDesc(program);
  }
  std::vector<std::string> Foreign(const ir::Program& program) const override {
    std::set<std::string> foreign;
    for (const auto& block : program.blocks)
      for (const ir::Op& op : block.ops)
        if (IsForeign(op)) foreign.emplace(op.type());
    return {foreign.begin(), foreign.end()};
  }

  std::vector<std::string> FileNames() const override {
    return {"model.pdmodel", "inference.pdmodel", "__model__"};
  }
  std::string Extension() const override { return ".pdmodel"; }
  std::string DefaultParameters(const std::string& program_file) const override {
    const fs::path p(program_file);
    if (p.extension() == ".pdmodel") {
      fs::path beside = p;
      beside.replace_extension(".pdiparams");
      return beside.string();
    }
    for (const char* name : {"__params__", "params"})
      if (std::string beside = (p.parent_path() / name).string(); IsRegularFile(beside))
        return beside;
    return p.parent_path().empty() ? "." : p.parent_path().string();
  }
  Status LoadParameters(const Program& program, const std::string& path, Scope& scope,
                        ParameterReading reading) const override {
    return paddle::LoadParameters(program, path, scope, reading);
  }
  Status ParseParameters(const Program& program, std::string_view bytes,
                         Scope& scope) const override {
    return paddle::ParseParameters(program, bytes, scope);
  }
};

}  // namespace

// Reads the variables of all blocks: ProgramDesc.blocks (1), BlockDesc.vars (3), and of a VarDesc
// its name (1), is_parameter (5) and stop_gradient (6).
Result<formats::TrainingMarks> ProgramBytes::Marks(const ir::Program&) const {
  formats::TrainingMarks marks;
  wire::Fields program(bytes_);
  for (wire::Field block; !program.done() && program.Next(&block);) {
    if (!block.Is(1)) continue;
    wire::Fields fields(block.payload);
    for (wire::Field var; !fields.done() && fields.Next(&var);) {
      if (!var.Is(3)) continue;
      std::string name;
      bool parameter = false, stopped = false;
      wire::Fields said(var.payload);
      for (wire::Field f; !said.done() && said.Next(&f);) {
        if (f.Is(1)) name = std::string(f.payload);
        if (f.IsVarint(5)) parameter = f.varint != 0;
        if (f.IsVarint(6)) stopped = f.varint != 0;
      }
      if (parameter) marks.trainable.insert(name);
      if (stopped) marks.stopped.insert(name);
    }
  }
  // save_inference_model writes no marks at all.
  marks.says_trainable = !marks.trainable.empty();
  return marks;
}

const formats::Format& ProgramDescFormat() {
  static const ProgramDescs format;
  return format;
}

}  // namespace heddle::paddle
