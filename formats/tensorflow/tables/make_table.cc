#include <charconv>
#include <filesystem>
#include <utility>

#include "core/error.h"
#include "core/operands/lookup_table.h"
#include "formats/data_file.h"
#include "formats/model_folder.h"
#include "formats/tensorflow/tables/table_contents.h"
#include "formats/tensorflow/types.h"

namespace heddle::tensorflow {
namespace {

namespace fs = std::filesystem;

// Elements of one type, appended line by line.
class Column {
 public:
  Column(int type, int64_t index) : type_(type), index_(index) {}

  Status Add(std::string_view line, const std::vector<std::string_view>& parts, int64_t number) {
    if (index_ == TableFile::kLineNumber) return AddNumber(number);
    std::string_view text = line;
    if (index_ >= 0) {
      if (index_ >= std::ssize(parts))
        return InvalidArgument("it has ", parts.size(), " columns; column ", index_,
                               " is expected");
      text = parts[static_cast<size_t>(index_)];
    }
    if (type_ == kString) {
      texts_.emplace_back(text);
      return Status::Ok();
    }
    if (IsFloat()) return Parse<double>(text, &floats_);
    if (type_ == kInt32) return Parse<int32_t>(text, &ints_);
    return Parse<int64_t>(text, &ints_);
  }

  Result<Value> Take() {
    const Shape shape{static_cast<int64_t>(texts_.size() + ints_.size() + floats_.size())};
    switch (type_) {
      case kString:
        return ValueOf(StringTensor{shape, std::move(texts_)});
      case kInt64:
        return Value(Tensor::Of(DType::kI64, shape, ints_));
      case kInt32:
        return Value(
            Tensor::Of(DType::kI32, shape, std::vector<int32_t>(ints_.begin(), ints_.end())));
      case kFloat:
        return Value(
            Tensor::Of(DType::kF32, shape, std::vector<float>(floats_.begin(), floats_.end())));
      case kDouble:
        return Value(Tensor::Of(DType::kF64, shape, floats_));
      default:
        return Unimplemented("a table of ", TypeName(type_), " from a file of text");
    }
  }

 private:
  bool IsFloat() const { return type_ == kFloat || type_ == kDouble; }
  Status AddNumber(int64_t number) {
    if (type_ != kInt64) return InvalidArgument("the number of a line is no ", TypeName(type_));
    ints_.push_back(number);
    return Status::Ok();
  }
  template <typename T, typename Kept>
  static Status Parse(std::string_view text, std::vector<Kept>* to) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
      return InvalidArgument("'", text, "' is no ", Name(kDTypeOf<T>));
    to->push_back(value);
    return Status::Ok();
  }

  const int type_;
  const int64_t index_;
  std::vector<std::string> texts_;
  std::vector<int64_t> ints_;
  std::vector<double> floats_;
};

// The path of a file in the folder, with links resolved. A model may name any file, and its folder
// may be a link itself.
Result<std::string> PathIn(const std::string& folder, const std::string& behind,
                           const std::string& name) {
  const fs::path path(name);
  bool inside = !name.empty() && path.is_relative() && name.find('\0') == std::string::npos;
  for (const fs::path& part : path) inside = inside && part != "..";
  if (!inside)
    return InvalidArgument("the file '", name, "' of a table does not lie in the model's assets");
  if (folder.empty())
    return InvalidArgument("the file '", name,
                           "' of a table lies beside the SavedModel, which was not read from a "
                           "file");
  std::error_code error;
  const fs::path assets(folder);
  const fs::path model = assets.has_parent_path() ? assets.parent_path() : fs::path(".");
  const fs::path base = fs::canonical(model, error) / assets.filename();
  const fs::path file = base / path;
  if (error || !fs::exists(file, error))
    return NotFound("the file '", name, "' of a table is not in ", folder);
  std::string real = formats::FileIn(base.string(), file.string());
  if (real.empty() && !formats::FileIn(base.string(), file.parent_path().string()).empty())
    real = formats::FileBehind(behind, file.string());
  if (real.empty())
    return InvalidArgument("the file '", name, "' of a table does not lie in the model's assets");
  return real;
}

std::vector<std::string_view> PartsOf(std::string_view line, char delimiter) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at <= line.size();) {
    const size_t end = std::min(line.find(delimiter, at), line.size());
    parts.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

Result<Value> FromFile(const TableFile& file, const std::string& folder,
                       const std::string& behind) {
  HEDDLE_ASSIGN_OR_RETURN(const std::string path, PathIn(folder, behind, file.name));
  HEDDLE_ASSIGN_OR_RETURN(const auto data, formats::DataFile::OpenItself(path));
  std::string bytes(data->size(), '\0');
  HEDDLE_RETURN_IF_ERROR(data->Fill(bytes.data(), bytes.size(), 0));
  HEDDLE_RETURN_IF_ERROR(data->CheckUnchanged());
  Column keys(file.key_type, file.key), values(file.value_type, file.value);
  std::string_view rest = bytes;
  int64_t lines = 0;
  for (; !rest.empty() && (file.count < 0 || lines < file.count); ++lines) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) return InvalidArgument(path, ", line ", lines + 1, ": it is empty");
    int64_t number = 0;
    if (__builtin_add_overflow(file.first, lines, &number))
      return InvalidArgument(path, ": the first line has number ", file.first,
                             ", and a later one none that an int64 can hold");
    const auto parts = PartsOf(line, file.delimiter);
    for (Column* column : {&keys, &values}) {
      const Status status = column->Add(line, parts, number);
      if (!status.ok()) return InvalidArgument(path, ", line ", lines + 1, ": ", status.message());
    }
  }
  if (file.count > lines)
    return InvalidArgument(path, " has ", lines, " lines; the table has ", file.count);
  HEDDLE_ASSIGN_OR_RETURN(const Value key, keys.Take());
  HEDDLE_ASSIGN_OR_RETURN(const Value value, values.Take());
  auto table = MakeTable(key, value);
  if (!table.ok()) return InvalidArgument(path, ": ", table.status().message());
  return table;
}

}  // namespace

Result<Value> MakeTable(const Value& keys, const Value& values) {
  LookupTable table;
  HEDDLE_RETURN_IF_ERROR(table.Insert(keys, values, false));
  return ValueOf(std::move(table));
}

Result<Value> MakeTable(const TableContents& contents, const std::string& assets,
                        const std::string& behind) {
  if (contents.is_empty) return ValueOf(LookupTable());
  if (contents.file) return FromFile(*contents.file, assets, behind);
  HEDDLE_ASSIGN_OR_RETURN(const Value keys, MakeValue(contents.keys));
  HEDDLE_ASSIGN_OR_RETURN(const Value values, MakeValue(contents.values));
  return MakeTable(keys, values);
}

}  // namespace heddle::tensorflow
