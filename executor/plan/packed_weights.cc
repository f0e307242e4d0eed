#include "executor/plan/packed_weights.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/file.h"

namespace heddle {
namespace {

constexpr uint64_t kCopyAlign = 64;  // of a copy in the file, in bytes
// Copies of at least this size are mapped and begin on a page; smaller ones share pages and are
// read.
constexpr uint64_t kLeastMappedCopy = 64 << 10, kPage = 4096;

constexpr char kMagic[16] = "heddle packed 2";
// Files of the first version: the layouts of their copies depended on the build, without a version
// of their own.
constexpr char kFirstMagic[16] = "heddle packed 1";

// The beginning of the file.
struct Header {
  char magic[16];
  SourceFile::Stamp source;
  uint64_t source_hash;
  uint64_t index_at, index_bytes, index_hash;
  uint64_t hash;  // of the fields before it
};
static_assert(sizeof(Header) == 96);

uint64_t HashOf(const void* data, size_t bytes) { return XXH3_64bits(data, bytes); }
uint64_t HashOf(const Header& header) { return HashOf(&header, offsetof(Header, hash)); }

void Put(std::string* out, uint64_t value) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// Reads what Put has written; false at the end.
bool Take(std::string_view* in, uint64_t* value) {
  if (in->size() < sizeof(*value)) return false;
  std::memcpy(value, in->data(), sizeof(*value));
  in->remove_prefix(sizeof(*value));
  return true;
}

uint64_t PlaceAfter(uint64_t at, uint64_t bytes) {
  const uint64_t align = bytes >= kLeastMappedCopy ? kPage : kCopyAlign;
  return (at + align - 1) / align * align;
}

}  // namespace

// Ownership: owns the descriptor. Threads: any.
class PackedWeights::File {
 public:
  // nullptr, with errno set, if the file cannot be opened.
  static std::shared_ptr<const File> Open(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return nullptr;
    std::shared_ptr<File> file(new File(fd));
    struct stat now {};
    if (::fstat(fd, &now) != 0) return nullptr;
    if (!S_ISREG(now.st_mode)) return errno = EINVAL, nullptr;
    file->bytes_ = static_cast<uint64_t>(now.st_size);
    return file;
  }
  ~File() { ::close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool Holds(uint64_t at, uint64_t bytes) const { return at <= bytes_ && bytes <= bytes_ - at; }
  Status Read(void* to, uint64_t at, uint64_t bytes) const {
    if (!Holds(at, bytes)) return DataLoss("cut short");
    auto* next = static_cast<char*>(to);
    while (bytes > 0) {
      const ssize_t got = ::pread(fd_, next, bytes, static_cast<off_t>(at));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return DataLoss("cannot read the file: ", std::strerror(errno));
      if (got == 0) return DataLoss("cut short while it was read");
      next += got;
      at += static_cast<uint64_t>(got);
      bytes -= static_cast<uint64_t>(got);
    }
    return Status::Ok();
  }

  // Maps the bytes instead of reading them, all pages at once; empty if that is not possible.
  BufferRef Map(uint64_t at, uint64_t bytes) const {
    if (!Holds(at, bytes) || at % kPage != 0) return BufferRef();
#ifdef MAP_POPULATE
    constexpr int kFlags = MAP_PRIVATE | MAP_POPULATE;
#else
    constexpr int kFlags = MAP_PRIVATE;
#endif
    void* const data = ::mmap(nullptr, bytes, PROT_READ, kFlags, fd_, static_cast<off_t>(at));
    if (data == MAP_FAILED) return BufferRef();
    return BufferRef::Wrap(data, bytes, [data, bytes] { ::munmap(data, bytes); });
  }

 private:
  explicit File(int fd) : fd_(fd) {}
  const int fd_;
  uint64_t bytes_ = 0;
};

// All versions of the file begin with the same bytes, of which a file that was cut short may have
// fewer.
Status PackedWeights::CheckPlace(const std::string& path) {
  const std::shared_ptr<const File> file = File::Open(path);
  if (!file) return Status::Ok();
  constexpr std::string_view kBegin = "heddle packed ";
  char begin[kBegin.size()];
  size_t size = kBegin.size();
  while (!file->Holds(0, size)) --size;
  HEDDLE_RETURN_IF_ERROR(file->Read(begin, 0, size));
  if (kBegin.starts_with({begin, size})) return Status::Ok();
  return InvalidArgument("packed weights ", path,
                         ": the file holds something else, and is left as it is; name another "
                         "file, or remove this one");
}

PackedWeights::PackedWeights(std::string path) : path_(std::move(path)) {}
PackedWeights::~PackedWeights() = default;

void PackedWeights::Warn(const char* what, const Status& status) {
  report_.warnings.push_back(StrCat("packed weights ", path_, what, status.message()));
}

bool PackedWeights::Serves(const ContentsOrigin& origin) {
  if (source_ != nullptr) return origin.file == source_;
  source_ = origin.file;
  const Status status = Open();
  if (status.ok()) return true;
  Warn(" are not used: ", status);
  copies_.clear();
  file_ = nullptr;
  return true;
}

Status PackedWeights::Open() {
  file_ = File::Open(path_);
  if (!file_ && errno == ENOENT) return Status::Ok();  // it has not been written yet
  if (!file_) return DataLoss("cannot read the file: ", std::strerror(errno));
  return ReadIndex();
}

Status PackedWeights::ReadIndex() {
  Header header;
  HEDDLE_RETURN_IF_ERROR(file_->Read(&header, 0, sizeof(header)));
  if (std::memcmp(header.magic, kFirstMagic, sizeof(kMagic)) == 0)
    return InvalidArgument("in the form of an earlier heddle");
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0)
    return InvalidArgument("not of this format");
  if (header.hash != HashOf(header)) return DataLoss("the checksum of its beginning is wrong");
  const SourceFile::Stamp now = source_->stamp();
  if (!(header.source == now)) {
    bool equal = header.source.bytes == now.bytes;
    if (equal) {
      HEDDLE_ASSIGN_OR_RETURN(const uint64_t hash, source_->Hash());
      equal = hash == header.source_hash;
    }
    if (!equal) return InvalidArgument("made for other parameters");
  }
  if (!file_->Holds(header.index_at, header.index_bytes)) return DataLoss("cut short");
  std::string text(header.index_bytes, '\0');
  HEDDLE_RETURN_IF_ERROR(file_->Read(text.data(), header.index_at, text.size()));
  std::string_view index = text;
  if (HashOf(index.data(), index.size()) != header.index_hash)
    return DataLoss("the checksum of its index is wrong");
  while (!index.empty()) {
    Copy copy;
    uint64_t length = 0;
    if (!Take(&index, &copy.at) || !Take(&index, &copy.bytes) || !Take(&index, &copy.hash) ||
        !Take(&index, &length) || index.size() < length || !file_->Holds(copy.at, copy.bytes))
      return DataLoss("its index is damaged");
    copies_[std::string(index.substr(0, length))] = copy;
    index.remove_prefix(length);
  }
  return Status::Ok();
}

Result<BufferRef> PackedWeights::Read(const File& file, const Copy& copy, MakeRoom room) {
  BufferRef memory = copy.bytes >= kLeastMappedCopy ? file.Map(copy.at, copy.bytes) : BufferRef();
  if (!memory) {
    memory = room(copy.bytes);
    HEDDLE_RETURN_IF_ERROR(file.Read(memory->data(), copy.at, copy.bytes));
  }
  if (HashOf(memory->data(), copy.bytes) != copy.hash)
    return DataLoss("the checksum of a copy is wrong");
  return memory;
}

BufferRef PackedWeights::Find(const ContentsOrigin& origin, const std::string& key, MakeRoom room) {
  const std::string name = origin.part + ' ' + key;
  std::shared_ptr<const File> file;
  Copy copy;
  {
    std::lock_guard lock(mutex_);
    if (!Serves(origin)) return BufferRef();
    const auto found = copies_.find(name);
    if (found == copies_.end()) return BufferRef();
    copy = found->second;
    file = file_;
    if (copy.memory) return copy.memory;
  }
  Result<BufferRef> memory = Read(*file, copy, room);
  std::lock_guard lock(mutex_);
  if (!memory.ok()) {
    Warn(" serve in part: ", memory.status());
    copies_.erase(name);
    return BufferRef();
  }
  ++report_.found;
  return *std::move(memory);
}

void PackedWeights::Keep(const ContentsOrigin& origin, const std::string& key, BufferRef packed) {
  std::lock_guard lock(mutex_);
  if (!Serves(origin)) return;
  Copy copy;
  copy.bytes = packed->bytes();
  copy.memory = std::move(packed);
  copies_[origin.part + ' ' + key] = std::move(copy);
  ++report_.made;
  unsaved_ = true;
}

void PackedWeights::Save() {
  std::lock_guard lock(mutex_);
  if (!std::exchange(unsaved_, false)) return;
  if (const Status s = Write(); !s.ok()) Warn(" are not written: ", s);
}

Status PackedWeights::Write() {
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.source = source_->stamp();
  HEDDLE_ASSIGN_OR_RETURN(header.source_hash, source_->Hash());

  // The previous file's copies are read one at a time, for two passes; damaged ones are left out.
  const auto contents = [this](const Copy& copy) -> Result<BufferRef> {
    if (copy.memory) return copy.memory;
    return Read(*file_, copy, [](size_t bytes) {
      BufferRef room = BufferRef::Allocate(bytes);
      if (!room) throw std::bad_alloc();
      return room;
    });
  };
  std::vector<std::pair<const Copy*, uint64_t>> places;
  std::string index;
  uint64_t end = sizeof(Header);
  for (auto it = copies_.begin(); it != copies_.end();) {
    Copy& copy = it->second;
    const Result<BufferRef> memory = contents(copy);
    if (!memory.ok()) {
      it = copies_.erase(it);
      continue;
    }
    if (copy.memory) copy.hash = HashOf((*memory)->data(), copy.bytes);
    const uint64_t at = PlaceAfter(end, copy.bytes);
    places.emplace_back(&copy, at);
    end = at + copy.bytes;
    Put(&index, at);
    Put(&index, copy.bytes);
    Put(&index, copy.hash);
    Put(&index, it->first.size());
    index += it->first;
    ++it;
  }
  header.index_at = end;
  header.index_bytes = index.size();
  header.index_hash = HashOf(index.data(), index.size());
  header.hash = HashOf(header);

  HEDDLE_RETURN_IF_ERROR(CheckPlace(path_));  // a file may have appeared since
  FileReplacement file(path_);
  HEDDLE_RETURN_IF_ERROR(file.Open());
  const auto append = [&file](const void* data, size_t bytes) {
    return file.Append({static_cast<const char*>(data), bytes});
  };
  HEDDLE_RETURN_IF_ERROR(append(&header, sizeof(header)));
  uint64_t written = sizeof(header);
  static constexpr std::byte kGap[kPage] = {};
  for (const auto& [copy, at] : places) {
    HEDDLE_ASSIGN_OR_RETURN(const BufferRef memory, contents(*copy));
    HEDDLE_RETURN_IF_ERROR(append(kGap, at - written));
    HEDDLE_RETURN_IF_ERROR(append(memory->data(), copy->bytes));
    written = at + copy->bytes;
  }
  HEDDLE_RETURN_IF_ERROR(append(index.data(), index.size()));
  // Without waiting for the disk: checksums reveal a file that a power failure left incomplete.
  HEDDLE_RETURN_IF_ERROR(file.Commit(FileReplacement::kSoon));

  // The copies are in the file now, so their memory is released.
  copies_.clear();
  return Open();
}

PackedWeightsReport PackedWeights::report() const {
  std::lock_guard lock(mutex_);
  return report_;
}

}  // namespace heddle
