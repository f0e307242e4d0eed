#include "tests/ops/operator_tests.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "core/op_registry.h"
#include "tests/ops/examine.h"
#include "tests/ops/example_files.h"
#include "tests/ops/gradients.h"
#include "tests/ops/looks.h"
#include "tests/ops/one_change.h"
#include "tests/ops/refusals.h"
#include "tests/ops/shown.h"
#include "tests/support/files.h"

namespace heddle::testing {
namespace {

// Operators whose examples are known to disagree with heddle, each with the reason:
// open_findings.txt. Their findings are printed instead of failing; one that has none left must
// leave the list. A reason that begins with "no example" is that of an operator that cannot have
// one.
using OpenFindings = std::map<std::string, std::string>;
const OpenFindings& TheOpenFindings() {
  static const auto* const open = [] {
    auto* found = new OpenFindings;
    std::ifstream file(HEDDLE_SOURCE_DIR "/tests/ops/open_findings.txt");
    for (std::string line; std::getline(file, line);)
      if (const size_t colon = line.find(": "); !line.empty() && line[0] != '#')
        found->emplace(line.substr(0, colon), line.substr(colon + 2));
    return found;
  }();
  return *open;
}

// What no example shows, each with the reason.
Exceptions& TheExceptions() {
  static auto* const exceptions = new Exceptions(HEDDLE_SOURCE_DIR "/tests/ops/shown_less.txt");
  return *exceptions;
}

// The examples of the operators that one source file defines.
class ExamplesTest : public ::testing::Test {
 public:
  ExamplesTest(const ExampleFile& file, const ExamplesByOp& all, const std::string& only)
      : file_(file), all_(all), only_(only) {}

  void TestBody() override {
    for (const std::string& error : file_.errors) ADD_FAILURE() << error;
    for (const Example& example : file_.examples)
      if (only_.empty() || example.op == only_) Examine(example);
    for (const std::string& op : file_.operators)
      if (all_.count(op) != 0 && (only_.empty() || op == only_)) {
        ExpectOnGrid(op);
        ExpectDTypes(op);
        ExpectGradient(op);
      }
    for (const std::string& op : file_.operators)
      if (TheOpenFindings().count(op) != 0 && (only_.empty() || op == only_) &&
          found_.count(op) == 0 &&
          (all_.count(op) != 0 || !TheOpenFindings().at(op).starts_with("no example")))
        ADD_FAILURE() << op << " has no finding any more: tests/ops/open_findings.txt";
  }

 private:
  void Examine(const Example& example) {
    const OpDef* const def = FindOp(example.op);
    if (def == nullptr) {
      ADD_FAILURE_AT(example.file.c_str(), example.line) << "no operator " << example.op;
      return;
    }
    const Problems wrong = CheckAnswers(lab_, example);
    if (!wrong.empty()) return Report(example, wrong);  // the variants would say the same
    Report(example, CheckWays(lab_, example));
    if (example.is_program()) return;
    Report(example, CheckDTypes(lab_, example, *def, &ran_[example.op]));
    Report(example, CheckSmallShapes(lab_, example, *def));
    Report(example, CheckAbsentGradients(lab_, example, *def));
    // One example shows how the operator's kernels end.
    if (example.random || !ended_.insert(example.op).second) return;
    const std::string wrong_end = EndsAtALook(lab_, example, static_cast<uint64_t>(example.line));
    if (!wrong_end.empty()) Report(example, {{"ended at a look", wrong_end}});
  }

  void Report(const Example& example, const Problems& problems) {
    for (const Problem& p : problems)
      Report(example.op, example.file, example.line,
             NameOf(example) + ", " + p.variant + ": " + p.what);
  }
  void Report(const std::string& op, const std::string& file, int line, const std::string& what) {
    if (TheOpenFindings().count(op) == 0) {
      ADD_FAILURE_AT(file.c_str(), line) << what;
      return;
    }
    found_.insert(op);
    std::printf("open finding: %s:%d: %s\n", file.c_str(), line, what.c_str());
  }

  // A CUDA kernel that no example reaches would go untested.
  void ExpectOnGrid(const std::string& op) {
    if (grid_on_host::FindGridKernel(op) == nullptr) return;
    if (lab_.OnGrid(op) == 0)
      Report(op, __FILE__, __LINE__, op + ": no example reaches its CUDA kernel");
  }

  // A kernel for a dtype that no example runs in would go untested.
  void ExpectDTypes(const std::string& op) {
    const OpDef* const def = FindOp(op);
    const auto runs = ran_.find(op);
    // In programs alone, or without an operand that chooses the kernel.
    if (def == nullptr || runs == ran_.end() || runs->second.count(DType::kUnknown) != 0) return;
    for (int i = 0; i + 1 < kNumDTypes; ++i) {
      const auto dtype = static_cast<DType>(i);
      const KernelFn kernel = def->kernel(dtype);
      if (kernel == nullptr) continue;
      const bool ran = std::any_of(runs->second.begin(), runs->second.end(),
                                   [&](DType other) { return def->kernel(other) == kernel; });
      const bool allowed = TheExceptions().Allows({op, "dtype", std::string(Name(dtype))});
      if (ran == allowed)
        Report(op, __FILE__, __LINE__,
               op + (ran ? ": runs in " : ": no example runs its kernel for ") +
                   std::string(Name(dtype)) + (ran ? ", unlike shown_less.txt says" : ""));
    }
  }

  // A gradient is compared with differences, or an example says why not.
  void ExpectGradient(const std::string& op) {
    const OpDef* const def = FindOp(op);
    const OpDef* const forward = def == nullptr ? nullptr : ForwardOf(*def);
    if (forward == nullptr || !BothInDouble(*def, *forward)) return;
    int compared = 0;
    std::string why_not = "its examples are programs";
    const std::vector<const Example*>& examples = all_.at(op);
    const bool programs = std::all_of(examples.begin(), examples.end(),
                                      [](const Example* e) { return e->is_program(); });
    for (const Example* example : examples) {
      if (!example->no_gradient.empty() && example->no_gradient_slots.empty()) {
        ++compared;  // it says why not
        continue;
      }
      if (example->is_program() && !(programs && example == examples[0])) continue;
      const GradientCheck check = CheckGradient(lab_, *example, *def, *forward, all_);
      Report(*example, check.problems);
      compared += check.compared;
      if (!check.why_not.empty()) why_not = check.why_not;
    }
    for (const Example* example : Differentiated(*def, all_)) {
      const GradientCheck check =
          CheckGradient(lab_, ForGradient(*example, examples), *def, *forward, all_);
      for (const Problem& p : check.problems)
        Report(op, example->file, example->line, NameOf(*example) + ", " + op + ": " + p.what);
      compared += check.compared;
    }
    if (compared == 0)
      Report(op, __FILE__, __LINE__,
             op + " is not compared with differences of " + forward->name() + ": " + why_not);
  }

  const ExampleFile& file_;
  const ExamplesByOp& all_;
  const std::string only_;
  Lab lab_;
  std::map<std::string, std::set<DType>> ran_;  // per operator, the dtypes that gave a result
  std::set<std::string> ended_;                 // operators that were ended at a look
  std::set<std::string> found_;                 // operators with open findings that were seen
};

// Every registered operator has an example that compares something. Leaves "operators exercised: N
// of M" for scripts/test.sh.
class CoverageTest : public ::testing::Test {
 public:
  explicit CoverageTest(const ExamplesByOp& all) : all_(all) {}

  void TestBody() override {
    std::string missing;
    size_t exercised = 0, open = 0, width = 0;
    const auto ops = AllOps();
    for (const OpDef* op : ops) {
      if (IsExercised(op->name())) {
        ++exercised;
        continue;
      }
      if (TheOpenFindings().count(op->name()) != 0) {
        ++open;
        continue;
      }
      width += op->name().size() + 1;
      missing += (width > 100 ? "\n " : " ") + op->name();
      if (width > 100) width = op->name().size();
    }
    std::ofstream(HEDDLE_BUILD_DIR "/operators_exercised.txt")
        << "operators exercised: " << exercised << " of " << ops.size() << ", "
        << TheOpenFindings().size() << " with open findings\n";
    EXPECT_EQ(exercised + open, ops.size())
        << "without an example that compares something, in tests/ops/cases:\n"
        << missing;
  }

 private:
  bool IsExercised(const std::string& op) const {
    const auto found = all_.find(op);
    return found != all_.end() &&
           std::any_of(found->second.begin(), found->second.end(), [](const Example* e) {
             return std::any_of(e->outputs.begin(), e->outputs.end(), [](const ExampleOutput& out) {
               return out.check != Check::kNothing;
             });
           });
  }

  const ExamplesByOp& all_;
};

// Examples that run an operator, alone or in a program. Those of a forward operator run its
// gradient, too: ExamplesTest compares it with differences there.
class RunsOf {
 public:
  explicit RunsOf(const ExamplesByOp& all) : all_(all) {
    for (const auto& [op, examples] : all)
      for (const Example* e : examples) {
        if (!e->is_program()) runs_[op].push_back(e);
        std::set<std::string> types;
        for (const ExampleOp& one : e->program)
          if (types.insert(one.type).second) runs_[one.type].push_back(e);
      }
  }

  std::vector<const Example*> Of(const OpDef& op) const {
    std::vector<const Example*> runs;
    if (const auto found = runs_.find(op.name()); found != runs_.end()) runs = found->second;
    for (const Example* e : Differentiated(op, all_)) runs.push_back(e);
    return runs;
  }

 private:
  const ExamplesByOp& all_;
  ExamplesByOp runs_;
};

std::vector<Gap> AllGaps(const ExamplesByOp& all) {
  const RunsOf runs(all);
  Lab lab;
  std::vector<Gap> gaps;
  for (const OpDef* op : AllOps()) {
    if (all.count(op->name()) == 0) continue;  // CoverageTest names it
    const std::vector<const Example*> examples = runs.Of(*op);
    for (Gap& gap : GapsOf(*op, examples)) {
      const int attr = gap.what == "attr" ? op->FindAttr(gap.of) : -1;
      const bool is_none =
          attr >= 0 ? HasOneValue(lab, *op, op->attrs()[static_cast<size_t>(attr)], examples)
                    : gap.what == "values" && StartsAtZero(lab, *op, examples);
      if (!is_none) gaps.push_back(std::move(gap));
    }
  }
  return gaps;
}

// Every operator shows its elements apart, each attribute and each optional operand, or
// shown_less.txt says why not.
class ShownTest : public ::testing::Test {
 public:
  explicit ShownTest(const ExamplesByOp& all) : all_(all) {}

  void TestBody() override {
    Exceptions& exceptions = TheExceptions();
    for (const std::string& error : exceptions.errors()) ADD_FAILURE() << error;
    std::string left;
    for (const Gap& gap : AllGaps(all_))
      if (!exceptions.Allows(gap)) left += "\n" + gap.op + " " + gap.what + " " + gap.of;
    EXPECT_EQ(left, "") << "no example shows this (tests/ops/shown.h)";
    for (const std::string& line : exceptions.Unused())
      ADD_FAILURE() << line << "\nexamples show it: the line can go";
    RecordProperty("exceptions", static_cast<int>(exceptions.size()));
  }

 private:
  const ExamplesByOp& all_;
};

// Programs with one thing changed (tests/ops/one_change.h), drawn from those of all operators.
// HEDDLE_CHANGES=<n> draws n instead of 600, HEDDLE_TEST_SEED=<n> others than usual.
class SomeChangesTest : public ::testing::Test {
 public:
  SomeChangesTest(const ExamplesByOp& all, Change::Sort sort) : all_(all), sort_(sort) {}

  void TestBody() override {
    std::mt19937 random(static_cast<uint32_t>(Repeats("HEDDLE_TEST_SEED", 47)));
    Lab lab;
    const int count = Repeats("HEDDLE_CHANGES", 600);
    int refused = 0;
    for (int i = 0; i < count;) {
      auto op = all_.begin();
      std::advance(op, random() % all_.size());
      const Example& example = *op->second[random() % op->second.size()];
      if (example.is_program()) continue;
      std::vector<Change> changes = ChangesOf(example);
      std::erase_if(changes, [this](const Change& c) { return c.sort != sort_; });
      if (changes.empty()) continue;
      ++i;
      const Change& change = changes[random() % changes.size()];
      refused += BuildProgram(change.example, Operands::kFed).ok() ? 0 : 1;
      const std::string wrong = AgreesEverywhere(lab, change);
      if (!wrong.empty())
        ADD_FAILURE_AT(example.file.c_str(), example.line)
            << NameOf(example) << ", " << change.what << ": " << wrong;
    }
    // Kinds are checked where a program is made; what checks a run would hide that they are not.
    if (sort_ == Change::kKind) {
      EXPECT_GT(refused, count / 2);
    }
  }

 private:
  const ExamplesByOp& all_;
  const Change::Sort sort_;
};

// Examples drawn from all operators, grown: whatever grows, the kernel looks for interrupts.
class SomeGrownTest : public ::testing::Test {
 public:
  SomeGrownTest(const ExamplesByOp& all, uint64_t seed) : all_(all), seed_(seed) {}

  void TestBody() override {
    constexpr int kCount = 100;
    std::mt19937_64 random(seed_);
    GrownLooks looks(kBytes, kMs, true);
    for (int i = 0; i < kCount; ++i) {
      auto op = all_.begin();
      std::advance(op, random() % all_.size());
      const Example& example = *op->second[random() % op->second.size()];
      const uint64_t seed = random();
      if (example.is_program() || TheOpenFindings().count(op->first) != 0) continue;
      const std::string wrong = looks.Judge(example, seed);
      if (!wrong.empty())
        ADD_FAILURE_AT(example.file.c_str(), example.line) << NameOf(example) << ": " << wrong;
    }
    EXPECT_GT(looks.grown(), kCount / 2);
  }

  static constexpr int64_t kBytes = 8 << 20;
  static constexpr double kMs = 40;

 private:
  const ExamplesByOp& all_;
  const uint64_t seed_;
};

// All examples of the operators of one file, each grown in some ways.
class AllGrownTest : public ::testing::Test {
 public:
  AllGrownTest(const ExampleFile& file, GrownLooks& looks) : file_(file), looks_(looks) {}

  void TestBody() override {
    constexpr uint64_t kWays = 6;
    constexpr int kExamples = 3;  // of an operator
    std::map<std::string, int> seen;
    for (const Example& example : file_.examples) {
      if (example.is_program() || ++seen[example.op] > kExamples) continue;
      for (uint64_t way = 0; way < kWays; ++way) {
        const std::string wrong = looks_.Judge(example, way);
        if (!wrong.empty())
          ADD_FAILURE_AT(example.file.c_str(), example.line) << NameOf(example) << ": " << wrong;
      }
    }
  }

 private:
  const ExampleFile& file_;
  GrownLooks& looks_;
};

class WorstGrownTest : public ::testing::Test {
 public:
  explicit WorstGrownTest(const GrownLooks& looks) : looks_(looks) {}
  void TestBody() override { looks_.PrintWorst(10); }

 private:
  const GrownLooks& looks_;
};

// All of them, of the first examples of the operators of one file.
class AllChangesTest : public ::testing::Test {
 public:
  explicit AllChangesTest(const ExampleFile& file) : file_(file) {}

  void TestBody() override {
    constexpr int kExamples = 2;  // of an operator: others differ little
    std::map<std::string, int> seen;
    Lab lab;
    int count = 0;
    for (const Example& example : file_.examples) {
      if (example.is_program() || ++seen[example.op] > kExamples) continue;
      for (const Change& change : ChangesOf(example)) {
        ++count;
        const std::string wrong = AgreesEverywhere(lab, change);
        if (!wrong.empty())
          ADD_FAILURE_AT(example.file.c_str(), example.line)
              << NameOf(example) << ", " << change.what << ": " << wrong;
      }
    }
    RecordProperty("changes", count);
    std::printf("%s.%s: %d changes\n", file_.family.c_str(), file_.name.c_str(), count);
  }

 private:
  const ExampleFile& file_;
};

// All examples of the tree. Made once, for the life of the process.
struct Tree {
  std::map<std::string, ExampleFile> files = ReadExampleFiles();
  ExamplesByOp examples;
  Tree() {
    for (const auto& [name, file] : files)
      for (const Example& example : file.examples) examples[example.op].push_back(&example);
  }
};
const Tree& TheTree() {
  static const auto* const tree = new Tree;
  return *tree;
}

using MakeTest = std::function<::testing::Test*()>;
void Add(const std::string& suite, const std::string& name, const MakeTest& make) {
  ::testing::RegisterTest(suite.c_str(), name.c_str(), nullptr, nullptr, __FILE__, __LINE__, make);
}

}  // namespace

bool RegisterOperatorTests(const std::string& op) {
  const Tree& tree = TheTree();
  bool found = false;
  for (const auto& [name, file] : tree.files) {
    const auto& ops = file.operators;
    if (!op.empty() && std::find(ops.begin(), ops.end(), op) == ops.end()) continue;
    found = true;
    Add(file.family, file.name,
        [&file = file, &tree, op] { return new ExamplesTest(file, tree.examples, op); });
  }
  if (!op.empty()) return found;
  Add("every_operator", "has_an_example", [&tree] { return new CoverageTest(tree.examples); });
  Add("every_operator", "shows_all_of_itself", [&tree] { return new ShownTest(tree.examples); });
  for (const auto& [name, sort] : {std::pair{"bears_another_kind", Change::kKind},
                                   {"bears_another_dtype_said", Change::kSaid},
                                   {"bears_another_attribute", Change::kAttribute},
                                   {"bears_other_elements", Change::kElements},
                                   {"bears_an_operand_less", Change::kLess},
                                   {"bears_one_change", Change::kOther}})
    Add("every_operator", name,
        [&tree, sort = sort] { return new SomeChangesTest(tree.examples, sort); });
  for (uint64_t seed = 0; seed < 6; ++seed)
    Add("every_operator", "looks_when_grown_" + std::to_string(seed),
        [&tree, seed] { return new SomeGrownTest(tree.examples, seed); });
  return true;
}

void PrintGaps() {
  for (const Gap& gap : AllGaps(TheTree().examples))
    std::printf("%s %s %s\n", gap.op.c_str(), gap.what.c_str(), gap.of.c_str());
}

void RegisterGrown() {
  static auto* const looks = new GrownLooks(SomeGrownTest::kBytes, SomeGrownTest::kMs, false);
  for (const auto& [name, file] : TheTree().files)
    Add("grown_" + file.family, file.name,
        [&file = file] { return new AllGrownTest(file, *looks); });
  Add("grown_worst", "print", [] { return new WorstGrownTest(*looks); });
}

void RegisterChanges() {
  for (const auto& [name, file] : TheTree().files)
    Add("changes_" + file.family, file.name, [&file = file] { return new AllChangesTest(file); });
}

}  // namespace heddle::testing
