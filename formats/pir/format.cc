#include "formats/pir/format.h"

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "formats/bytes_source.h"
#include "formats/paddle/params.h"
#include "formats/pir/lower.h"
#include "formats/pir/write.h"

namespace heddle::pir {
namespace {

namespace fs = std::filesystem;

std::string Label(const void* source) {
  const auto& op = *static_cast<const Operation*>(source);
  const auto list = [](const auto& items, auto id) {
    std::string text;
    for (const auto& item : items) text += (text.empty() ? "%" : ", %") + std::to_string(id(item));
    return text.empty() ? "none" : text;
  };
  std::string text = op.name + " of " + list(op.operands, [](ValueId id) { return id; }) + " -> " +
                     list(op.results, [](const Definition& d) { return d.id; });
  std::string_view place;
  if (const Attribute* a = op.Find("struct_name"); a != nullptr && a->value["D"].Get(&place))
    text += " in " + std::string(place);
  return text;
}

// Lowers a file into the builder and returns the file's version.
Result<int64_t> Read(std::string_view bytes, ir::ProgramBuilder* builder) {
  const auto in_file = [&](const Status& status) {
    return Status(status.code(), builder->name() + ": " + status.message());
  };
  const auto document = JsonDocument::Parse(bytes);
  if (!document.ok()) return in_file(document.status());
  const auto file = ReadFile(*document);
  if (!file.ok()) return in_file(file.status());
  Lowering lowering(*file, builder);
  HEDDLE_ASSIGN_OR_RETURN(const Draft draft, lowering.Run());
  formats::Emit(draft, &Label, builder);
  return file->version;
}

// Adds the marks of a block's operations. "OA" of a parameter is [persistable, stop_gradient,
// trainable], its "A" [is_distributed, is_parameter, need_clip, name]; of other operations "OA"
// lists attributes with a value for each result.
void AddMarks(const Json& block, formats::TrainingMarks* marks) {
  for (const Json op : block["ops"]) {
    std::string_view name;
    op["#"].Get(&name);
    if (name == "p") {
      std::vector<int64_t> of_parameter(3), of_value(3);
      size_t k = 0;
      std::string_view variable;
      for (const Json item : op["A"]) {
        if (k < 3) item.Get(&of_parameter[k]);
        if (k++ == 3) item.Get(&variable);
      }
      k = 0;
      for (const Json item : op["OA"])
        if (k < 3) item.Get(&of_value[k++]);
      if (of_parameter[1] != 0 && of_value[2] != 0) marks->trainable.emplace(variable);
      if (of_value[1] != 0) marks->stopped.emplace(variable);
      marks->says_trainable = marks->says_trainable || k == 3;
      continue;
    }
    std::vector<int64_t> results;
    for (const Json result : op["O"]) result["%"].Get(&results.emplace_back());
    for (const Json attribute : op["OA"]) {
      std::string_view which;
      if (!attribute["N"].Get(&which) || which != "stop_gradient") continue;
      size_t k = 0;
      for (const Json flag : attribute["AT"]["D"]) {
        bool stopped = false;
        flag["D"].Get(&stopped);
        if (stopped && k < results.size()) marks->stopped.insert("%" + std::to_string(results[k]));
        ++k;
      }
    }
    for (const Json region : op["regions"])
      for (const Json inner : region["blocks"]) AddMarks(inner, marks);
  }
}

class PirBytes : public formats::BytesSource {
 public:
  PirBytes(std::string_view bytes, int64_t version)
      : BytesSource(PirFormat(), bytes), version_(version) {}
  Result<formats::TrainingMarks> Marks(const ir::Program&) const override {
    HEDDLE_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(text()));
    formats::TrainingMarks marks;
    for (const Json region : document.root()["program"]["regions"])
      for (const Json block : region["blocks"]) AddMarks(block, &marks);
    return marks;
  }
  int64_t version() const { return version_; }

 private:
  const int64_t version_;
};

class Pir : public formats::Format {
 public:
  std::string_view name() const override { return "pir"; }

  // A PIR file is a JSON object whose first key is "base_code" if keys are sorted, or "program".
  bool Recognises(std::string_view bytes) const override {
    const auto skip = [&] {
      bytes.remove_prefix(std::min(bytes.find_first_not_of(" \t\r\n"), bytes.size()));
    };
    skip();
    if (!bytes.starts_with('{')) return false;
    bytes.remove_prefix(1);
    skip();
    return bytes.starts_with("\"base_code\"") || bytes.starts_with("\"program\"");
  }
  Result<std::shared_ptr<const formats::ProgramSource>> Parse(
      const formats::ParseRequest& request) const override {
    HEDDLE_ASSIGN_OR_RETURN(const int64_t version, Read(request.bytes, &request.builder));
    return std::shared_ptr<const formats::ProgramSource>(
        std::make_shared<PirBytes>(request.bytes, version));
  }
  // An unchanged program is written as its file's bytes, unless Paddle 3.3 cannot use them: in
  // older versions numbers have other widths, which it does not convert in all gradients, and
  // parameters of files without "OA" are not persistable to it.
  Result<std::string> Write(const ir::Program& program) const override {
    const auto* file = dynamic_cast<const PirBytes*>(program.source.get());
    if (!program.as_parsed() || file == nullptr || file->version() < kWrittenVersion)
      return WriteProgram(program);
    const bool parameters = std::any_of(program.vars.begin(), program.vars.end(),
                                        [](const ir::Var& var) { return var.persistable; });
    if (parameters && file->text().find("\"OA\"") == std::string::npos)
      return WriteProgram(program);
    return file->text();
  }

  std::vector<std::string> FileNames() const override { return {"inference.json", "model.json"}; }
  std::string Extension() const override { return ".json"; }
  std::string DefaultParameters(const std::string& program_file) const override {
    fs::path beside(program_file);
    beside.replace_extension(".pdiparams");
    return beside.string();
  }
  Status LoadParameters(const Program& program, const std::string& path, Scope& scope,
                        ParameterReading reading) const override {
    return paddle::LoadParameters(program, path, scope, reading, /*cast=*/true);
  }
  Status ParseParameters(const Program& program, std::string_view bytes,
                         Scope& scope) const override {
    return paddle::ParseParameters(program, bytes, scope, /*cast=*/true);
  }
};

}  // namespace

const formats::Format& PirFormat() {
  static const Pir format;
  return format;
}

}  // namespace heddle::pir
