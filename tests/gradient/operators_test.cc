// Every operator that the pass differentiates, by the operator's examples: the gradients of its
// float operands against differences, in float64, and the gradients of these gradients.
//
// Then by changed examples: another attribute or shape, an operand less. Those that the operator
// refuses do not count.
//
// HEDDLE_GRADIENT_OPS=a,b takes these operators alone, HEDDLE_GRADIENT_DRAWN=<n> changes n examples
// of each instead of 2, HEDDLE_TEST_SEED=<n> draws others.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/op_registry.h"
#include "gradient/gradient.h"
#include "gradient/rule.h"
#include "tests/ops/example_files.h"
#include "tests/ops/example_program.h"

namespace heddle::gradient {
namespace {

using testing::Example;
using testing::ExampleInput;
using testing::ExampleOutput;

// Differences have an error of the second order, which grows with the step, and one of rounding,
// which shrinks: one of the steps has to agree.
constexpr double kSteps[] = {1e-4, 1e-5, 1e-6};
constexpr double kTolerance = 1e-6;  // of the sizes of all terms

// Of these operators or examples the gradient is not the slope of what is computed: always, or
// where there is a zero in a slot, or an index twice.
struct NotTheSlope {
  std::string zero_in, why, repeated_in = {};
};
const std::map<std::string, NotTheSlope> kNotTheSlope = {
    {"fake_channel_wise_quantize_dequantize_abs_max", {"", "the gradient passes by the rounding"}},
    {"fake_quantize_dequantize_abs_max", {"", "the gradient passes by the rounding"}},
    {"fake_quantize_dequantize_moving_average_abs_max",
     {"", "the gradient passes by the rounding"}},
    {"div_no_nan", {"Y", "where Y is 0, TensorFlow's gradient is 0"}},
    {"xdivy", {"X", "where X is 0, TensorFlow's gradient is 0"}},
    {"xlogy", {"X", "where X is 0, TensorFlow's gradient is 0"}},
    {"xlog1py", {"X", "where X is 0, TensorFlow's gradient is 0"}},
    {"mul_no_nan", {"Y", "where Y is 0, TensorFlow's gradient is X"}},
    {"dynamic_stitch",
     {"", "values that others overwrite have TensorFlow's gradient, which is not 0"}},
    {"scatter", {"", "values that others overwrite have a gradient", "Ids"}},
    {"scatter_nd", {"", "values that others overwrite have a gradient"}},
    {"strided_slice_grad / decrease_axis [0]", {"", "it drops an axis of two elements"}},
    {"hard_shrink", {"", "with a negative threshold Paddle's first version adds X twice"}},
};

const double* Numbers(const Tensor& t) { return static_cast<const double*>(t.raw()); }

Tensor InDouble(const Tensor& t) {
  Tensor wide = Tensor::Empty(DType::kF64, t.shape());
  std::copy_n(t.data<float>(), t.numel(), wide.mutable_data<double>());
  wide.set_lod(t.lod());
  return wide;
}

Tensor Drawn(const Shape& shape, uint32_t seed) {
  std::mt19937 random(seed);
  Tensor t = Tensor::Empty(DType::kF64, shape);
  for (int64_t i = 0; i < t.numel(); ++i)
    t.mutable_data<double>()[i] = static_cast<double>(random()) / 2147483648.0 - 1.0;
  return t;
}

bool IsDouble(const Value& value) {
  return value.is_tensor() && value.tensor().initialized() && value.tensor().dtype() == DType::kF64;
}

bool HoldsZero(const Example& example, const std::string& slot) {
  for (const ExampleInput& in : example.inputs)
    if (in.slot == slot && in.value.is_tensor() && in.value.tensor().dtype() == DType::kF32)
      for (int64_t i = 0; i < in.value.tensor().numel(); ++i)
        if (in.value.tensor().data<float>()[i] == 0) return true;
  return false;
}

bool Repeats(const Example& example, const std::string& slot) {
  std::set<int64_t> seen;
  for (const ExampleInput& in : example.inputs)
    if (in.slot == slot && in.value.is_tensor())
      for (int64_t i = 0; i < in.value.tensor().numel(); ++i) {
        const Tensor& t = in.value.tensor();
        const int64_t index = t.dtype() == DType::kI64   ? t.data<int64_t>()[i]
                              : t.dtype() == DType::kI32 ? t.data<int32_t>()[i]
                                                         : i;
        if (!seen.insert(index).second) return true;
      }
  return false;
}

// A program whose losses are compared, and what it is run with.
struct Function {
  Program program;
  std::vector<Feed> feeds;
  std::vector<std::string> losses;
};

// `variables`, each multiplied by numbers drawn for it: the losses. Those of other dtypes than
// float64 are left out.
Function Weighted(const Program& program, std::vector<Feed> feeds,
                  const std::vector<std::string>& variables, const std::vector<Value>& values) {
  auto copy = std::make_shared<ir::Program>(program.ir());
  Function f;
  for (size_t k = 0; k < variables.size(); ++k) {
    if (!IsDouble(values[k])) continue;
    ir::Op mul = ir::MakeOp(*FindOp("elementwise_mul"));
    for (size_t v = 0; v < copy->vars.size(); ++v)
      if (copy->vars[v].name == variables[k] && copy->vars[v].block == 0)
        mul.inputs[0] = {static_cast<ir::VarId>(v)};
    ir::Var& of = copy->vars[mul.inputs[0].at(0)];
    of.shape = values[k].tensor().shape();
    of.dtype = DType::kF64;
    ir::Var var = of;
    var.persistable = false;
    var.name = variables[k] + ".weight";
    feeds.push_back({var.name, Value(Drawn(var.shape, static_cast<uint32_t>(k) + 1))});
    mul.inputs[1] = {copy->AddVar(var)};
    var.name = variables[k] + ".loss";
    f.losses.push_back(var.name);
    mul.outputs[0] = {copy->AddVar(var)};
    copy->blocks[0].ops.push_back(std::move(mul));
  }
  const auto bytes = Program(std::move(copy)).Serialize("paddle");
  EXPECT_TRUE(bytes.ok()) << bytes.status().ToString();
  if (auto parsed = Program::Parse(*bytes, "losses"); parsed.ok()) f.program = *std::move(parsed);
  f.feeds = std::move(feeds);
  return f;
}

// One operator on an example's operands, in float64.
class Subject {
 public:
  Subject(const OpDef& def, const Example& example) : def_(def), example_(example) {}

  // Compares the gradients of all operands. Empty: they agree; `why_not`: they are not compared.
  std::string Compare(std::string* why_not) {
    *why_not = Prepare();
    if (!why_not->empty()) return "";
    std::vector<std::string> names;
    Program backward;
    std::string wrong = CompareGradients(first_, wanted_, &backward, &names);
    if (!wrong.empty() || def_.name().ends_with("_grad")) return wrong;
    return CompareSecond(backward, names);
  }
  // Whether gradients of gradients were compared; they may have no rule.
  bool second() const { return second_; }

 private:
  // Why there is nothing to compare; empty: there is.
  std::string Prepare() {
    if (example_.is_program()) return "a program";
    if (example_.random || def_.has(kRandom)) return "random";
    const Rule& rule = RuleOf(def_);
    Example f = example_;
    f.inputs.clear();
    f.outputs.clear();
    std::map<std::string, int> counts;
    for (const ExampleInput& given : example_.inputs) {
      ExampleInput in = given;
      if (!in.value.is_tensor() || in.nothing || !in.declared.empty() || in.said)
        return "an operand is no plain tensor";
      if (in.value.tensor().dtype() == DType::kF32) in.value = Value(InDouble(in.value.tensor()));
      in.param = false;
      const int slot = def_.FindInput(in.slot);
      const std::string name = in.slot + "." + std::to_string(counts[in.slot]++);
      if (slot >= 0 && IsDouble(in.value) && Gives(def_, rule, slot)) wanted_.push_back(name);
      f.inputs.push_back(std::move(in));
    }
    if (wanted_.empty()) return "no operand to differentiate by";
    std::vector<std::string> counted;
    std::vector<bool> takes;
    for (const ExampleOutput& out : example_.outputs) {
      if (!out.declared.empty()) return "an output is no plain tensor";
      ExampleOutput own;
      own.slot = out.slot;
      own.check = out.check == testing::Check::kNothing ? out.check : testing::Check::kMeta;
      const int slot = def_.FindOutput(out.slot);
      if (own.check != testing::Check::kNothing)
        takes.push_back(slot >= 0 && Takes(def_, rule, slot));
      f.outputs.push_back(std::move(own));
    }
    auto plain = testing::BuildProgram(f, testing::Operands::kFed);
    if (!plain.ok()) return plain.status().ToString();
    const auto outputs = Run(plain->program, plain->feeds, plain->fetches);
    if (!outputs.ok()) return outputs.status().ToString();
    std::vector<std::string> variables;
    std::vector<Value> values;
    for (size_t k = 0; k < takes.size(); ++k)
      if (takes[k] && IsDouble((*outputs)[k])) {
        variables.push_back(plain->fetches[k]);
        values.push_back((*outputs)[k]);
      }
    if (variables.empty()) return "no output that counts is float64";
    first_ = Weighted(plain->program, plain->feeds, variables, values);
    return "";
  }

  // Compares the gradients of the losses by `wrt`. Gives the program that computes them and their
  // names in it.
  std::string CompareGradients(const Function& f, const std::vector<std::string>& wrt,
                               Program* backward, std::vector<std::string>* names) {
    GradientRequest request;
    request.losses = f.losses;
    request.wrt = wrt;
    request.dense = true;
    const auto made = AppendBackward(f.program, request);
    if (!made.ok()) return made.status().ToString();
    for (const GradientName& g : made->gradients) names->push_back(g.gradient);
    const auto gradients = Run(made->program, f.feeds, *names);
    if (!gradients.ok()) return gradients.status().ToString();
    const auto forward = Compiled(f.program, f.losses);
    if (!forward.ok()) return forward.status().ToString();
    for (size_t k = 0; k < names->size(); ++k) {
      const std::string wrong =
          CompareOne(f, *forward, made->gradients[k].variable, (*gradients)[k]);
      if (!wrong.empty()) return made->gradients[k].variable + ": " + wrong;
    }
    *backward = made->program;
    return "";
  }

  // The gradients of the first gradients, of which each is a loss.
  std::string CompareSecond(const Program& backward, const std::vector<std::string>& names) {
    const auto values = Run(backward, first_.feeds, names);
    if (!values.ok()) return values.status().ToString();
    const Function f = Weighted(backward, first_.feeds, names, *values);
    for (const std::string& operand : wanted_) {
      std::vector<std::string> again;
      Program program;
      GradientRequest request;
      request.losses = f.losses;
      request.wrt = {operand};
      const Status status = AppendBackward(f.program, request).status();
      // No gradient depends on the operand, or one has no gradient itself.
      if (status.code() == StatusCode::kInvalidArgument ||
          status.code() == StatusCode::kUnimplemented)
        continue;
      const std::string wrong = CompareGradients(f, {operand}, &program, &again);
      if (!wrong.empty()) return "second order, " + wrong;
      second_ = true;
    }
    return "";
  }

  Result<CompiledProgram> Compiled(const Program& program,
                                   const std::vector<std::string>& fetches) {
    CompileOptions options;
    options.fetches = fetches;
    options.opt_level = 0;
    options.seed = example_.seed;
    return executor_.Compile(program, nullptr, options);
  }
  Result<std::vector<Value>> Run(const Program& program, const std::vector<Feed>& feeds,
                                 const std::vector<std::string>& fetches) {
    HEDDLE_ASSIGN_OR_RETURN(const auto compiled, Compiled(program, fetches));
    return executor_.RunValues(compiled, feeds);
  }

  // The losses' terms with `moved` in place of an operand.
  Result<std::vector<double>> Terms(const Function& f, const CompiledProgram& forward,
                                    const std::string& operand, const Tensor& moved) {
    std::vector<Feed> feeds = f.feeds;
    for (Feed& feed : feeds)
      if (feed.name == operand) feed.value = Value(moved);
    HEDDLE_ASSIGN_OR_RETURN(const auto values, executor_.RunValues(forward, feeds));
    std::vector<double> terms;
    for (const Value& value : values)
      terms.insert(terms.end(), Numbers(value.tensor()),
                   Numbers(value.tensor()) + value.tensor().numel());
    return terms;
  }

  std::string CompareOne(const Function& f, const CompiledProgram& forward,
                         const std::string& operand, const Value& gradient) {
    Tensor x;
    for (const Feed& feed : f.feeds)
      if (feed.name == operand) x = feed.value.tensor();
    if (!IsDouble(gradient) || gradient.tensor().shape() != x.shape())
      return "its gradient is not of its shape and dtype";
    const auto agrees = [&](const Tensor& direction, std::string* wrong) {
      std::vector<double> slopes;
      for (const double step : kSteps) {
        slopes.push_back(0);
        if (Along(f, forward, operand, x, gradient.tensor(), direction, step, &slopes.back(),
                  wrong))
          return true;
      }
      // The slope over a jump grows as the step shrinks.
      return std::abs(slopes[2]) > 5 * std::abs(slopes[1]) &&
             std::abs(slopes[1]) > 5 * std::abs(slopes[0]);
    };
    std::string wrong;
    if (agrees(Drawn(x.shape(), 17), &wrong)) return "";
    for (int64_t i = 0; i < x.numel(); ++i) {
      Tensor one = Tensor::Zeros(DType::kF64, x.shape());
      one.mutable_data<double>()[i] = 1;
      if (!agrees(one, &wrong)) return "element " + std::to_string(i) + wrong;
    }
    return "";
  }

  // Whether the slope along `direction` is that of the gradient. Where the one-sided slopes differ
  // (a kink), any value between them is right.
  bool Along(const Function& f, const CompiledProgram& forward, const std::string& operand,
             const Tensor& x, const Tensor& gradient, const Tensor& direction, double step,
             double* slope, std::string* wrong) {
    std::vector<double> at[3];
    for (const int side : {-1, 0, 1}) {
      Tensor moved = x.Clone();
      for (int64_t i = 0; i < x.numel(); ++i)
        moved.mutable_data<double>()[i] += side * step * Numbers(direction)[i];
      auto terms = Terms(f, forward, operand, moved);
      *wrong = terms.ok() ? "" : ": " + terms.status().ToString();
      if (!terms.ok()) return false;
      at[side + 1] = *std::move(terms);
    }
    if (at[0].size() != at[1].size() || at[1].size() != at[2].size()) return true;
    double left = 0, right = 0, size = 0, got = 0;
    for (size_t i = 0; i < at[1].size(); ++i) {
      const double l = (at[1][i] - at[0][i]) / step, r = (at[2][i] - at[1][i]) / step;
      left += l;
      right += r;
      size += std::max(std::abs(l), std::abs(r)) + std::abs(at[1][i]);
    }
    for (int64_t i = 0; i < x.numel(); ++i) got += Numbers(gradient)[i] * Numbers(direction)[i];
    const double central = (left + right) / 2, error = kTolerance * (1 + size);
    *slope = central;
    if (!std::isfinite(central)) return true;  // an example may leave the operator's domain
    if (std::abs(got - central) <= error) return true;
    if (got >= std::min(left, right) - error && got <= std::max(left, right) + error) return true;
    *wrong = " is " + std::to_string(got) + ", differences give " + std::to_string(central);
    return false;
  }

  const OpDef& def_;
  const Example& example_;
  std::vector<std::string> wanted_;  // operands
  Function first_;
  bool second_ = false;
  Executor executor_{{.threads = 1}};
};

std::map<std::string, std::vector<Example>> ExamplesByOperator() {
  std::map<std::string, std::vector<Example>> examples;
  for (auto& [name, file] : testing::ReadExampleFiles())
    for (Example& example : file.examples) examples[example.op].push_back(std::move(example));
  return examples;
}

// Whether an example of the operator or of its gradient says that differences mean nothing.
bool MeansNothing(const std::map<std::string, std::vector<Example>>& examples,
                  const std::string& op) {
  for (const std::string& name : {op, op + "_grad"})
    if (const auto found = examples.find(name); found != examples.end())
      for (const Example& e : found->second)
        if (!e.no_gradient.empty() || !e.symmetric.empty()) return true;
  return false;
}

// A gradient operator that reads what its forward operator has computed is no function of its
// operands one by one; it is compared as the second order of that one.
bool ReadsOutputs(const OpDef& def) {
  if (!def.name().ends_with("_grad")) return false;
  const OpDef* const forward = FindOp(def.name().substr(0, def.name().size() - 5));
  if (forward == nullptr) return true;
  return std::any_of(def.inputs().begin(), def.inputs().end(),
                     [&](const SlotDef& slot) { return forward->FindOutput(slot.name) >= 0; });
}

// Why gradients of the example are not its slopes; empty: they are.
std::string WhyNot(const Example& example) {
  auto found = kNotTheSlope.find(testing::NameOf(example));
  if (found == kNotTheSlope.end()) found = kNotTheSlope.find(example.op);
  if (found == kNotTheSlope.end()) return "";
  const auto& [zero_in, why, repeated_in] = found->second;
  const bool always = zero_in.empty() && repeated_in.empty();
  return always || HoldsZero(example, zero_in) || Repeats(example, repeated_in) ? why : "";
}

struct Tally {
  int compared = 0, second = 0;
  std::string why_not;
};

void Compare(const OpDef& def, const Example& example, const std::string& changed, Tally* tally) {
  if (const std::string why = WhyNot(example); !why.empty()) {
    tally->why_not = why;
    return;
  }
  std::string why;
  Subject subject(def, example);
  const std::string wrong = subject.Compare(&why);
  tally->second += subject.second() ? 1 : 0;
  // A form that has no gradient is refused.
  if (!why.empty())
    tally->why_not = why;
  else if (wrong.find("UNIMPLEMENTED: cannot differentiate") == 0)
    tally->why_not = wrong;
  else if (!wrong.empty())
    ADD_FAILURE_AT(example.file.c_str(), example.line)
        << testing::NameOf(example) << changed << ": " << wrong;
  else
    ++tally->compared;
}

// Operators with a gradient that can be compared, by name.
std::vector<const OpDef*> Differentiated(
    const std::map<std::string, std::vector<Example>>& examples) {
  const char* const only = std::getenv("HEDDLE_GRADIENT_OPS");
  const std::string wanted = only == nullptr ? "" : "," + std::string(only) + ",";
  std::vector<const OpDef*> operators;
  for (const auto& [name, of_operator] : examples) {
    if (!wanted.empty() && wanted.find("," + name + ",") == std::string::npos) continue;
    const OpDef* const def = FindOp(name);
    if (def == nullptr || MeansNothing(examples, name) || ReadsOutputs(*def)) continue;
    const Rule::Kind kind = RuleOf(*def).kind;
    if (kind == Rule::Kind::kNamed || kind == Rule::Kind::kComposed) operators.push_back(def);
  }
  return operators;
}

TEST(OperatorGradients, AgreeWithDifferences) {
  const auto examples = ExamplesByOperator();
  int compared = 0, operators = 0, second = 0;
  for (const OpDef* def : Differentiated(examples)) {
    Tally tally;
    for (const Example& example : examples.at(def->name())) Compare(*def, example, "", &tally);
    if (tally.compared == 0)
      std::printf("not compared: %s: %s\n", def->name().c_str(), tally.why_not.c_str());
    compared += tally.compared;
    operators += tally.compared > 0 ? 1 : 0;
    second += tally.second > 0 ? 1 : 0;
  }
  std::printf("%d operators, %d examples; the second order of %d\n", operators, compared, second);
  if (std::getenv("HEDDLE_GRADIENT_OPS") == nullptr) {
    EXPECT_GT(operators, 330);
    EXPECT_GT(second, 100);
  }
}

// Another size of one dimension.
void ChangeShape(std::mt19937& random, Tensor* t) {
  if (t->rank() == 0 || t->numel() == 0 || !t->lod().empty()) return;
  Shape shape = t->shape();
  const int d = static_cast<int>(random() % static_cast<unsigned>(t->rank()));
  const int64_t sizes[] = {1, shape[d] - 1, shape[d] + 1};
  shape[d] = std::max<int64_t>(1, sizes[random() % 3]);
  Tensor made = Tensor::Empty(t->dtype(), shape);
  for (int64_t i = 0; i < made.numel(); ++i)
    made.mutable_data<float>()[i] =
        t->data<float>()[i % t->numel()] * (1 + 0.37f * static_cast<float>(i / t->numel()));
  *t = made;
}

// Changes one thing of `example`; returns what.
std::string Change(std::mt19937& random, const std::vector<Example>& others, Example* example) {
  const auto pick = [&](size_t n) { return static_cast<size_t>(random()) % n; };
  const Example& other = others[pick(others.size())];
  switch (random() % 4) {
    case 0:  // the attributes of another example
      example->attrs = other.attrs;
      return ", attributes of '" + other.title + "'";
    case 1: {  // one attribute
      if (example->attrs.empty()) return "";
      proto::OpDesc_Attr& attr = example->attrs[pick(example->attrs.size())];
      if (attr.has_b())
        attr.set_b(!attr.b());
      else if (attr.has_i())
        attr.set_i(attr.i() + (random() % 2 == 0 ? 1 : -1));
      else if (attr.has_f())
        attr.set_f(attr.f() * 1.5f + 0.25f);
      else if (attr.ints_size() > 0)
        attr.set_ints(static_cast<int>(pick(static_cast<size_t>(attr.ints_size()))),
                      static_cast<int>(random() % 4));
      return ", attribute " + attr.name() + " changed";
    }
    case 2: {  // the shape of one operand
      if (example->inputs.empty()) return "";
      ExampleInput& in = example->inputs[pick(example->inputs.size())];
      if (!in.value.is_tensor() || in.value.tensor().dtype() != DType::kF32) return "";
      Tensor t = in.value.tensor();
      ChangeShape(random, &t);
      in.value = Value(t);
      return ", " + in.slot + " of shape " + t.shape().ToString();
    }
    default: {  // an operand less
      if (example->inputs.size() < 2) return "";
      const auto at = example->inputs.begin() + static_cast<long>(pick(example->inputs.size()));
      const std::string slot = at->slot;
      example->inputs.erase(at);
      return ", without " + slot;
    }
  }
}

TEST(OperatorGradients, OfChangedExamplesAgreeWithDifferences) {
  const char* const said = std::getenv("HEDDLE_GRADIENT_DRAWN");
  const char* const seed = std::getenv("HEDDLE_TEST_SEED");
  const int draws = said == nullptr ? 2 : std::atoi(said);
  std::mt19937 random(seed == nullptr ? 1 : static_cast<uint32_t>(std::atoi(seed)));
  const auto examples = ExamplesByOperator();
  Tally tally;
  for (const OpDef* def : Differentiated(examples)) {
    // Operands of a gradient operator have to fit a forward operator's.
    if (def->name().ends_with("_grad")) continue;
    const std::vector<Example>& of_operator = examples.at(def->name());
    for (int k = 0; k < draws; ++k) {
      Example example = of_operator[random() % of_operator.size()];
      if (example.is_program()) continue;
      const std::string what = Change(random, of_operator, &example);
      if (!what.empty()) Compare(*def, example, what, &tally);
    }
  }
  std::printf("%d changed examples, the second order of %d\n", tally.compared, tally.second);
  if (std::getenv("HEDDLE_GRADIENT_OPS") == nullptr) {
    EXPECT_GT(tally.compared, draws * 80);
  }
}

}  // namespace
}  // namespace heddle::gradient
