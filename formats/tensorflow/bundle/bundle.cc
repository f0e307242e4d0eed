#include "formats/tensorflow/bundle/bundle.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/memory/crc32c.h"
#include "formats/leveldb_table.h"
#include "formats/lowering/file_tensor.h"
#include "formats/other_kinds.h"
#include "formats/tensorflow/bundle/snappy.h"
#include "formats/tensorflow/tensor_data.h"
#include "formats/wire_fields.h"
#include "heddle/string_tensor.h"

namespace heddle::tensorflow {
namespace {

using wire::Field;
using wire::Fields;

constexpr size_t kBlockTail = 5;  // a byte for the compression, and a checksum
constexpr char kSnappy = 1;
constexpr int64_t kMostShards = 100000;
// Beyond this, slices must have their bytes in the shards.
constexpr size_t kLeastStored = size_t{2} << 30;
constexpr size_t kMostUnread = 64 << 20;      // bytes that are checked although they are not read
constexpr size_t kComparedBytes = 256 << 10;  // at a time
// Keys are prefix-compressed: a few bytes can claim any length.
constexpr size_t kMostKeyBytes = 256 << 20;

uint32_t Fixed32(std::string_view bytes) {
  uint32_t value = 0;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

// Encodes a string so that encoded keys sort as the strings do (the beginning of a slice's key).
std::string Ordered(std::string_view text) {
  std::string made(1, '\0');
  for (char c : text) {
    made += c;
    if (c == '\0') made += '\xff';
    if (c == '\xff') made += '\0';
  }
  return made + std::string("\0\1", 2);
}

void AppendUnsigned(uint64_t value, std::string* out) {
  std::string digits;
  for (; value > 0; value >>= 8) digits.insert(digits.begin(), static_cast<char>(value & 0xff));
  out->push_back(static_cast<char>(digits.size()));
  out->append(digits);
}

// Encodes a signed number so that encodings sort as the numbers do: leading one bits give the
// number of bytes, and all bits are inverted for a negative number.
void AppendSigned(int64_t value, std::string* out) {
  const uint64_t magnitude =
      value < 0 ? ~static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  size_t bytes = 1;
  while (bytes < 9 && magnitude >> (7 * bytes - 1) != 0) ++bytes;
  std::string made(bytes, '\0');
  for (size_t i = 0; i < bytes && i < 8; ++i)
    made[bytes - 1 - i] = static_cast<char>(magnitude >> (8 * i) & 0xff);
  // `bytes` one bits in front, the first of them in place of the sign bit.
  for (size_t i = 0; i < bytes; ++i)
    made[i / 8] = static_cast<char>(static_cast<uint8_t>(made[i / 8]) | 0x80u >> (i % 8));
  if (value < 0)
    for (char& c : made) c = static_cast<char>(~c);
  out->append(made);
}

std::string ShapeText(const std::vector<int64_t>& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text += StrCat(i == 0 ? "" : ", ", dims[i]);
  return text + "]";
}

bool TakeNumber(std::string_view* rest, int64_t* number) {
  const auto [end, error] = std::from_chars(rest->data(), rest->data() + rest->size(), *number);
  if (error != std::errc()) return false;
  rest->remove_prefix(static_cast<size_t>(end - rest->data()));
  return true;
}

// Copies a box between row-major tensors: `count` elements of each dimension, from the given begins
// on.
void CopyBox(const std::byte* from, const std::vector<int64_t>& from_dims,
             const std::vector<int64_t>& from_begin, std::byte* to,
             const std::vector<int64_t>& to_dims, const std::vector<int64_t>& to_begin,
             const std::vector<int64_t>& count, size_t bytes) {
  const size_t rank = count.size();
  if (std::find(count.begin(), count.end(), 0) != count.end()) return;
  const size_t inner = rank == 0 ? bytes : static_cast<size_t>(count[rank - 1]) * bytes;
  std::vector<int64_t> at(rank, 0);
  while (true) {
    int64_t from_at = 0, to_at = 0;
    for (size_t i = 0; i < rank; ++i) {
      from_at = from_at * from_dims[i] + from_begin[i] + at[i];
      to_at = to_at * to_dims[i] + to_begin[i] + at[i];
    }
    std::memcpy(to + static_cast<size_t>(to_at) * bytes,
                from + static_cast<size_t>(from_at) * bytes, inner);
    size_t i = rank < 2 ? 0 : rank - 1;
    while (i > 0 && ++at[i - 1] == count[i - 1]) at[--i] = 0;
    if (i == 0) return;
  }
}

}  // namespace

std::string Bundle::SliceKey(const std::string& name, const Slice& slice) {
  std::string key = Ordered(name);
  AppendUnsigned(slice.begin.size(), &key);
  for (size_t i = 0; i < slice.begin.size(); ++i) {
    AppendSigned(slice.begin[i], &key);
    AppendSigned(slice.length[i], &key);
  }
  return key;
}

// --- the index

Status Bundle::ReadBlock(std::string_view bytes, uint64_t offset, uint64_t size,
                         std::deque<std::string>* uncompressed,
                         std::vector<std::pair<std::string, std::string_view>>* entries) const {
  const auto damaged = [&] { return DataLoss(name_, ": a block of the index is damaged"); };
  if (offset > bytes.size() || size > bytes.size() - offset ||
      bytes.size() - offset - size < kBlockTail)
    return DataLoss(name_, ": a block of ", size, " bytes from byte ", offset,
                    " on is expected, and the file has ", bytes.size());
  std::string_view block = bytes.substr(offset, size);
  // The checksum covers the block's bytes in the file and the compression byte.
  if (index_checksums_ == Checksums::kChecked &&
      Fixed32(bytes.substr(offset + size + 1)) !=
          MaskedCrc32c(Crc32c(bytes.substr(offset, size + 1))))
    return DataLoss(name_, ": the block of ", size, " bytes from byte ", offset,
                    " on does not have its checksum");
  if (const char compression = bytes[offset + size]; compression == kSnappy) {
    auto made = Uncompress(block);
    if (!made.ok()) return DataLoss(name_, ": ", made.status().message());
    block = uncompressed->emplace_back(*std::move(made));
    size = block.size();
  } else if (compression != 0) {
    return Unimplemented(name_, ": a block of the index is compressed in the way ",
                         int{static_cast<uint8_t>(compression)}, ", which heddle does not read");
  }
  if (size < sizeof(uint32_t)) return damaged();
  const uint64_t restarts = Fixed32(block.substr(size - sizeof(uint32_t)));
  if (restarts > (size - sizeof(uint32_t)) / sizeof(uint32_t)) return damaged();
  std::string_view rest = block.substr(0, size - sizeof(uint32_t) * (restarts + 1));
  std::string key;
  size_t key_bytes = 0;
  while (!rest.empty()) {
    uint64_t shared = 0, own = 0, length = 0;
    if (!wire::TakeVarint(&rest, &shared) || !wire::TakeVarint(&rest, &own) ||
        !wire::TakeVarint(&rest, &length) || shared > key.size() || own > rest.size() ||
        length > rest.size() - own || (key_bytes += shared + own) > kMostKeyBytes)
      return damaged();
    key = key.substr(0, shared) + std::string(rest.substr(0, own));
    entries->emplace_back(key, rest.substr(own, length));
    rest.remove_prefix(own + length);
  }
  return Status::Ok();
}

bool Bundle::ReadDims(std::string_view shape, std::vector<int64_t>* dims) {
  Fields fields(shape);
  Field d;
  while (!fields.done()) {
    if (!fields.Next(&d)) return false;
    if (!d.Is(2)) continue;
    int64_t& dim = dims->emplace_back();
    Fields parts(d.payload);
    Field part;
    while (!parts.done()) {
      if (!parts.Next(&part)) return false;
      if (part.IsVarint(1)) dim = part.integer();
    }
  }
  return true;
}

bool Bundle::ReadSlice(std::string_view message, Slice* slice) {
  Fields extents(message);
  Field e;
  while (!extents.done()) {
    if (!extents.Next(&e)) return false;
    if (!e.Is(1)) continue;
    int64_t begin = 0, length = -1;
    Fields parts(e.payload);
    Field part;
    while (!parts.done()) {
      if (!parts.Next(&part)) return false;
      if (part.IsVarint(1)) begin = part.integer();
      if (part.IsVarint(2)) length = part.integer();
    }
    slice->begin.push_back(begin);
    slice->length.push_back(length);
  }
  return true;
}

Status Bundle::AddEntry(const std::string& key, std::string_view value) {
  const auto damaged = [&] { return DataLoss(name_, ": the entry of '", key, "' is damaged"); };
  Entry entry;
  entry.masked_crc32c = 0;
  Fields fields(value);
  Field f;
  while (!fields.done()) {
    if (!fields.Next(&f)) return damaged();
    if (f.IsVarint(1)) entry.type = static_cast<int>(f.integer());
    if (f.IsVarint(3)) entry.shard = f.integer();
    if (f.IsVarint(4)) entry.offset = f.integer();
    if (f.IsVarint(5)) entry.size = f.integer();
    if (f.number == 6 && f.wire_type == Field::kFixed32) entry.masked_crc32c = Fixed32(f.payload);
    if (f.Is(2) && !ReadDims(f.payload, &entry.dims)) return damaged();
    if (f.Is(7) && !ReadSlice(f.payload, &entry.slices.emplace_back())) return damaged();
  }
  HEDDLE_RETURN_IF_ERROR(Check(key, entry));
  entries_.emplace(key, std::move(entry));
  return Status::Ok();
}

Status Bundle::Check(const std::string& key, const Entry& entry) const {
  TensorData data;
  SetType(&data, entry.type);
  data.dims = entry.dims;
  const auto count = data.Count();
  if (!count.ok()) return DataLoss(name_, ": '", key, "': ", count.status().message());
  if (entry.shard < 0 || entry.shard >= shards_ || entry.offset < 0 || entry.size < 0)
    return DataLoss(name_, ": '", key, "': ", entry.size, " bytes from byte ", entry.offset,
                    " of shard ", entry.shard, " of ", shards_);
  for (const Slice& slice : entry.slices) {
    bool fits = slice.begin.size() == entry.dims.size();
    for (size_t i = 0; fits && i < slice.begin.size(); ++i)
      fits = slice.length[i] < 0 || (slice.begin[i] >= 0 && slice.begin[i] <= entry.dims[i] &&
                                     slice.length[i] <= entry.dims[i] - slice.begin[i]);
    if (!fits) return DataLoss(name_, ": '", key, "': a slice does not lie within it");
  }
  const bool has_raw = data.element != nullptr && data.element->bits > 0;
  if (has_raw && entry.slices.empty() && !entry.made.initialized() &&
      data.element->RawBytes(*count) != static_cast<size_t>(entry.size))
    return DataLoss(name_, ": '", key, "': ", entry.size, " bytes are stored for ", data.TypeText(),
                    ", which takes ", data.element->RawBytes(*count));
  return Status::Ok();
}

Status Bundle::ReadTable(std::string_view bytes, std::deque<std::string>* uncompressed,
                         std::vector<std::pair<std::string, std::string_view>>* entries) const {
  if (bytes.size() < formats::kTableFooter || !bytes.ends_with(formats::kTableMagic))
    return DataLoss(name_, ": this is no index of variables, or it is cut short");
  std::string_view footer = bytes.substr(bytes.size() - formats::kTableFooter);
  uint64_t skipped = 0, offset = 0, size = 0;
  if (!wire::TakeVarint(&footer, &skipped) || !wire::TakeVarint(&footer, &skipped) ||
      !wire::TakeVarint(&footer, &offset) || !wire::TakeVarint(&footer, &size))
    return DataLoss(name_, ": the end of the index is damaged");
  std::vector<std::pair<std::string, std::string_view>> blocks;
  HEDDLE_RETURN_IF_ERROR(ReadBlock(bytes, offset, size, uncompressed, &blocks));
  uint64_t end = 0;
  for (auto& [last, handle] : blocks) {
    // Blocks must be ascending and disjoint, so that no block is read for many handles.
    if (!wire::TakeVarint(&handle, &offset) || !wire::TakeVarint(&handle, &size) || offset < end ||
        size > bytes.size() || offset > bytes.size())
      return DataLoss(name_, ": a handle of the index is damaged");
    end = offset + size;
    HEDDLE_RETURN_IF_ERROR(ReadBlock(bytes, offset, size, uncompressed, entries));
  }
  if (entries->empty() || !entries->front().first.empty())
    return DataLoss(name_, ": the index has no header");
  return Status::Ok();
}

Status Bundle::ReadIndex(std::string_view bytes) {
  std::deque<std::string> uncompressed;
  std::vector<std::pair<std::string, std::string_view>> entries;
  HEDDLE_RETURN_IF_ERROR(ReadTable(bytes, &uncompressed, &entries));
  Fields header(entries.front().second);
  Field f;
  while (!header.done()) {
    if (!header.Next(&f)) return DataLoss(name_, ": the header of the index is damaged");
    if (f.IsVarint(1)) shards_ = f.integer();
    if (f.IsVarint(2) && f.varint != 0)
      return Unimplemented(name_, ": the variables are big-endian, which heddle does not read");
  }
  if (shards_ < 1 || shards_ > kMostShards)
    return DataLoss(name_, ": the index says that there are ", shards_, " shards");
  for (size_t i = 1; i < entries.size(); ++i)
    HEDDLE_RETURN_IF_ERROR(AddEntry(entries[i].first, entries[i].second));
  return Status::Ok();
}

Result<std::shared_ptr<const Bundle>> Bundle::ParseIndex(std::string_view bytes,
                                                         const std::string& name,
                                                         Checksums checksums) {
  auto bundle = std::make_shared<Bundle>();
  bundle->name_ = name;
  bundle->index_checksums_ = checksums;
  HEDDLE_RETURN_IF_ERROR(bundle->ReadIndex(bytes));
  return std::shared_ptr<const Bundle>(std::move(bundle));
}

Result<std::shared_ptr<const Bundle>> Bundle::Open(const std::string& prefix) {
  auto bundle = std::make_shared<Bundle>();
  bundle->name_ = prefix + ".index";
  if (const std::vector<std::string> old = OldFiles(prefix); !old.empty()) {
    for (const std::string& file : old) HEDDLE_RETURN_IF_ERROR(bundle->ReadOldFile(file));
    for (const auto& [key, entry] : bundle->entries_)
      HEDDLE_RETURN_IF_ERROR(bundle->Check(key, entry));
    return std::shared_ptr<const Bundle>(std::move(bundle));
  }
  HEDDLE_ASSIGN_OR_RETURN(const FileBytes bytes, FileBytes::Read(bundle->name_));
  if (const Status read = bundle->ReadIndex(bytes.view()); !read.ok()) {
    if (bytes.view().ends_with(formats::kTableMagic)) return read;
    const auto kind = formats::OtherKindOf(bytes.view());
    return kind ? Status(read.code(), StrCat(read.message(), "; it is ", kind->Text())) : read;
  }
  for (int64_t k = 0; k < bundle->shards_; ++k) {
    char suffix[64];
    std::snprintf(suffix, sizeof(suffix), ".data-%05lld-of-%05lld", static_cast<long long>(k),
                  static_cast<long long>(bundle->shards_));
    HEDDLE_ASSIGN_OR_RETURN(auto file, formats::DataFile::Open(prefix + suffix));
    bundle->files_.push_back(std::move(file));
  }
  for (const auto& [key, entry] : bundle->entries_) {
    if (!entry.slices.empty()) continue;
    const auto has = static_cast<int64_t>(bundle->files_[static_cast<size_t>(entry.shard)]->size());
    if (entry.offset > has || entry.size > has - entry.offset)
      return DataLoss(bundle->name_, ": '", key, "': ", entry.size, " bytes from byte ",
                      entry.offset, " on are expected in shard ", entry.shard, ", which has ", has,
                      formats::OtherKindNote(*bundle->files_[static_cast<size_t>(entry.shard)]));
  }
  return std::shared_ptr<const Bundle>(std::move(bundle));
}

// --- tensors

std::vector<std::string> Bundle::keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, entry] : entries_)
    if (!key.starts_with('\0')) keys.push_back(key);
  return keys;
}

Result<Value> Bundle::ReadWhole(const std::string& key, const Entry& entry,
                                ParameterReading reading) const {
  if (entry.made.initialized()) return entry.made;
  if (entry.type == kString) return ReadStrings(key, entry);
  const formats::ElementType* element = Types().Find(entry.type);
  if (element == nullptr || element->bits == 0)
    return Unimplemented(name_, ": '", key, "' is of ", TypeName(entry.type));
  formats::FileTensor in_file{.file = files_[static_cast<size_t>(entry.shard)],
                              .offset = static_cast<size_t>(entry.offset),
                              .bytes = static_cast<size_t>(entry.size),
                              .element = element,
                              .shape = Shape(std::span<const int64_t>(entry.dims))};
  if (entry.masked_crc32c) in_file.crc32c = UnmaskedCrc32c(*entry.masked_crc32c);
  HEDDLE_ASSIGN_OR_RETURN(Tensor t, in_file.Read(reading, StrCat("variable '", key, "'")));
  return Value(std::move(t));
}

Status Bundle::CheckOthers(const std::set<std::string>& read) const {
  std::set<std::string> known;
  for (const std::string& key : read) {
    const auto found = entries_.find(*known.insert(key.substr(0, key.find('\n'))).first);
    if (found == entries_.end()) continue;
    for (const Slice& slice : found->second.slices) known.insert(SliceKey(found->first, slice));
  }
  std::vector<decltype(entries_)::const_iterator> others;
  size_t bytes = 0;
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    if (!it->second.masked_crc32c || !it->second.slices.empty() || known.contains(it->first))
      continue;
    others.push_back(it);
    bytes += static_cast<size_t>(it->second.size);
    if (bytes > kMostUnread) return Status::Ok();
  }
  std::string part;
  for (const auto it : others) {
    const Entry& entry = it->second;
    if (entry.type == kString) {
      HEDDLE_RETURN_IF_ERROR(ReadStrings(it->first, entry).status());
      continue;
    }
    const auto& file = files_[static_cast<size_t>(entry.shard)];
    const auto end = static_cast<size_t>(entry.offset + entry.size);
    uint32_t crc = 0;
    for (size_t at = static_cast<size_t>(entry.offset); at < end; at += part.size()) {
      part.resize(std::min(end - at, kComparedBytes));
      HEDDLE_RETURN_IF_ERROR(file->Fill(part.data(), part.size(), at));
      crc = Crc32c(part, crc);
    }
    if (entry.masked_crc32c != MaskedCrc32c(crc))
      return formats::FileTensor::Damaged(StrCat("variable '", it->first, "'"), *file,
                                          static_cast<size_t>(entry.offset));
  }
  return Status::Ok();
}

// The layout: varint lengths, their checksum, then the strings.
Result<Value> Bundle::ReadStrings(const std::string& key, const Entry& entry) const {
  std::string bytes(static_cast<size_t>(entry.size), '\0');
  const auto& file = files_[static_cast<size_t>(entry.shard)];
  HEDDLE_RETURN_IF_ERROR(file->Fill(bytes.data(), bytes.size(), static_cast<size_t>(entry.offset)));
  std::string_view rest = bytes;
  const auto damaged = [&] { return DataLoss(name_, ": the strings of '", key, "' are damaged"); };
  const Shape shape{std::span<const int64_t>(entry.dims)};
  std::vector<uint64_t> lengths;
  uint32_t crc = 0;
  for (int64_t i = 0; i < shape.numel(); ++i) {
    uint64_t length = 0;
    if (!wire::TakeVarint(&rest, &length)) return damaged();
    lengths.push_back(length);
    // A length counts as four bytes if it fits.
    crc = Crc32c(&length, length >> 32 == 0 ? sizeof(uint32_t) : sizeof(length), crc);
  }
  if (rest.size() < sizeof(uint32_t) || Fixed32(rest) != MaskedCrc32c(crc)) return damaged();
  // The entry's checksum also covers the lengths' checksum and the strings.
  if (entry.masked_crc32c != MaskedCrc32c(Crc32c(rest, crc))) return damaged();
  rest.remove_prefix(sizeof(uint32_t));
  StringTensor made{shape, {}};
  for (uint64_t length : lengths) {
    if (length > rest.size()) return damaged();
    made.elements.emplace_back(rest.substr(0, length));
    rest.remove_prefix(length);
  }
  return ValueOf(std::move(made));
}

// Reads a tensor in slices; each slice has a key of its own.
Result<Value> Bundle::ReadSlices(const std::string& key, const Entry& entry) const {
  const DType dtype = StorageOf(entry.type);
  if (dtype == DType::kUnknown)
    return Unimplemented(name_, ": '", key, "' is of ", TypeName(entry.type), " and in slices");
  // A few bytes of the index can claim any size, so the slices' bytes in the shards are added up
  // first.
  const Shape shape{std::span<const int64_t>(entry.dims)};
  size_t stored = 0;
  for (const auto& file : files_) stored += file->size();
  if (Types().Find(entry.type)->RawBytes(shape.numel()) > std::max(stored, kLeastStored))
    return DataLoss(name_, ": '", key, "' ", ShapeText(entry.dims),
                    " in slices is larger than all shards, which have ", stored, " bytes");
  Tensor whole = Tensor::Zeros(dtype, shape);
  if (!whole.initialized() && whole.numel() > 0)
    return ResourceExhausted("variable '", key, "': no memory for it");
  std::vector<std::byte> held(static_cast<size_t>(whole.numel()));  // 1: a slice has this element
  for (const Slice& slice : entry.slices) {
    const auto part = entries_.find(SliceKey(key, slice));
    // A slice that is itself in slices is refused: its size would not be checked.
    if (part == entries_.end() || !part->second.slices.empty())
      return DataLoss(name_, ": a slice of '", key, "' is not in the bundle");
    HEDDLE_ASSIGN_OR_RETURN(const Value value,
                            ReadWhole(key, part->second, ParameterReading::kNow));
    std::vector<int64_t> begin = slice.begin, count = slice.length;
    for (size_t i = 0; i < count.size(); ++i) {
      if (count[i] >= 0) continue;
      begin[i] = 0;
      count[i] = entry.dims[i];
    }
    if (part->second.dims != count || !value.is_tensor() || value.tensor().dtype() != dtype)
      return DataLoss(name_, ": a slice of '", key, "' is ", ShapeText(part->second.dims), "; ",
                      ShapeText(count), " is expected");
    CopyBox(static_cast<const std::byte*>(value.tensor().raw()), count,
            std::vector<int64_t>(count.size(), 0), static_cast<std::byte*>(whole.mutable_raw()),
            entry.dims, begin, count, SizeOf(dtype));
    const std::vector<std::byte> ones(static_cast<size_t>(value.tensor().numel()), std::byte{1});
    CopyBox(ones.data(), count, std::vector<int64_t>(count.size(), 0), held.data(), entry.dims,
            begin, count, 1);
  }
  const auto hole = std::find(held.begin(), held.end(), std::byte{0});
  if (hole != held.end())
    return DataLoss(name_, ": no slice of '", key, "' has its element ", hole - held.begin(),
                    " of ", held.size());
  return Value(std::move(whole));
}

// A part that is contiguous is read alone: reading rows of a table need not read the table.
Result<Value> Bundle::ReadPart(const std::string& key, const Entry& entry,
                               std::vector<int64_t> begin, const std::vector<int64_t>& count,
                               ParameterReading reading) const {
  Entry rows = entry;
  if (entry.slices.empty() && !entry.dims.empty() && entry.dims[0] > 0) {
    // The division has no remainder: Check() ensures it.
    const int64_t row = entry.size / entry.dims[0];
    rows.offset += begin[0] * row;
    if (count[0] < entry.dims[0]) rows.masked_crc32c.reset();
    rows.size = count[0] * row;
    rows.dims[0] = count[0];
    begin[0] = 0;
  }
  const bool is_stretch = rows.dims == count;
  HEDDLE_ASSIGN_OR_RETURN(Value held,
                          entry.slices.empty()
                              ? ReadWhole(key, rows, is_stretch ? reading : ParameterReading::kNow)
                              : ReadSlices(key, entry));
  if (is_stretch) return held;
  const Tensor& from = held.tensor();
  Tensor part = Tensor::Empty(from.dtype(), Shape(std::span<const int64_t>(count)));
  if (!part.initialized() && part.numel() > 0)
    return ResourceExhausted("variable '", key, "': no memory for a part of it");
  CopyBox(static_cast<const std::byte*>(from.raw()), rows.dims, begin,
          static_cast<std::byte*>(part.mutable_raw()), count, std::vector<int64_t>(count.size(), 0),
          count, SizeOf(from.dtype()));
  return Value(std::move(part));
}

Result<Value> Bundle::Read(const std::string& key, ParameterReading reading) const {
  const size_t line = key.find('\n');
  const std::string name = key.substr(0, line);
  const auto found = entries_.find(name);
  if (found == entries_.end()) return NotFound(name_, ": there is no '", name, "' in the bundle");
  const Entry& entry = found->second;
  if (line == std::string::npos)
    return entry.slices.empty() ? ReadWhole(name, entry, reading) : ReadSlices(name, entry);
  // The dimensions, a blank, then "-" or "begin,length" for each of them, joined by ":".
  std::string_view text = std::string_view(key).substr(line + 1);
  const auto wrong = [&] {
    return InvalidArgument("variable '", name, "': '", text, "' is no slice of ",
                           ShapeText(entry.dims));
  };
  const size_t space = text.rfind(' ');
  if (space == std::string_view::npos || entry.type == kString) return wrong();
  std::string_view rest = text.substr(space + 1);
  std::vector<int64_t> begin, count;
  for (int64_t dim : entry.dims) {
    if (!begin.empty() && (rest.empty() || rest.front() != ':')) return wrong();
    if (!begin.empty()) rest.remove_prefix(1);
    int64_t from = 0, length = dim;
    if (rest.starts_with('-')) {
      rest.remove_prefix(1);
    } else {
      if (!TakeNumber(&rest, &from) || !rest.starts_with(',')) return wrong();
      rest.remove_prefix(1);
      if (!TakeNumber(&rest, &length)) return wrong();
    }
    if (from < 0 || from > dim || length < 0 || length > dim - from) return wrong();
    begin.push_back(from);
    count.push_back(length);
  }
  return ReadPart(name, entry, std::move(begin), count, reading);
}

}  // namespace heddle::tensorflow
