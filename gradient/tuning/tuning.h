// Changes that make a model of a file ready for fine-tuning: a loss, a new head, adapters of low
// rank, batch norms in training mode, open batch dimensions.
//
// Each function returns a changed copy of the program; its source stays that of the file, so that
// the tuned model can be written again (SaveTunedModel). `said` tells in one sentence what was
// found and done.
//
// Ownership: results share nothing with the arguments. Threads: any. Errors: kNotFound: there is no
// such variable; kInvalidArgument: it does not fit; kUnimplemented: operators in the way, which are
// named with their place.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "heddle/params.h"
#include "heddle/program.h"
#include "heddle/status.h"

namespace heddle::gradient {

// --- a loss on an output, with labels as a new input
struct LossRequest {
  std::string op;      // one of LossKinds()
  TensorInfo labels;   // name, dtype and shape (-1: open) of the new input
  std::string output;  // what is compared; empty: the only floating output
};
struct AddedLoss {
  Program program;
  std::string loss;  // the variable with the loss, one element
  std::string said;
};
// softmax_with_cross_entropy, cross_entropy, mse, bce and bce_with_logits. Where the output is made
// by a softmax (or a sigmoid, for bce), the loss is computed from what that reads, which is exact
// for small probabilities too. Labels of cross entropies are class numbers, [N] or [N, 1], or as
// many probabilities as there are classes.
Result<AddedLoss> AddLoss(const Program& program, const LossRequest& request);
std::vector<std::string> LossKinds();

// --- a new head
struct HeadRequest {
  int64_t outputs = 0;
  uint64_t seed = 0;
  std::string output;  // the output that the head makes; empty: the only floating output
};
struct NewHead {
  Program program;
  NamedTensors parameters;            // of the head, with new values, under their old names
  std::vector<std::string> reshaped;  // variables with other shapes than before, by name
  std::string said;
};
// Gives the last product before the output (matmul, mul, fc, or a convolution of 1x1) weights for
// another number of outputs: uniform in ±1/sqrt(inputs), a bias of zero.
Result<NewHead> ReplaceHead(const Program& program, const HeadRequest& request);

// --- adapters of low rank: W + scale · left · right in place of W, seen as a matrix whose rows are
// the first dimension
struct Adapter {
  std::string weight;
  Tensor left, right;  // [rows, rank], [rank, columns]
  double scale = 1;
};
struct AdapterRequest {
  int64_t rank = 0;
  double alpha = -1;  // scale is alpha / rank; below zero: alpha is the rank
  uint64_t seed = 0;
  std::function<bool(const std::string&)> on = nullptr;  // which weights; null: all of products
  // Weights on which none of these depends get no adapter; empty: all may.
  std::vector<std::string> losses;
  std::vector<Adapter> given;  // instead of new ones
};
struct Adapted {
  Program program;
  std::vector<Adapter> adapters;
  NamedTensors parameters;           // the adapters' variables: left and right of each in turn
  std::vector<std::string> trained;  // those of these variables that a loss depends on
  std::string said;
};
// New adapters change nothing: one side is zero, the other uniform in ±1/sqrt(inputs).
Result<Adapted> AddAdapters(const Program& program, const AdapterRequest& request);
std::string LeftName(const std::string& weight);
std::string RightName(const std::string& weight);
// As arrays of a file: WEIGHT.lora_left, WEIGHT.lora_right, WEIGHT.lora_scale.
NamedTensors ArraysOf(const std::vector<Adapter>& adapters);
Result<std::vector<Adapter>> AdaptersOf(const NamedTensors& arrays);
// Adds the adapters to the weights in the scope.
Status MergeAdapters(const std::vector<Adapter>& adapters, Scope* scope);

// --- batch norms
struct TrainedNorms {
  Program program;
  std::vector<std::string> statistics;  // variables that training updates
  std::string said;
};
// Batch norms with the statistics of the batch; running statistics are updated.
Result<TrainedNorms> TrainNorms(const Program& program);
// How the model's batch norms stand, as one sentence: how many there are, and where convolutions
// look as if they had absorbed some.
std::string NormsText(const Program& program);

// --- batches of any size
struct OpenedBatch {
  Program program;
  std::string said;
};
// Opens the first dimension of these inputs, which the file fixes. Shapes in reshapes and the like
// that repeat the fixed size follow it, and so do parameters in the scope that are the same for
// each sample, where an operator wants one for each. Refused where an operator does not do the same
// for each sample, as far as shapes tell.
Result<OpenedBatch> OpenBatch(const Program& program, const Scope& scope,
                              const std::vector<std::string>& inputs);

}  // namespace heddle::gradient
