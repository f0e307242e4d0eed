// Writes an ONNX model again with other values of some initializers.
#include <filesystem>
#include <map>
#include <set>
#include <system_error>

#include "core/error.h"
#include "core/file.h"
#include "formats/onnx/files/external_data.h"
#include "formats/onnx/source.h"
#include "formats/onnx/tensor_data.h"
#include "formats/wire_fields.h"

namespace heddle::onnx {
namespace {

namespace fs = std::filesystem;
using wire::Field;
using wire::Fields;

class TunedWriter {
 public:
  TunedWriter(const std::string& program_file, const Scope& scope,
              const std::vector<std::string>& changed)
      : files_(fs::absolute(program_file).parent_path().string(), program_file),
        scope_(scope),
        changed_(changed.begin(), changed.end()) {}

  // ModelProto.graph is field 7, GraphProto.initializer field 5.
  Status Model(std::string_view model, std::string* out) {
    return Copy(model, 7, out, [this](std::string_view graph, std::string* to) {
      return Copy(graph, 5, to, [this](std::string_view tensor, std::string* message) {
        return Initializer(tensor, message);
      });
    });
  }
  // The changed variables that were not found.
  const std::set<std::string>& left() const { return changed_; }
  // The files beside the model that the other initializers need: paths by their names in the model.
  const std::map<std::string, std::string>& files() const { return paths_; }

 private:
  template <typename Fn>
  static Status Copy(std::string_view message, uint32_t number, std::string* out, Fn&& fn) {
    Fields fields(message);
    for (Field f; !fields.done();) {
      if (!fields.Next(&f)) return DataLoss("the model is damaged");
      if (!f.Is(number)) {
        out->append(f.whole);
        continue;
      }
      std::string inner;
      HEDDLE_RETURN_IF_ERROR(fn(f.payload, &inner));
      wire::AppendBytesField(number, inner, out);
    }
    return Status::Ok();
  }

  // TensorProto: dims (1), data_type (2), name (8), doc_string (12) and metadata (16) stay; the
  // contents become raw_data (9).
  Status Initializer(std::string_view tensor, std::string* out) {
    std::string name;
    int64_t type = 0;
    std::string kept;
    Fields fields(tensor);
    for (Field f; !fields.done();) {
      if (!fields.Next(&f)) return DataLoss("an initializer is damaged");
      if (f.Is(8)) name = std::string(f.payload);
      if (f.IsVarint(2)) type = f.integer();
      if (f.number == 1 || f.number == 2 || f.number == 8 || f.number == 12 || f.number == 16)
        kept.append(f.whole);
    }
    if (changed_.erase(name) == 0) {
      out->append(tensor);
      return FindFile(tensor);
    }
    const Value* value = scope_.Find(name);
    if (value == nullptr || !value->is_tensor() || !value->initialized())
      return InvalidArgument("initializer '", name, "' has no value");
    const Tensor contents = value->tensor().Contiguous();
    if (TypeOf(contents.dtype()) != type)
      return InvalidArgument("initializer '", name, "' is of another type than its new value, ",
                             Name(contents.dtype()));
    *out = kept;
    wire::AppendBytesField(
        9, std::string_view(static_cast<const char*>(contents.raw()), contents.bytes()), out);
    return Status::Ok();
  }

  // A name that a reader refuses is refused here, too: it would be one to copy to.
  Status FindFile(std::string_view tensor) {
    HEDDLE_ASSIGN_OR_RETURN(const TensorData data, ReadTensorData(tensor));
    if (data.location.empty()) return Status::Ok();
    HEDDLE_ASSIGN_OR_RETURN(paths_[std::string(data.location)], files_.PathOf(data));
    return Status::Ok();
  }

  const ExternalFiles files_;
  const Scope& scope_;
  std::set<std::string> changed_;
  std::map<std::string, std::string> paths_;
};

}  // namespace

Status WriteTuned(const std::string& program_file, const Scope& scope,
                  const std::vector<std::string>& changed, const std::string& directory) {
  HEDDLE_ASSIGN_OR_RETURN(const FileBytes bytes, FileBytes::Read(program_file));
  TunedWriter writer(program_file, scope, changed);
  std::string model;
  if (const Status status = writer.Model(bytes.view(), &model); !status.ok())
    return Status(status.code(), program_file + ": " + status.message());
  if (!writer.left().empty())
    return InvalidArgument(program_file, ": '", *writer.left().begin(),
                           "' is no initializer of the model's graph");
  for (const auto& [name, path] : writer.files()) {
    const fs::path to = fs::path(directory) / name;
    std::error_code ec;
    if (fs::equivalent(path, to, ec)) continue;  // the model is written over itself
    fs::create_directories(to.parent_path(), ec);
    fs::copy_file(path, to, fs::copy_options::overwrite_existing, ec);
    if (ec) return NotFound("cannot copy ", path, " to ", to.string(), ": ", ec.message());
  }
  FileReplacement file((fs::path(directory) / "model.onnx").string());
  HEDDLE_RETURN_IF_ERROR(file.Open());
  HEDDLE_RETURN_IF_ERROR(file.Append(model));
  return file.Commit();
}

}  // namespace heddle::onnx
