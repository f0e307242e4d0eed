#include "offload/module_file.h"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

namespace heddle::offload {
namespace {

constexpr std::string_view kModuleEnding = ".module", kAnswersEnding = ".answers";
constexpr char kMagic[8] = {'h', 'd', 'l', 'm', 'o', 'd', 'u', 'l'};
constexpr uint32_t kVersion = 1;
constexpr uint32_t kMostAbout = 1 << 20;
constexpr size_t kPart = 1 << 20;  // read and written at a time

struct Header {
  char magic[8];
  uint32_t version;
  uint32_t about_bytes;  // behind the header; then the payload, to the end of the file
  DigestBytes digest;
  uint64_t payload_bytes;
  uint64_t payload_hash[2];
  int64_t operators;
  uint64_t hash;  // of what stands before it, and of what is about
};
static_assert(sizeof(Header) == 88 && offsetof(Header, hash) == 80);

uint64_t HashOf(const Header& header, std::string_view about) {
  return XXH3_64bits_withSeed(about.data(), about.size(),
                              XXH3_64bits(&header, offsetof(Header, hash)));
}

// A file that would grow beyond the process's limit is an error, and no signal.
class NoSizeSignal {
 public:
  NoSizeSignal() {
    ::sigemptyset(&size_);
    ::sigaddset(&size_, SIGXFSZ);
    sigset_t waiting;
    blocks_ = ::sigpending(&waiting) == 0 && ::sigismember(&waiting, SIGXFSZ) == 0 &&
              ::pthread_sigmask(SIG_BLOCK, &size_, &before_) == 0;
  }
  ~NoSizeSignal() {
    if (!blocks_) return;
    constexpr timespec kAtOnce{};
    while (::sigtimedwait(&size_, nullptr, &kAtOnce) < 0 && errno == EINTR) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoSizeSignal(const NoSizeSignal&) = delete;
  NoSizeSignal& operator=(const NoSizeSignal&) = delete;

 private:
  sigset_t size_, before_;
  bool blocks_;
};

int WriteAt(int fd, const void* bytes, size_t count, off_t at) {
  const NoSizeSignal no_signal;
  const auto* from = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t n = ::pwrite(fd, from, count, at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : ENOSPC;
    from += n;
    at += n;
    count -= static_cast<size_t>(n);
  }
  return 0;
}

bool ReadAt(int fd, void* bytes, size_t count, off_t at) {
  auto* to = static_cast<char*>(bytes);
  while (count > 0) {
    const ssize_t n = ::pread(fd, to, count, at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    to += n;
    at += n;
    count -= static_cast<size_t>(n);
  }
  return true;
}

}  // namespace

std::string ModuleFileName(const DigestBytes& digest, FileKind kind) {
  return HexOf(digest) + std::string(kind == FileKind::kModule ? kModuleEnding : kAnswersEnding);
}

bool IsModuleFile(std::string_view name) {
  const size_t digits = 2 * sizeof(DigestBytes);
  if (name.size() < digits || name.find_first_not_of("0123456789abcdef") != digits) return false;
  const std::string_view ending = name.substr(digits);
  return ending == kModuleEnding || ending == kAnswersEnding;
}

FileKind KindOf(std::string_view name) {
  return name.ends_with(kAnswersEnding) ? FileKind::kAnswers : FileKind::kModule;
}

std::string LineOf(std::string_view about, std::string_view key) {
  while (!about.empty()) {
    const size_t end = std::min(about.find('\n'), about.size());
    const std::string_view line = about.substr(0, end);
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ' ')
      return std::string(line.substr(key.size() + 1));
    about.remove_prefix(std::min(end + 1, about.size()));
  }
  return "";
}

std::string OneLine(std::string_view text) {
  std::string line;
  for (const char c : text) {
    if (c == '\\' || c == '\n') line += '\\';
    line += c == '\n' ? 'n' : c;
  }
  return line;
}

// ---- writing ------------------------------------------------------------------------------------

struct ModuleFileWriter::State {
  int fd = -1;
  Header header = {};
  std::string about;
  std::vector<char> part;  // engines may write byte by byte
  int64_t written = 0;
  XXH3_state_t hash;
};

ModuleFileWriter::ModuleFileWriter(int fd, const DigestBytes& digest, std::string_view about,
                                   int64_t operators)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.fd = fd;
  s.about = about;
  std::copy(std::begin(kMagic), std::end(kMagic), s.header.magic);
  s.header.version = kVersion;
  s.header.about_bytes = static_cast<uint32_t>(std::min<size_t>(about.size(), ~0u));
  s.header.digest = digest;
  s.header.operators = operators;
  s.written = static_cast<int64_t>(sizeof(Header) + about.size());
  s.part.reserve(kPart);
  XXH3_128bits_reset(&s.hash);
}
ModuleFileWriter::~ModuleFileWriter() = default;

int64_t ModuleFileWriter::bytes() const {
  return state_->written + static_cast<int64_t>(state_->part.size());
}

int ModuleFileWriter::Put(const void* bytes, size_t count) {
  const int error = WriteAt(state_->fd, bytes, count, state_->written);
  if (error == 0) state_->written += static_cast<int64_t>(count);
  return error;
}

int ModuleFileWriter::Flush() {
  const int error = Put(state_->part.data(), state_->part.size());
  if (error == 0) state_->part.clear();
  return error;
}

int ModuleFileWriter::Append(const void* bytes, size_t count) {
  if (count == 0) return 0;
  State& s = *state_;
  XXH3_128bits_update(&s.hash, bytes, count);
  s.header.payload_bytes += count;
  if (s.part.size() + count > kPart)
    if (const int error = Flush(); error != 0) return error;
  if (count > kPart) return Put(bytes, count);
  const auto* from = static_cast<const char*>(bytes);
  s.part.insert(s.part.end(), from, from + count);
  return 0;
}

int ModuleFileWriter::End() {
  State& s = *state_;
  if (s.about.size() > kMostAbout) return EFBIG;
  if (const int error = Flush(); error != 0) return error;
  const XXH128_hash_t hash = XXH3_128bits_digest(&s.hash);
  s.header.payload_hash[0] = hash.low64;
  s.header.payload_hash[1] = hash.high64;
  s.header.hash = HashOf(s.header, s.about);
  if (const int error = WriteAt(s.fd, s.about.data(), s.about.size(), sizeof(Header)); error != 0)
    return error;
  if (const int error = WriteAt(s.fd, &s.header, sizeof(Header), 0); error != 0) return error;
  return ::fsync(s.fd) == 0 || errno == EINVAL ? 0 : errno;  // EINVAL: it has no disk
}

// ---- reading ------------------------------------------------------------------------------------

bool ModuleFileReader::Begin() {
  Header header;
  if (bytes_ < static_cast<int64_t>(sizeof header) || !ReadAt(fd_, &header, sizeof header, 0))
    return false;
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 || header.version != kVersion ||
      header.about_bytes > kMostAbout)
    return false;
  const uint64_t behind = static_cast<uint64_t>(bytes_) - sizeof header;
  if (behind < header.about_bytes || behind - header.about_bytes != header.payload_bytes)
    return false;
  about_.resize(header.about_bytes);
  if (!ReadAt(fd_, about_.data(), about_.size(), sizeof header)) return false;
  if (header.hash != HashOf(header, about_)) return false;
  digest_ = header.digest;
  operators_ = header.operators;
  payload_bytes_ = header.payload_bytes;
  std::copy(std::begin(header.payload_hash), std::end(header.payload_hash), payload_hash_);
  return true;
}

bool ModuleFileReader::Payload(void* to) const {
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  std::vector<char> part(to == nullptr ? std::min(payload_bytes_, kPart) : 0);
  const auto begin = static_cast<off_t>(sizeof(Header) + about_.size());
  for (size_t done = 0; done < payload_bytes_;) {
    const size_t count = std::min(payload_bytes_ - done, kPart);
    char* const at = to == nullptr ? part.data() : static_cast<char*>(to) + done;
    if (!ReadAt(fd_, at, count, begin + static_cast<off_t>(done))) return false;
    XXH3_128bits_update(&state, at, count);
    done += count;
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(&state);
  return hash.low64 == payload_hash_[0] && hash.high64 == payload_hash_[1];
}

}  // namespace heddle::offload
