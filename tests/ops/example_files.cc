#include "tests/ops/example_files.h"

#include <algorithm>
#include <filesystem>

#include "tests/ops/example_parser.h"
#include "tests/support/files.h"

namespace heddle::testing {
namespace {

namespace fs = std::filesystem;

// What stands in parentheses behind `macro` at the beginning of a line, up to the first of `ends`.
struct Use {
  std::string argument;
  size_t end;  // where `ends` begin
};
std::vector<Use> UsesOf(const std::string& macro, const std::string& source, const char* ends) {
  std::vector<Use> uses;
  const std::string call = macro + "(";
  for (size_t at = 0; (at = source.find(call, at)) != std::string::npos; ++at) {
    if (at > 0 && source[at - 1] != '\n') continue;
    const size_t begin = at + call.size();
    const size_t end = std::min(source.find_first_of(ends, begin), source.size());
    uses.push_back({source.substr(begin, end - begin), end});
  }
  return uses;
}

int LineOf(const std::string& text, size_t at) {
  return 1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<long>(at), '\n'));
}

// The contents of the raw string that is the macro's second argument; false when there is none.
bool RawString(const std::string& source, size_t comma, size_t* begin, size_t* end) {
  const size_t quote = source.find_first_not_of(", \n", comma);
  if (quote == std::string::npos || source.compare(quote, 2, "R\"") != 0) return false;
  const size_t open = source.find('(', quote);
  if (open == std::string::npos) return false;
  const std::string close = ")" + source.substr(quote + 2, open - quote - 2) + "\"";
  *begin = open + 1;
  *end = source.find(close, open);
  return *end != std::string::npos;
}

}  // namespace

void ReadExampleBlocks(const std::string& source, const std::string& path, ExampleFile* file) {
  for (const Use& use : UsesOf("HEDDLE_EXAMPLES", source, ",)")) {
    size_t begin = 0, end = 0;
    if (!RawString(source, use.end, &begin, &end)) {
      file->errors.push_back(path + ":" + std::to_string(LineOf(source, use.end)) +
                             ": HEDDLE_EXAMPLES takes an operator and a raw string");
      continue;
    }
    auto examples = ParseExamples(use.argument, std::string_view(source).substr(begin, end - begin),
                                  path, LineOf(source, begin));
    if (!examples.ok()) {
      file->errors.push_back(examples.status().message());
      continue;
    }
    for (Example& e : *examples) file->examples.push_back(std::move(e));
  }
}

std::map<std::string, ExampleFile> ReadExampleFiles(const std::string& kernels_dir) {
  std::map<std::string, ExampleFile> files;
  for (const auto& entry : fs::recursive_directory_iterator(kernels_dir)) {
    if (entry.path().extension() != ".cc") continue;
    const std::string family = fs::relative(entry.path().parent_path(), kernels_dir).string();
    std::string name = entry.path().stem().string();
    if (name.ends_with("_examples")) name.resize(name.size() - std::string("_examples").size());
    const std::string source = ReadAll(entry.path().string());
    ExampleFile file;
    for (Use& use : UsesOf("HEDDLE_OP", source, ")"))
      file.operators.push_back(std::move(use.argument));
    ReadExampleBlocks(source, entry.path().string(), &file);
    if (file.operators.empty() && file.examples.empty() && file.errors.empty()) continue;
    ExampleFile& whole = files[family + "/" + name];
    whole.family = family;
    whole.name = name;
    std::move(file.operators.begin(), file.operators.end(), std::back_inserter(whole.operators));
    std::move(file.examples.begin(), file.examples.end(), std::back_inserter(whole.examples));
    std::move(file.errors.begin(), file.errors.end(), std::back_inserter(whole.errors));
  }
  return files;
}

}  // namespace heddle::testing
