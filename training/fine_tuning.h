// Fine-tuning: goes on training the model of a file, step by step, and writes it back.
//
// The gradients and the updates are added to the model's program; parameters come from the file and
// go back into a file of its format. Who drives the steps (a command, a script) chooses batches,
// learning rates and when to stop.
//
// Ownership: keeps the executor's compiled programs, so it must not outlive the executor. Threads:
// one at a time. Errors: those of Prepare, Minimize, Compile and RunValues; a failed step leaves
// parameters at their last complete value.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gradient/minimize.h"
#include "heddle/executor.h"
#include "heddle/generator.h"
#include "heddle/program.h"
#include "heddle/status.h"
#include "training/checkpoint.h"
#include "training/fetch_stacks.h"
#include "training/prepare.h"

namespace heddle::training {

struct FineTuneOptions {
  std::vector<std::string> losses;            // of the model; their sum is minimised
  std::vector<std::string> wrt;               // what is trained; empty: all trainable parameters
  std::vector<std::string> freeze, no_decay;  // globs of parameters
  gradient::OptimizerRule rule;               // its functions are set by the globs
  PrepareOptions prepare;
  std::vector<std::string> fetches;  // followed in each step; empty: the losses
  bool with_losses = false;          // the losses first, then `fetches`; their sums are kept
  bool stack = false;                // keep what is fetched, of all steps
  CompileOptions compile;
  // Bytes of parameters, optimizer state and temporaries; 0: no limit. See memory_limit.h; the
  // first example is taken for the largest batch.
  size_t memory_limit = 0;
  uint64_t seed = 0;
};

class FineTuning {
 public:
  // Changes the model's scope. `name` precedes messages; `examples`: see Prepare.
  static Result<std::unique_ptr<FineTuning>> Open(Executor& executor, Model model,
                                                  const std::string& name,
                                                  const FineTuneOptions& options,
                                                  const std::vector<std::vector<Feed>>& examples);

  // Takes checkpoints in a directory, the newest `keep` of them. If `resume`, goes on from the
  // newest; an error if there are some and `resume` is not set, or if more than `most` steps are
  // done. `data` describes the batches, which must be the same.
  Status OpenCheckpoints(const std::string& directory, int keep, bool resume,
                         const std::string& data, int64_t most, std::vector<std::string>* warnings);
  // Nothing without OpenCheckpoints, or if no step was done since the last one.
  Status Checkpoint();
  // Lets go of the directory; no checkpoint is taken from then on.
  void CloseCheckpoints() { checkpoints_.reset(); }
  // The directory of the newest checkpoint; empty: there is none.
  std::string checkpoint_path() const;

  // One step: what is fetched, from before the update.
  Result<std::vector<Value>> Step(const std::vector<Feed>& feeds, double rate, RunOptions run = {});
  // The mean of the loss over these batches, weighted by their samples, without an update. Batch
  // norms use their statistics.
  Result<double> Evaluate(const std::vector<std::vector<Feed>>& batches, RunOptions run = {});

  int64_t done() const { return done_; }  // steps, with those before a checkpoint
  const Prepared& prepared() const { return prepared_; }
  const gradient::TrainingStep& step() const { return step_; }
  const std::vector<std::string>& fetches() const { return fetches_; }
  const FetchStacks& stacks() const { return stacks_; }
  // With `with_losses`: the sum of all losses' elements in each step so far.
  const std::vector<double>& losses() const { return losses_; }
  const Model& model() const { return model_; }

  // All persistable variables that have a value, the optimizer's state included, by name.
  NamedTensors Arrays() const;
  Result<std::vector<gradient::Adapter>> Adapters() const;
  // The model as it is to be used, adapters added to their weights. Its scope has values of its own
  // for these, and shares all others.
  Result<Model> Tuned() const;
  // Writes that model as the file it came from has it. `file`: see FindProgramFile.
  Status Export(const std::string& file, const std::string& directory) const;

 private:
  FineTuning(Executor& executor, Model model, const FineTuneOptions& options)
      : executor_(executor),
        model_(std::move(model)),
        options_(options),
        generator_(options.seed) {}
  Status Build(const std::string& name, const std::vector<std::vector<Feed>>& examples);
  void SetRate(double rate);
  std::vector<std::string> Changed() const;
  Result<std::vector<std::pair<size_t, Value>>> FetchedBefore() const;

  Executor& executor_;
  Model model_;
  FineTuneOptions options_;
  Generator generator_;
  Prepared prepared_;
  gradient::TrainingStep step_;
  std::optional<CompiledProgram> compiled_, evaluation_;
  std::vector<std::string> fetches_;
  FetchStacks stacks_{{}};
  std::vector<double> losses_;
  std::optional<double> rate_;  // that the scope has
  int64_t done_ = 0;
  // Of checkpoints.
  std::unique_ptr<CheckpointDirectory> checkpoints_;
  std::string data_;
  int64_t saved_ = -1;
};

}  // namespace heddle::training
