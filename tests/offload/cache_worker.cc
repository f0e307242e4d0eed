// A process that uses a cache's folder, for tests that end it at any moment:
//   heddle_cache_worker FOLDER ENGINE SEED PROGRAMS MAX_BYTES
// runs random programs alone and with their groups on the engine. Exit status: 0, the same bits;
// 1, not, and why on stderr.
#include <cstdlib>
#include <iostream>

#include "tests/offload/cache_subjects.h"
#include "tests/offload/random_targets.h"

namespace heddle::testing {
namespace {

Status Check(uint32_t seed, const Engine& engine, const std::shared_ptr<EngineCache>& cache,
             int* hits) {
  const CacheSubject subject = SubjectOf(seed);
  Executor executor({.threads = 1});
  HEDDLE_ASSIGN_OR_RETURN(const Model alone, subject.Load());
  HEDDLE_ASSIGN_OR_RETURN(const auto plain, executor.Compile(alone, {.opt_level = 0}));
  const auto expected = executor.RunValues(plain, subject.feeds);
  HEDDLE_ASSIGN_OR_RETURN(const Model model, subject.Load());
  const std::string text = RandomTargets(seed).For(model.program, "t");
  HEDDLE_ASSIGN_OR_RETURN(const HardwareTarget target, HardwareTarget::Parse(text, "t"));
  OffloadOptions options;
  options.compile.opt_level = 0;
  options.cache = cache;
  HEDDLE_ASSIGN_OR_RETURN(const OffloadedModel with, Offload(model, {{target, engine}}, options));
  if (!with.report.cache_warning.empty())
    return Status(StatusCode::kInternal, with.report.cache_warning);
  for (const OffloadedGroup& group : with.report.groups)
    *hits += group.cache.starts_with("hit") ? 1 : 0;
  HEDDLE_ASSIGN_OR_RETURN(const auto compiled, executor.Compile(with.model, {.opt_level = 0}));
  const auto values = executor.RunValues(compiled, subject.feeds);
  if (expected.ok() != values.ok()) return Status(StatusCode::kInternal, "one of both fails");
  for (size_t k = 0; expected.ok() && k < expected->size(); ++k)
    if (!SameBits((*expected)[k], (*values)[k]))
      return Status(StatusCode::kInternal, "other bits in output " + std::to_string(k));
  return Status::Ok();
}

int Work(const std::string& folder, const std::string& path, uint32_t seed, int programs,
         int64_t max_bytes) {
  const auto engine = Engine::Load(path);
  if (!engine.ok()) {
    std::cerr << engine.status().ToString() << "\n";
    return 1;
  }
  const auto cache = EngineCache::OnDisk(folder, max_bytes);
  std::mt19937 random(seed);
  int hits = 0;
  for (int k = 0; k < programs; ++k) {
    const uint32_t program = random() % 12;  // few, so that processes meet
    if (const Status status = Check(program, *engine, cache, &hits); !status.ok()) {
      std::cerr << "seed " << program << ": " << status.ToString() << "\n";
      return 1;
    }
  }
  std::cout << hits << " hits\n";
  return 0;
}

}  // namespace
}  // namespace heddle::testing

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  return heddle::testing::Work(argv[1], argv[2], static_cast<uint32_t>(std::atoi(argv[3])),
                               std::atoi(argv[4]), std::atoll(argv[5]));
}
