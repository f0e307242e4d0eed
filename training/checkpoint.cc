#include "training/checkpoint.h"

#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>

#include "heddle/generator.h"
#include "tools/directory.h"
#include "tools/values/npy.h"

namespace heddle::training {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using tools::EntriesOf;
using tools::Flush;
using tools::ReadNpy;
using tools::WriteDurable;
using tools::WriteNpy;

constexpr std::string_view kPrefix = "step-", kUnfinished = ".unfinished-", kRemoved = ".removed-";
constexpr const char *kParameters = "persistables.pdiparams", *kState = "train.json";
constexpr int kFormat = 2;  // 1 had no checksum of train.json
constexpr std::string_view kOwnSum = "\"checksum\": \"";
constexpr size_t kSumDigits = 16;

Status Damaged(const std::string& path, const std::string& why) {
  return Status(StatusCode::kDataLoss, path + ": " + why);
}

std::string Hex(uint64_t x) {
  char text[20];
  std::snprintf(text, sizeof(text), "%016" PRIx64, x);
  return text;
}

// Size and XXH64 of a file, as one text.
Result<std::string> Fingerprint(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Damaged(path, "is missing");
  XXH64_state_t* state = XXH64_createState();
  XXH64_reset(state, 0);
  std::vector<char> block(1 << 20);
  uint64_t size = 0;
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())), file.gcount() > 0) {
    XXH64_update(state, block.data(), static_cast<size_t>(file.gcount()));
    size += static_cast<uint64_t>(file.gcount());
  }
  const uint64_t hash = XXH64_digest(state);
  XXH64_freeState(state);
  return std::to_string(size) + " bytes, xxh64 " + Hex(hash);
}

std::string FetchFile(size_t k) { return "fetch_" + std::to_string(k) + ".npy"; }

}  // namespace

uint64_t HashOf(const Program& program) {
  const auto bytes = program.Serialize("paddle");
  return bytes.ok() ? XXH64(bytes->data(), bytes->size(), 0) : program.hash();
}

Status CheckpointDirectory::Open(const std::string& path, int keep) {
  path_ = path;
  keep_ = keep;
  std::error_code error;
  fs::create_directories(path, error);
  if (error)
    return Status(StatusCode::kInvalidArgument, path + ": cannot be made: " + error.message());
  HEDDLE_RETURN_IF_ERROR(lock_.Lock(path));
  RemoveLeftovers();
  return Status::Ok();
}

void CheckpointDirectory::RemoveLeftovers() const {
  std::error_code error;
  std::vector<fs::path> leftovers;
  for (const fs::path& entry : EntriesOf(path_)) {
    const std::string name = entry.filename().string();
    if (name.starts_with(kUnfinished) || name.starts_with(kRemoved)) leftovers.push_back(entry);
  }
  for (const fs::path& leftover : leftovers) fs::remove_all(leftover, error);
}

std::string CheckpointDirectory::PathOf(int64_t step) const {
  char name[40];
  std::snprintf(name, sizeof(name), "step-%08" PRId64, step);
  return (fs::path(path_) / name).string();
}

std::vector<int64_t> CheckpointDirectory::Steps() const {
  std::vector<int64_t> steps;
  for (const fs::path& entry : EntriesOf(path_)) {
    const std::string name = entry.filename().string();
    int64_t step = 0;
    const char* end = name.data() + name.size();
    if (!name.starts_with(kPrefix)) continue;
    const auto [stop, bad] = std::from_chars(name.data() + kPrefix.size(), end, step);
    if (bad == std::errc() && stop == end && PathOf(step) == entry.string()) steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

namespace {

std::string SumOf(const std::string& text) { return Hex(XXH64(text.data(), text.size(), 0)); }

// The text of train.json: its last member is the checksum of what the text is without it.
std::string WithSum(Json json) {
  json["checksum"] = "";
  std::string text = json.dump(1) + "\n";
  const std::string sum = SumOf(text);
  return text.insert(text.rfind(kOwnSum) + kOwnSum.size(), sum);
}

bool HasRightSum(std::string text) {
  const size_t at = text.rfind(kOwnSum);
  if (at == std::string::npos || at + kOwnSum.size() + kSumDigits > text.size()) return false;
  const std::string sum = text.substr(at + kOwnSum.size(), kSumDigits);
  return sum == SumOf(text.erase(at + kOwnSum.size(), kSumDigits));
}

// Whether drawing leads from the seed to this state of the generator; looked at for some seconds.
bool IsReached(uint64_t seed, const std::string& state) {
  constexpr int kMostRounds = 1 << 19;  // 1.6e8 numbers
  constexpr size_t kRound = std::mt19937_64::state_size;
  Generator given, drawn;
  const size_t last = state.rfind(' ');
  // The text ends with how many numbers of a round were drawn. That apart, rounds are compared.
  if (last == std::string::npos ||
      !given.SetState(state.substr(0, last + 1) + std::to_string(kRound)).ok())
    return false;
  drawn.Seed(seed);
  for (int k = 0; k < kMostRounds; ++k) {
    if (drawn.engine() == given.engine()) return true;
    drawn.engine().discard(kRound);
  }
  return false;
}

}  // namespace

// The contents of train.json for a checkpoint of that step.
Result<TrainState> CheckpointDirectory::ReadState(int64_t step, bool* sealed) const {
  const fs::path directory = PathOf(step);
  const std::string path = (directory / kState).string();
  std::ifstream file(path, std::ios::binary);
  if (!file) return Damaged(path, "is missing");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  TrainState state;
  try {
    const int format = json.at("format");
    *sealed = format == kFormat || json.contains("checksum");
    if (*sealed && !HasRightSum(text)) return Damaged(path, "does not fit its own checksum");
    if (format != 1 && format != kFormat)
      return Status(
          StatusCode::kUnimplemented,
          path + ": checkpoint format " + std::to_string(format) + "; 1 and 2 can be read");
    state.step = json.at("step");
    state.program = std::stoull(json.at("program").get<std::string>(), nullptr, 16);
    state.seed = json.at("seed");
    state.generator = json.at("generator");
    state.data = json.at("data");
    if (state.step != step)
      return Damaged(path,
                     "is of step " + std::to_string(state.step) + ", not " + std::to_string(step));
    if (!*sealed && !IsReached(state.seed, state.generator))
      return Damaged(path, "seed " + std::to_string(state.seed) +
                               " does not lead to its state of the random numbers");
    const Json& files = json.at("files");
    const auto listed = [&](const std::string& name) { return files.contains(name); };
    if (!listed(kParameters)) return Damaged(path, "does not list " + std::string(kParameters));
    for (const auto& [name, expected] : files.items()) {
      HEDDLE_ASSIGN_OR_RETURN(const std::string found, Fingerprint((directory / name).string()));
      if (found != expected.get<std::string>())
        return Damaged((directory / name).string(),
                       "has " + found + "; " + expected.get<std::string>() + " was written");
    }
    for (const auto& name : json.at("fetched")) {
      const std::string npy = FetchFile(state.fetched.size());
      if (!listed(npy)) return Damaged(path, "does not list " + npy);
      HEDDLE_ASSIGN_OR_RETURN(Tensor tensor, ReadNpy((directory / npy).string()));
      if (tensor.rank() == 0 || tensor.dim(0) != step)
        return Damaged((directory / npy).string(),
                       "holds " + tensor.shape().ToString() + ", not a row for each step");
      state.fetched.emplace_back(name.get<std::string>(), std::move(tensor));
    }
  } catch (const std::exception& e) {
    return Damaged(path, std::string("is damaged: ") + e.what());
  }
  return state;
}

Result<TrainState> CheckpointDirectory::Load(int64_t step, const TrainState& job,
                                             const Program& program, Scope& scope,
                                             bool* another) const {
  const std::string directory = PathOf(step);
  bool sealed = false;
  HEDDLE_ASSIGN_OR_RETURN(TrainState state, ReadState(step, &sealed));
  *another = !sealed;  // a job's name may be what is damaged
  if (state.program != job.program)
    return Status(StatusCode::kInvalidArgument,
                  directory + ": belongs to another main program (hash " + Hex(state.program) +
                      ", this one has " + Hex(job.program) + ")");
  if (state.data != job.data)
    return Status(StatusCode::kInvalidArgument,
                  directory + ": was trained with other batches (" + state.data +
                      "), now there are (" + job.data +
                      "); to go on with its parameters alone, give --init " + directory + "/" +
                      kParameters + " and another --checkpoint");
  *another = false;
  HEDDLE_RETURN_IF_ERROR(
      LoadParameters(program, (fs::path(directory) / kParameters).string(), scope));
  return state;
}

Result<std::optional<TrainState>> CheckpointDirectory::LoadNewest(
    const TrainState& job, const Program& program, Scope& scope,
    std::vector<std::string>* warnings) const {
  std::vector<int64_t> steps = Steps();
  Status last, of_another;
  for (; !steps.empty(); steps.pop_back()) {
    bool another = false;
    auto state = Load(steps.back(), job, program, scope, &another);
    if (state.ok()) return std::optional<TrainState>(*std::move(state));
    last = state.status();
    if (last.code() != StatusCode::kDataLoss && !another) return last;
    if (another && of_another.ok()) of_another = last;
    warnings->push_back(last.message() + "; an older checkpoint is looked for");
  }
  if (!of_another.ok()) return of_another;
  if (!last.ok())
    return Damaged(path_, "no checkpoint there is undamaged; the oldest: " + last.message());
  return std::optional<TrainState>();
}

Status CheckpointDirectory::Save(const Program& program, const Scope& scope,
                                 const TrainState& state) {
  const fs::path final_path = PathOf(state.step);
  const fs::path aside = fs::path(path_) / (std::string(kUnfinished) + std::to_string(state.step));
  std::error_code error;
  fs::remove_all(aside, error);
  if (!fs::create_directory(aside, error))
    return Status(StatusCode::kInvalidArgument,
                  aside.string() + ": cannot be made: " + error.message());
  const Status written = [&]() -> Status {
    Json files = Json::object(), fetched = Json::array();
    HEDDLE_RETURN_IF_ERROR(SaveParameters(program, scope, (aside / kParameters).string()));
    HEDDLE_ASSIGN_OR_RETURN(files[kParameters], Fingerprint((aside / kParameters).string()));
    for (const auto& [name, tensor] : state.fetched) {
      const std::string npy = FetchFile(fetched.size());
      HEDDLE_RETURN_IF_ERROR(WriteNpy((aside / npy).string(), tensor));
      HEDDLE_RETURN_IF_ERROR(Flush((aside / npy).string()));
      HEDDLE_ASSIGN_OR_RETURN(files[npy], Fingerprint((aside / npy).string()));
      fetched.push_back(name);
    }
    const Json json = {
        {"format", kFormat},  {"step", state.step},          {"program", Hex(state.program)},
        {"seed", state.seed}, {"data", state.data},          {"fetched", fetched},
        {"files", files},     {"generator", state.generator}};
    HEDDLE_RETURN_IF_ERROR(WriteDurable((aside / kState).string(), WithSum(json)));
    HEDDLE_RETURN_IF_ERROR(Flush(aside.string()));
    Remove(state.step);  // a damaged one that was passed over
    fs::rename(aside, final_path, error);
    if (error) return Damaged(aside.string(), "cannot be renamed: " + error.message());
    return Flush(path_);
  }();
  if (!written.ok()) {
    fs::remove_all(aside, error);
    return written;
  }
  std::vector<int64_t> steps = Steps();
  while (steps.size() > static_cast<size_t>(keep_) && steps.front() < state.step) {
    Remove(steps.front());
    steps.erase(steps.begin());
  }
  return Status::Ok();
}

// Takes its name away first: half a checkpoint must not look like one.
void CheckpointDirectory::Remove(int64_t step) const {
  const fs::path removed = fs::path(path_) / (std::string(kRemoved) + std::to_string(step));
  std::error_code error;
  fs::remove_all(removed, error);
  fs::rename(PathOf(step), removed, error);
  if (!error) fs::remove_all(removed, error);
}

}  // namespace heddle::training
