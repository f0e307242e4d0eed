// Many processes with one folder, some of which are killed at any moment: what the others get is
// right, and what is left is clean.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <random>
#include <thread>

#include "heddle/engine.h"
#include "tests/support/files.h"

extern char** environ;

namespace heddle::testing {
namespace {

pid_t Start(const std::string& folder, int seed, int programs, int64_t max_bytes) {
  std::vector<std::string> words = {HEDDLE_CACHE_WORKER,      folder,
                                    HEDDLE_REFERENCE_ENGINE,  std::to_string(seed),
                                    std::to_string(programs), std::to_string(max_bytes)};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = -1;
  EXPECT_EQ(posix_spawn(&child, words[0].c_str(), &actions, nullptr, arguments.data(), environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  return child;
}

// Its exit status; 1000 and the signal that ended it.
int WaitFor(pid_t child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

void ExpectClean(const std::string& folder, int64_t max_bytes) {
  // The next one that writes removes what killed ones left behind.
  ASSERT_TRUE(CleanEngineCache(folder, max_bytes).ok());
  const auto contents = ListEngineCache(folder);
  ASSERT_TRUE(contents.ok()) << contents.status().ToString();
  EXPECT_EQ(contents->unfinished, 0);
  EXPECT_EQ(contents->others, 0);
  EXPECT_LE(contents->bytes, max_bytes);
  EXPECT_GT(contents->entries.size(), 0u);
}

TEST(CacheProcesses, MayBeKilledAtAnyMoment) {
  const int kKills = Repeats("HEDDLE_CACHE_KILLS", 30);
  constexpr int64_t kFew = 15000;  // bytes, so that files are removed all the time
  for (const int64_t max_bytes : {int64_t{1} << 30, kFew}) {
    const TempDir dir;
    const std::string folder = dir / "cache";
    std::mt19937 random(11);
    constexpr int kProcesses = 10;
    std::vector<pid_t> running;
    int seed = 0;
    for (int k = 0; k < kProcesses; ++k)
      running.push_back(Start(folder, seed++, 100000, max_bytes));
    for (int kill = 0; kill < kKills; ++kill) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 100000));
      pid_t& one = running[random() % kProcesses];
      ASSERT_EQ(::kill(one, SIGKILL), 0);
      ASSERT_EQ(WaitFor(one), 1000 + SIGKILL) << "it had ended by itself";
      one = Start(folder, seed++, 100000, max_bytes);
      const auto contents = ListEngineCache(folder);
      for (size_t e = 0; contents.ok() && e < contents->entries.size(); ++e)
        ASSERT_FALSE(contents->entries[e].damaged);
    }
    for (const pid_t one : running) {
      ::kill(one, SIGKILL);
      EXPECT_EQ(WaitFor(one), 1000 + SIGKILL) << "it had ended by itself";
    }
    ExpectClean(folder, max_bytes);
    EXPECT_EQ(WaitFor(Start(folder, seed, 24, max_bytes)), 0);
    if (max_bytes > kFew) {
      EXPECT_GT(ListEngineCache(folder)->bytes, 2 * kFew);
    }
  }
}

TEST(CacheProcesses, ShareAFolder) {
  const TempDir dir;
  const std::string folder = dir / "cache";
  std::vector<pid_t> running;
  for (int k = 0; k < 10; ++k) running.push_back(Start(folder, k, 12, 15000));
  for (const pid_t one : running) EXPECT_EQ(WaitFor(one), 0);
  ExpectClean(folder, 15000);
}

// Somebody damages files all the time.
TEST(CacheProcesses, BearDamage) {
  const TempDir dir;
  const std::string folder = dir / "cache";
  std::mt19937 random(3);
  std::vector<pid_t> running;
  for (int k = 0; k < 3; ++k) running.push_back(Start(folder, k, 60, int64_t{1} << 30));
  for (const pid_t one : running) {
    int status = 0;
    while (::waitpid(one, &status, WNOHANG) == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      const auto contents = ListEngineCache(folder);
      if (!contents.ok() || contents->entries.empty()) continue;
      const std::string file =
          folder + "/" + contents->entries[random() % contents->entries.size()].file;
      std::error_code error;
      const auto size = std::filesystem::file_size(file, error);
      if (error || size == 0) continue;
      if (random() % 2 == 0) {
        std::filesystem::resize_file(file, random() % size, error);
        continue;
      }
      std::fstream damaged(file, std::ios::in | std::ios::out | std::ios::binary);
      damaged.seekp(static_cast<std::streamoff>(random() % size));
      damaged.put(static_cast<char>(random()));
    }
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
}

}  // namespace
}  // namespace heddle::testing
