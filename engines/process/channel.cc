#include "engines/process/channel.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace heddle_process {
namespace {

constexpr size_t kMostMemories = 64;              // in a message
constexpr int64_t kMostBytes = int64_t{1} << 40;  // limit for sizes that the other process claims

struct Head {
  int64_t kind, text_bytes, memories;
  int64_t sizes[kMostMemories];
};

}  // namespace

Memory::~Memory() {
  if (data_ != nullptr) munmap(data_, bytes_);
  if (fd_ >= 0) close(fd_);
}

bool Memory::Map() {
  if (bytes_ == 0) return true;
  void* const data = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (data == MAP_FAILED) return false;
  data_ = static_cast<std::byte*>(data);
  return true;
}

bool Memory::Make(size_t bytes) {
  bytes_ = bytes;
  fd_ = memfd_create("heddle_engine", MFD_CLOEXEC);
  return fd_ >= 0 && ftruncate(fd_, static_cast<off_t>(bytes)) == 0 && Map();
}

bool Memory::Open(int fd, size_t bytes) {
  fd_ = fd;
  bytes_ = bytes;
  // Reading memory that is shorter than claimed would end this process.
  return lseek(fd, 0, SEEK_END) >= static_cast<off_t>(bytes) && Map();
}

bool Reader::Raw(void* to, size_t bytes) {
  good_ = good_ && rest_.size() >= bytes;
  if (!good_) return false;
  std::memcpy(to, rest_.data(), bytes);
  rest_.remove_prefix(bytes);
  return true;
}

int64_t Reader::Number() {
  int64_t n = 0;
  Raw(&n, sizeof n);
  return n;
}

double Reader::Real() {
  double d = 0;
  Raw(&d, sizeof d);
  return d;
}

size_t Reader::Count() {
  const int64_t n = Number();
  good_ = good_ && n >= 0 && static_cast<size_t>(n) <= rest_.size();
  return good_ ? static_cast<size_t>(n) : 0;
}

std::string Reader::Text() {
  const size_t bytes = Count();
  std::string text(rest_.substr(0, bytes));
  rest_.remove_prefix(bytes);
  return text;
}

Channel::~Channel() { close(fd_); }

bool Channel::SendAll(const void* from, size_t bytes) {
  const char* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t sent = send(fd_, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    bytes -= static_cast<size_t>(sent);
  }
  return true;
}

bool Channel::ReceiveAll(void* to, size_t bytes) {
  char* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = recv(fd_, at, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

bool Channel::Send(int64_t kind, std::string_view text,
                   const std::vector<const Memory*>& memories) {
  if (memories.size() > kMostMemories) return false;
  Head head = {kind, static_cast<int64_t>(text.size()), static_cast<int64_t>(memories.size()), {}};
  int fds[kMostMemories];
  for (size_t k = 0; k < memories.size(); ++k) {
    head.sizes[k] = static_cast<int64_t>(memories[k]->bytes());
    fds[k] = memories[k]->fd();
  }
  iovec part = {&head, sizeof head};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fds)] = {};
  if (!memories.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(memories.size() * sizeof(int));
    cmsghdr* const c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(memories.size() * sizeof(int));
    std::memcpy(CMSG_DATA(c), fds, memories.size() * sizeof(int));
  }
  ssize_t sent;
  do sent = sendmsg(fd_, &message, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  if (sent <= 0) return false;
  const auto done = static_cast<size_t>(sent);
  return SendAll(reinterpret_cast<const char*>(&head) + done, sizeof head - done) &&
         SendAll(text.data(), text.size());
}

bool Channel::Receive(Message* to) {
  Head head = {};
  iovec part = {&head, sizeof head};
  alignas(cmsghdr) char control[CMSG_SPACE(kMostMemories * sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got;
  do got = recvmsg(fd_, &message, MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  if (got <= 0) return false;
  std::vector<int> fds;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    fds.resize((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    std::memcpy(fds.data(), CMSG_DATA(c), fds.size() * sizeof(int));
  }
  const auto done = static_cast<size_t>(got);
  bool good = ReceiveAll(reinterpret_cast<char*>(&head) + done, sizeof head - done) &&
              head.text_bytes >= 0 && head.text_bytes <= kMostBytes &&
              head.memories == static_cast<int64_t>(fds.size());
  to->kind = head.kind;
  to->memories.clear();
  for (size_t k = 0; k < fds.size(); ++k) {
    Memory& memory = to->memories.emplace_back();
    const int64_t bytes = good ? head.sizes[k] : 0;
    good = memory.Open(fds[k], bytes < 0 ? 0 : static_cast<size_t>(bytes)) && good;
  }
  if (!good) return false;
  to->text.resize(static_cast<size_t>(head.text_bytes));
  return ReceiveAll(to->text.data(), to->text.size());
}

}  // namespace heddle_process
