#include "tools/cases/case_file.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tools/values/npy.h"
#include "tools/values/values.h"

namespace heddle::tools {
namespace {

bool ParseNumber(const std::string& text, int64_t* n) {
  const char* end = text.data() + text.size();
  const auto [next, error] = std::from_chars(text.data(), end, *n);
  return error == std::errc() && next == end;
}

bool ParseDType(const std::string& text, DType* dtype) {
  for (int i = 0; i + 1 < kNumDTypes; ++i) {
    *dtype = static_cast<DType>(i);
    if (Name(*dtype) == text) return true;
  }
  return false;
}

// "2,3"; "-" for a scalar.
bool ParseShape(const std::string& text, Shape* shape) {
  *shape = Shape();
  if (text == "-") return true;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    int64_t d = 0;
    if (!ParseNumber(text.substr(at, comma - at), &d) || d < 0 || shape->rank() == Shape::kMaxRank)
      return false;
    shape->push_back(d);
    at = comma + 1;
  }
  return true;
}

bool ParseRole(const std::string& text, bool input, CaseEntry::Role* role) {
  using Role = CaseEntry::Role;
  if (input && text == "feed") return *role = Role::kFeed, true;
  if (input && text == "param") return *role = Role::kParam, true;
  if (!input && text == "fetch") return *role = Role::kFetch, true;
  if (!input && text == "scope") return *role = Role::kScope, true;
  return false;
}

bool ParseKind(const std::string& text, Value::Kind* kind) {
  if (text == "dense") return *kind = Value::Kind::kTensor, true;
  if (text == "selected_rows") return *kind = Value::Kind::kRows, true;
  if (text == "tensor_array") return *kind = Value::Kind::kArray, true;
  return false;
}

// The tab-separated fields of io.txt, line by line.
class Lines {
 public:
  explicit Lines(const std::string& path) : file_(path) {}
  bool open() const { return file_.is_open(); }
  int number() const { return number_; }
  // False at the end of the file.
  bool Next(std::vector<std::string>* fields) {
    std::string line;
    if (!std::getline(file_, line)) return false;
    ++number_;
    fields->clear();
    for (size_t at = 0; at <= line.size();) {
      const size_t tab = std::min(line.find('\t', at), line.size());
      fields->push_back(line.substr(at, tab - at));
      at = tab + 1;
    }
    return true;
  }

 private:
  std::ifstream file_;
  int number_ = 0;
};

// FILE DTYPE SHAPE LOD from field `at` on.
bool ParseTensor(const std::vector<std::string>& fields, size_t at, CaseTensor* tensor) {
  if (fields.size() < at + 4) return false;
  tensor->file = fields[at];
  if (!ParseDType(fields[at + 1], &tensor->dtype) || !ParseShape(fields[at + 2], &tensor->shape))
    return false;
  if (fields[at + 3] == "-") return true;
  auto lod = ParseLod(fields[at + 3]);
  if (!lod.ok()) return false;
  tensor->lod = *std::move(lod);
  return true;
}

bool ParseItems(Lines* lines, int64_t count, CaseEntry* entry) {
  std::vector<std::string> fields;
  for (int64_t i = 0; i < count; ++i) {
    CaseTensor item;
    if (!lines->Next(&fields) || fields[0] != "item" || !ParseTensor(fields, 1, &item))
      return false;
    entry->tensors.push_back(std::move(item));
  }
  return true;
}

// One `in` or `out` line and the `item` lines that belong to it.
bool ParseEntry(const std::vector<std::string>& fields, bool input, Lines* lines,
                CaseEntry* entry) {
  const size_t at = input ? 3 : 6;  // behind ROLE TYPE [CHECK RTOL ATOL]
  if (fields.size() < at + 2 || !ParseRole(fields[1], input, &entry->role) ||
      !ParseKind(fields[2], &entry->kind))
    return false;
  entry->name = fields.back();
  if (entry->kind == Value::Kind::kArray) {
    int64_t count = 0;
    return fields.size() == at + 2 && ParseNumber(fields[at], &count) &&
           ParseItems(lines, count, entry);
  }
  const bool rows = entry->kind == Value::Kind::kRows;
  CaseTensor tensor;
  if (fields.size() != at + (rows ? 7 : 5) || !ParseTensor(fields, at, &tensor)) return false;
  entry->tensors.push_back(std::move(tensor));
  if (!rows) return true;
  entry->rows_file = fields[at + 4];
  return ParseNumber(fields[at + 5], &entry->height);
}

// `no_buffer` is in meta.json only; without that file no input has it.
void ReadNoBuffer(const std::string& path, std::vector<CaseEntry>* inputs) {
  std::ifstream file(path);
  if (!file) return;
  const auto meta = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  const auto list = meta.is_object() ? meta.find("inputs") : meta.end();
  if (list == meta.end() || !list->is_array()) return;
  for (size_t k = 0; k < list->size() && k < inputs->size(); ++k) {
    const auto& entry = (*list)[k];
    if (!entry.is_object()) continue;
    const auto flag = entry.find("no_buffer");
    (*inputs)[k].no_buffer = flag != entry.end() && flag->is_boolean() && flag->get<bool>();
  }
}

Result<Tensor> ReadCaseTensor(const Case& c, const CaseTensor& expected) {
  const std::string path = c.directory + "/" + expected.file;
  HEDDLE_ASSIGN_OR_RETURN(Tensor tensor, ReadNpy(path));
  if (tensor.dtype() != expected.dtype || tensor.shape() != expected.shape)
    return Status(StatusCode::kDataLoss, path + ": is " + std::string(Name(tensor.dtype())) + " " +
                                             tensor.shape().ToString() + ", io.txt says " +
                                             std::string(Name(expected.dtype)) + " " +
                                             expected.shape.ToString());
  if (!expected.lod.empty()) tensor.set_lod(expected.lod);
  return tensor;
}

}  // namespace

std::string Case::program_file() const {
  std::error_code error;
  const std::string pir = directory + "/program.json", usual = directory + "/program.pb";
  return std::filesystem::exists(usual, error) || !std::filesystem::exists(pir, error) ? usual
                                                                                       : pir;
}

Result<Case> ReadCase(const std::string& directory) {
  const std::string path = directory + "/io.txt";
  Lines lines(path);
  if (!lines.open()) return Status(StatusCode::kNotFound, path + ": no such file");
  std::vector<std::string> fields;
  if (!lines.Next(&fields) || fields[0] != "opcase 1")
    return Status(StatusCode::kDataLoss, path + ": does not begin with 'opcase 1'");
  Case c;
  c.directory = directory;
  while (lines.Next(&fields)) {
    const bool input = fields[0] == "in";
    CaseEntry entry;
    if ((!input && fields[0] != "out") || !ParseEntry(fields, input, &lines, &entry))
      return Status(StatusCode::kDataLoss,
                    path + ": line " + std::to_string(lines.number()) + " is not understood");
    (input ? c.inputs : c.outputs).push_back(std::move(entry));
  }
  ReadNoBuffer(directory + "/meta.json", &c.inputs);
  return c;
}

Result<Value> ReadInput(const Case& c, const CaseEntry& input) {
  // There is no file that matters: the tensor has a shape without elements.
  if (input.no_buffer) return Value(Tensor::Empty(input.tensors[0].dtype, input.tensors[0].shape));
  std::vector<Tensor> tensors;
  for (const CaseTensor& t : input.tensors) {
    HEDDLE_ASSIGN_OR_RETURN(Tensor tensor, ReadCaseTensor(c, t));
    tensors.push_back(std::move(tensor));
  }
  if (input.kind == Value::Kind::kArray) return Value(TensorArray(std::move(tensors)));
  if (input.kind == Value::Kind::kTensor) return Value(std::move(tensors[0]));
  const std::string path = c.directory + "/" + input.rows_file;
  HEDDLE_ASSIGN_OR_RETURN(const Tensor rows, ReadNpy(path));
  if (rows.dtype() != DType::kI64 || rows.rank() != 1)
    return Status(StatusCode::kDataLoss, path + ": row numbers must be int64 with one axis");
  SelectedRows selected;
  selected.rows.assign(rows.data<int64_t>(), rows.data<int64_t>() + rows.numel());
  selected.height = input.height;
  selected.value = std::move(tensors[0]);
  return Value(std::move(selected));
}

}  // namespace heddle::tools
