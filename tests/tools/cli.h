// Runs the command line tool that lies beside the test program.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace heddle::tools {

inline std::string ToolPath() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "heddle";
}

inline std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// A directory that goes away with the object.
class TempDirectory {
 public:
  TempDirectory() {
    std::string pattern = std::filesystem::temp_directory_path() / "heddle_cli_XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~TempDirectory() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

struct Outcome {
  int status = -1;  // 1000 + signal when it was killed by one
  std::string out, err;
};

// Runs a command through the shell.
inline Outcome RunCommand(const std::string& words) {
  const TempDirectory directory;
  const std::string command =
      words + " >'" + (directory / "out") + "' 2>'" + (directory / "err") + "' </dev/null";
  const int status = std::system(command.c_str());  // NOLINT(cert-env33-c): a test's own command
  Outcome outcome;
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  outcome.out = ReadFile(directory / "out");
  outcome.err = ReadFile(directory / "err");
  return outcome;
}

// Runs `heddle <arguments>`.
inline Outcome Heddle(const std::string& arguments) {
  return RunCommand("'" + ToolPath() + "' " + arguments);
}

}  // namespace heddle::tools
