// heddle: runs, measures and explains Paddle, ONNX and TensorFlow models. See `heddle --help`.
//
// Exit status: 0 done; 1 the run failed, with one error on stderr; 2 wrong usage; 3 stopped by a
// signal, in good order.
#include <glog/logging.h>

#include <cstdio>
#include <exception>
#include <iostream>
#include <system_error>

#include "tools/commands.h"
#include "tools/json_output.h"

namespace {

constexpr int kDone = 0, kFailed = 1, kWrongUsage = 2, kStopped = 3;

void StartLogging(const char* program, bool verbose) {
  FLAGS_logtostderr = true;
  FLAGS_minloglevel = verbose || FLAGS_v > 0 ? google::INFO : google::ERROR;  // GLOG_v
  google::InitGoogleLogging(program);
}

int Fail(const std::string& error) {
  std::cout.flush();
  std::cerr << "heddle: " << error << std::endl;
  return kFailed;
}

void AddCommands(heddle::tools::Command app, heddle::tools::Action& action) {
  heddle::tools::AddRun(app, action);
  heddle::tools::AddBench(app, action);
  heddle::tools::AddInspect(app, action);
  heddle::tools::AddOps(app, action);
  heddle::tools::AddPlan(app, action);
  heddle::tools::AddProfile(app, action);
  heddle::tools::AddOpt(app, action);
  heddle::tools::AddConvert(app, action);
  heddle::tools::AddPartition(app, action);
  heddle::tools::AddGrad(app, action);
  heddle::tools::AddCache(app, action);
  heddle::tools::AddPasses(app, action);
  heddle::tools::AddTrain(app, action);
  heddle::tools::AddDoctor(app, action);
  heddle::tools::AddCompletion(app, action);
  heddle::tools::AddRunCase(app, action);
  heddle::tools::AddRunCases(app, action);
}

int Main(int argc, char** argv) {
  heddle::tools::CommandLine line(
      "heddle", "heddle runs Paddle, ONNX and TensorFlow models, unchanged and fast.");
  heddle::tools::Command app = line.root();
  app.footer(
      "Examples:\n"
      "  heddle inspect examples/digits            what goes in, what comes out, which operators\n"
      "  heddle run examples/digits --feed x=examples/digits/input.npy\n"
      "  heddle run resnet50/ --random-feed --shape x=1,3,224,224\n"
      "  heddle bench resnet50/ --random-feed --threads 2\n"
      "  heddle train --startup startup.pdmodel --main main.pdmodel --data train.npz\n"
      "               --batch-size 32 --epochs 20 --save trained.pdiparams\n"
      "`heddle COMMAND --help` explains one command.\n"
      "Exit status: 0 done, 1 the run failed, 2 wrong usage, 3 training was stopped by a signal.");
  bool verbose = false;
  app.add_flag("-v,--verbose", verbose,
               "say on stderr what is being done; more with GLOG_v=1 to 4");
#ifdef HEDDLE_VERSION
  line.set_version("heddle " HEDDLE_VERSION);
#endif
  heddle::tools::Action action;
  AddCommands(app, action);
  const auto outcome = line.Parse(argc, argv);
  if (outcome == heddle::tools::CommandLine::Outcome::kAnswered) return kDone;
  if (outcome == heddle::tools::CommandLine::Outcome::kWrongUsage) {
    std::cerr << "heddle: " << line.error() << " (see heddle --help)" << std::endl;
    return kWrongUsage;
  }
  if (!action) {
    std::cerr << line.help();
    return kWrongUsage;
  }
  const bool json = line.given("--json");
  StartLogging(argv[0], verbose);
  const heddle::Status status = action();
  if (status.code() == heddle::StatusCode::kCancelled) {
    std::cout.flush();
    std::cerr << "heddle: stopped by " << status.message() << std::endl;
    return kStopped;
  }
  if (!status.ok()) {
    if (json) heddle::tools::WriteJson(heddle::tools::ErrorJson(status));
    return Fail(status.ToString());
  }
  // Both ways of writing are used.
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (!std::cout.flush() || !written) return Fail("the output cannot be written");
  return kDone;
}

}  // namespace

int main(int argc, char** argv) {
  // heddle's own functions do not throw; a bug in the tool or its libraries must not look like a
  // crash of the model.
  try {
    return Main(argc, argv);
  } catch (const std::system_error& e) {  // no more threads
    return Fail(std::string("RESOURCE_EXHAUSTED: ") + e.what());
  } catch (const std::exception& e) {
    return Fail(std::string("INTERNAL: ") + e.what());
  }
}
