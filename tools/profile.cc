// heddle profile: where a run's time goes, operator by operator, beside what the machine can do.
#include <cstdio>
#include <iostream>

#include "tools/commands.h"
#include "tools/engines/engine_choice.h"
#include "tools/json_input.h"
#include "tools/json_output.h"
#include "tools/options.h"
#include "tools/plans/plan_json.h"
#include "tools/profile_measure.h"
#include "tools/progress.h"
#include "tools/report.h"
#include "tools/values/durable.h"

namespace heddle::tools {
namespace {

struct ProfileOptions {
  ModelOptions model;
  FeedOptions feeds;
  EngineChoice engines;
  double seconds = 1;
  int top = 20;
  bool json = false;
  std::string html, compare, trace;
};

// "231.4 GFLOP/s  87%" or, of what computes little, "12.5 GB/s    40%".
std::string Rate(const Profile& p, double us, double flops, double bytes) {
  if (us <= 0) return "";
  const bool computes = flops > 0;
  const double rate = (computes ? flops : bytes) / us * 1e-3;
  const double peak = computes ? p.peak.gflops : p.peak.copy_gbs;
  char text[64];
  std::snprintf(text, sizeof(text), "%8.1f %-7s %4.0f%%", rate, computes ? "GFLOP/s" : "GB/s",
                peak > 0 ? 100 * rate / peak : 0);
  return text;
}

// Lists the first operands, and the number of those behind them.
std::string Few(const std::vector<TraceEvent::Operand>& list) {
  constexpr size_t kMost = 6;
  if (list.size() <= kMost) return ShapesText(list);
  return ShapesText({list.begin(), list.begin() + kMost}) + " and " +
         std::to_string(list.size() - kMost) + " more";
}

void PrintProfileText(const ProfileOptions& options, const Profile& p) {
  std::printf("%s: %d threads, %s, median of %d runs\n", options.model.model.c_str(), p.threads,
              p.dispatch.c_str(), p.runs);
  std::printf("  run        %10.1f us, of which outside kernels %.1f%%\n", p.run_us,
              100 * p.outside);
  for (const auto& [stream, us] : p.streams)
    std::printf("  %-10s %10.1f us busy, %.1f%% of the run\n", stream.c_str(), us,
                100 * us / p.run_us);
  std::printf("  machine    %10.1f GFLOP/s float32, copies %.1f GB/s\n\n", p.peak.gflops,
              p.peak.copy_gbs);
  std::printf("%12s %7s  %22s  %5s  %s\n", "us", "share", "rate, of peak", "times", "operator");
  for (const OperatorSum& s : ByOperator(p))
    std::printf("%12.1f %6.1f%%  %22s  %5lld  %s\n", s.us, 100 * p.Share(s.us),
                Rate(p, s.us, s.flops, s.bytes).c_str(), static_cast<long long>(s.times),
                s.op.c_str());
  std::printf("\n%12s %7s  %22s  %5s  %s\n", "us", "share", "rate, of peak", "times",
              "instruction");
  for (int i = 0; i < options.top && i < static_cast<int>(p.lines.size()); ++i) {
    const ProfileLine& line = p.lines[static_cast<size_t>(i)];
    const std::string& stream = line.event.stream;
    const std::string& how = line.event.implementation;
    std::printf("%12.1f %6.1f%%  %22s  %5lld  %s %s: %s -> %s%s%s%s%s\n", line.us,
                100 * p.Share(line.us), Rate(p, line.us, line.flops, line.bytes).c_str(),
                static_cast<long long>(line.times), line.event.op.c_str(),
                line.event.output.c_str(), Few(line.event.inputs).c_str(),
                Few(line.event.outputs).c_str(), stream.empty() ? "" : ", ", stream.c_str(),
                how.empty() ? "" : ", ", how.c_str());
  }
  std::fflush(stdout);
}

// An earlier profile's JSON, for comparison.
Result<Json> ReadProfile(const std::string& path) {
  HEDDLE_ASSIGN_OR_RETURN(Json json, ReadJsonObject(path, "profile"));
  const auto schema = json.find("schema");
  if (schema == json.end() || (*schema != NewJson("profile", 3)["schema"] &&
                               *schema != "heddle.profile/2" &&  // what is compared is the same
                               *schema != "heddle.profile/1"))
    return Status(StatusCode::kInvalidArgument, path + ": not what `heddle profile --json` prints");
  return json;
}

Status RunProfile(const ProfileOptions& given) {
  ProfileOptions options = given;
  HEDDLE_RETURN_IF_ERROR(FollowPlan(&options.model));
  options.engines.OpenCache();
  Json before;
  if (!options.compare.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(before, ReadProfile(options.compare));
  }
  Result<Profile> profile = [&] {
    Progress progress("profiling " + options.model.model);
    return MeasureProfile(options.model, options.feeds, options.engines, options.seconds);
  }();
  if (!profile.ok()) return profile.status();
  if (!options.trace.empty()) HEDDLE_RETURN_IF_ERROR(WriteTrace(options.trace, profile->sample));
  Json json =
      options.json || !options.html.empty() ? ProfileJson(options.model.model, *profile) : Json();
  if (options.engines.any() && json.is_object()) json["engines"] = EnginesJson(profile->engines);
  if (!options.html.empty())
    HEDDLE_RETURN_IF_ERROR(WriteDurable(options.html, ReportPage(json, before)));
  options.json ? WriteJson(json) : PrintProfileText(options, *profile);
  if (options.engines.any() && !options.json) std::cout << profile->engines.ToString();
  return Status::Ok();
}

}  // namespace

void AddProfile(Command root, Action& chosen) {
  auto options = std::make_shared<ProfileOptions>();
  Command app = root.add_command("profile", "show where a run's time goes");
  AddModelOptions(app, &options->model);
  AddFeedOptions(app, &options->feeds);
  AddExecutionOptions(app, &options->model);
  AddFollowOption(app, &options->model);
  AddEngineOptions(app, &options->engines);
  AddLimitOptions(app, &options->model);
  app.add_option("--seconds", options->seconds, "measure for this long, at least three runs")
      .type_name("S")
      .in_range(0.0, 86400.0)
      .show_default();
  app.add_option("--top", options->top, "how many instructions are listed")
      .type_name("N")
      .in_range(0, 1000000)
      .show_default();
  app.add_flag("--json", options->json, "one JSON object with every instruction");
  const Option html =
      app.add_option("--html", options->html,
                     "write a page with time line, operators, memory and the plan's graph: "
                     "one file that needs no network")
          .type_name("FILE");
  app.add_option("--compare", options->compare,
                 "what --json printed for an earlier run, to be set beside this one in the page")
      .type_name("FILE.json")
      .needs(html);
  app.add_option("--trace", options->trace,
                 "write when each instruction of one run began and ended, for chrome://tracing or "
                 "ui.perfetto.dev")
      .type_name("FILE");
  app.footer(
      "Times are medians over runs of one instruction each, as the clock around it says; the "
      "share\n"
      "outside kernels is that of the lanes' time, waiting included. Convolutions and matrix\n"
      "products are set beside the multiply-adds that the threads can do in registers (sums of "
      "the\n"
      "definition: a faster algorithm may exceed the peak), everything else beside copies between\n"
      "arrays larger than the caches (what stays in a cache may exceed it, too).\n"
      "Examples:\n"
      "  heddle profile resnet50/ --random-feed --shape x=1,3,224,224 --threads 1\n"
      "  heddle profile examples/digits --random-feed --html report.html");
  app.on_chosen([options, &chosen] { chosen = [options] { return RunProfile(*options); }; });
}

}  // namespace heddle::tools
