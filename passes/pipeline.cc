// The order of the passes. A new pass is added to the list below, which alone decides when it runs.
#include "passes/pipeline.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/error.h"

namespace heddle::passes {

Pipeline HeddlePipeline() {
  Pipeline order;
  // Clean-ups of the original program.
  order[static_cast<int>(PassGrouping::kPrePlacement)] = {
      "batch_norm_inference",
      "dropout_inference",
      "array_reads",
      "merge_reshapes",
      "merge_transposes",
      "identity",
      "captures",         // turns variables that loops carry into constants, before fold_constants
      "expand_integers",  // before fuse_quantized, which makes operators on integers of the parts
      "fuse_quantized",   // before fold_constants, which makes floats of quantised parameters
      "fuse_integers",
      "fuse_integer_conv",
      "keep_integers",  // takes the constants that fuse_quantized left
      "fold_constants",
      "cse",
      "inline_calls",  // the next round cleans the inlined operators up
      "unroll_loops",  // fold_constants computes its counters in the next round
      "dead_ops",      // erases the operators that the others made unused
  };
  // Fusions and layouts. The comments say what a pass needs from those above it.
  order[static_cast<int>(PassGrouping::kPostPlacement)] = {
      "hoist_products",  // before other fusions take the products
      "fuse_conv",
      "fuse_attention",
      "merge_matmul",      // finds the projections by the attention that reads them
      "absorb_transpose",  // takes what attention left
      "fuse_matmul",       // takes what attention and merged products left
      "fuse_batch_norm",   // takes the batch_norm that no convolution absorbed
      "channels_last",
      "carry_layout",  // moves the transposes that channels_last left at both ends of loop bodies
      "fuse_channel_shuffle",  // the channel is the last dimension only after channels_last
      "fuse_concat",           // absorbs concat into fused_matmul
      "gradient_rows",
      "add_gradients",     // before fuse_elementwise takes the sums
      "fuse_rows",         // takes element-wise operators around reductions
      "fuse_reshaped",     // takes element-wise operators on both sides of reshapes
      "fuse_elementwise",  // takes what no other fusion wanted
      "half_products",
      "lower_precision",  // marks what half_products left
      "merge_products",   // takes the products that the other fusions made or left
      "fuse_conv_chain",  // takes pairs of convolutions that multiply in bfloat16
  };
  // The same clean-ups after the fusions. If they change something, both groupings run again.
  order[static_cast<int>(PassGrouping::kPostRewriteForExec)] = {
      "batch_norm_inference",
      "dropout_inference",
      "array_reads",
      "merge_reshapes",
      "merge_transposes",
      "identity",
      "fold_constants",
      "cse",
      "unroll_loops",  // after hoist_products has moved products out, turns may be small
      "dead_ops",
      "fuse_batch_norm",  // a clean-up may leave one reader where there were two equal ones
  };
  // On the programs of a partition.
  order[static_cast<int>(PassGrouping::kPostPartitioning)] = {"clean_groups"};
  return order;
}

Status AddCustom(const std::vector<CustomPass>& custom, Pipeline* pipeline) {
  // The number of passes inserted at the beginning of a grouping.
  std::array<int, kGroupings> first{};
  for (const CustomPass& pass : custom) {
    if (!pass.before.empty() || !pass.after.empty()) continue;
    std::vector<std::string>& names = (*pipeline)[static_cast<int>(pass.grouping)];
    names.insert(names.begin() + first[static_cast<int>(pass.grouping)]++, pass.name);
  }
  for (const CustomPass& pass : custom) {
    if (pass.before.empty() && pass.after.empty()) continue;
    if (!pass.before.empty() && !pass.after.empty())
      return InvalidArgument("pass '", pass.name, "' is to run before '", pass.before,
                             "' and after '", pass.after, "': name one of them");
    const bool after = !pass.after.empty();
    const std::string& neighbour = after ? pass.after : pass.before;
    std::vector<std::string>& names = (*pipeline)[static_cast<int>(pass.grouping)];
    const auto at = std::find(names.begin(), names.end(), neighbour);
    if (at == names.end())
      return InvalidArgument("pass '", pass.name, "' is to run ", after ? "after" : "before", " '",
                             neighbour, "', which is no pass of ", Name(pass.grouping));
    names.insert(at + after, pass.name);
  }
  return Status::Ok();
}

Status CheckPipeline(const Pipeline& pipeline, const std::vector<PassDef>& passes) {
  std::map<std::string, bool> placed;  // by pass: whether the list names it
  for (const PassDef& pass : passes)
    if (!placed.emplace(pass.name, false).second)
      return InvalidArgument("there are two passes '", pass.name, "'");
  for (int g = 0; g < kGroupings; ++g) {
    std::set<std::string> here;
    for (const std::string& name : pipeline[g]) {
      const auto found = placed.find(name);
      const char* const grouping = Name(static_cast<PassGrouping>(g));
      if (found == placed.end())
        return InvalidArgument("the order of passes names '", name, "' in ", grouping,
                               ", but there is no such pass");
      if (!here.insert(name).second)
        return InvalidArgument("the order of passes names '", name, "' twice in ", grouping);
      found->second = true;
    }
  }
  for (const auto& [name, named] : placed)
    if (!named) return InvalidArgument("pass '", name, "' stands nowhere in the order of passes");
  return Status::Ok();
}

}  // namespace heddle::passes
