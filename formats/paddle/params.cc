#include "formats/paddle/params.h"

#include <algorithm>
#include <filesystem>
#include <type_traits>
#include <unordered_map>

#include "core/dtype_of.h"
#include "core/error.h"
#include "core/file.h"
#include "core/memory/lazy_buffer.h"
#include "core/shapes.h"
#include "formats/other_kinds.h"
#include "formats/paddle/param_records.h"
#include "formats/paddle/pickled_params.h"
#include "proto/framework.pb.h"

namespace heddle {
namespace {

namespace fs = std::filesystem;
using formats::DataFile;
using paddle::RecordReader;

Status CheckAgainst(const TensorInfo& want, const Tensor& got, const std::string& path) {
  bool fits = want.dtype == DType::kUnknown || want.dtype == got.dtype();
  if (want.shape.known_rank()) {
    // Paddle writes scalars of old programs as [1]; a variable of rank 0 accepts both.
    fits =
        fits && (want.shape.rank() == got.rank() || (want.shape.rank() == 0 && got.numel() == 1));
    for (int i = 0; fits && i < want.shape.rank(); ++i)
      fits = want.shape[i] < 0 || want.shape[i] == got.shape()[i];
  }
  if (fits) return Status::Ok();
  return InvalidArgument(path, ": parameter '", want.name, "' should be ", Name(want.dtype), " ",
                         want.shape.ToString(), "; the file has ", Name(got.dtype()), " ",
                         got.shape().ToString(),
                         " there (parameters are stored in the sorted order of their names)");
}

// Converts a floating-point tensor to the declared floating-point type; returns any other as it is.
Result<Tensor> Converted(const TensorInfo& want, Tensor got) {
  if (want.dtype == got.dtype() || !IsFloat(want.dtype) || !IsFloat(got.dtype())) return got;
  Tensor made = Tensor::Empty(want.dtype, got.shape());
  if (!made.initialized() && made.numel() > 0)
    return ResourceExhausted("parameter '", want.name, "': no memory for ", got.numel(),
                             " elements of ", std::string(Name(want.dtype)));
  HEDDLE_RETURN_IF_ERROR(MakeResident(got));
  made.set_lod(got.lod());
  VisitDType<float16, bfloat16, float, double>(got.dtype(), [&](auto from) {
    VisitDType<float16, bfloat16, float, double>(want.dtype, [&](auto to) {
      using From = typename decltype(from)::type;
      using To = typename decltype(to)::type;
      using Wide = std::conditional_t<std::is_same_v<To, double>, double, float>;
      const From* x = got.data<From>();
      To* y = made.mutable_data<To>();
      for (int64_t i = 0; i < got.numel(); ++i)
        y[i] = static_cast<To>(static_cast<Wide>(static_cast<ComputeType<From>>(x[i])));
    });
  });
  return made;
}

// Reads a combined file. `path` is for messages; `later`: the reader leaves large tensors in the
// file.
Status ReadCombined(const std::vector<TensorInfo>& want, RecordReader& reader,
                    const std::string& path, bool later, bool cast, Scope& scope) {
  HEDDLE_RETURN_IF_ERROR(reader.Open());
  BufferSlab slab(later ? 0 : reader.left());
  std::vector<Tensor> tensors;
  for (const TensorInfo& info : want) {
    const std::string what = "parameter '" + info.name + "' (" +
                             std::to_string(tensors.size() + 1) + " of " +
                             std::to_string(want.size()) + ")";
    auto t = reader.Read(what, slab);
    if (t.ok() && cast) t = Converted(info, *std::move(t));
    if (!t.ok()) return t.status();
    HEDDLE_RETURN_IF_ERROR(CheckAgainst(info, *t, path));
    tensors.push_back(*std::move(t));
  }
  if (!reader.at_end())
    return DataLoss(path, ": ", reader.left(), " bytes follow the last of ", want.size(),
                    " parameters; the file belongs to another program or is damaged");
  for (size_t i = 0; i < want.size(); ++i) scope.Set(want[i].name, Value(std::move(tensors[i])));
  return Status::Ok();
}

Status LoadCombined(const std::vector<TensorInfo>& want, std::shared_ptr<const DataFile> file,
                    bool later, bool cast, Scope& scope) {
  size_t shelf = 0;
  for (const TensorInfo& info : want) shelf += RecordReader::ShelfBytes(info.dtype, info.shape);
  const std::string path = file->path();
  RecordReader reader(std::move(file));
  if (later) reader.LeaveInFile(RecordReader::kLeastLater, shelf);
  return ReadCombined(want, reader, path, later, cast, scope);
}

Status LoadSeparate(const std::vector<TensorInfo>& want, const std::string& dir, bool later,
                    Scope& scope) {
  BufferSlab slab;
  std::vector<Tensor> tensors;
  for (const TensorInfo& info : want) {
    const std::string path = (fs::path(dir) / info.name).string();
    RecordReader reader(path);
    // A file that parameters stay in keeps a descriptor open, so only large ones stay.
    if (later) reader.LeaveInFile(kLeastMapped);
    HEDDLE_RETURN_IF_ERROR(reader.Open());
    auto t = reader.Read("parameter '" + info.name + "'", slab);
    if (!t.ok()) return t.status();
    if (!reader.at_end()) return DataLoss(path, ": ", reader.left(), " bytes too many");
    HEDDLE_RETURN_IF_ERROR(CheckAgainst(info, *t, path));
    tensors.push_back(*std::move(t));
  }
  for (size_t i = 0; i < want.size(); ++i) scope.Set(want[i].name, Value(std::move(tensors[i])));
  return Status::Ok();
}

template <typename T>
void Put(std::string* out, T value) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(T));
}

// The bytes of a record before its data.
std::string RecordHeader(const Tensor& t) {
  std::string out;
  Put<uint32_t>(&out, 0);
  Put<uint64_t>(&out, t.lod().size());
  for (const auto& level : t.lod()) {
    Put<uint64_t>(&out, level.size() * sizeof(uint64_t));
    for (size_t offset : level) Put<uint64_t>(&out, offset);
  }
  Put<uint32_t>(&out, 0);
  proto::VarType_TensorDesc desc;
  desc.set_data_type(static_cast<proto::VarType_Type>(DTypeToProto(t.dtype())));
  for (int64_t d : t.shape()) desc.add_dims(d);
  const std::string bytes = desc.SerializeAsString();
  Put<int32_t>(&out, static_cast<int32_t>(bytes.size()));
  return out + bytes;
}

Status WriteRecords(const std::string& path, const NamedTensors& tensors) {
  FileReplacement file(path);
  HEDDLE_RETURN_IF_ERROR(file.Open());
  for (const auto& [name, tensor] : tensors) {
    const Tensor t = tensor.Contiguous();
    if (!t.initialized())
      return ResourceExhausted(path, ": '", name, "': no memory for a row-major copy");
    HEDDLE_RETURN_IF_ERROR(file.Append(RecordHeader(t)));
    HEDDLE_RETURN_IF_ERROR(file.Append({static_cast<const char*>(t.raw()), t.bytes()}));
  }
  return file.Commit();
}

// The values to write. All are checked first, so that no file is begun if one cannot be written.
Result<NamedTensors> Collect(const std::vector<TensorInfo>& wanted, const Scope& scope,
                             const std::string& path) {
  NamedTensors tensors;
  for (const TensorInfo& info : wanted) {
    HEDDLE_ASSIGN_OR_RETURN(const Value* const v, FindVariable(scope, info.name));
    if (v == nullptr || !v->initialized())
      return NotFound(path, ": parameter '", info.name, "' (", Name(info.dtype), " ",
                      info.shape.ToString(), ") has no value to save");
    if (!v->is_tensor())
      return InvalidArgument(path, ": parameter '", info.name,
                             "' is no dense tensor; only those can be saved");
    tensors.emplace_back(info.name, v->tensor());
  }
  return tensors;
}

// Sets the parameters that a pickle contains; all others must have values already.
Status LoadPickled(const std::vector<TensorInfo>& want, const DataFile& file, Scope& scope) {
  const std::string& path = file.path();
  HEDDLE_ASSIGN_OR_RETURN(NamedTensors found, paddle::ReadPickledTensors(file));
  std::unordered_map<std::string, Tensor> by_name;
  for (auto& [name, tensor] : found) by_name.emplace(name, std::move(tensor));
  NamedTensors chosen;
  std::string missing;
  for (const TensorInfo& info : want) {
    const auto it = by_name.find(info.name);
    if (it != by_name.end()) {
      HEDDLE_RETURN_IF_ERROR(CheckAgainst(info, it->second, path));
      chosen.emplace_back(info.name, it->second);
      continue;
    }
    const Value* v = scope.Find(info.name);
    if (v == nullptr || !v->initialized())
      missing += (missing.empty() ? "'" : ", '") + info.name + "'";
  }
  if (chosen.empty() && !want.empty())
    return InvalidArgument(path, ": holds none of the program's ", want.size(), " parameters ('",
                           want[0].name, "', …); the first of its ", found.size(), " arrays is '",
                           found.empty() ? "" : found[0].first, "'");
  if (!missing.empty())
    return NotFound(path, ": has no value for ", missing, ", nor has anything before it");
  for (auto& [name, tensor] : chosen) scope.Set(name, Value(std::move(tensor)));
  return Status::Ok();
}

}  // namespace

Status paddle::LoadParameters(const Program& program, const std::string& path, Scope& scope,
                              ParameterReading reading, bool cast) {
  std::error_code ec;
  const bool later = reading == ParameterReading::kWhenNeeded;
  if (fs::is_directory(path, ec)) return LoadSeparate(program.persistables(), path, later, scope);
  HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<const DataFile> file, DataFile::OpenOrRead(path));
  if (paddle::LooksPickled(*file)) return LoadPickled(program.persistables(), *file, scope);
  const Status status = LoadCombined(program.persistables(), file, later, cast, scope);
  // A record begins with zeros; a file that does not is of another kind, which the error names.
  uint32_t version = 0;
  if (status.ok() || file->size() < sizeof(version) ||
      !file->Fill(&version, sizeof(version), 0).ok() || version == 0)
    return status;
  const auto kind = formats::OtherKindOf(*file);
  return kind ? Unimplemented(path, ": no file of parameters; this is ", kind->Text()) : status;
}

Status paddle::ParseParameters(const Program& program, std::string_view bytes, Scope& scope,
                               bool cast) {
  const std::string name = "the parameters in memory";
  RecordReader reader(name, bytes);
  return ReadCombined(program.persistables(), reader, name, /*later=*/false, cast, scope);
}

Status SaveParameters(const Program& program, const Scope& scope, const std::string& path) {
  HEDDLE_ASSIGN_OR_RETURN(const NamedTensors tensors, Collect(program.persistables(), scope, path));
  return WriteRecords(path, tensors);
}

Status SaveParametersSeparately(const Program& program, const Scope& scope,
                                const std::string& directory) {
  HEDDLE_ASSIGN_OR_RETURN(const NamedTensors tensors,
                          Collect(program.persistables(), scope, directory));
  std::error_code ec;
  fs::create_directories(directory, ec);
  if (ec) return NotFound(directory, ": cannot be made: ", ec.message());
  for (const auto& item : tensors)
    HEDDLE_RETURN_IF_ERROR(WriteRecords((fs::path(directory) / item.first).string(), {item}));
  return Status::Ok();
}

Result<std::vector<Tensor>> ReadTensors(const std::string& path) {
  RecordReader reader(path);
  HEDDLE_RETURN_IF_ERROR(reader.Open());
  BufferSlab slab(reader.left());
  std::vector<Tensor> tensors;
  while (!reader.at_end()) {
    HEDDLE_ASSIGN_OR_RETURN(Tensor t,
                            reader.Read("tensor " + std::to_string(tensors.size()), slab));
    tensors.push_back(std::move(t));
  }
  return tensors;
}

Status WriteTensors(const std::string& path, const NamedTensors& tensors) {
  for (const auto& [name, tensor] : tensors)
    if (!tensor.initialized() || tensor.dtype() == DType::kUnknown)
      return NotFound(path, ": '", name, "' has no value to save");
  return WriteRecords(path, tensors);
}

}  // namespace heddle
