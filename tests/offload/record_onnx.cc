// heddle_record_onnx: random operators as ONNX, with what they are fed and what they give, for
// scripts/check_group_onnx.py.
//
//   heddle_record_onnx FOLDER FIRST COUNT
//
// Of each operator that heddle computes and ONNX has words for: SEED/model.onnx, in_NAME.npy,
// out_NAME.npy. One line each: the seed and the operator.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/programs/ir.h"
#include "tests/offload/onnx_round_trip.h"
#include "tests/offload/random_operator.h"
#include "tools/values/npy.h"

int main(int argc, char** argv) {
  using namespace heddle;
  using namespace heddle::testing;
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s FOLDER FIRST COUNT\n", argv[0]);
    return 2;
  }
  Executor executor({.threads = 1});
  const auto first = static_cast<uint32_t>(std::atoi(argv[2]));
  const auto count = static_cast<uint32_t>(std::atoi(argv[3]));
  for (uint32_t seed = first; seed < first + count; ++seed) {
    const RandomOperator random(seed);
    const auto built = random.Build();
    if (!built.ok()) continue;
    const bool open = seed % 3 != 0 && random.HasElements();
    const Program program = open ? Opened(*built, seed % 3 == 1) : *built;
    const RoundTrip trip = TryRoundTrip(executor, program, random.NewScope(), random.feeds());
    if (trip.model.empty()) continue;
    const std::filesystem::path folder = std::filesystem::path(argv[1]) / std::to_string(seed);
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "model.onnx", std::ios::binary) << trip.model;
    Status status;
    for (const heddle::Feed& feed : random.feeds())
      if (status.ok())
        status = tools::WriteNpy(folder / ("in_" + feed.name + ".npy"), feed.value.tensor());
    const ir::Program& ir = program.ir();
    for (size_t k = 0; k < trip.outputs.size() && status.ok(); ++k)
      status = tools::WriteNpy(folder / ("out_" + ir.vars[ir.fetches[k].var].name + ".npy"),
                               trip.outputs[k]);
    if (!status.ok()) {
      std::fprintf(stderr, "%s\n", status.ToString().c_str());
      return 1;
    }
    std::printf("%u %s\n", seed, random.type().c_str());
  }
  return 0;
}
