// heddle run-cases: runs a list of operator cases.
//
// The cases run in a child process, so that one that crashes or does not end costs only itself: the
// parent reports it and starts another child behind it; with --isolate there is a child for each.
// Both see which case is running in a page of
// shared memory. The parent has no threads, hence fork() is safe.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <new>

#include "tools/cases/case_runner.h"
#include "tools/commands.h"
#include "tools/options.h"

namespace heddle::tools {
namespace {

struct Options {
  ModelOptions run;
  std::string list;
  double limit_s = 20;
  bool isolate = false;
};

struct Item {
  std::string directory, out;

  std::string name() const {
    const std::filesystem::path path(directory);
    return (path.has_filename() ? path : path.parent_path()).filename().string();
  }
};

// Messages from the child to its parent, which writes only while there is no child.
struct Shared {
  std::atomic<int64_t> next{0};        // the case that runs, or is to run
  std::atomic<int64_t> started_ms{0};  // of the steady clock, which both share
  std::atomic<int64_t> failed{0};
};

int64_t NowMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Result<std::vector<Item>> ReadList(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Status(StatusCode::kNotFound, path + ": no such file, or not readable");
  std::vector<Item> items;
  for (std::string line; std::getline(file, line);) {
    if (line.empty()) continue;
    const size_t tab = line.find('\t');
    if (tab == std::string::npos || tab == 0 || tab + 1 == line.size())
      return Status(
          StatusCode::kInvalidArgument,
          path + ": '" + line + "' is not a case directory, a tab and an output directory");
    items.push_back({line.substr(0, tab), line.substr(tab + 1)});
  }
  return items;
}

void Report(const Item& item, const std::string& what) {
  std::fprintf(stderr, "case %s: %s\n", item.name().c_str(), what.c_str());
  std::fflush(stderr);
}

// The error without the operator's call stack, its lines joined.
std::string OneLine(const Status& status) {
  std::string text = status.ToString();
  text.resize(std::min(text.size(), text.find("\n  created at:")));
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

// The child: runs the cases from progress->next on.
void RunRest(const Options& options, const std::vector<Item>& items, Shared* progress) {
  Executor executor(options.run.executor());
  const CompileOptions compile = options.run.compile();
  for (int64_t i = progress->next; i < static_cast<int64_t>(items.size()); ++i) {
    progress->next = i;
    progress->started_ms = NowMs();
    Status status;
    try {
      status = RunOneCase(executor, items[i].directory, items[i].out, compile, options.run.run());
    } catch (const std::exception& e) {
      status = Status(StatusCode::kInternal, std::string("exception: ") + e.what());
    }
    if (!status.ok()) {
      ++progress->failed;
      Report(items[i], OneLine(status));
    }
    progress->next = i + 1;
    if (options.isolate) return;
  }
}

[[noreturn]] void Child(const Options& options, const std::vector<Item>& items, Shared* progress) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  RunRest(options, items, progress);
  std::fflush(nullptr);
  _exit(0);
}

// Waits for the child's end; ends it itself when a case takes too long, and says so.
int WaitFor(pid_t child, const Options& options, const Shared& progress, bool* too_long) {
  const auto limit_ms = static_cast<int64_t>(options.limit_s * 1000);
  int status = 0;
  while (true) {
    const pid_t ended = waitpid(child, &status, *too_long ? 0 : WNOHANG);
    if (ended == child || (ended < 0 && errno != EINTR)) return status;
    if (!*too_long && NowMs() - progress.started_ms > limit_ms) {
      *too_long = true;
      kill(child, SIGKILL);
      continue;
    }
    usleep(2000);
  }
}

std::string HowItEnded(int status, bool too_long, double limit_s) {
  char text[64];
  if (too_long) {
    std::snprintf(text, sizeof(text), "not finished after %g s", limit_s);
  } else if (WIFSIGNALED(status)) {
    std::snprintf(text, sizeof(text), "crashed (signal %d)", WTERMSIG(status));
  } else {
    std::snprintf(text, sizeof(text), "ended the process (status %d)", WEXITSTATUS(status));
  }
  return text;
}

Status Run(const Options& options) {
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<Item> items, ReadList(options.list));
  const auto count = static_cast<int64_t>(items.size());
  void* page =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED)
    return Status(StatusCode::kResourceExhausted,
                  "no shared memory: " + std::string(strerror(errno)));
  auto* progress = new (page) Shared;
  while (progress->next < count) {
    progress->started_ms = NowMs();
    std::cout.flush();
    const pid_t child = fork();
    if (child < 0)
      return Status(StatusCode::kResourceExhausted, "fork: " + std::string(strerror(errno)));
    if (child == 0) Child(options, items, progress);
    bool too_long = false;
    const int status = WaitFor(child, options, *progress, &too_long);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    if (progress->next >= count) break;
    const Item& item = items[progress->next];
    Report(item, HowItEnded(status, too_long, options.limit_s));
    RemoveOutputs(item.out);  // the crash may have come between two files
    ++progress->failed;
    ++progress->next;
  }
  std::cout << "ran " << count << " cases, " << progress->failed << " failed\n";
  munmap(page, sizeof(Shared));
  return Status::Ok();
}

}  // namespace

void AddRunCases(Command root, Action& chosen) {
  auto options = std::make_shared<Options>();
  options->run.opt_level = 0;
  Command app = root.add_command("run-cases", "run a list of operator cases");
  app.add_option("--list", options->list,
                 "lines of a case directory, a tab and an existing output directory")
      .required()
      .type_name("FILE");
  app.add_option("--limit", options->limit_s, "end a case that takes longer")
      .type_name("SECONDS")
      .in_range(0.001, 86400.0)
      .show_default();
  app.add_flag("--isolate", options->isolate,
               "each case in a process of its own, so that none finds what another left in memory");
  AddExecutionOptions(app, &options->run);
  AddLimitOptions(app, &options->run);
  app.footer(
      "A case that fails, crashes or takes too long is reported on stderr and leaves no outputs;\n"
      "the others go on, and the exit status is 0.\n"
      "Example:\n  heddle run-cases --list cases.txt --threads 2");
  app.on_chosen([options, &chosen] { chosen = [options] { return Run(*options); }; });
}

}  // namespace heddle::tools
