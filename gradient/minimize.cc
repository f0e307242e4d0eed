#include "gradient/minimize.h"

#include <algorithm>

#include "core/error.h"
#include "core/op_registry.h"
#include "gradient/block_gradient.h"
#include "gradient/op_gradient.h"

namespace heddle::gradient {
namespace {

using ir::kNoVar;
using ir::Op;
using ir::Var;
using ir::VarId;

double Or(double given, double otherwise) { return given >= 0 ? given : otherwise; }

class StepMaker {
 public:
  StepMaker(const Gradients& gradients, const OptimizerRule& rule)
      : rule_(rule),
        program_(std::make_shared<ir::Program>(gradients.program.ir())),
        shared_(program_.get()) {
    step_.gradients = gradients.gradients;
  }

  Result<TrainingStep> Run() {
    rate_ = State("learning_rate", DType::kF32, Shape({1}), 0);
    step_.learning_rate = program_->vars[rate_].name;
    std::vector<std::pair<VarId, VarId>> pairs;
    for (const GradientName& name : step_.gradients)
      pairs.emplace_back(program_->Find(0, name.variable), program_->Find(0, name.gradient));
    Clip(&pairs);
    for (size_t k = 0; k < pairs.size(); ++k) {
      const auto [parameter, gradient] = pairs[k];
      about_ = k;
      HEDDLE_RETURN_IF_ERROR(Update(parameter, Decayed(parameter, gradient)));
    }
    HEDDLE_ASSIGN_OR_RETURN(const std::string bytes, Program(program_).Serialize("paddle"));
    HEDDLE_ASSIGN_OR_RETURN(step_.program, Program::Parse(bytes, "the training step"));
    return std::move(step_);
  }

 private:
  using Slots = std::vector<std::pair<std::string_view, std::vector<VarId>>>;

  void Emit(std::string_view type, const Slots& in, const Slots& out, const Settings& settings) {
    Op op = ir::MakeOp(*FindOp(type));
    for (const auto& [slot, vars] : in)
      op.inputs[static_cast<size_t>(op.def->FindInput(slot))] = vars;
    for (const auto& [slot, vars] : out)
      op.outputs[static_cast<size_t>(op.def->FindOutput(slot))] = vars;
    for (const Setting& s : settings)
      op.attrs[static_cast<size_t>(op.def->FindAttr(s.name))] = s.value;
    ir::OpRole role{ir::OpRole::kOptimize, {}};
    if (about_ < step_.gradients.size())
      role.pairs = {step_.gradients[about_].variable, step_.gradients[about_].gradient};
    op.role = std::make_shared<const ir::OpRole>(std::move(role));
    program_->blocks[0].ops.push_back(std::move(op));
  }
  VarId NewVar(const std::string& stem, DType dtype, const Shape& shape) {
    Var like;
    like.dtype = dtype;
    like.shape = shape;
    return shared_.AddVar(stem, 0, like);
  }
  VarId LikeVar(VarId like, const std::string& suffix) {
    Var copy = program_->vars[like];
    return shared_.AddVar(copy.name + suffix, 0, copy);
  }
  // A variable that the optimizer keeps.
  VarId State(const std::string& stem, DType dtype, const Shape& shape, double value) {
    const VarId v = NewVar(stem, dtype, shape);
    program_->vars[v].persistable = true;
    Tensor tensor = Tensor::Zeros(dtype, shape);
    if (dtype == DType::kF64)
      std::fill_n(tensor.mutable_data<double>(), tensor.numel(), value);
    else
      std::fill_n(tensor.mutable_data<float>(), tensor.numel(), static_cast<float>(value));
    step_.state.emplace_back(program_->vars[v].name, std::move(tensor));
    return v;
  }

  // Calls fn for each parameter and its gradient; operators that it makes are marked as theirs.
  template <typename Fn>
  void ForEach(std::vector<std::pair<VarId, VarId>>* pairs, Fn&& fn) {
    for (about_ = 0; about_ < pairs->size(); ++about_)
      fn((*pairs)[about_].first, (*pairs)[about_].second);
    about_ = kNoParameter;
  }

  void Clip(std::vector<std::pair<VarId, VarId>>* pairs) {
    if (rule_.clip_value > 0)
      ForEach(pairs, [&](VarId, VarId& gradient) {
        const VarId clipped = LikeVar(gradient, "@CLIP");
        Emit("clip", {{"X", {gradient}}}, {{"Out", {clipped}}},
             {{"min", -rule_.clip_value}, {"max", rule_.clip_value}});
        gradient = clipped;
      });
    if (rule_.clip_norm > 0)
      ForEach(pairs, [&](VarId, VarId& gradient) {
        const VarId clipped = LikeVar(gradient, "@CLIP");
        Emit("clip_by_norm", {{"X", {gradient}}}, {{"Out", {clipped}}},
             {{"max_norm", rule_.clip_norm}});
        gradient = clipped;
      });
    if (rule_.clip_global_norm <= 0) return;
    // g c / max(norm over all, c)
    const double c = rule_.clip_global_norm;
    std::vector<VarId> squares;
    DType dtype = DType::kF32;
    ForEach(pairs, [&](VarId parameter, VarId gradient) {
      dtype = program_->vars[parameter].dtype;
      squares.push_back(NewVar("clip@SQUARES", dtype, Shape({1})));
      Emit("squared_l2_norm", {{"X", {gradient}}}, {{"Out", {squares.back()}}}, {});
    });
    const VarId sum = NewVar("clip@SUM", dtype, Shape({1}));
    const VarId norm = NewVar("clip@NORM", dtype, Shape({1}));
    const VarId least = NewVar("clip@LEAST", dtype, Shape({1}));
    const VarId most = NewVar("clip@MOST", dtype, Shape({1}));
    const VarId factor = NewVar("clip@FACTOR", dtype, Shape({1}));
    Emit("sum", {{"X", squares}}, {{"Out", {sum}}}, {});
    Emit("sqrt", {{"X", {sum}}}, {{"Out", {norm}}}, {});
    Emit("fill_any_like", {{"X", {norm}}}, {{"Out", {least}}}, {{"value", c}});
    Emit("elementwise_max", {{"X", {norm}}, {"Y", {least}}}, {{"Out", {most}}}, {});
    Emit("elementwise_div", {{"X", {least}}, {"Y", {most}}}, {{"Out", {factor}}}, {});
    ForEach(pairs, [&](VarId, VarId& gradient) {
      const VarId clipped = LikeVar(gradient, "@CLIP");
      Emit("scale", {{"X", {gradient}}, {"ScaleTensor", {factor}}}, {{"Out", {clipped}}}, {});
      gradient = clipped;
    });
  }

  bool InRule() const { return rule_.kind == "adamw" || rule_.kind == "lamb"; }
  double DecayOf(VarId parameter) const {
    if (rule_.no_decay && rule_.no_decay(program_->vars[parameter].name)) return 0;
    return Or(rule_.weight_decay, rule_.kind == "adamw" ? 0.01 : 0);
  }
  // g + w p, where the rule itself has no decay.
  VarId Decayed(VarId parameter, VarId gradient) {
    const double w = InRule() ? 0 : DecayOf(parameter);
    if (w == 0) return gradient;
    const VarId part = LikeVar(parameter, "@DECAY");
    const VarId sum = LikeVar(parameter, "@DECAYED");
    for (const VarId v : {part, sum}) program_->vars[v].persistable = false;
    Emit("scale", {{"X", {parameter}}}, {{"Out", {part}}}, {{"scale", w}});
    Emit("sum", {{"X", {gradient, part}}}, {{"Out", {sum}}}, {});
    return sum;
  }

  Status Update(VarId p, VarId g) {
    const Var parameter = program_->vars[p];
    if (!parameter.shape.is_static())
      return InvalidArgument("the shape of parameter '", parameter.name, "' is not known");
    const auto like = [&](const char* suffix, double value = 0) {
      return State(parameter.name + suffix, parameter.dtype, parameter.shape, value);
    };
    const auto power = [&](const char* suffix, double beta) {
      return State(parameter.name + suffix, parameter.dtype, Shape({1}), beta);
    };
    const std::string& kind = rule_.kind;
    const Slots base = {{"Param", {p}}, {"Grad", {g}}, {"LearningRate", {rate_}}};
    const auto with = [&](Slots more) {
      more.insert(more.begin(), base.begin(), base.end());
      return more;
    };
    const double beta1 = Or(rule_.beta1, 0.9), beta2 = Or(rule_.beta2, 0.999);
    if (kind == "sgd") {
      Emit("sgd", base, {{"ParamOut", {p}}}, {});
    } else if (kind == "momentum") {
      const VarId v = like("_velocity_0");
      Emit("momentum", with({{"Velocity", {v}}}), {{"ParamOut", {p}}, {"VelocityOut", {v}}},
           {{"mu", Or(rule_.momentum, 0.9)}, {"use_nesterov", rule_.nesterov}});
    } else if (kind == "adam" || kind == "adamw" || kind == "lamb") {
      const VarId m = like("_moment1_0"), u = like("_moment2_0");
      const VarId b1 = power("_beta1_pow_acc_0", beta1), b2 = power("_beta2_pow_acc_0", beta2);
      Settings settings = {{"beta1", beta1},
                           {"beta2", beta2},
                           {"epsilon", Or(rule_.epsilon, kind == "lamb" ? 1e-6 : 1e-8)}};
      if (kind == "lamb") {
        settings.emplace_back("weight_decay", DecayOf(p));
        settings.emplace_back("always_adapt", true);  // the ratio of norms is part of the rule
      } else {
        settings.emplace_back("lazy_mode", rule_.lazy);
        if (kind == "adamw") {
          settings.emplace_back("coeff", DecayOf(p));
          settings.emplace_back("with_decay", DecayOf(p) != 0);
        }
      }
      Emit(kind, with({{"Moment1", {m}}, {"Moment2", {u}}, {"Beta1Pow", {b1}}, {"Beta2Pow", {b2}}}),
           {{"ParamOut", {p}},
            {"Moment1Out", {m}},
            {"Moment2Out", {u}},
            {"Beta1PowOut", {b1}},
            {"Beta2PowOut", {b2}}},
           settings);
    } else if (kind == "adagrad") {
      const VarId u = like("_moment_0", rule_.initial_accumulator);
      Emit("adagrad", with({{"Moment", {u}}}), {{"ParamOut", {p}}, {"MomentOut", {u}}},
           {{"epsilon", Or(rule_.epsilon, 1e-6)}});
    } else if (kind == "rmsprop") {
      const VarId v = like("_momentum_0"), u = like("_mean_square_0"), a = like("_mean_grad_0");
      Emit("rmsprop", with({{"Moment", {v}}, {"MeanSquare", {u}}, {"MeanGrad", {a}}}),
           {{"ParamOut", {p}}, {"MomentOut", {v}}, {"MeanSquareOut", {u}}, {"MeanGradOut", {a}}},
           {{"epsilon", Or(rule_.epsilon, 1e-6)},
            {"decay", Or(rule_.rho, 0.95)},
            {"momentum", Or(rule_.momentum, 0)},
            {"centered", rule_.centered}});
    } else if (kind == "adamax") {
      const VarId m = like("_moment_0"), n = like("_inf_norm_0");
      const VarId b1 = power("_beta1_pow_acc_0", beta1);
      Emit("adamax", with({{"Moment", {m}}, {"InfNorm", {n}}, {"Beta1Pow", {b1}}}),
           {{"ParamOut", {p}}, {"MomentOut", {m}}, {"InfNormOut", {n}}},
           {{"beta1", beta1}, {"beta2", beta2}, {"epsilon", Or(rule_.epsilon, 1e-8)}});
      // The operator itself leaves the power as it is.
      Emit("scale", {{"X", {b1}}}, {{"Out", {b1}}}, {{"scale", beta1}});
    } else {
      const VarId u = like("__avg_squared_grad_0"), e = like("__avg_squared_update_0");
      Emit("adadelta", with({{"AvgSquaredGrad", {u}}, {"AvgSquaredUpdate", {e}}}),
           {{"ParamOut", {p}}, {"AvgSquaredGradOut", {u}}, {"AvgSquaredUpdateOut", {e}}},
           {{"rho", Or(rule_.rho, 0.95)}, {"epsilon", Or(rule_.epsilon, 1e-6)}});
    }
    return Status::Ok();
  }

  const OptimizerRule& rule_;
  std::shared_ptr<ir::Program> program_;
  Shared shared_;
  TrainingStep step_;
  VarId rate_ = kNoVar;
  static constexpr size_t kNoParameter = ~size_t{0};
  size_t about_ = kNoParameter;  // the parameter that operators are made for
};

}  // namespace

std::vector<std::string> OptimizerKinds() {
  return {"sgd", "momentum", "adam", "adamw", "adagrad", "rmsprop", "adamax", "adadelta", "lamb"};
}

Result<TrainingStep> Minimize(const Program& program, const GradientRequest& request,
                              const OptimizerRule& rule) {
  const std::vector<std::string> kinds = OptimizerKinds();
  if (std::find(kinds.begin(), kinds.end(), rule.kind) == kinds.end())
    return InvalidArgument("there is no optimizer '", rule.kind, "'");
  GradientRequest mine = request;
  mine.frozen = rule.frozen;
  if (mine.wrt && rule.frozen) std::erase_if(*mine.wrt, rule.frozen);
  // Rules that look at all rows want all of them. Adam gets the rows that there are, as in Paddle,
  // where its bias correction of sparse gradients is that of the next step.
  mine.dense = !(rule.kind == "sgd" || rule.kind == "adam") || rule.clip_value > 0 ||
               rule.clip_norm > 0 || rule.clip_global_norm > 0 || rule.weight_decay > 0;
  HEDDLE_ASSIGN_OR_RETURN(const Gradients gradients, AppendBackward(program, mine));
  return StepMaker(gradients, rule).Run();
}

}  // namespace heddle::gradient
