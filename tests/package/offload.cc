// Another project that uses engines of an installed heddle: a model's groups on the reference
// engine, by itself and in a process of its own.
#include <heddle/engine.h>
#include <heddle/executor.h>
#include <heddle/program.h>

#include <iostream>
#include <string>

namespace {

heddle::Status Check(const std::string& folder, const std::string& target_file, bool apart) {
  const std::string engines = HEDDLE_ENGINE_DIR "/";
  const std::string reference = engines + "heddle_engine_reference.so";
  HEDDLE_ASSIGN_OR_RETURN(const auto model, heddle::LoadModel(folder));
  HEDDLE_ASSIGN_OR_RETURN(const auto target, heddle::HardwareTarget::Load(target_file));
  heddle::EngineOptions options;
  if (apart) options.options = {{"library", reference}};
  HEDDLE_ASSIGN_OR_RETURN(
      const auto engine,
      heddle::Engine::Load(apart ? engines + "heddle_engine_process.so" : reference, options));
  HEDDLE_ASSIGN_OR_RETURN(const auto offloaded, heddle::Offload(model, {{target, engine}}));
  std::cout << offloaded.report.ToString();
  if (offloaded.report.groups.empty() || !offloaded.report.groups[0].taken)
    return {heddle::StatusCode::kInternal, "no group is taken"};
  heddle::Executor executor;
  HEDDLE_ASSIGN_OR_RETURN(const auto compiled, executor.Compile(offloaded.model));
  heddle::Shape shape = compiled.inputs()[0].shape;
  for (int i = 0; i < shape.rank(); ++i)
    if (shape[i] < 0) shape[i] = 1;
  const auto feed = heddle::Tensor::Zeros(compiled.inputs()[0].dtype, shape);
  return executor.Run(compiled, {{compiled.inputs()[0].name, feed}}).status();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  for (const bool apart : {false, true})
    if (const auto status = Check(argv[1], argv[2], apart); !status.ok()) {
      std::cerr << status.ToString() << "\n";
      return 1;
    }
  return 0;
}
