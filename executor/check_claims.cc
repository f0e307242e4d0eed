#include "executor/check_claims.h"

#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace heddle::internal {
namespace {

using passes::Fact;
using passes::NamedFact;

// What replaces a wrong claim: if dtype or rank is wrong, nothing is claimed; if dimensions are,
// these are left open.
Fact Instead(const NamedFact& claim, const Fact& is) {
  const bool alike = claim.fact.dtype == is.dtype && claim.fact.shape.rank() == is.shape.rank();
  return alike || claim.found ? Join(claim.fact, is) : is;
}

bool Says(const ir::Var& var) { return var.dtype != DType::kUnknown || var.shape.known_rank(); }

// Collects the claims that do not hold, one entry for each variable.
class Notes {
 public:
  explicit Notes(std::vector<NamedFact>* found) : found_(*found) {}

  void Add(const NamedFact& claim, const Fact& instead) {
    const auto [at, is_new] = places_.try_emplace({claim.block, claim.name}, found_.size());
    if (is_new)
      found_.push_back({claim.block, claim.name, instead, true});
    else
      found_[at->second].fact = Join(found_[at->second].fact, instead);
  }

 private:
  std::vector<NamedFact>& found_;
  std::map<std::pair<int, std::string_view>, size_t> places_;  // by the claim's block and name
};

}  // namespace

std::vector<NamedFact> FindOtherwise(const CompiledImpl::Form& form,
                                     const std::vector<Feed>& feeds) {
  std::vector<NamedFact> found;
  if (form.optimized.claims.empty()) return found;
  std::unordered_map<std::string_view, const Tensor*> fed;
  for (const Feed& f : feeds)
    if (f.value.is_tensor()) fed.emplace(f.name, &f.value.tensor());
  Notes notes(&found);
  for (const NamedFact& claim : form.optimized.claims) {
    const auto feed = claim.block == 0 ? fed.find(claim.name) : fed.end();
    if (feed == fed.end()) continue;
    const Fact is{feed->second->dtype(), feed->second->shape()};
    if (!Holds(claim.fact, is)) notes.Add(claim, Instead(claim, is));
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
  Notes notes(&found);
  for (const Slot& slot : plan.slots) {
    if (slot.var == ir::kNoVar || claimed[slot.var] == nullptr || !slot.is_static) continue;
    const ir::Var& var = plan.program->vars[slot.var];
    const Fact said{var.dtype, var.shape}, is{slot.dtype, slot.shape()};
    // No contradiction: the plan casts real operands to complex if another operand is complex.
    if (Holds(said, is) || (IsComplex(is.dtype) && !IsComplex(said.dtype))) continue;
    // If a pass has permuted the variable's dimensions, the claim's shape cannot be corrected.
    const NamedFact& claim = *claimed[slot.var];
    notes.Add(claim, said == claim.fact ? Instead(claim, is) : Fact{is.dtype, Shape::Unknown()});
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
