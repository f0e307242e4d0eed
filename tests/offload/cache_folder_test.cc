// The folder of a cache: what is damaged, in the way, too large or somebody else's.
#include "offload/cache_folder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>

#include "offload/module_file.h"
#include "tests/support/files.h"

namespace heddle::testing {
namespace {

namespace fs = std::filesystem;
using offload::CacheFolder;
using offload::ModuleKey;
using ::testing::HasSubstr;

constexpr int64_t kMuch = int64_t{1} << 40;

ModuleKey KeyOf(int number) {
  ModuleKey key;
  key.about = "engine e\ntarget t\nfingerprint f" + std::to_string(number) + "\n";
  offload::Digest digest;
  digest.AddText(key.about);
  key.digest = std::move(digest).Finish();
  return key;
}
std::string NameOf(int number) { return offload::ModuleFileName(KeyOf(number).digest); }

std::string BytesOf(int number, size_t count) {
  std::mt19937 random(static_cast<unsigned>(number));
  std::string bytes(count, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  return bytes;
}

class Cache : public ::testing::Test {
 protected:
  CacheFolder Open() {
    auto folder = CacheFolder::Open(path_, CacheFolder::Make::kYes);
    EXPECT_TRUE(folder.ok()) << folder.status().ToString();
    return *std::move(folder);
  }
  Status Write(int number, const std::string& bytes, int64_t max_bytes = kMuch) {
    return Open().Write(KeyOf(number), number, max_bytes, [&](const CacheFolder::Sink& sink) {
      // In pieces of several sizes.
      for (size_t at = 0, piece = 1; at < bytes.size(); at += piece, piece = piece * 3 + 1)
        if (!sink(bytes.data() + at, std::min(piece, bytes.size() - at)))
          return Status(StatusCode::kInternal, "the sink refuses");
      return Status::Ok();
    });
  }
  // What is read; "none" or "damaged".
  std::string Read(int number) {
    const auto found = Open().Read(KeyOf(number));
    if (!found.bytes) return found.damaged ? "damaged" : "none";
    return {static_cast<const char*>(found.bytes->data()), found.count};
  }
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  EngineCacheContents List() { return Open().List(); }
  void SetAge(int number, int64_t seconds) {
    timespec times[2] = {};
    times[0].tv_sec = times[1].tv_sec = ::time(nullptr) - seconds;
    ASSERT_EQ(::utimensat(AT_FDCWD, File(NameOf(number)).c_str(), times, 0), 0);
  }

  const TempDir dir_;
  const std::string path_ = dir_ / "cache";
};

TEST_F(Cache, GivesBackWhatItWasGiven) {
  for (const size_t count : {0, 1, 100, 1 << 20, (1 << 20) + 1, 5 << 20}) {
    const auto number = static_cast<int>(count);
    const std::string bytes = BytesOf(number, count);
    EXPECT_EQ(Read(number), "none");
    ASSERT_TRUE(Write(number, bytes).ok());
    EXPECT_TRUE(Read(number) == bytes) << count;
    EXPECT_EQ(List().entries[0].operators, number);
  }
}

TEST_F(Cache, BelievesNoCutFile) {
  ASSERT_TRUE(Write(1, BytesOf(1, 40)).ok());
  const std::string whole = ReadAll(File(NameOf(1)));
  for (size_t size = 0; size < whole.size(); ++size) {
    WriteAll(File(NameOf(1)), whole.substr(0, size));
    ASSERT_EQ(Read(1), "damaged") << size;
    ASSERT_TRUE(List().entries[0].damaged) << size;
  }
  WriteAll(File(NameOf(1)), whole + "x");
  EXPECT_EQ(Read(1), "damaged");
  WriteAll(File(NameOf(1)), whole);
  EXPECT_EQ(Read(1), BytesOf(1, 40));
}

TEST_F(Cache, BelievesNoFileWithAnotherBit) {
  ASSERT_TRUE(Write(1, BytesOf(1, 40)).ok());
  const std::string whole = ReadAll(File(NameOf(1)));
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string other = whole;
    other[bit / 8] = static_cast<char>(other[bit / 8] ^ (1 << (bit % 8)));
    WriteAll(File(NameOf(1)), other);
    ASSERT_EQ(Read(1), "damaged") << "bit " << bit;
    ASSERT_TRUE(List().entries[0].damaged) << "bit " << bit;
  }
}

TEST_F(Cache, BelievesNoOtherDamage) {
  std::mt19937 random(7);
  const auto below = [&](size_t n) { return random() % n; };
  ASSERT_TRUE(Write(1, BytesOf(1, 3 << 20)).ok());
  ASSERT_TRUE(Write(2, BytesOf(2, 3 << 20)).ok());
  const std::string whole = ReadAll(File(NameOf(1))), second = ReadAll(File(NameOf(2)));
  for (int round = 0; round < 60; ++round) {
    std::string other = whole;
    const size_t at = below(whole.size() - 4096), count = 1 + below(4096);
    switch (round % 4) {
      case 0:  // a block that never reached the disk
        std::fill_n(other.begin() + static_cast<long>(at), count, '\0');
        break;
      case 1:
        other.erase(at, count);
        break;
      case 2:
        other.insert(at, BytesOf(round, count));
        break;
      default:  // the other file's end
        other = whole.substr(0, at) + second.substr(at);
    }
    WriteAll(File(NameOf(1)), other);
    ASSERT_EQ(Read(1), "damaged") << round;
  }
  WriteAll(File(NameOf(1)), second);  // whole, and of another key
  EXPECT_EQ(Read(1), "damaged");
  ASSERT_TRUE(Write(1, "new").ok());
  EXPECT_EQ(Read(1), "new");
}

// Two keys of one digest, which nobody has seen: what they are about still tells them apart.
TEST_F(Cache, ComparesTheWholeKey) {
  ASSERT_TRUE(Write(1, "one").ok());
  ModuleKey other = KeyOf(1);
  other.about += "option a=b\n";
  EXPECT_FALSE(Open().Read(other).bytes);
}

TEST_F(Cache, KeepsToItsSize) {
  const int64_t one = 1000;
  ASSERT_TRUE(Write(0, BytesOf(0, one)).ok());
  const int64_t most = 5 * List().bytes + 100;
  for (int k = 1; k < 20; ++k) {
    ASSERT_TRUE(Write(k, BytesOf(k, one), most).ok());
    SetAge(k, 1000 - k);
    EXPECT_LE(List().bytes, most);
    EXPECT_NE(Read(1), "none");  // which counts as a use
  }
  EXPECT_EQ(List().entries.size(), 5u);
  EXPECT_NE(Read(19), "none");
  EXPECT_EQ(Read(2), "none");
  // One that is as large as all, one that is larger, and one that replaces itself.
  ASSERT_TRUE(Write(30, BytesOf(30, static_cast<size_t>(most) - 200), most).ok());
  EXPECT_EQ(List().entries.size(), 1u);
  const Status status = Write(31, BytesOf(31, static_cast<size_t>(most) + 1), most);
  EXPECT_EQ(status.code(), StatusCode::kOutOfRange);
  EXPECT_THAT(status.message(), HasSubstr("larger than all files may be together"));
  ASSERT_TRUE(Write(30, BytesOf(32, static_cast<size_t>(most) - 200), most).ok());
  EXPECT_EQ(List().entries.size(), 1u);
  EXPECT_EQ(List().unfinished, 0);
}

TEST_F(Cache, WorksWithAClockThatIsWrong) {
  for (const int k : {1, 2, 3}) ASSERT_TRUE(Write(k, BytesOf(k, 1000)).ok());
  SetAge(1, -1000000);                   // used in days to come
  SetAge(2, int64_t{60} * 365 * 86400);  // before there were clocks
  for (const EngineCacheEntry& entry : List().entries) EXPECT_GE(entry.age_s, 0);
  for (const int k : {1, 2, 3}) EXPECT_EQ(Read(k), BytesOf(k, 1000));
  const int64_t most = List().bytes;
  for (int k = 4; k < 10; ++k) {
    ASSERT_TRUE(Write(k, BytesOf(k, 1000), most).ok());
    EXPECT_EQ(Read(k), BytesOf(k, 1000));
    EXPECT_LE(List().bytes, most + 20);
  }
}

TEST_F(Cache, RemovesWhatWasLeftBehindAndNothingElse) {
  ASSERT_TRUE(Write(1, "one").ok());
  const std::string dead = File("writing-0123456789abcdef"),
                    live = File("writing-fedcba9876543210");
  WriteAll(dead, "half");
  WriteAll(live, "half");
  const int fd = ::open(live.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(fd, LOCK_EX), 0);  // as its writer does
  WriteAll(dir_ / "outside", "outside");
  const std::string kOthers[] = {"writing-0123", "notes.txt", "x.module", NameOf(7) + ".bak",
                                 "writing-ABCDEF0123456789"};
  for (const std::string& name : kOthers) WriteAll(File(name), "kept");
  fs::create_symlink(dir_ / "outside", File(NameOf(5)));
  fs::create_symlink(dir_ / "outside", File("writing-00000000000000aa"));
  fs::create_symlink(File(NameOf(1)), File(NameOf(8)));
  fs::create_hard_link(dir_ / "outside", File(NameOf(6)));
  fs::create_directory(File(NameOf(9)));
  ASSERT_EQ(::mkfifo(File(NameOf(10)).c_str(), 0600), 0);
  EXPECT_EQ(List().unfinished, 2);
  EXPECT_EQ(List().others, 11);
  EXPECT_EQ(List().entries.size(), 1u);
  const auto time = fs::last_write_time(dir_ / "outside");
  for (const int k : {5, 6, 8, 9, 10}) {
    EXPECT_EQ(Read(k), "none");
    const Status status = Write(k, "mine");
    EXPECT_THAT(status.message(), HasSubstr("is in the way and none of the cache's files"));
  }
  EXPECT_FALSE(fs::exists(dead));
  EXPECT_TRUE(fs::exists(live));
  const auto cleaned = Open().Clean(0);
  ASSERT_TRUE(cleaned.ok()) << cleaned.status().ToString();
  EXPECT_EQ(cleaned->files, 1);
  EXPECT_TRUE(fs::exists(live));
  for (const std::string& name : kOthers) EXPECT_EQ(ReadAll(File(name)), "kept");
  for (const int k : {5, 6, 8, 9, 10})
    EXPECT_TRUE(fs::exists(fs::symlink_status(File(NameOf(k))))) << k;
  EXPECT_TRUE(fs::is_symlink(File("writing-00000000000000aa")));
  EXPECT_EQ(ReadAll(dir_ / "outside"), "outside");
  EXPECT_EQ(fs::last_write_time(dir_ / "outside"), time);
  ::close(fd);
  EXPECT_EQ(Open().Clean(0)->files, 1);
  EXPECT_FALSE(fs::exists(live));
}

TEST_F(Cache, CleansDamageFirst) {
  for (const int k : {1, 2, 3}) ASSERT_TRUE(Write(k, BytesOf(k, 1000)).ok());
  WriteAll(File(NameOf(2)), "nonsense");
  EXPECT_EQ(Open().Clean(kMuch)->files, 1);
  EXPECT_EQ(List().entries.size(), 2u);
  SetAge(1, 100);
  EXPECT_EQ(Open().Clean(List().bytes - 1)->files, 1);
  EXPECT_EQ(Read(1), "none");
  EXPECT_EQ(Read(3), BytesOf(3, 1000));
}

TEST_F(Cache, GivesUpALockThatIsKept) {
  (void)Open();
  const int fd = ::open(File("lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::flock(fd, LOCK_EX), 0);
  const Status status = Write(1, "one");
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("another process keeps it locked"));
  EXPECT_EQ(Read(1), "none");  // readers do not wait
  ::close(fd);
  EXPECT_TRUE(Write(1, "one").ok());
}

TEST_F(Cache, LocksNoFileElsewhere) {
  (void)Open();
  fs::create_symlink(dir_ / "outside", File("lock"));
  EXPECT_FALSE(Write(1, "one").ok());
  EXPECT_FALSE(fs::exists(dir_ / "outside"));
}

// ---- folders that cannot be used ----------------------------------------------------------------

std::string WhyNot(const std::string& path) {
  return CacheFolder::Open(path, CacheFolder::Make::kYes).status().message();
}

TEST(CacheFolders, AreThisUsersAlone) {
  const TempDir dir;
  fs::create_directory(dir / "open");
  ASSERT_EQ(::chmod((dir / "open").c_str(), 0777), 0);
  EXPECT_THAT(WhyNot(dir / "open"), HasSubstr("others may write to this folder"));
  EXPECT_THAT(WhyNot("/tmp"), HasSubstr("others may write to this folder"));
  ASSERT_EQ(::chmod((dir / "open").c_str(), 0755), 0);
  EXPECT_EQ(WhyNot(dir / "open"), "");
  WriteAll(dir / "file", "");
  EXPECT_THAT(WhyNot(dir / "file"), HasSubstr("cannot be opened as a folder"));
  EXPECT_THAT(WhyNot(dir / "file/below"), HasSubstr("cannot be opened as a folder"));
  EXPECT_THAT(WhyNot("/proc/nowhere/cache"), HasSubstr("cannot be opened as a folder"));
  EXPECT_THAT(WhyNot(std::string("a\0b", 3)), HasSubstr("NUL"));
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown((dir / "open").c_str(), 65534, 65534), 0);
    EXPECT_THAT(WhyNot(dir / "open"), HasSubstr("others may write to this folder"));
  }
}

// Runs `work` in a process that it may change for itself. Its exit status: 0, or the line.
template <typename Fn>
int InAProcess(Fn&& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST_F(Cache, SaysThatTheDiskIsFull) {
  ASSERT_TRUE(Write(1, BytesOf(1, 5000)).ok());
  for (const size_t most : {0, 50, 96, 1000, 20000}) {  // of a file: a stand-in for a full disk
    EXPECT_EQ(InAProcess([&] {
                const rlimit limit = {most, most};
                if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return __LINE__;
                const Status status = Write(2, BytesOf(2, 30000));
                if (status.code() != StatusCode::kResourceExhausted) return __LINE__;
                if (status.message().find("File too large") == std::string::npos) return __LINE__;
                if (Read(1) != BytesOf(1, 5000)) return __LINE__;
                return Read(2) == "none" ? 0 : __LINE__;
              }),
              0)
        << most;
    EXPECT_EQ(List().unfinished, 0);
    EXPECT_EQ(List().entries.size(), 1u);
  }
}

TEST_F(Cache, BearsAFileSystemWithoutRoom) {
  constexpr int kCannot = 100;  // such a file system cannot be had here
  fs::create_directory(path_);
  const int status = InAProcess([&] {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", path_.c_str(), "tmpfs", 0, "size=16k,mode=700") != 0)
      return kCannot;
    if (!Write(1, BytesOf(1, 3000)).ok()) return __LINE__;
    for (int round = 0; round < 3; ++round) {
      const Status full = Write(2, BytesOf(2, 30000));
      if (full.code() != StatusCode::kResourceExhausted) return __LINE__;
      if (full.message().find("No space left") == std::string::npos) return __LINE__;
      if (Read(1) != BytesOf(1, 3000) || Read(2) != "none") return __LINE__;
      if (List().unfinished != 0 || List().entries.size() != 1) return __LINE__;
    }
    return Write(3, BytesOf(3, 3000)).ok() ? 0 : __LINE__;
  });
  if (status == kCannot) GTEST_SKIP() << "needs the right to mount";
  EXPECT_EQ(status, 0);
}

TEST_F(Cache, ReadsWhereNobodyMayWrite) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be somebody else";
  ASSERT_TRUE(Write(1, BytesOf(1, 5000)).ok());
  for (const std::string& path : {path_, File("lock"), File(NameOf(1))})
    ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
  ASSERT_EQ(::chmod(dir_.path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(path_.c_str(), 0500), 0);
  EXPECT_EQ(InAProcess([&] {
              if (::setgid(65534) != 0 || ::setuid(65534) != 0) return __LINE__;
              if (Read(1) != BytesOf(1, 5000)) return __LINE__;
              const Status status = Write(2, "two");
              if (status.message().find("Permission denied") == std::string::npos) return __LINE__;
              return Read(2) == "none" ? 0 : __LINE__;
            }),
            0);
}

}  // namespace
}  // namespace heddle::testing
