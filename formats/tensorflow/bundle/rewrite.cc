// Bundles with other contents of some tensors: the shards are copied, the contents and their
// checksums replaced.
#include <cstdio>
#include <cstring>

#include "core/error.h"
#include "core/file.h"
#include "core/memory/crc32c.h"
#include "formats/leveldb_table.h"
#include "formats/tensorflow/bundle/bundle.h"
#include "formats/tensorflow/files/reshaped.h"
#include "formats/wire_fields.h"

namespace heddle::tensorflow {
namespace {

using wire::Field;
using wire::Fields;

Status WriteBytes(const std::string& path, const std::string& bytes) {
  FileReplacement file(path);
  HEDDLE_RETURN_IF_ERROR(file.Open());
  HEDDLE_RETURN_IF_ERROR(file.Append(bytes));
  return file.Commit();
}

std::string ShardName(const std::string& prefix, int64_t k, int64_t shards) {
  char suffix[64];
  std::snprintf(suffix, sizeof(suffix), ".data-%05lld-of-%05lld", static_cast<long long>(k),
                static_cast<long long>(shards));
  return prefix + suffix;
}

}  // namespace

Status Bundle::Rewrite(const std::string& prefix, const std::string& to,
                       const std::map<std::string, Tensor>& changed,
                       const std::set<std::string>& reshaped_keys) {
  HEDDLE_ASSIGN_OR_RETURN(const auto bundle, Open(prefix));
  HEDDLE_ASSIGN_OR_RETURN(const FileBytes index, FileBytes::Read(prefix + ".index"));
  std::deque<std::string> uncompressed;
  std::vector<std::pair<std::string, std::string_view>> entries;
  HEDDLE_RETURN_IF_ERROR(bundle->ReadTable(index.view(), &uncompressed, &entries));
  std::vector<std::string> shards;
  for (int64_t k = 0; k < bundle->shards_; ++k) {
    HEDDLE_ASSIGN_OR_RETURN(shards.emplace_back(), ReadFile(ShardName(prefix, k, bundle->shards_)));
  }
  std::map<std::string, std::string> table;
  for (const auto& [key, message] : entries) table.emplace(key, std::string(message));
  for (const auto& [key, given] : changed) {
    const auto found = bundle->entries_.find(key);
    const Tensor tensor = given.Contiguous();
    const bool reshaped = reshaped_keys.contains(key);
    if (found == bundle->entries_.end() || !found->second.slices.empty() ||
        (!reshaped && static_cast<size_t>(found->second.size) != tensor.bytes()))
      return InvalidArgument(prefix, ": there is no tensor '", key, "' of ", tensor.bytes(),
                             " bytes");
    const Entry& entry = found->second;
    std::string& shard = shards[static_cast<size_t>(entry.shard)];
    auto offset = static_cast<size_t>(entry.offset);
    const auto size = static_cast<size_t>(entry.size);
    if (offset > shard.size() || size > shard.size() - offset)
      return DataLoss(prefix, ": a shard has become shorter while it was read");
    // A tensor of another size lies behind all others; its old place stays unused.
    if (tensor.bytes() > size) {
      offset = shard.size();
      shard.resize(offset + tensor.bytes());
    }
    std::memcpy(shard.data() + offset, tensor.raw(), tensor.bytes());
    // BundleEntryProto has a shape (2), an offset (4), a size (5) and a checksum (6).
    std::string message;
    Fields fields(table[key]);
    for (Field f; !fields.done() && fields.Next(&f);)
      if (f.number != 6 && !(reshaped && (f.number == 2 || f.number == 4 || f.number == 5)))
        message.append(f.whole);
    if (reshaped) {
      wire::AppendBytesField(2, ShapeMessage(tensor.shape()), &message);
      wire::AppendVarintField(4, offset, &message);
      wire::AppendVarintField(5, tensor.bytes(), &message);
    }
    wire::AppendVarint(6 << 3 | Field::kFixed32, &message);
    formats::AppendFixed32(
        MaskedCrc32c(Crc32c({static_cast<const char*>(tensor.raw()), tensor.bytes()})), &message);
    table[key] = message;
  }
  for (size_t k = 0; k < shards.size(); ++k)
    HEDDLE_RETURN_IF_ERROR(
        WriteBytes(ShardName(to, static_cast<int64_t>(k), bundle->shards_), shards[k]));
  return WriteBytes(to + ".index", formats::TableFile(table));
}

}  // namespace heddle::tensorflow
