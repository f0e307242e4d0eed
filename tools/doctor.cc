// heddle doctor: what this machine offers, what heddle was built with, and what to do about it.
#include <iomanip>
#include <iostream>
#include <sstream>

#include "heddle/host.h"
#include "tools/commands.h"
#include "tools/json_output.h"

namespace heddle::tools {
namespace {

std::string Join(const std::vector<std::string>& words, const char* none) {
  std::string text;
  for (const std::string& w : words) text += (text.empty() ? "" : " ") + w;
  return text.empty() ? none : text;
}

std::string Gigabytes(int64_t bytes) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(1) << static_cast<double>(bytes) / (1 << 30) << " GiB";
  return text.str();
}

// Advice for the user; empty when all is well.
std::vector<std::string> Advice(const HostReport& r) {
  std::vector<std::string> advice;
  if (!r.missing.empty())
    advice.push_back("this processor has no " + Join(r.missing, "") +
                     ": models cannot be run on it (x86-64 machines need AVX2 and FMA)");
  if (r.onednn.empty())
    advice.push_back(
        "oneDNN is not there: results are the same, convolutions and matrix products slower; "
        "run scripts/setup.sh and build again, or keep heddle's libraries beside it");
  if (r.processor_quota > 0 && r.processor_quota < r.allowed_processors) {
    std::ostringstream quota;
    quota << r.processor_quota;
    advice.push_back("the control group grants the time of " + quota.str() + " of " +
                     std::to_string(r.allowed_processors) + " processors: heddle uses " +
                     std::to_string(r.threads) +
                     " threads; more (--threads) would be stopped from time to time");
  }
  if (r.allowed_processors < r.processors)
    advice.push_back("this process may run on " + std::to_string(r.allowed_processors) + " of " +
                     std::to_string(r.processors) + " processors (taskset, or the container)");
  const int64_t room = r.memory_limit_bytes > 0 ? r.memory_limit_bytes : r.available_memory_bytes;
  if (room > 0 && room < (int64_t{1} << 30))
    advice.push_back(
        "there is less than 1 GiB of memory: ExecutorOptions::memory_limit makes a run "
        "fail with an error instead of being killed");
  if (!r.gpus.empty()) advice.push_back("there is a GPU; this build runs models on the processor");
  return advice;
}

void PrintDoctorJson(const HostReport& r) {
  Json json = NewJson("doctor");
  json["version"] = r.version;
  json["cpu"] = r.cpu;
  json["instruction_sets"] = r.instruction_sets;
  json["missing"] = r.missing;
  json["processors"] = r.processors;
  json["allowed_processors"] = r.allowed_processors;
  json["processor_quota"] = r.processor_quota > 0 ? Json(r.processor_quota) : Json();
  json["threads"] = r.threads;
  json["memory_bytes"] = r.memory_bytes;
  json["available_memory_bytes"] = r.available_memory_bytes;
  json["memory_limit_bytes"] = r.memory_limit_bytes > 0 ? Json(r.memory_limit_bytes) : Json();
  json["onednn"] = r.onednn.empty() ? Json() : Json(r.onednn);
  json["gpus"] = r.gpus;
  json["advice"] = Advice(r);
  WriteJson(json);
}

void PrintDoctorText(const HostReport& r) {
  auto line = [](const char* what, const std::string& text) {
    std::cout << std::left << std::setw(12) << what << text << "\n";
  };
  line("heddle", r.version);
  line("processor", r.cpu.empty() ? "unknown" : r.cpu);
  line("", Join(r.instruction_sets, "none of the instruction sets heddle looks for"));
  line("kernels", r.onednn.empty() ? "Eigen" : "oneDNN " + r.onednn + ", Eigen");
  line("threads",
       std::to_string(r.threads) + " of " + std::to_string(r.processors) + " processors");
  std::string memory = r.memory_bytes > 0 ? Gigabytes(r.memory_bytes) + ", " +
                                                Gigabytes(r.available_memory_bytes) + " available"
                                          : "unknown";
  if (r.memory_limit_bytes > 0)
    memory += ", the control group allows " + Gigabytes(r.memory_limit_bytes);
  line("memory", memory);
  line("GPU", Join(r.gpus, "none"));
  const auto advice = Advice(r);
  std::cout << "\n" << (advice.empty() ? "Everything is as it should be.\n" : "");
  for (const std::string& a : advice) std::cout << "- " << a << "\n";
}

Status Doctor(bool json) {
  const HostReport report = InspectHost();
  json ? PrintDoctorJson(report) : PrintDoctorText(report);
  return Status::Ok();
}

}  // namespace

void AddDoctor(Command root, Action& chosen) {
  Command app = root.add_command("doctor", "what this machine offers, and what to do about it");
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "one JSON object");
  app.footer("Examples:\n  heddle doctor\n  heddle doctor --json");
  app.on_chosen([=, &chosen] { chosen = [=] { return Doctor(*json); }; });
}

}  // namespace heddle::tools
