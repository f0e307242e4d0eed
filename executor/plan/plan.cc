#include "executor/plan/plan.h"

#include <utility>

namespace heddle {
namespace {

// Calls fn with each number of the signature of the operator's present inputs, until it says false.
template <typename Fn>
bool ForSignature(const BoundOp& op, Value* const* frame, Fn&& fn) {
  for (uint32_t s : op.in) {
    if (s == kNoSlot) continue;
    const Tensor& t = frame[s]->tensor();
    if (!fn(static_cast<int64_t>(t.dtype())) || !fn(static_cast<int64_t>(t.rank()))) return false;
    for (int64_t d : t.shape())
      if (!fn(d)) return false;
  }
  return true;
}

bool HasSignature(const BoundOp& op, Value* const* frame, const std::vector<int64_t>& signature) {
  size_t at = 0;
  return ForSignature(op, frame,
                      [&](int64_t n) { return at < signature.size() && signature[at++] == n; }) &&
         at == signature.size();
}

}  // namespace

Result<std::shared_ptr<const KernelState>> StateCache::Get(const BoundOp& op, Value* const* frame,
                                                           Services& services,
                                                           const std::vector<bool>* constant) {
  MutexLock lock(mutex_);
  for (size_t i = entries_.size(); i-- > 0;) {
    if (!HasSignature(op, frame, entries_[i].signature)) continue;
    auto state = entries_[i].state;
    if (i + 1 != entries_.size()) std::swap(entries_[i], entries_.back());
    return state;
  }
  PrepareContext ctx(op, frame, services, constant);
  auto made = op.def->prepare()(ctx);
  if (!made.ok()) return made.status();
  std::vector<int64_t> signature;
  ForSignature(op, frame, [&](int64_t n) {
    signature.push_back(n);
    return true;
  });
  if (entries_.size() == kCapacity) entries_.erase(entries_.begin());
  entries_.push_back({std::move(signature), std::shared_ptr<const KernelState>(*std::move(made))});
  return entries_.back().state;
}

const std::string& ImplementationOf(const Instruction& in) {
  static const std::string kOnlyOne;
  return in.state != nullptr ? in.state->facts().implementation : kOnlyOne;
}

const ir::Op* Plan::NearestOperator(const Instruction& in) const {
  const std::vector<ir::Op>& ops = program->blocks[in.ir_block].ops;
  return static_cast<size_t>(in.ir_op) < ops.size() ? &ops[in.ir_op] : nullptr;
}
const ir::Op* Plan::OperatorOf(const Instruction& in) const {
  const ir::Op* const near = NearestOperator(in);
  return near != nullptr && near->def == in.op.def ? near : nullptr;
}
OpLocation Plan::Locate(const Instruction& in) const {
  if (const ir::Op* const near = NearestOperator(in)) return program->Locate(in.ir_block, *near);
  OpLocation where;
  where.block = in.ir_block;
  return where;
}

Status Plan::Blame(const Status& status, const Instruction& in) const {
  const std::string& implementation = ImplementationOf(in);
  const bool stopped =
      status.code() == StatusCode::kCancelled || status.code() == StatusCode::kDeadlineExceeded;
  if (implementation.empty() || stopped || status.location()) return status.At(Locate(in));
  return Status(status.code(), StrCat(status.message(), " (implementation: ", implementation, ")"))
      .At(Locate(in));
}

Status Plan::BlameLargest(const Status& status) const {
  const Instruction* largest = nullptr;
  size_t most = 0;
  for (const Instruction& in : blocks[0].instructions)
    for (uint32_t s : in.op.out) {
      if (s == kNoSlot || !slots[s].is_static || slots[s].bytes() <= most) continue;
      most = slots[s].bytes();
      largest = &in;
    }
  if (largest == nullptr) return status;
  return Status(status.code(),
                StrCat(status.message(), "; the operator's output takes ", most, " of them"))
      .At(Locate(*largest));
}

size_t Plan::MarkWritten() const {
  size_t count = 0;
  for (size_t i = 0; i < scope_slots.size(); ++i) {
    if (!scope_uses[i].written) continue;
    scope->MarkWritten(program->vars[slots[scope_slots[i]].var].name);
    ++count;
  }
  return count;
}

}  // namespace heddle
