// Unrolls loops of a known number of small turns.
//
// The overhead of a loop (its counter, its condition, the boundary across which nothing is fused)
// is a small part of a turn that computes something. It is most of a turn that computes next to
// nothing, and of one in which values grow, so that every turn infers shapes and allocates memory.
// Such turns are written one after another: all of them if they have few operators, else several
// per turn.
//
// Numbers of elements decide, and not the costs that plans use (OpDef::Cost): those are times of
// kernels for the shapes of one signature of feeds, and a program is rewritten once for all of
// them. With some 64 elements hardly any kernel takes longer than its call. So a turn whose sizes
// depend on feeds is left alone, although some signature might make it small.
#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/interrupts.h"
#include "core/programs/sub_block_slots.h"
#include "passes/cleanup/copies.h"
#include "passes/cleanup/counted_loop.h"
#include "passes/cleanup/deep_reads.h"

namespace heddle::passes {
namespace {

using ir::kNoVar;
using ir::VarId;

// The most operators that a loop may become: if its turns are small, if values grow in them, and in
// one turn that holds several small ones. A thousand more operators take some 20 ms to prepare.
constexpr size_t kMostSmall = 160, kMostGrowing = 512, kMostOfATurn = 64;
// A turn is small if none of its operands has more elements: the operator takes about as long as
// its dispatch.
constexpr int64_t kSmallElements = 64;
constexpr int kMostTogether = 16;  // turns that become one, at most
// The most operators that all loops of a program add to it. A loop behind them stays a loop, unless
// it becomes no more operators than it has: what many loops gain in a run does not make up for a
// program of a million operators that has to be prepared before the first one.
constexpr size_t kMostAdded = 1 << 15;

// Makes names like Program::FreshName, without a search of all blocks for each name.
class FreshNames {
 public:
  std::string Next(const ir::Program& p, const std::string& stem) {
    if (next_ == 0)
      for (const ir::Var& var : p.vars) next_ = std::max(next_, 1 + NumberIn(var.name));
    next_ = std::max(next_, p.vars.size());
    return stem + std::string(kMark) + std::to_string(next_++);
  }

 private:
  static constexpr std::string_view kMark = "@heddle_";
  static size_t NumberIn(std::string_view name) {
    const size_t at = name.rfind(kMark);
    constexpr size_t kMostDigits = 15;
    if (at == std::string_view::npos) return 0;
    const std::string_view digits = name.substr(at + kMark.size(), kMostDigits);
    size_t number = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return number;
  }
  size_t next_ = 0;
};

class Unroller {
 public:
  Unroller(ir::Program& program, PassContext& context) : p_(program), context_(context) {}

  bool Run() {
    if (p_.blocks.size() < 2 || HasGradientBlocks(p_)) return false;
    const std::vector<int> runs = CountRunners(p_);
    bool changed = false;
    // A block that has grown waits for the next round: clean-ups may make it smaller.
    std::vector<bool> grown(p_.blocks.size());
    // Inner loops first, since an outer turn may be small without them. The last loop of a block
    // first, as LoopViews requires.
    for (size_t b = p_.blocks.size(); b-- > 0;) {
      for (size_t at = p_.blocks[b].ops.size(); at-- > 0;) {
        const int body = LoopBody(p_.blocks[b].ops[at], runs);
        if (body < 0 || grown[static_cast<size_t>(body)] ||
            !CanCopy(p_.blocks[static_cast<size_t>(body)]) ||
            !Unroll(static_cast<int>(b), static_cast<int>(at), body))
          continue;
        grown[b] = grown[static_cast<size_t>(body)] = changed = true;
      }
      MakeEdits(&p_.blocks[b].ops);
    }
    return changed;
  }

 private:
  const std::vector<ir::Op>& OpsOf(int block) const {
    return p_.blocks[static_cast<size_t>(block)].ops;
  }

  // Whether copies of the body's operators compute the same as its turns, and no variable of the
  // body's own keeps its value for the next turn.
  bool CanCopy(const ir::Block& body) const {
    std::unordered_set<VarId> written, all;
    for (const ir::Op& op : body.ops)
      for (const auto& slot : op.outputs) all.insert(slot.begin(), slot.end());
    for (const ir::Op& op : body.ops) {
      LookForInterrupt();
      if (!IsPure(op) || ir::SelectsOutput(*op.def) || !op.device.empty()) return false;
      for (const auto& slot : op.inputs)
        for (VarId v : slot)
          if (v != kNoVar && p_.vars[v].block == body.id && !written.contains(v) && all.contains(v))
            return false;
      for (const auto& slot : op.outputs)
        for (VarId v : slot) {
          if (v == kNoVar) continue;
          written.insert(v);
          if (p_.vars[v].kind != ir::VarKind::kTensor || p_.vars[v].persistable) return false;
        }
    }
    return !body.ops.empty();
  }
  static bool IsWritten(const ir::Block& body, VarId v) {
    return std::any_of(body.ops.begin(), body.ops.end(), [v](const ir::Op& op) {
      return std::any_of(op.outputs.begin(), op.outputs.end(), [v](const auto& slot) {
        return std::find(slot.begin(), slot.end(), v) != slot.end();
      });
    });
  }

  bool Unroll(int block, int at, int body) {
    const size_t size = SizeOf(body);
    if (size > kMostGrowing) return false;
    if (!views_) {
      views_.emplace(p_, context_.fetched);
      elements_ = CountElements();
    }
    views_->Enter(block, body);
    const VersionView& inside = views_->inside();
    const ir::Op& loop = OpsOf(block)[static_cast<size_t>(at)];
    const auto counted = FindCounters(p_, context_, loop, inside);
    if (!counted) return false;
    const KnownScalars scalars(p_, context_, views_->outside());
    const auto turns = KnownTurns(scalars, loop, at, *counted);
    if (!turns) return false;
    const bool grows = Grows(inside), small = IsSmall(body);
    if (!grows && !small && *turns > 0) return false;
    if (LeavesUnwritten(at, body, *turns)) return false;
    const auto count = static_cast<size_t>(std::min<int64_t>(*turns, kMostGrowing + 1));
    if (count * size <= (grows ? kMostGrowing : kMostSmall)) {
      const size_t held = OpsOf(body).size() + 1;  // those of the loop
      if (!MayAdd(std::max(count * size, held) - held)) return false;
      KnownTurns(scalars, loop, at, *counted, true);
      WriteOut(block, at, body, static_cast<int>(*turns));
      return true;
    }
    // A loop whose counter has a larger step may be one whose turns were joined before.
    const bool by_one = std::all_of(counted->limits.begin(), counted->limits.end(),
                                    [](const CountedLoop::Limit& l) { return l.step == 1; });
    const int together = small && by_one ? Together(*turns, size) : 1;
    if (together < 2) return false;
    const auto before = static_cast<int>(*turns % together);
    if (!MayAdd(static_cast<size_t>(together - 1 + before) * size)) return false;
    KnownTurns(scalars, loop, at, *counted, true);
    Join(block, at, body, together, before);
    return true;
  }

  // Takes so many operators from what all loops of the program may add; false: fewer are left.
  bool MayAdd(size_t operators) {
    if (operators > kMostAdded - context_.unrolled) return false;
    context_.unrolled += operators;
    return true;
  }

  bool IsFed(VarId v) const {
    return p_.vars[v].input || std::any_of(p_.feeds.begin(), p_.feeds.end(),
                                           [v](const ir::Port& feed) { return feed.var == v; });
  }

  // Whether unrolling the loop at `at` would leave a variable without a writer: an output of the
  // loop that its body does not write, or any that the body writes if there are no turns.
  bool LeavesUnwritten(int at, int body, int64_t turns) const {
    const auto has_writer = [&](VarId v) {
      return v == kNoVar || p_.vars[v].block == body || IsFed(v) ||
             views_->outside().WriterBefore(v, at) >= 0 ||
             (turns > 0 && IsWritten(p_.blocks[static_cast<size_t>(body)], v));
    };
    const auto all_have = [&](const std::vector<VarId>& slot) {
      return std::all_of(slot.begin(), slot.end(), has_writer);
    };
    const auto& ops = OpsOf(body);
    return !all_have(OpsOf(views_->outside().block())[static_cast<size_t>(at)].Out("Out")) ||
           !std::all_of(ops.begin(), ops.end(), [&](const ir::Op& op) {
             return std::all_of(op.outputs.begin(), op.outputs.end(), all_have);
           });
  }

  // The number of a turn's operators that remain after unrolling: all but those that count and
  // copy.
  size_t SizeOf(int body) const {
    const auto& ops = OpsOf(body);
    const auto stays = [this](const ir::Op& op) {
      const std::string& type = op.type();
      return CopiedBy(p_, op) == kNoVar && type != "increment" && type != "less_than" &&
             type != "less_equal" && type != "logical_and";
    };
    return static_cast<size_t>(std::max<int64_t>(1, std::count_if(ops.begin(), ops.end(), stays)));
  }

  // The number of turns that become one.
  static int Together(int64_t turns, size_t size) {
    const auto most = static_cast<int>(
        std::min<int64_t>({kMostTogether, turns, static_cast<int64_t>(kMostOfATurn / size)}));
    int best = most;
    for (int k = most; k >= std::max(2, most / 2); --k)
      if (turns % k < turns % best) best = k;
    return best;
  }
  // Whether some variable becomes the concatenation of its value in the last turn and another
  // tensor.
  bool Grows(const VersionView& inside) const {
    const auto& ops = OpsOf(inside.block());
    return std::any_of(ops.begin(), ops.end(), [&](const ir::Op& op) {
      if (op.type() != "concat") return false;
      const auto at = static_cast<int>(&op - ops.data());
      const auto& xs = op.In("X");
      return std::any_of(xs.begin(), xs.end(), [&](VarId x) {
        return x != kNoVar && inside.WriterBefore(x, at) < 0 && ComesTo(inside, x, op);
      });
    });
  }
  // Whether `v` holds the operator's result at the end of the body.
  bool ComesTo(const VersionView& inside, VarId v, const ir::Op& op) const {
    const auto& ops = OpsOf(inside.block());
    auto at = static_cast<int>(ops.size());
    for (;;) {
      const int writer = inside.WriterBefore(v, at);
      if (writer < 0) return false;
      const ir::Op& by = ops[static_cast<size_t>(writer)];
      if (&by == &op) return true;
      v = CopiedBy(p_, by);
      if (v == kNoVar) return false;
      at = writer;
    }
  }

  // The numbers of elements of variables, from declarations and from the operands of copies and
  // element-wise operators; -1: unknown. A variable that a loop carries counts with the size of its
  // first value, though it may grow: a turn may therefore only seem small.
  std::vector<int64_t> CountElements() const {
    std::vector<int64_t> elements(p_.vars.size(), -1);
    for (VarId v = 0; v < elements.size(); ++v)
      if (p_.vars[v].shape.is_static()) elements[v] = p_.vars[v].shape.numel();
    for (const int block : BlocksThatRun(p_))
      for (const ir::Op& op : OpsOf(block)) {
        if (!op.def->has(kElementwise) && CopiedBy(p_, op) == kNoVar) continue;
        int64_t most = 0;
        for (const auto& slot : op.inputs)
          for (VarId v : slot)
            if (v != kNoVar) most = most < 0 || elements[v] < 0 ? -1 : std::max(most, elements[v]);
        for (const auto& slot : op.outputs)
          for (VarId v : slot)
            if (v != kNoVar && elements[v] < 0) elements[v] = most;
      }
    return elements;
  }

  // Whether all operands are known to have few elements.
  bool IsSmall(int body) const {
    const auto is_small = [&](const std::vector<std::vector<VarId>>& slots) {
      return std::all_of(slots.begin(), slots.end(), [&](const auto& slot) {
        return std::all_of(slot.begin(), slot.end(), [&](VarId v) {
          return v == kNoVar || (elements_[v] >= 0 && elements_[v] <= kSmallElements);
        });
      });
    };
    return std::all_of(OpsOf(body).begin(), OpsOf(body).end(), [&](const ir::Op& op) {
      return is_small(op.inputs) && is_small(op.outputs);
    });
  }

  // Copies turns, with new variables: the next operator, and the next turn, read the newest ones.
  class Copier {
   public:
    Copier(ir::Program& p, FreshNames& names, int home, const std::vector<ir::Op>& body)
        : p_(p), names_(names), home_(home) {
      for (const ir::Op& op : body)
        for (const auto& slot : op.outputs)
          for (VarId v : slot)
            if (v != kNoVar) ++writes_.try_emplace(v).first->second;
    }
    // Copies one turn. `last`: it is the last turn, which writes the outer variables themselves.
    void Turn(const std::vector<ir::Op>& body, int body_block, bool last, std::vector<ir::Op>* to) {
      std::map<VarId, int> left = writes_;
      for (const ir::Op& op : body) {
        ir::Op copy = op;
        if (home_ != body_block) copy.index = -1;
        for (auto& slot : copy.inputs)
          for (VarId& v : slot)
            if (v != kNoVar) v = Now(v);
        for (auto& slot : copy.outputs)
          for (VarId& v : slot) {
            if (v == kNoVar) continue;
            const VarId of = v;
            const bool keeps = --left[of] == 0 && last && p_.vars[of].block != body_block;
            v = keeps ? of : New(of);
            now_[of] = v;
          }
        to->push_back(std::move(copy));
      }
    }

   private:
    VarId Now(VarId v) const {
      const auto at = now_.find(v);
      return at == now_.end() ? v : at->second;
    }
    VarId New(VarId like) {
      ir::Var var = p_.vars[like];
      var.name = names_.Next(p_, var.name);
      var.block = home_;
      var.input = false;
      return p_.AddVar(std::move(var));
    }
    ir::Program& p_;
    FreshNames& names_;
    const int home_;
    std::unordered_map<VarId, VarId> now_;
    std::map<VarId, int> writes_;  // per variable that the body writes: the number of writes
  };

  // Turns run on the device of their loop. (No operator of a body names a device: CanCopy.)
  static void PlaceAt(const std::string& device, std::vector<ir::Op>* ops) {
    for (ir::Op& op : *ops) op.device = device;
  }

  // Replaces the loop by its turns.
  void WriteOut(int block, int at, int body, int turns) {
    const std::vector<ir::Op> ops = std::exchange(p_.blocks[static_cast<size_t>(body)].ops, {});
    std::vector<ir::Op> written;
    Copier copier(p_, names_, block, ops);
    for (int k = 0; k < turns; ++k) copier.Turn(ops, body, k + 1 == turns, &written);
    PlaceAt(OpsOf(block)[static_cast<size_t>(at)].device, &written);
    edits_.push_back({static_cast<size_t>(at), true, std::move(written)});
  }

  // Makes one turn of `together` turns. The first `before` turns are written in front of the loop,
  // so that the number of the others is a multiple.
  void Join(int block, int at, int body, int together, int before) {
    const std::vector<ir::Op> ops = std::exchange(p_.blocks[static_cast<size_t>(body)].ops, {});
    std::vector<ir::Op> first, joined;
    if (before > 0) {
      Copier copier(p_, names_, block, ops);
      for (int k = 0; k < before; ++k) copier.Turn(ops, body, k + 1 == before, &first);
    }
    Copier copier(p_, names_, body, ops);
    for (int k = 0; k < together; ++k) copier.Turn(ops, body, k + 1 == together, &joined);
    p_.blocks[static_cast<size_t>(body)].ops = std::move(joined);
    PlaceAt(OpsOf(block)[static_cast<size_t>(at)].device, &first);
    edits_.push_back({static_cast<size_t>(at), false, std::move(first)});
  }

  // Operators to be inserted before the one at `at`, or in its place. Those of one block are
  // collected from the last position to the first, and inserted at once.
  struct Edit {
    size_t at = 0;
    bool replaces = false;
    std::vector<ir::Op> ops;
  };
  void MakeEdits(std::vector<ir::Op>* ops) {
    if (edits_.empty()) return;
    std::vector<ir::Op> made;
    size_t most = ops->size(), next = 0;
    for (const Edit& edit : edits_) most += edit.ops.size();
    made.reserve(most);
    const auto move_to = [&](size_t end) {
      for (; next < end; ++next) made.push_back(std::move((*ops)[next]));
    };
    for (auto edit = edits_.rbegin(); edit != edits_.rend(); ++edit) {
      move_to(edit->at);
      std::move(edit->ops.begin(), edit->ops.end(), std::back_inserter(made));
      next += edit->replaces;
    }
    move_to(ops->size());
    *ops = std::move(made);
    edits_.clear();
  }

  ir::Program& p_;
  PassContext& context_;
  // Made at the first loop. Variables that are added later belong to blocks that have grown, which
  // are not visited again.
  std::optional<LoopViews> views_;
  std::vector<int64_t> elements_;  // per variable
  FreshNames names_;
  std::vector<Edit> edits_;  // of the present block
};

}  // namespace
}  // namespace heddle::passes

HEDDLE_PASS(unroll_loops) {
  pass.doc =
      "loops of a known number of small turns, or of turns that make values grow, are written out";
  pass.before = "i = 0; while: { a = a * 3; i = i + 1; go = i < 3 }";
  pass.after = "b = a * 3; c = b * 3; a = c * 3";
  pass.refuses =
      "turns that run other blocks, draw random numbers or have side effects; counters that do not "
      "begin, step and end at constants; turns with operands of more than 64 elements, or of sizes "
      "that the program does not say, in which nothing grows; results of more than 160 operators, "
      "512 where values grow (of many small turns, up to 16 become one), and in all loops of a "
      "program together more than 32,768 further operators; programs with gradients";
  pass.level = 2;
  pass.repeat = true;
  pass.seeks = ir::RunsAgain;
  pass.run = [](ir::Program& program, PassContext& context) -> Result<bool> {
    return Unroller(program, context).Run();
  };
}
