// A bundle of variables: an index, a sorted table of names, and shards with the bytes.
//
// Ownership: shares the shards' files, which stay open. Threads: any; it is immutable.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/data_file.h"
#include "heddle/params.h"
#include "heddle/shape.h"
#include "heddle/value.h"

namespace heddle::tensorflow {

class Bundle {
 public:
  // Opens the bundle of the files PREFIX.index and PREFIX.data-00000-of-00001, or of PREFIX alone
  // (or PREFIX-00000-of-00001), as old versions of TensorFlow wrote it. kNotFound; kDataLoss: cut
  // short, damaged (blocks of the index have checksums), or with contradictory sizes;
  // kUnimplemented: a compression other than Snappy.
  static Result<std::shared_ptr<const Bundle>> Open(const std::string& prefix);
  // Parses an index without opening shards, for tests and fuzzers. kIgnored skips checksums, for
  // tests that damage the checked bytes.
  enum class Checksums : uint8_t { kChecked, kIgnored };
  static Result<std::shared_ptr<const Bundle>> ParseIndex(
      std::string_view bytes, const std::string& name, Checksums checksums = Checksums::kChecked);

  // Writes the bundle `prefix` again as `to`, with other contents of the tensors under the keys of
  // `changed`; all else stays as it is. Those in `reshaped` may have other shapes than before.
  // kInvalidArgument: there is no such tensor of this size.
  static Status Rewrite(const std::string& prefix, const std::string& to,
                        const std::map<std::string, Tensor>& changed,
                        const std::set<std::string>& reshaped = {});

  std::vector<std::string> keys() const;
  bool Has(const std::string& key) const { return entries_.contains(key); }
  // Reads the tensor under `key`, or a part of it under "key\nslice", with a slice as RestoreV2
  // writes it ("4,6 0,2:-"). kWhenNeeded may leave it in its file. kDataLoss: the bytes do not have
  // the index's checksum; this is checked when all of a tensor has been read, and not for parts.
  Result<Value> Read(const std::string& key, ParameterReading reading) const;
  // Checks the checksums of all tensors but those in `read` (the keys that Read was given), if they
  // have at most 64 MiB in all: damage in tensors that are not used yet is then found at once.
  Status CheckOthers(const std::set<std::string>& read) const;

 private:
  struct Slice {
    std::vector<int64_t> begin, length;  // length -1: the whole dimension
  };
  struct Entry {
    int type = 0;
    std::vector<int64_t> dims;
    int64_t shard = 0, offset = 0, size = 0;
    std::optional<uint32_t> masked_crc32c;  // of all bytes; absent for a part
    std::vector<Slice> slices;
    Value made;  // the value, if it does not lie in a shard
  };
  // The key of a slice's own entry.
  static std::string SliceKey(const std::string& name, const Slice& slice);
  // Parse a message. False: damaged.
  static bool ReadDims(std::string_view shape, std::vector<int64_t>* dims);
  static bool ReadSlice(std::string_view message, Slice* slice);

  // The files of a checkpoint in the layout before bundles; empty if it has an index.
  static std::vector<std::string> OldFiles(const std::string& prefix);
  Status ReadOldFile(const std::string& path);
  Status AddOldEntry(std::string_view message);
  Status AddOldSlice(std::string_view message);

  // Reads the entries of a table; the first one has an empty key. They point into `bytes` and
  // `uncompressed`.
  Status ReadTable(std::string_view bytes, std::deque<std::string>* uncompressed,
                   std::vector<std::pair<std::string, std::string_view>>* entries) const;
  Status ReadIndex(std::string_view bytes);
  Status ReadBlock(std::string_view bytes, uint64_t offset, uint64_t size,
                   std::deque<std::string>* uncompressed,
                   std::vector<std::pair<std::string, std::string_view>>* entries) const;
  Status AddEntry(const std::string& key, std::string_view value);
  Status Check(const std::string& key, const Entry& entry) const;
  Result<Value> ReadWhole(const std::string& key, const Entry& entry,
                          ParameterReading reading) const;
  // Reads `count` elements of each dimension, from `begin` on.
  Result<Value> ReadPart(const std::string& key, const Entry& entry, std::vector<int64_t> begin,
                         const std::vector<int64_t>& count, ParameterReading reading) const;
  Result<Value> ReadSlices(const std::string& key, const Entry& entry) const;
  Result<Value> ReadStrings(const std::string& key, const Entry& entry) const;

  std::string name_;
  Checksums index_checksums_ = Checksums::kChecked;
  int64_t shards_ = 1;
  std::map<std::string, Entry> entries_;
  std::vector<std::shared_ptr<const formats::DataFile>> files_;
};

}  // namespace heddle::tensorflow
