// Computes operators that depend only on parameters and constants once, before all runs.
#include <optional>
#include <unordered_map>
#include <utility>

#include "passes/cleanup/deep_reads.h"
#include "passes/cleanup/evaluate.h"
#include "passes/pass.h"
#include "passes/version_view.h"

namespace heddle::passes {
namespace {

using ir::kNoVar;
using ir::VarId;

class Folder {
 public:
  Folder(ir::Program& program, PassContext& context)
      : p_(program), context_(context), view_(program, context) {}

  bool Run() {
    bool changed = false;
    for (size_t b = 0; b < p_.blocks.size(); ++b) {
      view_.Enter(static_cast<int>(b));
      deep_.emplace(&p_, view_);
      block_ = &p_.blocks[b];
      known_ = Values();  // neither clear() nor = {}, which take as long as for the largest block
      tried_.clear();
      folds_.clear();
      for (size_t i = 0; i < block_->ops.size(); ++i) Visit(static_cast<int>(i));
      changed = Apply() || changed;
    }
    return changed;
  }

 private:
  // A known value and the position of its writer; -1: it is a parameter. The value of an operator
  // without inputs is computed at its first use.
  struct Known {
    Value value;
    int writer = -1;
  };

  static bool HasInputs(const ir::Op& op) {
    for (const auto& slot : op.inputs)
      for (VarId v : slot)
        if (v != kNoVar) return true;
    return false;
  }
  bool Foldable(const ir::Op& op) const {
    return IsPure(op) && op.var_attrs.empty() && !op.outputs.empty();
  }

  bool MayKnow(VarId v, int at) const {
    const int writer = view_.WriterBefore(v, at);
    if (writer < 0) return p_.vars[v].persistable && view_.NeverWritten(v);
    if (const auto it = known_.find(v); it != known_.end() && it->second.writer == writer)
      return true;
    const ir::Op& op = block_->ops[static_cast<size_t>(writer)];
    return Foldable(op) && !HasInputs(op) && tried_.count(writer) == 0;
  }

  // The value that the operator at `at` reads from `v`; nullptr: unknown.
  const Value* ValueAt(VarId v, int at) {
    const int writer = view_.WriterBefore(v, at);
    const auto known = [&]() -> const Value* {
      const auto it = known_.find(v);
      return it != known_.end() && it->second.writer == writer ? &it->second.value : nullptr;
    };
    if (const Value* value = known()) return value;
    if (writer >= 0) {
      const ir::Op& op = block_->ops[static_cast<size_t>(writer)];
      if (Foldable(op) && !HasInputs(op) && tried_.insert(writer).second) Compute(op, writer, {});
      return known();
    }
    if (!view_.NeverWritten(v)) return nullptr;
    const Tensor* t = context_.Parameter(p_, v, false);
    if (t == nullptr) return nullptr;
    return &(known_[v] = Known{Value(*t), -1}).value;
  }

  // Computes the operator; false: an output that has readers has no value afterwards.
  bool Compute(const ir::Op& op, int at, const std::vector<const Value*>& inputs,
               std::vector<Value>* results = nullptr) {
    auto outputs = Evaluate(op, inputs, context_.options().max_folded_bytes);
    // Left to the run, which reports the error if it executes the operator.
    if (!outputs.ok()) return false;
    bool complete = true;
    size_t k = 0;
    for (const auto& slot : op.outputs) {
      for (VarId v : slot) {
        const Value& value = (*outputs)[k++];
        if (v == kNoVar) continue;
        const bool known = value.is_tensor() && value.tensor().initialized();
        if (known) known_[v] = Known{value, at};
        const auto readers = view_.Readers(v, at);
        complete = complete && (known || (readers && readers->empty()));
      }
    }
    if (results != nullptr) *results = *std::move(outputs);
    return complete;
  }

  void Visit(int at) {
    const ir::Op& op = block_->ops[static_cast<size_t>(at)];
    if (!Foldable(op) || !HasInputs(op)) return;  // without inputs it is a constant already
    for (const auto& slot : op.inputs)
      for (VarId v : slot)
        if (v != kNoVar && !MayKnow(v, at)) return;
    if (!Wanted(op, at)) return;
    std::vector<const Value*> inputs;
    for (const auto& slot : op.inputs) {
      for (VarId v : slot) {
        inputs.push_back(v == kNoVar ? nullptr : ValueAt(v, at));
        if (v != kNoVar && inputs.back() == nullptr) return;
      }
    }
    std::vector<Value> outputs;
    if (Compute(op, at, inputs, &outputs) && AsDeclared(op, outputs))
      folds_.push_back({at, std::move(outputs)});
  }

  // Whether the outputs are as the program declares them. Other passes rely on declarations, and a
  // plan finds wrong ones; a constant would hide that the declaration was wrong.
  bool AsDeclared(const ir::Op& op, const std::vector<Value>& outputs) const {
    size_t k = 0;
    for (const auto& slot : op.outputs) {
      for (VarId v : slot) {
        const DType dtype = outputs[k++].tensor().dtype();
        if (v == kNoVar || p_.vars[v].dtype == DType::kUnknown) continue;
        if (dtype != DType::kUnknown && dtype != p_.vars[v].dtype) return false;
      }
    }
    return true;
  }

  // The readers of what the operator at `at` writes to `v`, in inner blocks too; nullopt: some
  // operand cannot be replaced. `inside` is set if inner blocks were searched.
  std::optional<std::vector<int>> ReadersOf(VarId v, int at, bool* inside = nullptr) {
    if (auto readers = view_.Readers(v, at)) return readers;
    if (inside != nullptr) *inside = true;
    if (context_.fetched.count(v) > 0 || p_.vars[v].kind != ir::VarKind::kTensor)
      return std::nullopt;
    return deep_->Readers(v, at);
  }

  // Whether the operator's results have readers, all of which can read another variable.
  bool Wanted(const ir::Op& op, int at) {
    bool wanted = false;
    for (const auto& slot : op.outputs) {
      for (VarId v : slot) {
        if (v == kNoVar) continue;
        const auto readers = ReadersOf(v, at);
        if (!readers) return false;
        wanted = wanted || !readers->empty();
      }
    }
    return wanted;
  }

  struct Fold {
    int at;
    std::vector<Value> outputs;
  };

  bool Apply() {
    if (folds_.empty()) return false;
    std::vector<bool> gone(block_->ops.size(), false);
    for (const Fold& f : folds_) gone[static_cast<size_t>(f.at)] = true;
    for (const Fold& f : folds_) {
      const ir::Op op = block_->ops[static_cast<size_t>(f.at)];
      for (const auto& slot : op.inputs)
        for (VarId v : slot)
          if (v != kNoVar && p_.vars[v].persistable) context_.Parameter(p_, v);
      size_t k = 0;
      for (const auto& slot : op.outputs) {
        for (VarId v : slot) {
          const Value& value = f.outputs[k++];
          if (v == kNoVar) continue;
          bool inside = false;
          std::vector<int> readers = *ReadersOf(v, f.at, &inside);
          std::erase_if(readers, [&](int r) { return gone[static_cast<size_t>(r)]; });
          if (readers.empty()) continue;
          const VarId constant = context_.AddConstant(p_, p_.vars[v].name, value.tensor().Clone());
          if (inside)
            deep_->Replace(readers, v, constant);
          else
            ReplaceReads(block_, readers, v, constant);
        }
      }
    }
    if (deep_->Apply()) view_.WalkNested();
    EraseOps(block_, gone);
    return true;
  }

  ir::Program& p_;
  PassContext& context_;
  VersionView view_;
  std::optional<DeepReads> deep_;  // of the block that the view shows
  ir::Block* block_ = nullptr;
  using Values = std::unordered_map<VarId, Known>;
  Values known_;
  std::set<int> tried_;  // operators without inputs that have been evaluated
  std::vector<Fold> folds_;
};

// Whether the program trains. Then parameters such as a learning rate are changed from outside
// between runs, and each change would require another compilation.
bool Trains(const ir::Program& program) {
  for (const ir::Block& b : program.blocks)
    for (const ir::Op& op : b.ops)
      if (op.type().ends_with("_grad")) return true;
  return false;
}

Result<bool> RunFoldConstants(ir::Program& program, PassContext& context) {
  if (Trains(program)) return false;
  return Folder(program, context).Run();
}

}  // namespace
}  // namespace heddle::passes

HEDDLE_PASS(fold_constants) {
  pass.doc =
      "computes operators that depend on parameters and constants alone; the results are "
      "parameters";
  pass.before = "t = transpose2(w); y = matmul_v2(x, t), w a parameter";
  pass.after = "y = matmul_v2(x, t@heddle_7), a parameter";
  pass.refuses =
      "programs with gradients; parameters that some operator writes or that have no value yet; "
      "results larger than PassOptions::max_folded_bytes (10 MiB); operators that fail; operators "
      "with side effects, random numbers or blocks; results that are fetched, or named by blocks "
      "that the operator's block does not run";
  pass.level = 1;
  pass.repeat = true;
  pass.tolerance = 1e-6;  // sums may be split in other ways than on several threads
  pass.run = RunFoldConstants;
}
