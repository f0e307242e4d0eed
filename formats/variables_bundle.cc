// Reads and writes TensorFlow's bundles of variables. The index has the layout of a LevelDB table
// (formats/leveldb_table.h): blocks of entries, an index of the blocks, and a footer. Blocks and
// tensors have checksums.
#include "heddle/variables_bundle.h"

#include <map>

#include "core/error.h"
#include "core/file.h"
#include "core/memory/crc32c.h"
#include "formats/leveldb_table.h"
#include "formats/wire_fields.h"

namespace heddle {
namespace {

using formats::AppendFixed32;

int TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 1;
    case DType::kF64:
      return 2;
    case DType::kI32:
      return 3;
    case DType::kU8:
      return 4;
    case DType::kI16:
      return 5;
    case DType::kI8:
      return 6;
    case DType::kC64:
      return 8;
    case DType::kI64:
      return 9;
    case DType::kBool:
      return 10;
    case DType::kBF16:
      return 14;
    case DType::kC128:
      return 18;
    case DType::kF16:
      return 19;
    default:
      return 0;
  }
}

Status Write(const std::string& path, const std::string& bytes) {
  FileReplacement file(path);
  HEDDLE_RETURN_IF_ERROR(file.Open());
  HEDDLE_RETURN_IF_ERROR(file.Append(bytes));
  return file.Commit();
}

}  // namespace

Status SaveVariablesBundle(const std::string& prefix, const NamedTensors& tensors) {
  std::map<std::string, std::string> entries;
  std::string header, version, data;
  wire::AppendVarintField(1, 1, &version);
  wire::AppendVarintField(1, 1, &header);  // number of shards
  wire::AppendBytesField(3, version, &header);
  entries[""] = header;
  for (const auto& [name, given] : tensors) {
    const Tensor tensor = given.Contiguous();
    const int type = TypeOf(tensor.dtype());
    if (type == 0 || (!tensor.initialized() && tensor.numel() > 0))
      return InvalidArgument("variable '", name, "' holds nothing that a bundle can hold");
    const std::string_view bytes(static_cast<const char*>(tensor.raw()), tensor.bytes());
    std::string shape, entry;
    for (int64_t d : tensor.shape()) {
      std::string dim;
      wire::AppendVarintField(1, static_cast<uint64_t>(d), &dim);
      wire::AppendBytesField(2, dim, &shape);
    }
    wire::AppendVarintField(1, static_cast<uint64_t>(type), &entry);
    wire::AppendBytesField(2, shape, &entry);
    wire::AppendVarintField(4, data.size(), &entry);
    wire::AppendVarintField(5, bytes.size(), &entry);
    wire::AppendVarint(6 << 3 | wire::Field::kFixed32, &entry);
    AppendFixed32(MaskedCrc32c(Crc32c(bytes)), &entry);
    if (name.empty() || !entries.emplace(name, std::move(entry)).second)
      return InvalidArgument("two variables are called '", name, "', or it has no name");
    data += bytes;
  }
  HEDDLE_RETURN_IF_ERROR(Write(prefix + ".data-00000-of-00001", data));
  return Write(prefix + ".index", formats::TableFile(entries));
}

}  // namespace heddle
