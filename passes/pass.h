// Passes, which rewrite a program. All passes work on one copy, one after another; if a pass fails,
// the copy is dropped. A pass that reports no change must have left the program as it was.
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

// What a pass can use besides the program: parameters, options, uses of variables, devices.
class PassContext {
 public:
  // `source`: the user's parameters, which are only read. `folded`: the scope for new parameters;
  // its parent is `source`.
  PassContext(const Scope& source, Scope& folded, const PassOptions& options = {})
      : options_(options), source_(source), folded_(folded) {}

  std::set<ir::VarId> fetched;  // variables whose values the caller reads after a run
  std::set<ir::VarId> fed;      // variables that are not constants, even if they are parameters
  // The block to change, for passes that change one block at a time (PassDef::each_block).
  int block = 0;
  // What blocks name: computed once for each state of the program, and shared by the passes. While
  // a pass changes one block after another, the changed blocks are added.
  BlockUses uses;
  std::optional<bool> lod;  // see UsesLoD
  size_t unrolled = 0;      // operators that unroll_loops has added so far, in all its rounds

  // The executor's devices, and whether operators have been assigned to them: see
  // passes/partition.h.
  std::vector<DeviceView> devices;
  bool partitioned = false;

  const PassOptions& options() const { return options_; }
  // The value of a float parameter that no operator of `program` writes; nullptr: it is not such a
  // parameter. The program is optimised again when the user replaces the parameter. Without
  // `contents` the tensor's memory may not be loaded yet: see core/memory/lazy_buffer.h.
  const Tensor* Constant(const ir::Program& program, const GraphView& view, ir::VarId var,
                         bool contents = true);
  // The same for any dtype. Precondition: no operator writes `var`. `use`: the value becomes part
  // of the program. A caller that only looks passes false, and calls again with true if it uses the
  // value.
  const Tensor* Parameter(const ir::Program& program, ir::VarId var, bool use = true,
                          bool contents = true);
  // Adds a new parameter to `program`; returns its variable.
  ir::VarId AddConstant(ir::Program& program, const std::string& stem, Tensor value);
  // The parameters that Constant() and Parameter() have returned for use, with their stamps at that
  // time.
  const std::vector<std::pair<std::string, Scope::Stamp>>& used() const { return used_; }

 private:
  // nullptr: the contents cannot be read.
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

// A requirement on the target of the optimisation. Otherwise the pass does not run.
enum class PassNeeds {
  kNothing,
  kHostCaches,     // kernels run on the host: the pass fits work to the caches of its cores
  kDeviceKernels,  // there is a device with kernels of its own
};

// A pass. passes/pipeline.cc says when it runs.
struct PassDef {
  std::string name, doc;
  int level = 1;  // the lowest optimisation level at which it runs
  PassNeeds needs = PassNeeds::kNothing;
  // Runs in every round of its grouping, until no pass changes anything; otherwise it runs once.
  // For passes that enable each other and terminate.
  bool repeat = false;
  // Does not run again when later groupings have changed the program.
  bool once = false;
  // Changes only the operators of one block, PassContext::block, and is called for each block that
  // runs. It may read the other blocks' operators, and the variables that they name keep their
  // values.
  bool each_block = false;
  // The pass has nothing to do, and is not run, without one of these operators in the program or,
  // for `each_block`, in the block. Empty: any operator may matter.
  std::function<bool(const OpDef&)> seeks;
  // The largest relative difference of results from those without the pass; 0: the same bits.
  double tolerance = 0;
  // Operators it may make that Paddle lacks or defines in another way. Level 2 only.
  std::vector<std::string> own_ops;
  std::vector<std::string> own_forms;  // Paddle's operators in a form that Paddle rejects
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

// Defines a pass; the build collects the HEDDLE_PASS lines of passes/*/*.cc.
#define HEDDLE_PASS(name)                \
  namespace heddle::passes {             \
  void DefinePass_##name(PassDef& pass); \
  }                                      \
  void heddle::passes::DefinePass_##name(PassDef& pass)

// All registered passes, by name.
std::vector<PassDef> AllPasses();

}  // namespace heddle::passes
