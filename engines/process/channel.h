// Messages between the process engine and its worker, over a socket. Contents of tensors are in
// shared memory, whose descriptors are sent along.
//
// Ownership: a Channel closes its socket, a Memory unmaps and closes. Threads: one at a time.
// Errors: false; the other side is gone then, or there is no memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle_process {

// A shared piece of memory.
class Memory {
 public:
  Memory() = default;
  Memory(Memory&& o) noexcept { *this = std::move(o); }
  Memory& operator=(Memory&& o) noexcept {
    std::swap(fd_, o.fd_);
    std::swap(data_, o.data_);
    std::swap(bytes_, o.bytes_);
    return *this;
  }
  ~Memory();

  // False: there is none. No bytes are none, and no error.
  bool Make(size_t bytes);
  // Takes the descriptor over.
  bool Open(int fd, size_t bytes);
  int fd() const { return fd_; }
  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  bool Map();

  int fd_ = -1;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

// Numbers and texts one behind the other.
class Writer {
 public:
  void Number(int64_t n) { text_.append(reinterpret_cast<const char*>(&n), sizeof n); }
  void Real(double d) { text_.append(reinterpret_cast<const char*>(&d), sizeof d); }
  void Text(std::string_view text) {
    Number(static_cast<int64_t>(text.size()));
    text_.append(text);
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

// Reads what a Writer wrote. What is not there reads as 0 and empty, and good() says so.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}
  int64_t Number();
  double Real();
  std::string Text();
  // A number of things that take a byte at least.
  size_t Count();
  bool good() const { return good_; }

 private:
  bool Raw(void* to, size_t bytes);

  std::string_view rest_;
  bool good_ = true;
};

struct Message {
  int64_t kind = 0;
  std::string text;
  std::vector<Memory> memories;
};

class Channel {
 public:
  explicit Channel(int fd) : fd_(fd) {}
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel();

  int fd() const { return fd_; }
  bool Send(int64_t kind, std::string_view text, const std::vector<const Memory*>& memories = {});
  // Waits for the next message.
  bool Receive(Message* message);

 private:
  bool SendAll(const void* from, size_t bytes);
  bool ReceiveAll(void* to, size_t bytes);

  const int fd_;
};

// The host's requests and their answers: each request has one, but kFree has none. Before it
// answers kRun or kRestore, a worker may ask once for the ONNX model of the group with kWantOnnx,
// which has no text; the answer is kOnnx, with the model as memory where there is one.
enum Kind : int64_t {
  kOpen = 1,
  kTakes,
  kCompile,
  kRun,
  kAnswer,
  kFree,
  kClose,
  kFingerprint,
  kSave,
  kRestore,  // text and first memory as with kCompile, and the bytes that kSave gave
  kWantOnnx,
  kOnnx,
};

}  // namespace heddle_process
