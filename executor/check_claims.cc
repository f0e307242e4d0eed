#include "executor/check_claims.h"

#include <utility>

namespace heddle::internal {
namespace {

using passes::Fact;
using passes::NamedFact;

// A declaration that is wrong in dtype or rank says nothing; one with wrong dimensions leaves those
// open.
Fact Instead(const NamedFact& claim, const Fact& is) {
  const bool alike = claim.fact.dtype == is.dtype && claim.fact.shape.rank() == is.shape.rank();
  return alike || claim.found ? Join(claim.fact, is) : is;
}

bool Says(const ir::Var& var) { return var.dtype != DType::kUnknown || var.shape.known_rank(); }

void Note(const NamedFact& claim, const Fact& instead, std::vector<NamedFact>* found) {
  for (NamedFact& f : *found) {
    if (f.block != claim.block || f.name != claim.name) continue;
    f.fact = Join(f.fact, instead);
    return;
  }
  found->push_back({claim.block, claim.name, instead, true});
}

}  // namespace

std::vector<NamedFact> FindOtherwise(const CompiledImpl::Form& form,
                                     const std::vector<Feed>& feeds) {
  std::vector<NamedFact> found;
  if (form.optimized.claims.empty()) return found;
  for (const Feed& f : feeds) {
    if (!f.value.is_tensor()) continue;
    const Fact is{f.value.tensor().dtype(), f.value.tensor().shape()};
    for (const NamedFact& claim : form.optimized.claims)
      if (claim.block == 0 && claim.name == f.name && !Holds(claim.fact, is))
        Note(claim, Instead(claim, is), &found);
  }
  return found;
}

std::vector<NamedFact> FindOtherwise(const CompiledImpl::Form& form, const Plan& plan) {
  std::vector<NamedFact> found;
  const std::vector<NamedFact>& claims = form.optimized.claims;
  if (claims.empty()) return found;
  std::vector<const NamedFact*> claimed(plan.program->vars.size(), nullptr);
  for (const NamedFact& claim : claims)
    if (const ir::VarId v = plan.program->Find(claim.block, claim.name); v != ir::kNoVar)
      claimed[v] = &claim;
  for (const Slot& slot : plan.slots) {
    if (slot.var == ir::kNoVar || claimed[slot.var] == nullptr || !slot.is_static) continue;
    const ir::Var& var = plan.program->vars[slot.var];
    const Fact said{var.dtype, var.shape}, is{slot.dtype, slot.shape()};
    // The plan casts real operands beside complex ones.
    if (Holds(said, is) || (IsComplex(is.dtype) && !IsComplex(said.dtype))) continue;
    // A pass may have turned the variable's dimensions.
    const NamedFact& claim = *claimed[slot.var];
    Note(claim, said == claim.fact ? Instead(claim, is) : Fact{is.dtype, Shape::Unknown()}, &found);
  }
  return found;
}

std::shared_ptr<const std::vector<bool>> ClaimedIn(const passes::Optimized& optimized) {
  const ir::Program& program = *optimized.program;
  std::vector<bool> claimed(program.vars.size(), false);
  bool any = false;
  for (const NamedFact& claim : optimized.claims) {
    const ir::VarId v = program.Find(claim.block, claim.name);
    if (v == ir::kNoVar || program.vars[v].kind != ir::VarKind::kTensor || !Says(program.vars[v]))
      continue;
    claimed[v] = any = true;
  }
  return any ? std::make_shared<const std::vector<bool>>(std::move(claimed)) : nullptr;
}

std::vector<NamedFact> WithoutClaims(const Plan& plan, const std::vector<ir::VarId>& vars) {
  std::vector<NamedFact> found;
  for (const ir::VarId v : vars)
    found.push_back({plan.program->vars[v].block, plan.program->vars[v].name, Fact{}, true});
  return found;
}

}  // namespace heddle::internal
