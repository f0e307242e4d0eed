#include "tools/cases/case_runner.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <vector>

#include "heddle/heddle.h"
#include "heddle/model_files.h"
#include "heddle/onnx.h"
#include "tools/cases/case_file.h"
#include "tools/directory.h"
#include "tools/values/element_types.h"
#include "tools/values/npy.h"
#include "tools/values/values.h"

namespace heddle::tools {
namespace {

Result<Program> LoadProgram(const Case& c) {
  std::ifstream file(c.program_file(), std::ios::binary);
  if (!file) return Status(StatusCode::kNotFound, c.program_file() + ": no such file");
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return Program::Parse(bytes, c.program_file());
}

Status CheckHasValue(const CaseEntry& output, const Value& value) {
  const bool empty_tensor =
      value.is_tensor() && value.tensor().dtype() != DType::kUnknown && value.tensor().numel() == 0;
  if (!value.initialized() && !empty_tensor)
    return Status(StatusCode::kInvalidArgument,
                  "output '" + output.name + "' holds nothing: no operator wrote it in this run");
  return Status::Ok();
}

// The values of all outputs, in order: from the fetches, or from the scope.
Result<std::vector<Value>> Gather(const Case& c, std::vector<Value> fetched, const Scope& scope) {
  std::vector<Value> values;
  size_t next = 0;
  for (const CaseEntry& output : c.outputs) {
    if (output.role == CaseEntry::Role::kFetch) {
      if (next >= fetched.size())
        return Status(StatusCode::kInternal, "fewer values returned than fetches asked for");
      values.push_back(std::move(fetched[next++]));
    } else {
      const Value* value = scope.Find(output.name);
      if (value == nullptr)
        return Status(StatusCode::kNotFound,
                      "variable '" + output.name + "' is not in the scope after the run");
      values.push_back(*value);
    }
    HEDDLE_RETURN_IF_ERROR(CheckHasValue(output, values.back()));
  }
  return values;
}

// --- cases of the ONNX test suite: model.onnx and test_data_set_0/input_<k>.pb

Result<std::string> ReadBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Status(StatusCode::kNotFound, path + ": no such file");
  return std::string{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

Status WriteBytes(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  return file ? Status::Ok() : Status(StatusCode::kNotFound, path + ": cannot be written");
}

bool IsFile(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

bool IsOnnxCase(const std::string& directory) { return IsFile(directory + "/model.onnx"); }

Status RunOnnxCase(Executor& executor, const std::string& directory, const std::string& out,
                   CompileOptions options, const RunOptions& run) {
  HEDDLE_ASSIGN_OR_RETURN(const Model model, LoadModel(directory + "/model.onnx"));
  const std::vector<TensorInfo> inputs = model.program.inputs();
  std::vector<Feed> feeds;
  for (size_t k = 0; k < inputs.size(); ++k) {
    HEDDLE_ASSIGN_OR_RETURN(
        const std::string bytes,
        ReadBytes(directory + "/test_data_set_0/input_" + std::to_string(k) + ".pb"));
    HEDDLE_ASSIGN_OR_RETURN(Value value, ReadOnnxInput(model.program, k, bytes));
    feeds.push_back({inputs[k].name, std::move(value)});
  }
  options.fetches.clear();
  for (const TensorInfo& output : model.program.outputs()) options.fetches.push_back(output.name);
  HEDDLE_ASSIGN_OR_RETURN(const CompiledProgram compiled,
                          executor.Compile(model.program, model.scope, options));
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<Value> fetched,
                          executor.RunValues(compiled, feeds, run));
  std::vector<std::string> messages;
  for (size_t k = 0; k < fetched.size(); ++k) {
    HEDDLE_ASSIGN_OR_RETURN(std::string message, WriteOnnxOutput(model.program, k, fetched[k]));
    messages.push_back(std::move(message));
  }
  for (size_t k = 0; k < messages.size(); ++k)
    HEDDLE_RETURN_IF_ERROR(WriteBytes(out + "/output_" + std::to_string(k) + ".pb", messages[k]));
  return Status::Ok();
}

// --- cases of TensorFlow graphs: graph.pb and io.txt, with a line "in|out NAME FILE DTYPE SHAPE …"
// for each input and output, fields separated by a tab

bool IsGraphCase(const std::string& directory) { return IsFile(directory + "/graph.pb"); }

struct GraphPort {
  std::string name, file, type;
};

Status ReadGraphPorts(const std::string& path, std::vector<GraphPort>* inputs,
                      std::vector<GraphPort>* outputs) {
  std::ifstream file(path);
  if (!file) return Status(StatusCode::kNotFound, path + ": no such file");
  for (std::string line; std::getline(file, line);) {
    if (line.empty()) continue;
    std::vector<std::string> fields;
    std::istringstream parts(line);
    for (std::string field; std::getline(parts, field, '\t');) fields.push_back(field);
    const bool known = fields.size() >= 4 && (fields[0] == "in" || fields[0] == "out") &&
                       fields[2].find('/') == std::string::npos;
    if (!known)
      return Status(StatusCode::kInvalidArgument, path + ": '" + line + "' is no input or output");
    (fields[0] == "in" ? inputs : outputs)->push_back({fields[1], fields[2], fields[3]});
  }
  if (outputs->empty()) return Status(StatusCode::kInvalidArgument, path + ": there is no output");
  return Status::Ok();
}

Status RunGraphCase(Executor& executor, const std::string& directory, const std::string& out,
                    CompileOptions options, const RunOptions& run) {
  std::vector<GraphPort> inputs, outputs;
  HEDDLE_RETURN_IF_ERROR(ReadGraphPorts(directory + "/io.txt", &inputs, &outputs));
  ProgramPart part;
  for (const GraphPort& input : inputs) part.feeds.push_back(input.name);
  for (const GraphPort& output : outputs) part.fetches.push_back(output.name);
  HEDDLE_ASSIGN_OR_RETURN(const Model model, LoadModel(directory + "/graph.pb", "", part));
  std::vector<Feed> feeds;
  const std::vector<TensorInfo> infos = model.program.inputs();
  for (size_t k = 0; k < inputs.size(); ++k) {
    const std::string path = directory + "/" + inputs[k].file;
    HEDDLE_ASSIGN_OR_RETURN(const NpyArray read, ReadNpyArray(path));
    const bool wide = FindElementType(inputs[k].type) != nullptr;
    HEDDLE_ASSIGN_OR_RETURN(
        Value value, FeedValue(read, k < infos.size() ? infos[k].dtype : DType::kUnknown,
                               wide ? inputs[k].type : "", path, "input '" + inputs[k].name + "'"));
    feeds.push_back({inputs[k].name, std::move(value)});
  }
  options.fetches = part.fetches;
  HEDDLE_ASSIGN_OR_RETURN(const CompiledProgram compiled,
                          executor.Compile(model.program, model.scope, options));
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<Value> fetched,
                          executor.RunValues(compiled, feeds, run));
  const std::vector<std::string> types = OutputTypes(model.program);
  for (size_t k = 0; k < fetched.size(); ++k) {
    const std::string stem = std::filesystem::path(outputs[k].file).stem().string();
    const auto written = WriteValue(fetched[k], out + "/" + stem, k < types.size() ? types[k] : "");
    if (written.ok()) continue;
    RemoveOutputs(out);
    return written.status();
  }
  return Status::Ok();
}

}  // namespace

void RemoveOutputs(const std::string& out) {
  std::error_code error;
  for (const std::filesystem::path& entry : EntriesOf(out))
    if (const std::string name = entry.filename().string();
        name.starts_with("out_") || (name.starts_with("output_") && name.ends_with(".pb")))
      std::filesystem::remove(entry, error);
}

// A fed variable that is read from the scope afterwards lives there, and so does one that the
// program keeps.
bool LivesInScope(const Case& c, const Program& program, const CaseEntry& input) {
  const auto kept = program.persistables();
  return input.role == CaseEntry::Role::kParam ||
         std::any_of(kept.begin(), kept.end(),
                     [&](const TensorInfo& info) { return info.name == input.name; }) ||
         std::any_of(c.outputs.begin(), c.outputs.end(), [&](const CaseEntry& output) {
           return output.role == CaseEntry::Role::kScope && output.name == input.name;
         });
}

Status RunOneCase(Executor& executor, const std::string& directory, const std::string& out,
                  CompileOptions options, const RunOptions& run) {
  if (IsOnnxCase(directory)) return RunOnnxCase(executor, directory, out, std::move(options), run);
  if (IsGraphCase(directory))
    return RunGraphCase(executor, directory, out, std::move(options), run);
  HEDDLE_ASSIGN_OR_RETURN(const Case c, ReadCase(directory));
  HEDDLE_ASSIGN_OR_RETURN(const Program program, LoadProgram(c));
  auto scope = std::make_shared<Scope>();
  std::vector<Feed> feeds;
  for (const CaseEntry& input : c.inputs) {
    HEDDLE_ASSIGN_OR_RETURN(Value value, ReadInput(c, input));
    if (LivesInScope(c, program, input)) {
      scope->Set(input.name, std::move(value));
    } else {
      feeds.push_back({input.name, std::move(value)});
    }
  }
  options.fetches.clear();
  for (const CaseEntry& output : c.outputs)
    if (output.role == CaseEntry::Role::kFetch) options.fetches.push_back(output.name);
  HEDDLE_ASSIGN_OR_RETURN(const CompiledProgram compiled,
                          executor.Compile(program, scope, options));
  HEDDLE_ASSIGN_OR_RETURN(std::vector<Value> fetched, executor.RunValues(compiled, feeds, run));
  HEDDLE_ASSIGN_OR_RETURN(const auto values, Gather(c, std::move(fetched), *scope));
  for (size_t k = 0; k < values.size(); ++k) {
    const auto written = WriteValue(values[k], out + "/out_" + std::to_string(k));
    if (written.ok()) continue;
    RemoveOutputs(out);
    return written.status();
  }
  return Status::Ok();
}

}  // namespace heddle::tools
