// heddle run-case: runs one operator case.
#include <filesystem>

#include "tools/cases/case_runner.h"
#include "tools/commands.h"
#include "tools/options.h"

namespace heddle::tools {
namespace {

struct CaseOptions {
  ModelOptions run;
  std::string directory;
  std::string out;
};

Status RunCase(const CaseOptions& options) {
  std::error_code error;
  std::filesystem::create_directories(options.out, error);
  if (error)
    return Status(StatusCode::kInvalidArgument,
                  options.out + ": cannot be made: " + error.message());
  Executor executor(options.run.executor());
  return RunOneCase(executor, options.directory, options.out, options.run.compile(),
                    options.run.run());
}

}  // namespace

void AddRunCase(Command root, Action& chosen) {
  auto options = std::make_shared<CaseOptions>();
  options->run.opt_level = 0;
  Command app = root.add_command("run-case", "run one operator case");
  app.add_option("CASE_DIR", options->directory, "directory with program.pb, io.txt and inputs")
      .required()
      .type_name("");
  app.add_option("--out", options->out, "directory for out_<k>.npy").required().type_name("DIR");
  AddExecutionOptions(app, &options->run);
  AddLimitOptions(app, &options->run);
  app.footer("Example:\n  heddle run-case cases/relu.fwd.001 --out relu_out");
  app.on_chosen([options, &chosen] { chosen = [options] { return RunCase(*options); }; });
}

}  // namespace heddle::tools
