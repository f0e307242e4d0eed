// The public functions that read and write programs (heddle/program.h, heddle/params.h), over the
// formats.
#include <xxhash.h>

#include <filesystem>

#include "core/error.h"
#include "core/file.h"
#include "formats/registry.h"
#include "heddle/params.h"
#include "heddle/program.h"

namespace heddle {
namespace {

namespace fs = std::filesystem;
using formats::Format;

// The program file in a directory.
Result<std::string> FindProgramFile(const std::string& dir) {
  std::string usual, extension;
  for (const Format* format : formats::Formats()) {
    for (const std::string& name : format->FileNames()) {
      if (fs::is_regular_file(fs::path(dir) / name)) return (fs::path(dir) / name).string();
      usual += (usual.empty() ? "" : ", ") + name;
    }
  }
  std::vector<std::string> found;
  for (const Format* format : formats::Formats()) {
    for (const auto& entry : fs::directory_iterator(dir)) {
      if (entry.path().extension() != format->Extension()) continue;
      found.push_back(entry.path().string());
      extension = format->Extension();
    }
  }
  if (found.size() == 1) return found[0];
  if (found.size() > 1)
    return InvalidArgument(dir, " holds several ", extension, " files; name one");
  return NotFound(dir, " holds no program (", usual, ")", formats::HintOn(dir));
}

}  // namespace

namespace formats {

Result<std::shared_ptr<ir::Program>> ParseProgram(std::string_view bytes, const std::string& name) {
  const Format* format = nullptr;
  for (const Format* f : Formats())
    if (format == nullptr && f->Recognises(bytes)) format = f;
  if (format == nullptr) {
    HEDDLE_RETURN_IF_ERROR(CheckKind(bytes, name));
    format = Formats()[0];
  }
  ir::ProgramBuilder builder(name, XXH64(bytes.data(), bytes.size(), 0));
  HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<const ProgramSource> source,
                          format->Parse(bytes, builder));
  return std::move(builder).Finish(std::move(source));
}

}  // namespace formats

Result<Program> Program::Parse(std::string_view bytes, const std::string& name) {
  auto parsed = formats::ParseProgram(bytes, name);
  if (!parsed.ok()) return parsed.status();
  return Program(*std::move(parsed));
}

Result<Program> Program::Load(const std::string& path) {
  auto bytes = FileBytes::Read(path);
  if (!bytes.ok()) return bytes.status();
  return Parse(bytes->view(), path);
}

Result<std::string> Program::Serialize() const { return formats::FormatOf(*impl_).Write(*impl_); }

Result<Model> LoadModel(const std::string& path, const std::string& params) {
  std::error_code ec;
  std::string file = path;
  if (fs::is_directory(path, ec)) {
    auto found = FindProgramFile(path);
    if (!found.ok()) return found.status();
    file = *found;
  }
  auto program = Program::Load(file);
  if (!program.ok()) return program.status();
  Model model{*program, std::make_shared<Scope>()};
  const std::string where =
      params.empty() ? formats::FormatOf(program->ir()).DefaultParameters(file) : params;
  if (program->persistables().empty() && params.empty()) return model;
  if (!fs::exists(where, ec))
    return NotFound("no parameters: ", where, " does not exist, and the program has ",
                    program->persistables().size(), " parameters");
  HEDDLE_RETURN_IF_ERROR(
      LoadParameters(*program, where, *model.scope, ParameterReading::kWhenNeeded));
  return model;
}

Status LoadParameters(const Program& program, const std::string& path, Scope& scope,
                      ParameterReading reading) {
  return formats::FormatOf(program.ir()).LoadParameters(program, path, scope, reading);
}

}  // namespace heddle
