// Replacing a file: whatever system call fails, and at whichever of them the process dies, there is
// the old or the new file, whole.
#include "core/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/files.h"

namespace {

// What the calls below do: nothing unusual unless `at` counts down to zero.
struct Fault {
  enum What { kNone, kDie, kFail } what = kNone;
  int at = 0;
  int error = ENOSPC;
  bool log = false;
} fault;
// Kept as characters: a child that dies has no time for more.
std::string calls;

// True when the call has to fail. Half of what a write was asked for is written before death.
bool Trip(char name, int fd = -1, const void* bytes = nullptr, size_t n = 0) {
  if (fault.log) calls += name;
  if (fault.what == Fault::kNone || fault.at-- > 0) return false;
  if (fault.what == Fault::kDie) {
    if (bytes != nullptr) (void)!syscall(SYS_write, fd, bytes, n / 2);
    syscall(SYS_exit_group, 9);
  }
  fault.what = Fault::kNone;
  errno = fault.error;
  return true;
}

}  // namespace

// The library's calls come here: definitions of the program go before those of the C library.
extern "C" {
ssize_t write(int fd, const void* bytes, size_t n) {
  if (fd > 2 && Trip('w', fd, bytes, n)) return -1;
  // In small pieces, so that there are several calls.
  const size_t piece = fd > 2 && (fault.what != Fault::kNone || fault.log) ? (n + 2) / 3 : n;
  return syscall(SYS_write, fd, bytes, piece);
}
int fsync(int fd) { return Trip('s') ? -1 : static_cast<int>(syscall(SYS_fsync, fd)); }
int rename(const char* from, const char* to) noexcept {
  return Trip('r') ? -1 : static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}
}

namespace heddle::testing {
namespace {

namespace fs = std::filesystem;

const std::string kOld(1000, 'o'), kNew(3000, 'n');

int FilesIn(const std::string& directory) {
  return static_cast<int>(
      std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
}

TEST(FileBytes, HoldsTheWholeFile) {
  const TempDir dir;
  // Nothing, small pages, a huge one that is not full, and more than one.
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{100'000}, size_t{600'000}, size_t{5'000'001}}) {
    std::string bytes(size, '\0');
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7 + i / 1000);
    WriteAll(dir / "file", bytes);
    auto read = FileBytes::Read(dir / "file");
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    const FileBytes moved(*std::move(read));
    EXPECT_TRUE(moved.view() == bytes) << size;
  }
  EXPECT_EQ(FileBytes::Read(dir / "none").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(FileBytes::Read(dir.path()).status().code(), StatusCode::kInvalidArgument);
}

class ReplaceFileTest : public ::testing::Test {
 protected:
  void SetUp() override { WriteAll(path_, kOld); }
  void TearDown() override { fault = Fault(); }
  TempDir dir_;
  const std::string path_ = dir_ / "file";
};

TEST_F(ReplaceFileTest, FlushesTheDataThenTheName) {
  calls.clear();
  fault.log = true;
  const Status s = ReplaceFile(path_, kNew);
  fault.log = false;
  ASSERT_TRUE(s.ok()) << s.ToString();
  EXPECT_THAT(calls, ::testing::MatchesRegex("w+srs"));
  EXPECT_GT(calls.size(), 4u) << "several writes are expected";
  EXPECT_EQ(ReadAll(path_), kNew);
  EXPECT_EQ(FilesIn(dir_.path()), 1);
}

TEST_F(ReplaceFileTest, AFailedCallLeavesTheOldFileAndNothingElse) {
  calls.clear();
  fault.log = true;
  ASSERT_TRUE(ReplaceFile(path_, kNew).ok());
  fault.log = false;
  const int rename_at = static_cast<int>(calls.find('r'));
  for (int at = 0; at <= rename_at; ++at) {
    WriteAll(path_, kOld);
    fault.what = Fault::kFail;
    fault.at = at;
    const Status s = ReplaceFile(path_, kNew);
    fault.what = Fault::kNone;
    ASSERT_FALSE(s.ok()) << at;
    EXPECT_EQ(s.code(), StatusCode::kResourceExhausted) << s.ToString();
    EXPECT_THAT(s.message(), ::testing::HasSubstr(path_));
    EXPECT_THAT(s.message(), ::testing::HasSubstr("No space left"));
    EXPECT_EQ(ReadAll(path_), kOld) << "call " << at;
    EXPECT_EQ(FilesIn(dir_.path()), 1) << "call " << at;
  }
  // The directory's own flush: the new file is there, but might not outlast a power cut.
  fault.what = Fault::kFail;
  fault.at = rename_at + 1;
  fault.error = EIO;
  const Status s = ReplaceFile(path_, kNew);
  EXPECT_EQ(s.code(), StatusCode::kDataLoss);
  EXPECT_EQ(ReadAll(path_), kNew);
}

TEST_F(ReplaceFileTest, DevicesAreWrittenToAndKeepTheirNames) {
  for (const char* device : {"/dev/full", "/dev/null"}) {
    std::filesystem::remove(path_);
    std::filesystem::create_symlink(device, path_);
    const Status s = ReplaceFile(path_, kNew);
    EXPECT_EQ(s.ok(), std::string(device) == "/dev/null") << s.ToString();
    EXPECT_EQ(std::filesystem::read_symlink(path_), device);
  }
}

// Nobody reads: an error at once, not a wait.
TEST_F(ReplaceFileTest, APipeWithoutAReader) {
  std::filesystem::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const Status s = ReplaceFile(path_, kNew);
  EXPECT_EQ(s.code(), StatusCode::kNotFound) << s.ToString();
  EXPECT_THAT(s.message(), ::testing::HasSubstr(path_));
}

// More than a pipe holds: the writer waits for the reader, as for a file of any size.
TEST_F(ReplaceFileTest, APipeIsWrittenToItsEnd) {
  std::filesystem::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const std::string bytes(300000, 'x');
  const int fd = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(fd, 0);
  Status s;
  std::thread writer([&] { s = ReplaceFile(path_, bytes); });
  std::string got;
  ASSERT_EQ(::fcntl(fd, F_SETFL, 0), 0);
  std::string piece(4096, 0);
  while (got.size() < bytes.size()) {
    const ssize_t n = ::read(fd, piece.data(), piece.size());
    ASSERT_GE(n, 0);
    got.append(piece, 0, static_cast<size_t>(n));
  }
  writer.join();
  ::close(fd);
  EXPECT_TRUE(s.ok()) << s.ToString();
  EXPECT_TRUE(got == bytes);
}

// The reader goes: the writer gets an error, and the process no signal. One that it had waiting
// stays.
TEST_F(ReplaceFileTest, APipeWhoseReaderHasGone) {
  std::filesystem::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  sigset_t blocked, pending;
  for (const bool waits : {false, true}) {
    const int fd = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK);
    ASSERT_GE(fd, 0);
    FileReplacement file(path_);
    ASSERT_TRUE(file.Open().ok());
    ::close(fd);
    ::sigemptyset(&blocked);
    ::sigaddset(&blocked, SIGPIPE);
    if (waits) {
      ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &blocked, nullptr), 0);
      ::pthread_kill(::pthread_self(), SIGPIPE);
    }
    const Status s = file.Append(kNew);
    EXPECT_EQ(s.code(), StatusCode::kDataLoss) << s.ToString();
    EXPECT_THAT(s.message(), ::testing::HasSubstr("Broken pipe"));
    EXPECT_THAT(s.message(), ::testing::Not(::testing::HasSubstr("unchanged")));
    ASSERT_EQ(::sigpending(&pending), 0);
    EXPECT_EQ(::sigismember(&pending, SIGPIPE), waits ? 1 : 0);
  }
  constexpr timespec kAtOnce{};
  EXPECT_EQ(::sigtimedwait(&blocked, nullptr, &kAtOnce), SIGPIPE);
  ::pthread_sigmask(SIG_UNBLOCK, &blocked, nullptr);
}

TEST_F(ReplaceFileTest, DeathAtAnyCallLeavesOneOfTheTwoFiles) {
  int died = 0;
  for (int at = 0;; ++at) {
    WriteAll(path_, kOld);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      fault.what = Fault::kDie;
      fault.at = at;
      const bool ok = ReplaceFile(path_, kNew).ok();
      syscall(SYS_exit_group, ok ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    const std::string found = ReadAll(path_);
    EXPECT_TRUE(found == kOld || found == kNew)
        << "call " << at << ": " << found.size() << " bytes";
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == 0) break;  // it had fewer calls than that
    ASSERT_EQ(WEXITSTATUS(status), 9);
    ++died;
  }
  EXPECT_GE(died, 6);
  // What killed processes left aside does not disturb.
  EXPECT_TRUE(ReplaceFile(path_, kOld).ok());
  EXPECT_EQ(ReadAll(path_), kOld);
}

TEST_F(ReplaceFileTest, AnAbandonedReplacementIsGone) {
  {
    FileReplacement file(path_);
    ASSERT_TRUE(file.Open().ok());
    ASSERT_TRUE(file.Append(kNew).ok());
    EXPECT_EQ(FilesIn(dir_.path()), 2);
  }
  EXPECT_EQ(ReadAll(path_), kOld);
  EXPECT_EQ(FilesIn(dir_.path()), 1);
}

TEST_F(ReplaceFileTest, NeedsADirectory) {
  EXPECT_EQ(ReplaceFile(dir_ / "none/file", kNew).code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace heddle::testing
