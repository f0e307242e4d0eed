// Parameters into a scope and out of it, and Paddle's records (combined or one file each).
//
// A record: u32 version 0 | u64 number of LoD levels, per level u64 byte size and u64 offsets |
// u32 version 0 | i32 size of a TensorDesc | TensorDesc | the data, row-major, without padding.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <unordered_map>

#include "core/error.h"
#include "core/file.h"
#include "core/pickled_params.h"
#include "core/shapes.h"
#include "heddle/params.h"
#include "proto/framework.pb.h"

namespace heddle {
namespace {

namespace fs = std::filesystem;

// A file mapped for reading; pages are touched once, while values are copied to aligned memory.
class MappedFile {
 public:
  ~MappedFile() {
    if (data_ != nullptr) ::munmap(const_cast<char*>(data_), size_);
  }
  Status Open(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return NotFound("cannot open ", path, ": ", std::strerror(errno));
    struct stat st {};
    const bool regular = ::fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    size_ = static_cast<size_t>(st.st_size);
    void* map = regular && size_ > 0
                    ? ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0)
                    : nullptr;
    ::close(fd);
    if (!regular) return InvalidArgument(path, " is not a regular file");
    if (map == MAP_FAILED) return DataLoss("cannot map ", path, ": ", std::strerror(errno));
    data_ = static_cast<const char*>(map);
    return Status::Ok();
  }
  const char* data() const { return data_; }
  size_t size() const { return size_; }
  // Gives the pages read so far back to the system.
  void Drop(size_t end) const {
    const size_t page = end & ~size_t{4095};
    if (page > 0) ::madvise(const_cast<char*>(data_), page, MADV_DONTNEED);
  }

 private:
  const char* data_ = nullptr;
  size_t size_ = 0;
};

class RecordReader {
 public:
  RecordReader(const MappedFile& file, std::string path) : file_(file), path_(std::move(path)) {}

  bool at_end() const { return at_ == file_.size(); }
  size_t left() const { return file_.size() - at_; }

  // `what` names the parameter in messages.
  Result<Tensor> Read(const std::string& what) {
    uint32_t version = 0;
    HEDDLE_RETURN_IF_ERROR(Get(&version, what));
    if (version != 0)
      return DataLoss(path_, ": ", what, ": tensor record of version ", version, " at byte ",
                      at_ - 4, "; 0 is expected: the file is damaged or of another format");
    LoD lod;
    HEDDLE_RETURN_IF_ERROR(ReadLoD(what, &lod));
    HEDDLE_RETURN_IF_ERROR(Get(&version, what));
    int32_t desc_size = 0;
    HEDDLE_RETURN_IF_ERROR(Get(&desc_size, what));
    if (version != 0 || desc_size <= 0 || desc_size > 4096)
      return DataLoss(path_, ": ", what, ": damaged tensor header at byte ", at_ - 8);
    HEDDLE_RETURN_IF_ERROR(Need(static_cast<size_t>(desc_size), what));
    proto::VarType_TensorDesc desc;
    if (!desc.ParsePartialFromArray(file_.data() + at_, desc_size) || !desc.IsInitialized())
      return DataLoss(path_, ": ", what, ": damaged tensor description at byte ", at_);
    at_ += static_cast<size_t>(desc_size);
    return ReadData(desc, what, std::move(lod));
  }

 private:
  Status Need(size_t bytes, const std::string& what) const {
    if (bytes > left())
      return DataLoss(path_, ": cut short: ", what, " needs ", bytes, " bytes at byte ", at_,
                      ", the file ends after ", left());
    return Status::Ok();
  }
  template <typename T>
  Status Get(T* out, const std::string& what) {
    HEDDLE_RETURN_IF_ERROR(Need(sizeof(T), what));
    std::memcpy(out, file_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return Status::Ok();
  }

  Status ReadLoD(const std::string& what, LoD* lod) {
    uint64_t levels = 0;
    HEDDLE_RETURN_IF_ERROR(Get(&levels, what));
    if (levels > 16) return DataLoss(path_, ": ", what, ": ", levels, " LoD levels at byte ", at_ - 8);
    for (uint64_t l = 0; l < levels; ++l) {
      uint64_t bytes = 0;
      HEDDLE_RETURN_IF_ERROR(Get(&bytes, what));
      HEDDLE_RETURN_IF_ERROR(Need(bytes, what));
      std::vector<size_t> offsets(bytes / sizeof(uint64_t));
      if (!offsets.empty())
        std::memcpy(offsets.data(), file_.data() + at_, offsets.size() * sizeof(uint64_t));
      at_ += bytes;
      lod->push_back(std::move(offsets));
    }
    return Status::Ok();
  }

  Result<Tensor> ReadData(const proto::VarType_TensorDesc& desc, const std::string& what, LoD lod) {
    const DType dtype = DTypeFromProto(desc.data_type());
    if (dtype == DType::kUnknown)
      return Unimplemented(path_, ": ", what, ": element type ", static_cast<int>(desc.data_type()));
    Shape shape;
    size_t bytes = SizeOf(dtype);
    if (desc.dims_size() > Shape::kMaxRank)
      return DataLoss(path_, ": ", what, ": rank ", desc.dims_size());
    for (int64_t d : desc.dims()) {
      if (d < 0 || (d > 0 && bytes > file_.size() / static_cast<size_t>(d) && bytes > 0))
        return DataLoss(path_, ": cut short: ", what, " has a dimension of ", d,
                        ", more than the file of ", file_.size(), " bytes holds");
      bytes *= static_cast<size_t>(d);
      shape.push_back(d);
    }
    HEDDLE_RETURN_IF_ERROR(Need(bytes, what));
    Tensor t = Tensor::Empty(dtype, shape);
    if (!t.initialized()) return ResourceExhausted(what, ": no memory for ", bytes, " bytes");
    if (bytes > 0) std::memcpy(t.mutable_raw(), file_.data() + at_, bytes);
    at_ += bytes;
    if (!lod.empty()) t.set_lod(std::move(lod));
    file_.Drop(at_);
    return t;
  }

  const MappedFile& file_;
  std::string path_;
  size_t at_ = 0;
};

Status CheckAgainst(const TensorInfo& want, const Tensor& got, const std::string& path) {
  bool fits = want.dtype == DType::kUnknown || want.dtype == got.dtype();
  if (want.shape.known_rank()) {
    // Paddle writes scalars of old programs as [1]; a rank-0 variable takes both.
    fits = fits && (want.shape.rank() == got.rank() || (want.shape.rank() == 0 && got.numel() == 1));
    for (int i = 0; fits && i < want.shape.rank(); ++i)
      fits = want.shape[i] < 0 || want.shape[i] == got.shape()[i];
  }
  if (fits) return Status::Ok();
  return InvalidArgument(path, ": parameter '", want.name, "' should be ", Name(want.dtype), " ",
                         want.shape.ToString(), "; the file has ", Name(got.dtype()), " ",
                         got.shape().ToString(),
                         " there (parameters are stored in the sorted order of their names)");
}

Status LoadCombined(const std::vector<TensorInfo>& want, const std::string& path, Scope& scope) {
  MappedFile file;
  HEDDLE_RETURN_IF_ERROR(file.Open(path));
  RecordReader reader(file, path);
  std::vector<Tensor> tensors;
  for (const TensorInfo& info : want) {
    const std::string what = "parameter '" + info.name + "' (" + std::to_string(tensors.size() + 1) +
                             " of " + std::to_string(want.size()) + ")";
    auto t = reader.Read(what);
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

Status LoadSeparate(const std::vector<TensorInfo>& want, const std::string& dir, Scope& scope) {
  std::vector<Tensor> tensors;
  for (const TensorInfo& info : want) {
    const std::string path = (fs::path(dir) / info.name).string();
    MappedFile file;
    HEDDLE_RETURN_IF_ERROR(file.Open(path));
    RecordReader reader(file, path);
    auto t = reader.Read("parameter '" + info.name + "'");
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

// What stands before the data of a record.
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

// Values that can be written, so that nothing is begun when one of them cannot.
Result<NamedTensors> Collect(const std::vector<TensorInfo>& wanted, const Scope& scope,
                             const std::string& path) {
  NamedTensors tensors;
  for (const TensorInfo& info : wanted) {
    const Value* v = scope.Find(info.name);
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

// Sets what a pickle names; the rest must be there.
Status LoadPickled(const std::vector<TensorInfo>& want, const std::string& path, Scope& scope) {
  HEDDLE_ASSIGN_OR_RETURN(NamedTensors found, ReadPickledTensors(path));
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

Status LoadParameters(const Program& program, const std::string& path, Scope& scope) {
  std::error_code ec;
  if (fs::is_directory(path, ec)) return LoadSeparate(program.persistables(), path, scope);
  if (LooksPickled(path)) return LoadPickled(program.persistables(), path, scope);
  return LoadCombined(program.persistables(), path, scope);
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
  MappedFile file;
  HEDDLE_RETURN_IF_ERROR(file.Open(path));
  RecordReader reader(file, path);
  std::vector<Tensor> tensors;
  while (!reader.at_end()) {
    HEDDLE_ASSIGN_OR_RETURN(Tensor t, reader.Read("tensor " + std::to_string(tensors.size())));
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
