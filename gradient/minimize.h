// Training steps: a program with its gradients, then the operators that update the parameters.
//
// The rules are those of Paddle 2.6; the operators are sgd, momentum, adam, …, so that a step is a
// program as any other. The learning rate is a persistable variable, set from outside before a
// step.
//
// Ownership: results share nothing with the arguments. Threads: any. Errors: as AppendBackward;
// kInvalidArgument: an optimizer of that name does not exist, a parameter has an open shape.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gradient/gradient.h"
#include "heddle/params.h"

namespace heddle::gradient {

struct OptimizerRule {
  // sgd, momentum, adam, adamw, adagrad, rmsprop, adamax, adadelta or lamb
  std::string kind;
  // Numbers below zero are not given: the rule's defaults.
  double momentum = -1, beta1 = -1, beta2 = -1, epsilon = -1, rho = -1;
  double initial_accumulator = 0, weight_decay = -1;
  bool nesterov = false, centered = false, lazy = false;
  // At most one is above zero.
  double clip_value = 0, clip_norm = 0, clip_global_norm = 0;
  // Whether a parameter has no weight decay, and whether it is not trained; null: none.
  std::function<bool(const std::string&)> no_decay, frozen;
};

struct TrainingStep {
  Program program;
  std::vector<GradientName> gradients;  // of the trained parameters
  // Variables of the optimizer that must be set before the first step.
  NamedTensors state;
  std::string learning_rate;  // one float32
};

Result<TrainingStep> Minimize(const Program& program, const GradientRequest& request,
                              const OptimizerRule& rule);

// The names of the rules.
std::vector<std::string> OptimizerKinds();

}  // namespace heddle::gradient
