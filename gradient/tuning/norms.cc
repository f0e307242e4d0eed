// Batch norms in training mode.
#include <algorithm>
#include <set>

#include "core/error.h"
#include "gradient/tuning/products.h"
#include "gradient/tuning/tuning.h"

namespace heddle::gradient {
namespace {

using ir::kNoVar;
using ir::Op;
using ir::VarId;

bool IsNorm(const Op& op) { return op.type() == "batch_norm" || op.type() == "sync_batch_norm"; }
bool IsFixed(const Op& op) { return op.Attr<bool>("is_test") || op.Attr<bool>("use_global_stats"); }

void SetFlag(Op* op, std::string_view name, bool value) {
  const int a = op->def->FindAttr(name);
  if (a >= 0) op->attrs[static_cast<size_t>(a)] = value;
}

}  // namespace

Result<TrainedNorms> TrainNorms(const Program& program) {
  Edit edit(program);
  TrainedNorms made;
  int count = 0;
  for (ir::Block& block : edit.ir().blocks)
    for (size_t k = 0; k < block.ops.size(); ++k) {
      if (!IsNorm(block.ops[k]) || !IsFixed(block.ops[k])) continue;
      ++count;
      for (const auto& [in, out] :
           {std::pair<std::string_view, std::string_view>("Mean", "MeanOut"),
            {"Variance", "VarianceOut"}}) {
        const VarId v = edit.Source(block.ops[k].In(in).at(0));
        if (!edit.var(v).persistable)
          return Unimplemented(PlaceOf(block.id, block.ops[k], k), ": its running statistics '",
                               edit.var(v).name, "' are no parameter, so that they cannot be kept");
        block.ops[k].inputs[static_cast<size_t>(block.ops[k].def->FindInput(in))] = {v};
        block.ops[k].outputs[static_cast<size_t>(block.ops[k].def->FindOutput(out))] = {v};
        made.statistics.push_back(edit.var(v).name);
      }
      SetFlag(&block.ops[k], "is_test", false);
      SetFlag(&block.ops[k], "use_global_stats", false);
      SetFlag(&block.ops[k], "trainable_statistics", false);
      for (const char* const slot : {"SavedMean", "SavedVariance"}) {
        auto& vars = block.ops[k].outputs[static_cast<size_t>(block.ops[k].def->FindOutput(slot))];
        if (!vars.empty() && vars[0] != kNoVar) continue;
        const VarId mean = block.ops[k].In("Mean")[0];
        const ir::Var like = edit.var(mean);
        const VarId saved = edit.shared().AddVar(
            StrCat(edit.var(block.ops[k].In("X").at(0)).name, "@", slot), block.id, like);
        vars = {saved};
      }
    }
  made.said = NormsText(program);
  if (count > 0) made.said += StrCat("; ", count, " of them use the batch's statistics now");
  made.program = std::move(edit).Finish();
  return made;
}

std::string NormsText(const Program& program) {
  Edit edit(program);
  int norms = 0, fixed = 0, folded = 0;
  std::set<VarId> normed;
  for (const ir::Block& block : edit.ir().blocks)
    for (const Op& op : block.ops) {
      if (!IsNorm(op)) continue;
      ++norms;
      fixed += IsFixed(op) ? 1 : 0;
      normed.insert(edit.Source(op.In("X").at(0)));
    }
  // A convolution with a bias and without a batch norm behind it: exporters fold norms so.
  const auto& ops = edit.ops();
  for (size_t k = 0; k < ops.size(); ++k) {
    const auto product = WeightedAt(edit, edit.ir(), static_cast<int>(k));
    const bool depthwise = ops[k].type() == "depthwise_conv2d" || ops[k].type() == "conv2d";
    if (!(product && product->convolution) && !depthwise) continue;
    const VarId out = ops[k].outputs[static_cast<size_t>(ops[k].def->FindOutput("Output"))].at(0);
    const int bias_slot = ops[k].def->FindInput("Bias");
    bool bias = bias_slot >= 0 && !ops[k].inputs[static_cast<size_t>(bias_slot)].empty() &&
                ops[k].inputs[static_cast<size_t>(bias_slot)][0] != kNoVar;
    VarId result = out;
    for (const int reader : edit.ReadersOf(out)) {
      if (reader < 0 || ops[static_cast<size_t>(reader)].type() != "elementwise_add") continue;
      const Op& add = ops[static_cast<size_t>(reader)];
      const VarId other = add.In("X")[0] == out ? add.In("Y")[0] : add.In("X")[0];
      if (edit.Parameter(other) == kNoVar) continue;
      bias = true;
      result = add.Out("Out")[0];
    }
    if (bias && !normed.contains(out) && !normed.contains(result)) ++folded;
  }
  std::string text = StrCat("batch norms: ", norms,
                            norms > 0 ? StrCat(", ", fixed, " with fixed statistics") : "");
  if (folded > 0)
    text += StrCat("; ", folded, folded == 1 ? " convolution has" : " convolutions have",
                   " a bias and no batch norm behind: norms folded into weights stay so");
  return text;
}

}  // namespace heddle::gradient
