// The public functions that read and write programs and parameters (heddle/program.h,
// heddle/params.h), for all formats.
#include <xxhash.h>

#include <filesystem>
#include <fstream>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "core/interrupts.h"
#include "core/memory/lazy_buffer.h"
#include "formats/other_kinds.h"
#include "formats/registry.h"
#include "gradient/gradient_calls.h"
#include "heddle/functions.h"
#include "heddle/model_files.h"
#include "heddle/params.h"
#include "heddle/program.h"

namespace heddle {
namespace {

namespace fs = std::filesystem;
using formats::Format;

// The first bytes of a file; empty where it cannot be read, or is a stream, which can be read only
// once.
std::string FirstBytes(const std::string& path) {
  if (IsStream(path)) return {};
  constexpr size_t kFirst = 256;
  std::string first(kFirst, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(first.data(), static_cast<std::streamsize>(kFirst));
  first.resize(static_cast<size_t>(file.gcount()));
  return first;
}

// The files in `dir`, among `names`, with the format's extension whose first bytes the format
// recognises. A file that cannot be read counts as one of them.
std::vector<std::string> FilesOf(const Format& format, const fs::path& dir,
                                 const std::vector<std::string>& names) {
  std::vector<std::string> found;
  for (const std::string& name : names) {
    if (fs::path(name).extension() != format.Extension()) continue;
    const std::string first = FirstBytes((dir / name).string());
    if (first.empty() || format.Recognises(first) || &format == formats::Formats()[0])
      found.push_back((dir / name).string());
  }
  return found;
}

// Finds the program file in a directory.
Result<std::string> FindInDirectory(const std::string& dir) {
  std::string usual, extension;
  for (const Format* format : formats::Formats()) {
    for (const std::string& name : format->FileNames()) {
      const std::string file = (fs::path(dir) / name).string();
      if (IsRegularFile(file)) return file;
      usual += (usual.empty() ? "" : ", ") + name;
    }
  }
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(dir));
  std::vector<std::string> found;
  for (const Format* format : formats::Formats()) {
    for (std::string& file : FilesOf(*format, dir, names)) {
      found.push_back(std::move(file));
      extension = format->Extension();
    }
  }
  if (found.size() == 1) return found[0];
  for (const Format* format : formats::Formats())
    if (std::string file = format->ProgramIn(dir); found.empty() && !file.empty()) return file;
  if (found.size() > 1)
    return InvalidArgument(dir, " holds several ", extension, " files; name one");
  return NotFound(dir, " holds no program (", usual, ")", formats::OtherKindsIn(dir));
}

// The format to write in. An empty name means the format that the program was read from if it can
// be written, else ProgramDesc.
Result<const Format*> FormatNamed(const std::string& name, const ir::Program& program) {
  const Format& own = formats::FormatOf(program);
  if (name.empty()) return own.CanWrite() ? &own : formats::Formats()[0];
  std::string names;
  bool is_read = false;
  for (const Format* format : formats::Formats()) {
    if (format->name() == name && format->CanWrite()) return format;
    is_read = is_read || format->name() == name;
    if (format->CanWrite()) names += (names.empty() ? "" : ", ") + std::string(format->name());
  }
  if (is_read) return Unimplemented("heddle does not write ", name, "; it writes ", names);
  return InvalidArgument("there is no format '", name, "' to write; there is ", names);
}

}  // namespace

namespace formats {

const ProgramPart ParseRequest::kWholeFile;

Result<std::vector<std::string>> Format::Signatures(std::string_view) const {
  return std::vector<std::string>();
}

uint64_t Format::Hash(std::string_view bytes) const {
  // A program without its tensors is smaller than kMost: larger bytes are a damaged file.
  constexpr size_t kMost = size_t{2} << 30, kLooked = 4096;
  return XXH64(bytes.data(), bytes.size() > kMost ? kLooked : bytes.size(), 0);
}

bool Format::HasParameters(const std::string& path) const {
  std::error_code ec;
  return fs::exists(path, ec);
}

const std::vector<GradientCall>& ProgramSource::GradientCalls() const {
  static const std::vector<GradientCall>* const none = new std::vector<GradientCall>();
  return *none;
}

Status Format::SetOwnParameters(const Program&, Scope&) const { return Status::Ok(); }

Status Format::ParseParameters(const Program&, std::string_view, Scope&) const {
  return Unimplemented("programs of the format ", std::string(name()),
                       " have no file of parameters");
}

namespace {

uint64_t HashOf(const Format& format, std::string_view bytes, const ProgramPart& part) {
  uint64_t hash = format.Hash(bytes);
  const auto add = [&](std::string_view text) { hash = XXH64(text.data(), text.size(), hash); };
  if (part.empty()) return hash;
  add(part.signature);
  for (const auto* names : {&part.feeds, &part.fetches, &part.targets}) {
    add("\n");
    for (const std::string& name : *names) add(name);
  }
  return hash;
}

// The format that recognises the bytes; of several, the one listed last checks most closely.
const Format* Recognised(std::string_view bytes) {
  const Format* format = nullptr;
  for (const Format* f : Formats())
    if (f->Recognises(bytes)) format = f;
  return format;
}

}  // namespace

Result<std::shared_ptr<ir::Program>> ParseProgram(std::string_view bytes, const std::string& name,
                                                  bool is_file, const ProgramPart& part) {
  HEDDLE_RETURN_IF_ERROR(CheckKind(bytes, name));
  const Format* format = Recognised(bytes);
  if (format == nullptr) return UnknownKind(bytes, name);
  if (!format->HasParts() && !part.signature.empty())
    return InvalidArgument(name, ": there is no signature '", part.signature,
                           "': files of the format ", std::string(format->name()),
                           " hold one program");
  const ProgramPart& wanted = format->HasParts() ? part : ParseRequest::kWholeFile;
  ir::ProgramBuilder builder(name, HashOf(*format, bytes, wanted));
  ParseRequest request{.bytes = bytes, .builder = builder, .part = wanted};
  if (is_file) {
    request.path = name;
    request.folder = fs::path(name).parent_path().string();
    if (request.folder.empty()) request.folder = ".";
  }
  return EndedInTime([&]() -> Result<std::shared_ptr<ir::Program>> {
    HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<const ProgramSource> source, format->Parse(request));
    HEDDLE_ASSIGN_OR_RETURN(auto program, std::move(builder).Finish(std::move(source)));
    if (program->source == nullptr || program->source->GradientCalls().empty()) return program;
    return gradient::WithGradientCalls(*program);
  });
}

}  // namespace formats

Result<Program> Program::Parse(std::string_view bytes, const std::string& name) {
  auto parsed = formats::ParseProgram(bytes, name);
  if (!parsed.ok()) return parsed.status();
  return Program(*std::move(parsed));
}

Result<Program> Program::Load(const std::string& path) { return LoadProgram(path, {}); }

std::vector<TensorInfo> Program::outputs() const {
  std::vector<TensorInfo> out;
  for (const ir::Port& f : impl_->fetches) {
    const ir::Var& v = impl_->vars[f.var];
    const std::string_view name = impl_->source ? impl_->source->OutputName(v.name) : "";
    out.push_back({name.empty() ? v.name : std::string(name), v.dtype, v.shape});
  }
  return out;
}

Result<std::string> Program::Serialize(const std::string& format) const {
  HEDDLE_ASSIGN_OR_RETURN(const Format* to, FormatNamed(format, *impl_));
  return to->Write(*impl_);
}

namespace {

// The format writes dimensions one by one, so an unknown rank would read as a scalar.
Status CheckRanks(const Program& program, const Format& format) {
  for (const TensorInfo& input : program.inputs())
    if (!input.shape.known_rank())
      return Unimplemented("input '", input.name,
                           "' may have any rank, which a file of the format ",
                           std::string(format.name()), " cannot say");
  return Status::Ok();
}

// Checks that all parameters are tensors: files of parameters can hold nothing else.
Status CheckTensors(const Model& model) {
  for (const ir::Var& var : model.program.ir().vars) {
    const Value* value = model.scope != nullptr && var.persistable && var.kind == ir::VarKind::kRaw
                             ? model.scope->Find(var.name)
                             : nullptr;
    if (value != nullptr && value->kind() == Value::Kind::kOther && value->initialized())
      return Unimplemented("'", var.name,
                           "' holds strings or a hash table, which no file of parameters can");
  }
  return Status::Ok();
}

// Writes a file into a directory, which is made if it does not exist.
Status WriteIn(const std::string& directory, const std::string& file_name,
               const std::string& bytes) {
  std::error_code ec;
  fs::create_directories(directory, ec);
  if (ec) return NotFound("cannot make the directory ", directory, ": ", ec.message());
  FileReplacement file(file_name);
  HEDDLE_RETURN_IF_ERROR(file.Open());
  HEDDLE_RETURN_IF_ERROR(file.Append(bytes));
  return file.Commit();
}

}  // namespace

Result<SavedModel> SaveModel(const Model& model, const std::string& directory,
                             const std::string& format) {
  HEDDLE_ASSIGN_OR_RETURN(const Format* to, FormatNamed(format, model.program.ir()));
  HEDDLE_RETURN_IF_ERROR(CheckRanks(model.program, *to));
  HEDDLE_RETURN_IF_ERROR(CheckTensors(model));
  HEDDLE_ASSIGN_OR_RETURN(const std::string bytes, to->Write(model.program.ir()));
  std::error_code ec;
  fs::create_directories(directory, ec);
  if (ec) return NotFound("cannot make the directory ", directory, ": ", ec.message());
  SavedModel saved;
  saved.program = (fs::path(directory) / to->FileNames()[0]).string();
  saved.foreign = to->Foreign(model.program.ir());
  if (!model.program.persistables().empty()) {
    saved.parameters = to->DefaultParameters(saved.program);
    HEDDLE_RETURN_IF_ERROR(SaveParameters(model.program, *model.scope, saved.parameters));
  }
  HEDDLE_RETURN_IF_ERROR(WriteIn(directory, saved.program, bytes));
  return saved;
}

// The program's file, with the parameters beside it.
Status formats::Format::WriteTuned(const TunedModel& tuned, const std::string& directory) const {
  std::string bytes;
  if (tuned.reshaped.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(bytes, ReadFile(tuned.program_file));
  } else {
    HEDDLE_ASSIGN_OR_RETURN(bytes, Write(tuned.program.ir()));
  }
  const std::string target = (fs::path(directory) / FileNames()[0]).string();
  if (!tuned.program.persistables().empty())
    HEDDLE_RETURN_IF_ERROR(SaveParameters(tuned.program, tuned.scope, DefaultParameters(target)));
  return WriteIn(directory, target, bytes);
}

Status SaveTunedModel(const Model& model, const std::string& program_file,
                      const std::vector<std::string>& changed, const std::string& directory,
                      const std::vector<std::string>& reshaped) {
  const auto& source = model.program.ir().source;
  if (source == nullptr) return Unimplemented("the program came from no file");
  std::error_code ec;
  fs::create_directories(directory, ec);
  if (ec) return NotFound("cannot make the directory ", directory, ": ", ec.message());
  return source->format().WriteTuned({model.program, program_file, *model.scope, changed, reshaped},
                                     directory);
}

Result<SavedModel> SaveProgram(const Program& program, const std::string& directory,
                               const std::string& name, const std::string& format) {
  HEDDLE_ASSIGN_OR_RETURN(const Format* to, FormatNamed(format, program.ir()));
  HEDDLE_RETURN_IF_ERROR(CheckRanks(program, *to));
  HEDDLE_ASSIGN_OR_RETURN(const std::string bytes, to->Write(program.ir()));
  SavedModel saved;
  saved.program = (fs::path(directory) / (name + to->Extension())).string();
  saved.foreign = to->Foreign(program.ir());
  HEDDLE_RETURN_IF_ERROR(WriteIn(directory, saved.program, bytes));
  return saved;
}

Result<std::string> FindProgramFile(const std::string& path) {
  std::error_code ec;
  if (fs::is_directory(path, ec)) return FindInDirectory(path);
  // A TensorFlow checkpoint is named by the common prefix of its files. Old checkpoints also have a
  // file of that name, which holds variables.
  const std::string meta = path + ".meta";
  if (!IsRegularFile(meta) || IsStream(path)) return path;
  return formats::Recognised(FirstBytes(path)) == nullptr ? meta : path;
}

std::string DefaultParameters(const std::string& program_file) {
  const std::string extension = fs::path(program_file).extension().string();
  for (const Format* format : formats::Formats())
    if (format->Extension() == extension) return format->DefaultParameters(program_file);
  return formats::Formats()[0]->DefaultParameters(program_file);
}

Result<Program> LoadProgram(const std::string& path, const ProgramPart& part) {
  auto bytes = FileBytes::ReadOrReceive(path);
  if (!bytes.ok()) return bytes.status();
  auto parsed = formats::ParseProgram(bytes->view(), path, /*is_file=*/!IsStream(path), part);
  if (!parsed.ok()) return parsed.status();
  return Program(*std::move(parsed));
}

Result<std::vector<std::string>> SignaturesOf(const std::string& path) {
  HEDDLE_ASSIGN_OR_RETURN(const std::string file, FindProgramFile(path));
  if (IsStream(file)) return std::vector<std::string>();  // a stream can be read only once
  HEDDLE_ASSIGN_OR_RETURN(const FileBytes bytes, FileBytes::Read(file));
  const Format* format = formats::Recognised(bytes.view());
  if (format == nullptr) return std::vector<std::string>();
  auto signatures = format->Signatures(bytes.view());
  if (signatures.ok()) return signatures;
  return Status(signatures.status().code(), file + ": " + signatures.status().message());
}

Result<Model> LoadModel(const std::string& path, const std::string& params) {
  return LoadModel(path, params, {});
}

Result<Model> LoadModel(const std::string& path, const std::string& params,
                        const ProgramPart& part) {
  std::error_code ec;
  HEDDLE_ASSIGN_OR_RETURN(const std::string file, FindProgramFile(path));
  auto program = LoadProgram(file, part);
  if (!program.ok()) return program.status();
  Model model{*program, std::make_shared<Scope>()};
  const std::string where =
      params.empty() ? formats::FormatOf(program->ir()).DefaultParameters(file) : params;
  // Even without parameters the program's own file is read: it may hold strings, which are no
  // tensors.
  if (program->persistables().empty() && params.empty() && where != file) return model;
  if (params.empty() && where != file && IsStream(file))
    return NotFound("no parameters: the program came through ", file, " and has ",
                    program->persistables().size(), " parameters; name their file, too");
  if (!fs::exists(where, ec) && !formats::FormatOf(program->ir()).HasParameters(where))
    return NotFound("no parameters: ", where,
                    ec ? " cannot be looked at (" + ec.message() + ")" : " does not exist",
                    ", and the program has ", program->persistables().size(), " parameters");
  HEDDLE_RETURN_IF_ERROR(
      LoadParameters(*program, where, *model.scope, ParameterReading::kWhenNeeded));
  return model;
}

Result<Model> ParseModel(std::string_view program, std::string_view parameters,
                         const std::string& name) {
  return ParseModel(program, parameters, name, {});
}

Result<Model> ParseModel(std::string_view program, std::string_view parameters,
                         const std::string& name, const ProgramPart& part) {
  auto parsed = formats::ParseProgram(program, name, /*is_file=*/false, part);
  if (!parsed.ok()) return parsed.status();
  Model model{Program(*std::move(parsed)), std::make_shared<Scope>()};
  const Format& format = formats::FormatOf(model.program.ir());
  HEDDLE_RETURN_IF_ERROR(EndedInTime([&] {
    HEDDLE_RETURN_IF_ERROR(format.SetOwnParameters(model.program, *model.scope));
    return parameters.empty() ? Status::Ok()
                              : format.ParseParameters(model.program, parameters, *model.scope);
  }));
  return model;
}

std::vector<TensorInfo> WrittenPersistables(const Program& program) {
  const ir::Program& p = program.ir();
  std::vector<bool> written(p.vars.size());
  for (const ir::Block& block : p.blocks)
    for (const ir::Op& op : block.ops)
      for (const auto& slot : op.outputs)
        for (ir::VarId v : slot)
          if (v != ir::kNoVar) written[v] = true;
  std::vector<TensorInfo> found;
  for (TensorInfo& info : program.persistables())
    if (const ir::VarId v = p.Find(0, info.name); v != ir::kNoVar && written[v])
      found.push_back(std::move(info));
  return found;
}

Result<FunctionLibrary> FunctionsOf(const Program& program) {
  if (program.ir().source == nullptr) return FunctionLibrary();
  return program.ir().source->Functions();
}

std::vector<std::string> InputTypes(const Program& program) {
  std::vector<std::string> types;
  for (size_t k = 0, n = program.inputs().size(); k < n; ++k)
    types.emplace_back(program.ir().source ? program.ir().source->InputType(k) : "");
  return types;
}

std::vector<std::string> OutputTypes(const Program& program) {
  std::vector<std::string> types;
  for (size_t k = 0, n = program.outputs().size(); k < n; ++k)
    types.emplace_back(program.ir().source ? program.ir().source->OutputType(k) : "");
  return types;
}

namespace {

std::vector<std::string> TypesByName(const std::vector<TensorInfo>& wanted,
                                     const std::vector<TensorInfo>& known,
                                     const std::vector<std::string>& types) {
  std::unordered_map<std::string_view, size_t> places;
  for (size_t k = 0; k < known.size(); ++k) places[known[k].name] = k;
  std::vector<std::string> found(wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    if (const auto at = places.find(wanted[i].name); at != places.end())
      found[i] = types[at->second];
  return found;
}

}  // namespace

std::vector<std::string> InputTypes(const Program& program, const std::vector<TensorInfo>& inputs) {
  return TypesByName(inputs, program.inputs(), InputTypes(program));
}

std::vector<std::string> OutputTypes(const Program& program,
                                     const std::vector<TensorInfo>& outputs) {
  return TypesByName(outputs, program.outputs(), OutputTypes(program));
}

std::string KindOfBytes(std::string_view bytes) {
  const auto kind = formats::OtherKindOf(bytes);
  return kind ? kind->what : "";
}

Result<Value*> FindVariable(const Scope& scope, const std::string& name) {
  Value* const value = scope.StampOf(name).value;
  if (value == nullptr || !value->is_tensor()) return value;
  const Status there = MakeResident(value->tensor());
  if (there.ok()) return value;
  return ErrorWith(there.code(), "variable '", name, "': ", there.message());
}

Status LoadParameters(const Program& program, const std::string& path, Scope& scope,
                      ParameterReading reading) {
  return EndedInTime([&] {
    return formats::FormatOf(program.ir()).LoadParameters(program, path, scope, reading);
  });
}

}  // namespace heddle
