// Writes an ONNX model again with other values of some initializers, and other shapes.
#include <algorithm>
#include <filesystem>
#include <initializer_list>
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
  explicit TunedWriter(const formats::TunedModel& tuned)
      : files_(fs::absolute(tuned.program_file).parent_path().string(), tuned.program_file),
        scope_(tuned.scope),
        changed_(tuned.changed.begin(), tuned.changed.end()) {
    std::map<std::string, Shape> known;
    for (const ir::Var& var : tuned.program.ir().vars)
      if (var.block == 0) known.emplace(var.name, var.shape);
    for (const TensorInfo& output : tuned.program.outputs()) known[output.name] = output.shape;
    for (const std::string& name : tuned.reshaped)
      if (const auto at = known.find(name); at != known.end()) shapes_.insert(*at);
  }

  // ModelProto.graph is field 7; GraphProto has initializers (5), inputs (11), outputs (12) and
  // types of other values (13).
  Status Model(std::string_view model, std::string* out) {
    return Copy(model, {7}, out, [this](uint32_t, std::string_view graph, std::string* to) {
      return Copy(graph, {5, 11, 12, 13}, to,
                  [this](uint32_t field, std::string_view part, std::string* message) {
                    return field == 5 ? Initializer(part, message) : Declaration(part, message);
                  });
    });
  }
  // The changed variables that were not found.
  const std::set<std::string>& left() const { return changed_; }
  // The files beside the model that the other initializers need: paths by their names in the model.
  const std::map<std::string, std::string>& files() const { return paths_; }

 private:
  template <typename Fn>
  static Status Copy(std::string_view message, std::initializer_list<uint32_t> numbers,
                     std::string* out, Fn&& fn) {
    Fields fields(message);
    for (Field f; !fields.done();) {
      if (!fields.Next(&f)) return DataLoss("the model is damaged");
      if (f.wire_type != Field::kBytes ||
          std::find(numbers.begin(), numbers.end(), f.number) == numbers.end()) {
        out->append(f.whole);
        continue;
      }
      std::string inner;
      HEDDLE_RETURN_IF_ERROR(fn(f.number, f.payload, &inner));
      wire::AppendBytesField(f.number, inner, out);
    }
    return Status::Ok();
  }

  // ValueInfoProto has a name (1) and a type (2), which has a tensor_type (1) with a shape (2) of
  // dims (1), which have a dim_value (1) or a name (2).
  Status Declaration(std::string_view value, std::string* out) {
    std::string name;
    Fields fields(value);
    for (Field f; !fields.done() && fields.Next(&f);)
      if (f.Is(1)) name = std::string(f.payload);
    const auto found = shapes_.find(name);
    if (found == shapes_.end() || !found->second.known_rank()) {
      out->append(value);
      return Status::Ok();
    }
    const Shape& shape = found->second;
    int at = 0;
    const auto dim = [&](uint32_t, std::string_view from, std::string* to) {
      const int64_t now = at < shape.rank() ? shape[at] : -1;
      ++at;
      Fields parts(from);
      for (Field f; !parts.done() && parts.Next(&f);) {
        if (f.IsVarint(1) && now >= 0)
          wire::AppendVarintField(1, static_cast<uint64_t>(now), to);
        else if (!f.IsVarint(1) || now >= 0 || at > shape.rank())
          to->append(f.whole);
      }
      return Status::Ok();
    };
    return Copy(value, {2}, out, [&](uint32_t, std::string_view type, std::string* to_type) {
      return Copy(type, {1}, to_type, [&](uint32_t, std::string_view tensor, std::string* to) {
        return Copy(tensor, {2}, to, [&](uint32_t, std::string_view dims, std::string* to_dims) {
          return Copy(dims, {1}, to_dims, dim);
        });
      });
    });
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
      if (f.number == 2 || f.number == 8 || f.number == 12 || f.number == 16) kept.append(f.whole);
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
    HEDDLE_ASSIGN_OR_RETURN(const TensorData before, ReadTensorData(tensor));
    const Ints dims(before.dims.begin(), before.dims.end());
    const Ints now(contents.shape().begin(), contents.shape().end());
    if (dims != now && !shapes_.contains(name))
      return InvalidArgument("initializer '", name, "' has another shape than its new value, ",
                             contents.shape().ToString());
    for (const int64_t d : now) wire::AppendVarintField(1, static_cast<uint64_t>(d), out);
    out->append(kept);
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
  std::map<std::string, Shape> shapes_;  // of reshaped variables
  std::map<std::string, std::string> paths_;
};

}  // namespace

Status WriteTuned(const formats::TunedModel& tuned, const std::string& directory) {
  const std::string& program_file = tuned.program_file;
  HEDDLE_ASSIGN_OR_RETURN(const FileBytes bytes, FileBytes::Read(program_file));
  TunedWriter writer(tuned);
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
