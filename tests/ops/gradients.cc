#include "tests/ops/gradients.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "core/op_registry.h"
#include "core/operands/addend.h"
#include "core/operands/unwritten.h"
#include "tests/ops/compare.h"
#include "tests/ops/crash_note.h"
#include "tests/ops/dtype_variants.h"

namespace heddle::testing {
namespace {

constexpr double kStep = 1e-5;
// Of the sum of all terms' sizes: rounding of the difference, and its error of the second order.
constexpr double kTolerance = 1e-6;

std::string GradOf(const std::string& slot) { return slot + "@GRAD"; }

// The slot whose gradient `slot` is; empty when it is none.
std::string WithoutGrad(const std::string& slot) {
  const std::string suffix = "@GRAD";
  return slot.ends_with(suffix) ? slot.substr(0, slot.size() - suffix.size()) : "";
}

// The numbers of a float64 or complex128 tensor, one after another: a complex element is two, which
// are differentiated by as two real ones. A complex gradient holds both slopes likewise.
double* Numbers(Tensor* t) { return static_cast<double*>(t->mutable_raw()); }
const double* Numbers(const Tensor& t) { return static_cast<const double*>(t.raw()); }
int64_t CountNumbers(const Tensor& t) { return IsComplex(t.dtype()) ? 2 * t.numel() : t.numel(); }

// float64 or complex128 `like` the given one.
Tensor Random(const Tensor& like, uint32_t seed) {
  std::mt19937 rng(seed);
  Tensor t = Tensor::Empty(like.dtype(), like.shape());
  for (int64_t i = 0; i < CountNumbers(t); ++i)
    Numbers(&t)[i] = static_cast<double>(rng()) / 2147483648.0 - 1.0;
  return t;
}

Value InDouble(const Value& value) {
  if (!value.is_tensor()) return value;
  const DType dtype = value.tensor().dtype();
  if (!IsFloat(dtype) && !IsComplex(dtype)) return value;
  return Value(CastTensor(value.tensor(), IsFloat(dtype) ? DType::kF64 : DType::kC128));
}

bool IsDouble(const Value& value) {
  return value.is_tensor() && value.tensor().initialized() &&
         (value.tensor().dtype() == DType::kF64 || value.tensor().dtype() == DType::kC128);
}

// Half the sum of the direction's matrices and their (conjugate) transposes.
Tensor Symmetric(Tensor t) {
  const int64_t n = t.rank() < 2 ? 0 : t.dim(-1), width = IsComplex(t.dtype()) ? 2 : 1;
  if (n == 0 || t.dim(-2) != n) return t;
  for (int64_t first = 0; first < t.numel(); first += n * n)
    for (int64_t r = 0; r < n; ++r)
      for (int64_t c = 0; c <= r; ++c) {
        double *a = Numbers(&t) + (first + r * n + c) * width,
               *b = Numbers(&t) + (first + c * n + r) * width;
        a[0] = b[0] = (a[0] + b[0]) / 2;
        if (width == 2) {
          a[1] = (a[1] - b[1]) / 2;
          b[1] = -a[1];
        }
      }
  return t;
}

std::vector<Value> OperandsOf(const Example& e, const std::string& slot) {
  std::vector<Value> values;
  for (const ExampleInput& in : e.inputs)
    if (in.slot == slot) values.push_back(in.value);
  return values;
}

// An output that is fetched.
ExampleOutput Expecting(const std::string& slot) {
  ExampleOutput out;
  out.slot = slot;
  out.check = Check::kMeta;
  return out;
}

void AddOperands(const std::string& slot, const std::vector<Value>& values, Example* e) {
  for (const Value& value : values) e->inputs.push_back({slot, InDouble(value), false});
}

// The tensor that a gradient is, SelectedRows added up; nothing where there is more than zeros in a
// row that the operand lacks, as the index that stands for padding may be.
Tensor Dense(const Value& gradient, const Shape& shape) {
  if (gradient.is_tensor()) return gradient.tensor();
  Tensor dense = Tensor::Zeros(DType::kF64, shape);
  if (!gradient.is_rows()) return dense;
  const SelectedRows& rows = gradient.rows();
  const int64_t width =
      rows.rows.empty() ? 0 : rows.value.numel() / static_cast<int64_t>(rows.rows.size());
  for (size_t r = 0; r < rows.rows.size(); ++r)
    for (int64_t k = 0; k < width; ++k) {
      const double more = rows.value.data<double>()[static_cast<int64_t>(r) * width + k];
      if (rows.rows[r] >= 0 && (rows.rows[r] + 1) * width <= dense.numel())
        dense.mutable_data<double>()[rows.rows[r] * width + k] += more;
      else if (more != 0)
        return Tensor();
    }
  return dense;
}

// An example's program, compiled once, as a function of one of its operands.
class Function {
 public:
  static Result<Function> Make(Executor& executor, const Example& e) {
    Function f(executor);
    HEDDLE_ASSIGN_OR_RETURN(f.program_, BuildProgram(e, Operands::kFed));
    CompileOptions options;
    options.fetches = f.program_.fetches;
    options.opt_level = 0;
    options.seed = e.seed;
    HEDDLE_ASSIGN_OR_RETURN(auto compiled, executor.Compile(f.program_.program, nullptr, options));
    f.compiled_.push_back(std::move(compiled));
    return f;
  }

  Result<std::vector<Value>> operator()() {
    return executor_.RunValues(compiled_[0], program_.feeds);
  }
  // With `value` in place of operand `operand`, by its position in the example.
  Result<std::vector<Value>> operator()(size_t operand, const Tensor& value) {
    std::vector<Feed> feeds = program_.feeds;
    feeds[operand].value = Value(value);
    return executor_.RunValues(compiled_[0], feeds);
  }

 private:
  explicit Function(Executor& executor) : executor_(executor) {}
  Executor& executor_;
  ExampleProgram program_;
  std::vector<CompiledProgram> compiled_;  // one
};

// The scalar function L = sum over outputs of <output, its gradient>, and its differences.
class Scalar {
 public:
  Scalar(Function forward, std::vector<Value> weights)
      : forward_(std::move(forward)), weights_(std::move(weights)) {}

  struct Slopes {
    double left = 0, right = 0, error = 0;
    double central() const { return (left + right) / 2; }
  };
  // Along `direction` of operand `operand`, which is `x`.
  Result<Slopes> Differences(size_t operand, const Tensor& x, const Tensor& direction) {
    HEDDLE_ASSIGN_OR_RETURN(const auto at, forward_());
    HEDDLE_ASSIGN_OR_RETURN(const auto below, forward_(operand, Moved(x, direction, -kStep)));
    HEDDLE_ASSIGN_OR_RETURN(const auto above, forward_(operand, Moved(x, direction, kStep)));
    Slopes s;
    double size = 0;
    for (size_t o = 0; o < weights_.size(); ++o) {
      if (!IsDouble(weights_[o])) continue;
      const Tensor& w = weights_[o].tensor();
      for (int64_t i = 0; i < CountNumbers(w); ++i) {
        const double y = Numbers(at[o].tensor())[i], wi = Numbers(w)[i];
        const double right = wi * (Numbers(above[o].tensor())[i] - y) / kStep;
        const double left = wi * (y - Numbers(below[o].tensor())[i]) / kStep;
        s.left += left;
        s.right += right;
        size += std::max(std::abs(left), std::abs(right)) + std::abs(wi * y);
      }
    }
    s.error = kTolerance * (1 + size);
    return s;
  }

 private:
  static Tensor Moved(const Tensor& x, const Tensor& direction, double step) {
    Tensor moved = x.Clone();
    for (int64_t i = 0; i < CountNumbers(x); ++i)
      Numbers(&moved)[i] += step * Numbers(direction)[i];
    return moved;
  }
  Function forward_;
  std::vector<Value> weights_;  // per output; another dtype where it does not count
};

// All that the forward operator needs, with one to differentiate by.
bool HasOperands(const Example& e, const OpDef& gradient, const OpDef& forward) {
  bool has_float = false;
  for (const SlotDef& slot : forward.inputs()) {
    const std::vector<Value> values = OperandsOf(e, slot.name);
    if ((slot.flags & kOptional) == 0 && values.empty()) return false;
    if (gradient.FindOutput(GradOf(slot.name)) < 0) continue;
    for (const Value& v : values) has_float = has_float || IsDouble(InDouble(v));
  }
  return has_float && !e.is_program();
}

class GradientChecker {
 public:
  GradientChecker(Lab& lab, const Example& example, const OpDef& gradient, const OpDef& forward,
                  const ExamplesByOp& examples)
      : lab_(lab), given_(example), gradient_(gradient), forward_(forward), examples_(examples) {}

  GradientCheck Run() {
    result_.why_not = "no example has operands of " + forward_.name() + " to differentiate by";
    std::vector<const Example*> sources = {&given_};
    const bool of_forward = given_.op == forward_.name();
    if (const auto found = examples_.find(forward_.name()); !of_forward && found != examples_.end())
      sources.insert(sources.end(), found->second.begin(), found->second.end());
    for (const Example* source : sources) {
      if (!HasOperands(*source)) continue;
      ChooseForward(*source);
      const Status status = CompareAll();
      if (status.ok()) {
        result_.why_not.clear();
        break;
      }
      result_.why_not = status.ToString();
    }
    return std::move(result_);
  }

 private:
  // Not OK: the operators do not take these operands.
  Status CompareAll() {
    HEDDLE_ASSIGN_OR_RETURN(auto function, Function::Make(lab_.Plain(), f_));
    HEDDLE_ASSIGN_OR_RETURN(const auto outputs, function());
    std::vector<Value> weights = MakeGradient(outputs);
    if (g_.outputs.empty()) return Status::Ok();
    HEDDLE_ASSIGN_OR_RETURN(const auto gradients, RunExample(lab_.Plain(), g_));
    Scalar scalar(std::move(function), std::move(weights));
    for (size_t i = 0; i < g_.outputs.size(); ++i)
      Compare(scalar, operands_[i], g_.outputs[i].slot, gradients.outputs[i]);
    return Status::Ok();
  }

  // The forward operator with an example's operands in double precision.
  void ChooseForward(const Example& given_operands) {
    const Example* const source = &given_operands;
    own_ = source == &given_ && given_.op == gradient_.name();
    operands_.clear();
    f_ = *source;
    f_.op = forward_.name();
    f_.inputs.clear();
    f_.outputs.clear();
    for (const SlotDef& slot : forward_.inputs())
      AddOperands(slot.name, OperandsOf(*source, slot.name), &f_);
    for (const SlotDef& slot : forward_.outputs()) {
      const size_t count = CountOf(*source, slot);
      for (size_t i = 0; i < count; ++i) f_.outputs.push_back(Expecting(slot.name));
      if ((slot.flags & kNoData) && (slot.flags & kMayBeUnwritten))  // it cannot be fetched
        for (size_t i = 0; i < count; ++i) f_.outputs.rbegin()[i].check = Check::kNothing;
    }
  }

  bool HasOperands(const Example& e) const { return testing::HasOperands(e, gradient_, forward_); }

  // How many variables the forward operator writes in a slot.
  size_t CountOf(const Example& source, const SlotDef& slot) const {
    size_t count = std::max(OperandsOf(source, GradOf(slot.name)).size(),
                            OperandsOf(source, slot.name).size());
    // The gradient may call the only output otherwise.
    for (const SlotDef& in : gradient_.inputs())
      if (own_ && count == 0 && forward_.outputs().size() == 1 && in.name.ends_with("@GRAD"))
        count = OperandsOf(source, in.name).size();
    if (!own_)
      for (const ExampleOutput& out : source.outputs) count += out.slot == slot.name ? 1 : 0;
    return count == 0 && (slot.flags & kOptional) == 0 ? 1 : count;
  }

  // The gradient operator's call for these outputs of the forward one. Returns the outputs'
  // gradients.
  std::vector<Value> MakeGradient(const std::vector<Value>& outputs) {
    std::vector<Value> weights(outputs.size());
    g_ = own_ ? given_ : f_;
    g_.op = gradient_.name();
    g_.inputs.clear();
    g_.outputs.clear();
    for (const SlotDef& slot : gradient_.inputs()) {
      if ((slot.flags & kAddend) != 0) continue;  // no part of the gradient
      std::string of = WithoutGrad(slot.name);
      if (!of.empty() && forward_.FindOutput(of) < 0 && forward_.FindInput(of) < 0 &&
          forward_.outputs().size() == 1)
        of = forward_.outputs()[0].name;  // the only output, called otherwise
      if (forward_.FindInput(slot.name) >= 0) {
        for (size_t i = 0; i < f_.inputs.size(); ++i)
          if (f_.inputs[i].slot == slot.name) g_.inputs.push_back(f_.inputs[i]);
      } else if (forward_.FindOutput(slot.name) >= 0) {
        for (size_t i = 0; i < outputs.size(); ++i)
          if (f_.outputs[i].slot == slot.name) g_.inputs.push_back({slot.name, outputs[i], false});
      } else if (forward_.FindOutput(of) >= 0) {
        AddWeights(slot.name, of, outputs, &weights);
      } else if (of.empty() && outputs.size() == 1) {  // the only output, called otherwise
        g_.inputs.push_back({slot.name, outputs[0], false});
      }
    }
    for (size_t i = 0; i < f_.inputs.size(); ++i) {
      if (!IsDouble(f_.inputs[i].value) || !Wanted(GradOf(f_.inputs[i].slot))) continue;
      g_.outputs.push_back(Expecting(GradOf(f_.inputs[i].slot)));
      operands_.push_back(i);
    }
    return weights;
  }

  // Whether to compare a gradient: the example has it, or the operator may give it.
  bool Wanted(const std::string& slot) const {
    if (gradient_.FindOutput(slot) < 0) return false;
    const Strings& left_out = given_.no_gradient_slots;
    if (std::find(left_out.begin(), left_out.end(), WithoutGrad(slot)) != left_out.end())
      return false;
    if (!own_) return true;
    return std::any_of(given_.outputs.begin(), given_.outputs.end(),
                       [&](const ExampleOutput& out) { return out.slot == slot; });
  }

  void AddWeights(const std::string& slot, const std::string& of, const std::vector<Value>& outputs,
                  std::vector<Value>* weights) {
    const std::vector<Value> given = OperandsOf(given_, slot);
    if (own_ && given.empty()) return;  // nothing depends on this output
    size_t next = 0;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (f_.outputs[i].slot != of) continue;
      Value weight;
      if (own_ && next < given.size())
        weight = InDouble(given[next]);
      else if (IsDouble(outputs[i]))
        weight = Value(Random(outputs[i].tensor(), static_cast<uint32_t>(i) + 1));
      ++next;
      if (IsDouble(weight)) weight.tensor().set_lod(outputs[i].tensor().lod());
      g_.inputs.push_back({slot, weight, false});
      (*weights)[i] = weight;
    }
  }

  void Compare(Scalar& scalar, size_t operand, const std::string& slot, const Value& gradient) {
    const Tensor& x = f_.inputs[operand].value.tensor();
    const Tensor dx = Dense(gradient, x.shape());
    if (!dx.initialized() || dx.dtype() != x.dtype() || dx.numel() != x.numel()) {
      result_.problems.push_back(
          {"gradient", slot + ": is no tensor of the operand's dtype and size"});
      return;
    }
    ++result_.compared;
    const bool symmetric = !given_.symmetric.empty();
    const Tensor drawn = Random(x, 17);
    if (Agrees(scalar, operand, x, dx, symmetric ? Symmetric(drawn) : drawn).empty()) return;
    for (int64_t i = 0; i < CountNumbers(x); ++i) {
      Tensor along = Tensor::Zeros(x.dtype(), x.shape());
      Numbers(&along)[i] = 1;
      if (symmetric) along = Symmetric(along);
      const std::string wrong = Agrees(scalar, operand, x, dx, along);
      if (wrong.empty()) continue;
      result_.problems.push_back({"gradient", slot + ": element " + std::to_string(i) + wrong});
      return;
    }
  }

  std::string Agrees(Scalar& scalar, size_t operand, const Tensor& x, const Tensor& dx,
                     const Tensor& along) const {
    const auto slopes = scalar.Differences(operand, x, along);
    if (!slopes.ok()) return ": " + slopes.status().ToString();
    // The forward operator's own examples may leave its domain.
    if (given_.op == forward_.name() && !std::isfinite(slopes->central())) return "";
    double got = 0;
    for (int64_t i = 0; i < CountNumbers(x); ++i) got += Numbers(dx)[i] * Numbers(along)[i];
    if (std::abs(got - slopes->central()) <= slopes->error) return "";
    if (!std::isfinite(got) && !std::isfinite(slopes->central())) return "";  // a pole
    const double least = std::min(slopes->left, slopes->right) - slopes->error;
    const double most = std::max(slopes->left, slopes->right) + slopes->error;
    if (got >= least && got <= most) return "";
    return " is " + std::to_string(got) + ", differences give " + std::to_string(slopes->central());
  }

  Lab& lab_;
  const Example& given_;
  const OpDef &gradient_, &forward_;
  const ExamplesByOp& examples_;
  bool own_ = true;               // the forward operands are the gradient example's
  Example f_, g_;                 // the calls of both operators
  std::vector<size_t> operands_;  // per output of g_, the operand of f_
  GradientCheck result_;
};

}  // namespace

const OpDef* ForwardOf(const OpDef& gradient) {
  const std::string suffix = "_grad", &name = gradient.name();
  if (!name.ends_with(suffix)) return nullptr;
  const OpDef* const forward = FindOp(name.substr(0, name.size() - suffix.size()));
  if (forward == nullptr || forward->has(kRandom) || forward->has(kControlFlow)) return nullptr;
  if (forward->name().ends_with(suffix)) return nullptr;
  const bool named =
      std::any_of(gradient.outputs().begin(), gradient.outputs().end(), [&](const SlotDef& slot) {
        const std::string of = WithoutGrad(slot.name);
        return !of.empty() && forward->FindInput(of) >= 0;
      });
  return named ? forward : nullptr;
}

bool BothInDouble(const OpDef& gradient, const OpDef& forward) {
  const auto in_double = [](const OpDef& def) {
    return def.kernel(DType::kF64) != nullptr || def.kernel(DType::kC128) != nullptr;
  };
  return in_double(gradient) && in_double(forward);
}

std::vector<const Example*> Differentiated(const OpDef& gradient, const ExamplesByOp& examples) {
  const OpDef* const forward = ForwardOf(gradient);
  const auto own = examples.find(gradient.name());
  if (forward == nullptr || own == examples.end() || !BothInDouble(gradient, *forward)) return {};
  const bool means_nothing = std::any_of(
      own->second.begin(), own->second.end(),
      [](const Example* e) { return !e->no_gradient.empty() && e->no_gradient_slots.empty(); });
  const auto found = examples.find(forward->name());
  if (means_nothing || found == examples.end()) return {};
  std::vector<const Example*> differentiated;
  for (const Example* e : found->second)
    if (e->no_gradient.empty() && HasOperands(*e, gradient, *forward)) differentiated.push_back(e);
  return differentiated;
}

Example ForGradient(const Example& forward_example,
                    const std::vector<const Example*>& gradient_examples) {
  Example e = forward_example;
  for (const Example* own : gradient_examples) {
    e.no_gradient_slots.insert(e.no_gradient_slots.end(), own->no_gradient_slots.begin(),
                               own->no_gradient_slots.end());
    if (!own->symmetric.empty()) e.symmetric = own->symmetric;
  }
  return e;
}

GradientCheck CheckGradient(Lab& lab, const Example& example, const OpDef& gradient,
                            const OpDef& forward, const ExamplesByOp& examples) {
  CrashNote note(example, "gradient");
  return GradientChecker(lab, example, gradient, forward, examples).Run();
}

}  // namespace heddle::testing
