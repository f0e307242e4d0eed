// heddle cache: what engines have compiled and left in a folder.
#include <algorithm>
#include <cstdio>
#include <iostream>

#include "heddle/engine.h"
#include "tools/commands.h"
#include "tools/json_output.h"

namespace heddle::tools {
namespace {

struct CacheOptions {
  std::string directory;
  bool json = false, clean = false;
  int max_mb = -1;  // -1: not said
};

std::string SizeText(int64_t bytes) {
  const bool large = bytes >= 1 << 20;
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %s",
                static_cast<double>(bytes) / (large ? 1 << 20 : 1 << 10), large ? "MB" : "KB");
  return text;
}

std::string AgeText(int64_t seconds) {
  constexpr int64_t kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour;
  if (seconds < 2 * kMinute) return std::to_string(seconds) + " s";
  if (seconds < 2 * kHour) return std::to_string(seconds / kMinute) + " min";
  if (seconds < 2 * kDay) return std::to_string(seconds / kHour) + " h";
  return std::to_string(seconds / kDay) + " days";
}

std::string Count(int64_t n, const std::string& one) {
  return std::to_string(n) + " " + one + (n == 1 ? "" : "s");
}

void PrintText(const EngineCacheContents& contents, const EngineCacheCleaned* cleaned) {
  if (cleaned != nullptr)
    std::cout << Count(cleaned->files, "file") << " removed, " << SizeText(cleaned->bytes) << "\n";
  const int64_t answers = std::count_if(contents.entries.begin(), contents.entries.end(),
                                        [](const EngineCacheEntry& e) { return e.answers; });
  std::cout << Count(static_cast<int64_t>(contents.entries.size()) - answers, "module");
  if (answers > 0) std::cout << " and answers about " << Count(answers, "group");
  std::cout << ", " << SizeText(contents.bytes) << "\n";
  for (const EngineCacheEntry& entry : contents.entries) {
    std::cout << entry.file.substr(0, 12) << "  " << SizeText(entry.bytes) << ", used "
              << AgeText(entry.age_s) << " ago: ";
    if (entry.damaged)
      std::cout << "damaged, or of another version\n";
    else
      std::cout << (entry.answers ? "answers about " : "") << Count(entry.operators, "operator")
                << " of target " << entry.target << " for engine " << entry.engine << " ("
                << entry.fingerprint << ")\n";
  }
  if (contents.unfinished > 0)
    std::cout << Count(contents.unfinished, "file")
              << " being written, or left behind by a process that was ended\n";
  if (contents.others > 0)
    std::cout << "the folder holds " << Count(contents.others, "name")
              << " besides, which the cache leaves alone\n";
}

void PrintJson(const CacheOptions& options, const EngineCacheContents& contents,
               const EngineCacheCleaned* cleaned) {
  Json json = NewJson("cache");
  json["directory"] = options.directory;
  json["bytes"] = contents.bytes;
  json["entries"] = Json::array();
  for (const EngineCacheEntry& entry : contents.entries)
    json["entries"].push_back({{"file", entry.file},
                               {"bytes", entry.bytes},
                               {"age_s", entry.age_s},
                               {"answers", entry.answers},
                               {"damaged", entry.damaged},
                               {"engine", entry.engine},
                               {"target", entry.target},
                               {"fingerprint", entry.fingerprint},
                               {"operators", entry.operators}});
  json["unfinished"] = contents.unfinished;
  json["others"] = contents.others;
  if (cleaned != nullptr) json["removed"] = {{"files", cleaned->files}, {"bytes", cleaned->bytes}};
  WriteJson(json);
}

Status Show(const CacheOptions& options) {
  EngineCacheCleaned cleaned;
  const bool cleans = options.clean || options.max_mb >= 0;
  if (cleans) {
    const int64_t most = options.clean ? 0 : static_cast<int64_t>(options.max_mb) << 20;
    HEDDLE_ASSIGN_OR_RETURN(cleaned, CleanEngineCache(options.directory, most));
  }
  HEDDLE_ASSIGN_OR_RETURN(const EngineCacheContents contents, ListEngineCache(options.directory));
  const EngineCacheCleaned* const said = cleans ? &cleaned : nullptr;
  options.json ? PrintJson(options, contents, said) : PrintText(contents, said);
  return Status::Ok();
}

}  // namespace

void AddCache(Command root, Action& chosen) {
  auto options = std::make_shared<CacheOptions>();
  Command app = root.add_command("cache", "list or clean what engines have compiled");
  app.add_option("DIR", options->directory, "the folder that --engine-cache names")
      .required()
      .type_name("");
  const Option clean = app.add_flag("--clean", options->clean, "remove all of it");
  app.add_option("--max-mb", options->max_mb,
                 "remove what is damaged or was left behind, then what was not used for longest, "
                 "until the rest takes no more than that")
      .type_name("MB")
      .not_negative()
      .excludes(clean);
  app.add_flag("--json", options->json, "one JSON object instead of text");
  app.footer(
      "Files that are none of the cache's are left alone.\n"
      "Example:\n  heddle cache ~/.cache/heddle-engines --max-mb 500");
  app.on_chosen([options, &chosen] { chosen = [options] { return Show(*options); }; });
}

}  // namespace heddle::tools
