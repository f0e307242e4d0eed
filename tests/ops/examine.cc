#include "tests/ops/examine.h"

#include "tests/ops/compare.h"
#include "tests/ops/crash_note.h"

namespace heddle::testing {
namespace {

// Names an output as messages do: "Out", or "Out.1" for the second of a slot.
std::string OutputName(const Example& e, size_t output) {
  int before = 0, all = 0;
  for (size_t i = 0; i < e.outputs.size(); ++i) {
    if (e.outputs[i].slot != e.outputs[output].slot) continue;
    before += i < output ? 1 : 0;
    ++all;
  }
  return e.outputs[output].slot + (all > 1 ? "." + std::to_string(before) : "");
}

class Ways {
 public:
  Ways(Lab& lab, const Example& e) : lab_(lab), example_(e) {}

  Problems Run() {
    CrashNote note(example_, "reference");
    auto reference = RunExample(lab_.Reference(), example_);
    if (!reference.ok()) return {};  // CheckAnswers says it
    reference_ = *std::move(reference);
    Answers("2 threads", lab_.TwoThreads());
    Answers("8 threads", lab_.EightThreads());
    Same("operands that nobody needs afterwards", lab_.Reference(), Operands::kDead);
    Same("operands that are kept", lab_.Reference(), Operands::kKept);
    Same("a second run", lab_.Plain(), Operands::kFed, 2);
    Same("emulated device", lab_.Emulated());
    Answers("CUDA kernels on the host", lab_.Grid());
    return std::move(problems_);
  }

 private:
  void Add(const std::string& variant, const std::string& what) {
    problems_.push_back({variant, what});
  }

  std::optional<Outcome> Try(const std::string& variant, Executor& executor, Operands operands,
                             int runs) {
    CrashNote note(example_, variant);
    auto outcome = RunExample(executor, example_, operands, 0, runs);
    if (outcome.ok()) return *std::move(outcome);
    Add(variant, outcome.status().ToString());
    return std::nullopt;
  }

  // Bit for bit as the reference, and operands that are kept as they were.
  void Same(const std::string& variant, Executor& executor, Operands operands = Operands::kFed,
            int runs = 1) {
    const auto outcome = Try(variant, executor, operands, runs);
    if (!outcome) return;
    for (size_t i = 0; i < outcome->outputs.size(); ++i) {
      const std::string wrong = SameElements(outcome->outputs[i], reference_.outputs[i]);
      if (!wrong.empty()) return Add(variant, OutputName(example_, i) + ": " + wrong);
    }
    for (size_t i = 0; i < outcome->kept.size(); ++i) {
      const std::string wrong = SameElements(outcome->kept[i], outcome->fed[i]);
      if (!wrong.empty()) return Add(variant, "a kept operand was changed: " + wrong);
    }
  }

  // As the example says: sums may be added up in another order. Of random values the reference's.
  void Answers(const std::string& variant, Executor& executor) {
    const auto outcome = Try(variant, executor, Operands::kFed, 1);
    if (!outcome) return;
    for (size_t i = 0; i < outcome->outputs.size(); ++i) {
      const std::string wrong =
          example_.random ? SameElements(outcome->outputs[i], reference_.outputs[i])
                          : Matches(outcome->outputs[i], example_.outputs[i], example_.close);
      if (!wrong.empty()) return Add(variant, OutputName(example_, i) + ": " + wrong);
    }
  }

  Lab& lab_;
  const Example& example_;
  Outcome reference_;
  Problems problems_;
};

}  // namespace

Problems CheckAnswers(Lab& lab, const Example& example) {
  Problems problems;
  struct {
    const char* name;
    Executor& executor;
    int opt_level;
  } const ways[] = {{"as it is", lab.Reference(), 0}, {"optimised", lab.Plain(), 2}};
  for (const auto& way : ways) {
    CrashNote note(example, way.name);
    const auto outcome = RunExample(way.executor, example, Operands::kFed, way.opt_level);
    if (!outcome.ok()) {
      problems.push_back({way.name, outcome.status().ToString()});
      continue;
    }
    for (size_t i = 0; i < example.outputs.size(); ++i) {
      const auto wrong = Matches(outcome->outputs[i], example.outputs[i], example.close);
      if (!wrong.empty()) problems.push_back({way.name, OutputName(example, i) + ": " + wrong});
    }
  }
  return problems;
}

Problems CheckWays(Lab& lab, const Example& example) { return Ways(lab, example).Run(); }

}  // namespace heddle::testing
