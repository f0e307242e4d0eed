// A pass rewrites a program. All work on one copy, one after another: when one fails, the copy is
// thrown away. A pass that says that it changed nothing has left the program as it was.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/buffer_slab.h"
#include "core/ir.h"
#include "heddle/pass.h"

namespace heddle::passes {

class GraphView;

// What a pass may read and add besides the program.
class PassContext {
 public:
  // `source`: the user's parameters, only read. `folded`: where new parameters go; its parent is
  // `source`.
  PassContext(const Scope& source, Scope& folded, const PassOptions& options = {})
      : options_(options), source_(source), folded_(folded) {}

  std::set<ir::VarId> fetched;  // variables that must keep their meaning
  std::set<ir::VarId> fed;      // variables that are no constants, even where they are parameters

  const PassOptions& options() const { return options_; }
  // The value of a float parameter that no operator of `program` writes, or nullptr. Results that
  // depend on it are made anew when the user replaces it. Without `contents` the tensor's memory
  // need not be there: see core/lazy_buffer.h.
  const Tensor* Constant(const ir::Program& program, const GraphView& view, ir::VarId var,
                         bool contents = true);
  // The same for any dtype, where the caller knows that nobody writes `var`. `use`: the result goes
  // into the program; without it, the caller calls again with it when it does.
  const Tensor* Parameter(const ir::Program& program, ir::VarId var, bool use = true,
                          bool contents = true);
  // A new parameter of `program`; returns its variable.
  ir::VarId AddConstant(ir::Program& program, const std::string& stem, Tensor value);
  // The parameters that Constant() and Parameter() handed out, as they were.
  const std::vector<std::pair<std::string, Scope::Stamp>>& used() const { return used_; }

 private:
  // nullptr where it cannot be had.
  const Tensor* CopyOf(const Tensor& waiting);

  const PassOptions options_;
  const Scope& source_;
  Scope& folded_;
  std::vector<std::pair<std::string, Scope::Stamp>> used_;
  std::set<std::string> used_names_;
  // Of parameters that wait in memory (core/lazy_buffer.h), side by side: they go at once.
  BufferSlab copies_{0, true};
  std::map<const Tensor*, Tensor> copied_;
};

// What a pass asks of the place a program is made for; it does not run where that is missing.
enum class PassNeeds {
  kNothing,
  kHostCaches,  // kernels run on the host: the pass arranges work for a core's caches
};

// A pass. When it runs is said in passes/pipeline.cc.
struct PassDef {
  std::string name, doc;
  int level = 1;  // the lowest optimisation level that runs it
  PassNeeds needs = PassNeeds::kNothing;
  // Takes part in its grouping's rounds, which go on until nothing changes; else it runs once. Said
  // of passes that make work for each other and come to an end.
  bool repeat = false;
  // Not again either when passes behind its grouping have changed the program.
  bool once = false;
  double tolerance = 0;  // relative, of results against those without the pass; 0: the same bits
  // Operators it may make that Paddle does not have (or means something else by). Level 2 only.
  std::vector<std::string> own_ops;
  std::vector<std::string> own_forms;  // Paddle's, but in a form that Paddle does not take
  // For docs/passes.md, see PassInfo.
  std::string before, after, refuses;
  std::function<Result<bool>(ir::Program&, PassContext&)> run;  // true = something changed
};

// Defines a pass; the build lists every HEDDLE_PASS line of passes/*.cc by itself.
#define HEDDLE_PASS(name)                \
  namespace heddle::passes {             \
  void DefinePass_##name(PassDef& pass); \
  }                                      \
  void heddle::passes::DefinePass_##name(PassDef& pass)

// Every registered pass, by name.
std::vector<PassDef> AllPasses();

}  // namespace heddle::passes
