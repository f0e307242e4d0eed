// A bundle of variables: an index, which is a sorted table of names, and shards with their bytes.
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
  // The bundle of the files PREFIX.index and PREFIX.data-00000-of-00001, or of PREFIX alone (or
  // PREFIX-00000-of-00001), which old versions of TensorFlow wrote. kNotFound; kDataLoss: cut
  // short, damaged (blocks of the index have checksums), or its sizes contradict each other;
  // kUnimplemented: a compression other than Snappy's.
  static Result<std::shared_ptr<const Bundle>> Open(const std::string& prefix);
  // The entries of an index's bytes, for checks; the shards are not opened. Fuzzers and tests that
  // damage what the checksums are of have them ignored.
  enum class Checksums : uint8_t { kChecked, kIgnored };
  static Result<std::shared_ptr<const Bundle>> ParseIndex(
      std::string_view bytes, const std::string& name, Checksums checksums = Checksums::kChecked);

  std::vector<std::string> keys() const;
  bool Has(const std::string& key) const { return entries_.contains(key); }
  // The tensor under `key`; "key\nslice", with a slice as RestoreV2 writes it ("4,6 0,2:-"), for a
  // part. kWhenNeeded may leave it in its file. kDataLoss: the bytes have another checksum than the
  // index says. Parts are not checked; what is left in its file is when all of it has been read.
  Result<Value> Read(const std::string& key, ParameterReading reading) const;
  // Compares the other tensors with their checksums, where they have no more than 64 MiB in all: a
  // file that is damaged where nobody looks yet is refused as well. `read`: keys that Read was
  // given.
  Status CheckOthers(const std::set<std::string>& read) const;

 private:
  struct Slice {
    std::vector<int64_t> begin, length;  // length -1: all of the dimension
  };
  struct Entry {
    int type = 0;
    std::vector<int64_t> dims;
    int64_t shard = 0, offset = 0, size = 0;
    std::optional<uint32_t> masked_crc32c;  // of the stretch; none of a part
    std::vector<Slice> slices;
    Value made;  // in place of a stretch of a shard
  };
  // The key under which a slice has an entry of its own.
  static std::string SliceKey(const std::string& name, const Slice& slice);
  // False: damaged.
  static bool ReadDims(std::string_view shape, std::vector<int64_t>* dims);
  static bool ReadSlice(std::string_view message, Slice* slice);

  // The files of a checkpoint in the layout of TensorFlow's first years: none where it has an
  // index.
  static std::vector<std::string> OldFiles(const std::string& prefix);
  Status ReadOldFile(const std::string& path);
  Status AddOldEntry(std::string_view message);
  Status AddOldSlice(std::string_view message);

  // The entries of a table, the first of which has no key. They point into `bytes` and
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
  // `count` elements of each dimension from the begins on.
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
