#include "passes/facts/declarations.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/operands/promoted.h"
#include "core/programs/sub_block_slots.h"
#include "passes/facts/infer_facts.h"
#include "passes/version_view.h"

namespace heddle::passes {
namespace {

using ir::kNoVar;
using ir::VarId;

// Contents of at most so many elements are read for operators whose shapes depend on them.
constexpr int64_t kMostContents = 64;
// A shape that still changes after so many rounds over the blocks becomes unknown.
constexpr int kPatientRounds = 4;

// Finds one fact per variable that holds for all its values in a run: those of all its writers, and
// of all turns of a loop. Visits the blocks again until no fact becomes weaker.
class Declarer {
 public:
  Declarer(const ir::Program& program, const std::vector<NamedFact>& found, bool repeats,
           PassContext& context)
      : p_(program), context_(context), lod_(UsesLoD(program)), repeats_(repeats) {
    facts_.resize(p_.vars.size());
    found_.resize(p_.vars.size());
    read_.resize(p_.vars.size());
    written_.resize(p_.vars.size());
    claimed_.resize(p_.vars.size());
    visited_.resize(p_.blocks.size());
    for (const NamedFact& f : found)
      if (const VarId v = p_.Find(f.block, f.name); v != kNoVar) found_[v] = f.fact;
    for (const ir::Block& block : p_.blocks)
      for (const ir::Op& op : block.ops)
        for (const auto& slot : op.outputs)
          for (const VarId v : slot)
            if (v != kNoVar) written_[v] = true;
  }

  void Run() {
    for (const VarId v : context_.fed) Begin(v);
    do {
      again_ = false;
      ++round_;
      Visit(0);
    } while (again_);
  }

  Declarations Result() const {
    Declarations result;
    for (VarId v = 0; v < facts_.size(); ++v) {
      if (!facts_[v]) continue;
      if (!(*facts_[v] == Fact{p_.vars[v].dtype, p_.vars[v].shape}))
        result.other.emplace_back(v, *facts_[v]);
      if (claimed_[v])
        result.claims.push_back(
            {p_.vars[v].block, p_.vars[v].name, *facts_[v], found_[v].has_value()});
    }
    return result;
  }

 private:
  bool IsTensor(VarId v) const { return p_.vars[v].kind == ir::VarKind::kTensor; }

  // What is known of a variable without its writers: found, a parameter's, or declared.
  Fact Said(VarId v) const {
    if (found_[v]) return *found_[v];
    if (const Tensor* t = context_.Parameter(p_, v, false, false)) return {t->dtype(), t->shape()};
    return {p_.vars[v].dtype, p_.vars[v].shape};
  }
  // For a variable that has a value when the program begins, or one that its writer does not
  // determine.
  void Begin(VarId v) {
    if (claimed_[v] || !IsTensor(v)) return;
    claimed_[v] = true;
    Make(v, Said(v));
  }
  void Make(VarId v, const Fact& fact) {
    if (!IsTensor(v)) return;
    if (!facts_[v]) {
      facts_[v] = fact;
      again_ = again_ || read_[v];  // by an operator that runs blocks
      return;
    }
    Fact both = Join(*facts_[v], fact);
    if (both == *facts_[v]) return;
    if (round_ > kPatientRounds) both.shape = Shape::Unknown();
    facts_[v] = both;
    again_ = again_ || read_[v];
  }
  // A parameter has a value before any operator writes it.
  const Fact& Read(VarId v) {
    if (!facts_[v] || p_.vars[v].persistable) Begin(v);
    read_[v] = true;
    return *facts_[v];
  }

  void Visit(int block) {
    int& visited = visited_[static_cast<size_t>(block)];
    if (visited == round_) return;  // several operators may run it
    visited = round_;
    for (const ir::Op& op : p_.blocks[static_cast<size_t>(block)].ops) {
      if (op.def->has(kControlFlow))
        Control(op);
      else if (!Infer(op))
        for (size_t s = 0; s < op.outputs.size(); ++s)
          for (const VarId v : op.outputs[s])
            if (v != kNoVar) Untold(op, s, v);
    }
  }
  // Whether the operator updates the variable, as optimizers do with parameters and their states
  // (slots Param and ParamOut): then shape and dtype stay.
  static bool IsRewritten(const ir::Op& op, size_t out, VarId v) {
    for (const OpDef::SlotPair& pair : op.def->inplace()) {
      const auto in = static_cast<size_t>(pair.in);
      if (static_cast<size_t>(pair.out) == out && op.inputs[in].size() == 1 &&
          op.inputs[in][0] == v && op.def->outputs()[out].name == op.def->inputs()[in].name + "Out")
        return true;
    }
    return false;
  }
  // For an output of which the shape function says nothing.
  void Untold(const ir::Op& op, size_t out, VarId v) {
    if (repeats_ || IsRewritten(op, out, v))
      Begin(v);
    else
      Make(v, Fact{});
  }

  // For an operator that runs blocks. Its shape function gives what its own kernel writes: before
  // the blocks only what it passes to them, after the blocks all of it.
  void Control(const ir::Op& op) {
    if (Calls(op)) return;
    TakeOwn(op, false);
    for (const int sub : op.SubBlocks()) Visit(sub);
    TakeOwn(op, true);
  }
  void TakeOwn(const ir::Op& op, bool behind) {
    const bool told =
        op.def->infer_shape() != nullptr && op.var_attrs.empty() && AskOwn(op, behind);
    size_t at = 0;
    for (size_t s = 0; s < op.outputs.size(); ++s)
      for (const VarId v : op.outputs[s]) {
        const size_t answer = at++;
        if (v == kNoVar || (!behind && !ir::IsSubBlockSlot(op.def->outputs()[s]))) continue;
        if (!told || (answer < answers_.size() && answers_[answer]))
          Take(op, s, v, told ? answers_[answer] : std::nullopt);
      }
  }
  bool AskOwn(const ir::Op& op, bool behind) {
    static const Fact kNothing{DType::kUnknown, Shape{}}, kSomething;
    operands_.clear();
    for (const auto& slot : op.inputs)
      for (const VarId v : slot) {
        FactInference::Operand& operand = operands_.emplace_back();
        if (v == kNoVar) continue;
        if (p_.vars[v].persistable) Read(v);
        read_[v] = true;
        operand.is_array = p_.vars[v].kind == ir::VarKind::kArray;
        operand.fact = facts_[v] ? &*facts_[v] : behind ? &kSomething : &kNothing;
      }
    return inference_.Infer(op, operands_, &answers_);
  }
  // Handles a call, which passes its operands to its block and returns the values of variables of
  // the block; false: the operator is another one.
  bool Calls(const ir::Op& op) {
    const int from = op.def->FindInput("X"), to = op.def->FindOutput("sub_block:parameters"),
              back = op.def->FindInput("sub_block:results"), out = op.def->FindOutput("Out");
    if (from < 0 || to < 0 || back < 0 || out < 0) return false;
    Hand(op.inputs[static_cast<size_t>(from)], op.outputs[static_cast<size_t>(to)]);
    for (const int sub : op.SubBlocks()) Visit(sub);
    Hand(op.inputs[static_cast<size_t>(back)], op.outputs[static_cast<size_t>(out)]);
    return true;
  }
  void Hand(const std::vector<VarId>& from, const std::vector<VarId>& to) {
    for (size_t i = 0; i < to.size(); ++i) {
      if (to[i] == kNoVar || !IsTensor(to[i])) continue;
      if (i < from.size() && from[i] != kNoVar && IsTensor(from[i]))
        Make(to[i], Read(from[i]));
      else
        Begin(to[i]);
    }
  }

  // Takes the facts from the operator's shape function; false: it says nothing.
  bool Infer(const ir::Op& op) {
    const OpDef& def = *op.def;
    if (def.has(kControlFlow) || def.infer_shape() == nullptr || !op.var_attrs.empty())
      return false;
    operands_.clear();
    bool askable = true, complex = false, promotes = false, by_values = false;
    for (size_t s = 0; s < op.inputs.size(); ++s) {
      const unsigned flags = s < def.inputs().size() ? def.inputs()[s].flags : 0;
      for (const VarId v : op.inputs[s]) {
        FactInference::Operand& operand = operands_.emplace_back();
        if (v == kNoVar) continue;
        if (!IsTensor(v)) {
          askable = false;
          continue;
        }
        operand.fact = &Read(v);
        askable =
            askable && operand.fact->shape.known_rank() && operand.fact->dtype != DType::kUnknown;
        promotes = promotes || (flags & kPromoted) != 0;
        complex = complex || IsComplex(operand.fact->dtype);
        if ((flags & kShapeValue) != 0) {
          operand.contents = ContentsOf(v);
          by_values = by_values || operand.contents == nullptr;
        }
      }
    }
    // The plan may cast operands that meet complex ones.
    if (!askable || (promotes && complex)) return false;
    if (!inference_.Infer(op, operands_, &answers_)) return false;
    const bool vague = repeats_ && (by_values || inference_.told_ranks_alone());
    size_t at = 0;
    for (size_t s = 0; s < op.outputs.size(); ++s)
      for (const VarId v : op.outputs[s]) {
        std::optional<Fact>& said = answers_[at++];
        if (v == kNoVar) continue;
        if (vague && said) Claim(v, &*said);
        Take(op, s, v, said);
      }
    return true;
  }
  // Dimensions that the operator leaves open become those that the file declares, as a claim.
  void Claim(VarId v, Fact* said) {
    if (!IsTensor(v)) return;
    const Fact declared = Said(v);
    if (declared.dtype != said->dtype || declared.shape.rank() != said->shape.rank()) return;
    for (int d = 0; d < said->shape.rank(); ++d) {
      if (said->shape[d] >= 0 || declared.shape[d] < 0) continue;
      said->shape[d] = declared.shape[d];
      claimed_[v] = true;
    }
  }
  void Take(const ir::Op& op, size_t out, VarId v, const std::optional<Fact>& said) {
    if (!said || said->dtype == DType::kUnknown || !said->shape.known_rank())
      return Untold(op, out, v);
    Fact fact = *said;
    if (lod_ && fact.shape.rank() > 0) fact.shape[0] = -1;  // may follow from sequence offsets
    Make(v, fact);
  }

  const Tensor* ContentsOf(VarId v) {
    if (written_[v]) return nullptr;
    const Tensor* t = context_.Parameter(p_, v, false, false);
    if (t == nullptr || t->numel() > kMostContents) return nullptr;
    return context_.Parameter(p_, v);
  }

  const ir::Program& p_;
  PassContext& context_;
  const bool lod_, repeats_;
  FactInference inference_;
  std::vector<FactInference::Operand> operands_;
  std::vector<std::optional<Fact>> answers_;
  std::vector<std::optional<Fact>> facts_, found_;  // per variable
  std::vector<bool> read_, written_, claimed_;      // per variable
  std::vector<int> visited_;                        // per block: the last round
  bool again_ = false;                              // a fact became weaker after it was read
  int round_ = 0;
};

}  // namespace

Fact Join(const Fact& a, const Fact& b) {
  Fact both = a;
  if (a.dtype != b.dtype) both.dtype = DType::kUnknown;
  if (a.shape.rank() != b.shape.rank()) {
    both.shape = Shape::Unknown();
    return both;
  }
  for (int i = 0; i < a.shape.rank(); ++i)
    if (a.shape[i] != b.shape[i]) both.shape[i] = -1;
  return both;
}

bool Holds(const Fact& said, const Fact& is) {
  if (said.dtype != DType::kUnknown && said.dtype != is.dtype) return false;
  if (!said.shape.known_rank()) return true;
  if (said.shape.rank() != is.shape.rank()) return false;
  for (int i = 0; i < said.shape.rank(); ++i)
    if (said.shape[i] >= 0 && said.shape[i] != is.shape[i]) return false;
  return true;
}

void Declarations::Declare(ir::Program* program) const {
  for (const auto& [v, fact] : other) {
    program->vars[v].dtype = fact.dtype;
    program->vars[v].shape = fact.shape;
  }
}

Declarations InferDeclarations(const ir::Program& program, const std::vector<NamedFact>& found,
                               bool repeats, PassContext& context) {
  Declarer declarer(program, found, repeats, context);
  declarer.Run();
  return declarer.Result();
}

}  // namespace heddle::passes
