#include "tools/onnx_case.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "heddle/heddle.h"
#include "heddle/onnx.h"

namespace heddle::tools {
namespace {

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

}  // namespace

bool IsOnnxCase(const std::string& directory) {
  return std::filesystem::is_regular_file(directory + "/model.onnx");
}

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
    HEDDLE_RETURN_IF_ERROR(
        WriteBytes(out + "/output_" + std::to_string(k) + ".pb", messages[k]));
  return Status::Ok();
}

}  // namespace heddle::tools
