#include "tests/ops/example_files.h"

#include <filesystem>
#include <set>

#include "core/op_registry.h"
#include "heddle/program.h"
#include "tests/ops/example_parser.h"
#include "tests/support/files.h"

namespace heddle::testing {
namespace {

namespace fs = std::filesystem;

// "activation/relu" of an operator that kernels/activation/relu.cc defines; empty for others.
std::string FileOf(const std::string& op) {
  const auto source = SourceOfOp(op);
  if (!source.ok() || source->empty()) return "";
  const fs::path path(*source);
  return (path.parent_path().filename() / path.stem()).string();
}

}  // namespace

std::map<std::string, ExampleFile> ReadExampleFiles(const std::string& cases_dir) {
  std::map<std::string, ExampleFile> files;
  const auto file_called = [&](const fs::path& name) -> ExampleFile& {
    ExampleFile& file = files[name.string()];
    file.family = name.parent_path().string();
    file.name = name.filename().string();
    return file;
  };
  for (const OpDef* op : AllOps())
    if (const std::string name = FileOf(op->name()); !name.empty())
      file_called(name).operators.push_back(op->name());

  std::set<fs::path> paths;  // sorted
  for (const auto& entry : fs::recursive_directory_iterator(cases_dir))
    if (entry.is_regular_file()) paths.insert(entry.path());
  for (const fs::path& path : paths) {
    const std::string op = path.stem().string();
    const fs::path folder = fs::relative(path.parent_path(), cases_dir);
    const std::string defined_in = FileOf(op);
    if (defined_in.empty() || path.extension() != ".txt") {
      file_called(folder / op)
          .errors.push_back(path.string() +
                            ":1: a file here is called as an operator, with the ending .txt");
      continue;
    }
    ExampleFile& file = file_called(defined_in);
    if (folder != file.family)
      file.errors.push_back(path.string() + ":1: the operator is defined in kernels/" +
                            file.family + ", so its examples belong in the folder " + file.family);
    auto examples = ParseExamples(op, ReadAll(path.string()), path.string(), 1);
    if (!examples.ok()) {
      file.errors.push_back(examples.status().message());
      continue;
    }
    for (Example& e : *examples) file.examples.push_back(std::move(e));
  }
  return files;
}

std::map<std::string, ExampleFile> ReadExampleFiles() {
  return ReadExampleFiles(HEDDLE_SOURCE_DIR "/tests/ops/cases");
}

}  // namespace heddle::testing
