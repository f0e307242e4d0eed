// A pass rewrites a program. All passes work on one copy, one after another; when a pass fails, the
// copy is dropped. A pass that reports no change has left the program as it was.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/memory/buffer_slab.h"
#include "core/programs/ir.h"
#include "heddle/pass.h"
#include "passes/nested_blocks.h"
#include "passes/partition.h"

namespace heddle::passes {

class GraphView;

// Gives a pass access to parameters and options besides the program.
class PassContext {
 public:
  // `source`: the user's parameters, only read. `folded`: where new parameters go; its parent is
  // `source`.
  PassContext(const Scope& source, Scope& folded, const PassOptions& options = {})
      : options_(options), source_(source), folded_(folded) {}

  std::set<ir::VarId> fetched;  // variables that must keep their meaning
  std::set<ir::VarId> fed;      // variables that are no constants, even where they are parameters
  // For passes that change one block at a time, see PassDef: the block.
  int block = 0;
  // What blocks name: found once for each state of the program, and shared by the passes that look
  // at it. While a pass changes one block after another, the blocks that it has changed are added.
  BlockUses uses;
  std::optional<bool> lod;  // see UsesLoD

  // The executor's devices, and whether operators have been given to them: see
  // passes/partition.h.
  std::vector<DeviceView> devices;
  bool partitioned = false;

  const PassOptions& options() const { return options_; }
  // The value of a float parameter that no operator of `program` writes, or nullptr. When the user
  // replaces the parameter, the program is optimised again. Without `contents` the tensor's memory
  // may not be loaded yet: see core/memory/lazy_buffer.h.
  const Tensor* Constant(const ir::Program& program, const GraphView& view, ir::VarId var,
                         bool contents = true);
  // The same for any dtype; the caller knows that nobody writes `var`. `use`: the value goes into
  // the program. A caller that only looks passes false, and calls again with true if it uses the
  // value.
  const Tensor* Parameter(const ir::Program& program, ir::VarId var, bool use = true,
                          bool contents = true);
  // A new parameter of `program`; returns its variable.
  ir::VarId AddConstant(ir::Program& program, const std::string& stem, Tensor value);
  // The parameters that Constant() and Parameter() handed out, as they were.
  const std::vector<std::pair<std::string, Scope::Stamp>>& used() const { return used_; }

 private:
  // nullptr when the contents cannot be read.
  const Tensor* CopyOf(const Tensor& waiting);

  const PassOptions options_;
  const Scope& source_;
  Scope& folded_;
  std::vector<std::pair<std::string, Scope::Stamp>> used_;
  std::set<std::string> used_names_;
  // Memory for copies of parameters that are not loaded yet (core/memory/lazy_buffer.h); freed as a
  // whole.
  BufferSlab copies_{0, true};
  std::map<const Tensor*, Tensor> copied_;
};

// A requirement on the place that the program is optimised for. A pass does not run without it.
enum class PassNeeds {
  kNothing,
  kHostCaches,     // kernels run on the host, since the pass fits work to a core's caches
  kDeviceKernels,  // there is a device with kernels of its own
};

// A pass. When it runs is said in passes/pipeline.cc.
struct PassDef {
  std::string name, doc;
  int level = 1;  // the lowest optimisation level that runs it
  PassNeeds needs = PassNeeds::kNothing;
  // Runs in the rounds of its grouping, which repeat until nothing changes; otherwise it runs once.
  // For passes that make work for each other and terminate.
  bool repeat = false;
  // Does not run again when later groupings have changed the program.
  bool once = false;
  // Changes the operators of one block, PassContext::block, and is called for each block that runs.
  // Other blocks' operators are only read, and what they name keeps its meaning.
  bool each_block = false;
  // Without one of these operators in the program - for `each_block`: in the block - there is
  // nothing to do, and the pass is not run. Empty: any may matter.
  std::function<bool(const OpDef&)> seeks;
  double tolerance = 0;  // relative, of results against those without the pass; 0: the same bits
  // Operators it may make that Paddle lacks, or defines differently. Level 2 only.
  std::vector<std::string> own_ops;
  std::vector<std::string> own_forms;  // Paddle's operators in a form that Paddle refuses
  // For docs/passes.md, see PassInfo.
  std::string before, after, refuses;
  std::function<Result<bool>(ir::Program&, PassContext&)> run;  // true = something changed
  // Of POST_PARTITIONING, instead of `run`: see heddle/passes/partitions.h.
  std::function<Result<bool>(Partitions&)> run_partitions;
  // It has something to do only where targets have groups: Compile does not run it.
  bool targets_only = false;
};

// For PassDef::seeks: operators of these types.
std::function<bool(const OpDef&)> OfTypes(std::vector<std::string> types);

// Defines a pass; the build lists every HEDDLE_PASS line of passes/*/*.cc.
#define HEDDLE_PASS(name)                \
  namespace heddle::passes {             \
  void DefinePass_##name(PassDef& pass); \
  }                                      \
  void heddle::passes::DefinePass_##name(PassDef& pass)

// Every registered pass, by name.
std::vector<PassDef> AllPasses();

}  // namespace heddle::passes
