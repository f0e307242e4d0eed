#include "executor/own_kernels.h"

#include <deque>
#include <exception>
#include <type_traits>
#include <utility>

#include "core/error.h"
#include "core/own_ops/own_op_def.h"
#include "core/own_ops/own_registry.h"

namespace heddle::internal {
namespace {

OwnNode NodeOf(const ir::Op& op, int block) {
  OwnNode node{.op = op.type(), .block = block, .index = op.index};
  for (size_t a = 0; a < op.attrs.size(); ++a)
    std::visit(
        [&](const auto& v) {
          if constexpr (std::is_constructible_v<OwnValue, decltype(v)>)
            node.attributes.emplace_back(op.def->attrs()[a].name, v);
        },
        op.attrs[a]);
  return node;
}

Result<OwnKernel> Ask(const KernelCreator& creator, const OwnNode& node) {
  if (!creator) return OwnKernel();
  try {
    return creator(node);
  } catch (const std::exception& e) {
    return Internal("the creator of its kernel threw: ", e.what());
  } catch (...) {
    return Internal("the creator of its kernel threw something that is no std::exception");
  }
}

// An empty function: the definition's own is to be used.
Result<OwnKernel> KernelFor(const OwnOpDef& def, const OwnNode& node, const KernelCreator& creator,
                            const KernelCreator& of_process) {
  for (const KernelCreator* one : {&creator, &of_process}) {
    HEDDLE_ASSIGN_OR_RETURN(OwnKernel made, Ask(*one, node));
    if (made) return made;
  }
  if (def.own_kernel()) return OwnKernel();
  return Unimplemented("has no kernel: it was added without one, and ",
                       creator || of_process ? "the creator made none" : "there is no creator");
}

}  // namespace

Result<std::shared_ptr<const ir::Program>> BindOwnKernels(
    const std::shared_ptr<const ir::Program>& program, const KernelCreator& creator) {
  const KernelCreator of_process = DefaultKernelCreator();
  std::shared_ptr<ir::Program> bound;
  const auto definitions = std::make_shared<std::deque<OwnOpDef>>();
  for (size_t b = 0; b < program->blocks.size(); ++b) {
    for (size_t k = 0; k < program->blocks[b].ops.size(); ++k) {
      const ir::Op& op = program->blocks[b].ops[k];
      const OwnOpDef* def = OwnOpDef::From(*op.def);
      if (def == nullptr) continue;
      auto kernel = KernelFor(*def, NodeOf(op, static_cast<int>(b)), creator, of_process);
      if (!kernel.ok()) return kernel.status().At(program->Locate(static_cast<int>(b), op));
      if (!*kernel) continue;
      if (bound == nullptr) bound = std::make_shared<ir::Program>(*program);
      definitions->emplace_back(*def, *std::move(kernel));
      bound->blocks[b].ops[k].def = &definitions->back();
    }
  }
  if (bound == nullptr) return program;
  // Those of the given program may be used by other operators.
  bound->definitions = std::make_shared<
      std::pair<std::shared_ptr<const void>, std::shared_ptr<const std::deque<OwnOpDef>>>>(
      program->definitions, definitions);
  return std::shared_ptr<const ir::Program>(std::move(bound));
}

}  // namespace heddle::internal
