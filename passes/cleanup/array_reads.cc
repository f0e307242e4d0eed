// Replaces reads of a tensor array at known positions by the tensor that was written there.
#include <optional>

#include "passes/cleanup/block_sweep.h"

namespace heddle::passes {
namespace {

using ir::kNoVar;
using ir::VarId;

class ArrayReads : public BlockSweep {
 public:
  using BlockSweep::BlockSweep;

 private:
  void Sweep() override {
    for (size_t i = 0; i < block_->ops.size(); ++i) {
      Settle(i);
      if (block_->ops[i].type() == "read_from_array" && Forward(static_cast<int>(i))) Erase(i);
    }
  }

  const ir::Op& OpAt(int at) const { return block_->ops[static_cast<size_t>(at)]; }

  bool Forward(int at) {
    const ir::Op& op = OpAt(at);
    const VarId array = OnlyIn(op, "X"), out = OnlyOut(op, "Out");
    if (array == kNoVar || out == kNoVar || !op.var_attrs.empty()) return false;
    const auto index = IndexAt(OnlyIn(op, "I"), at);
    const auto readers = view_.Readers(out, at);
    if (!index || !readers || readers->empty()) return false;
    const int write = FindWrite(array, at, *index);
    if (write < 0) return false;
    const VarId x = OnlyIn(OpAt(write), "X");
    if (x == kNoVar || p_.vars[x].kind != ir::VarKind::kTensor ||
        p_.vars[x].dtype != p_.vars[out].dtype || !view_.Same(x, write, readers->back() + 1))
      return false;
    ReplaceLater(*readers, out, x);
    return true;
  }

  // The position of the operator that wrote the element; -1: unknown.
  int FindWrite(VarId array, int at, int64_t index) const {
    for (int w = view_.WriterBefore(array, at); w >= 0; w = view_.WriterBefore(array, w)) {
      const ir::Op& op = OpAt(w);
      if (op.type() != "write_to_array") return -1;
      const auto written = IndexAt(OnlyIn(op, "I"), w);
      if (!written) return -1;
      if (*written == index) return w;
    }
    return -1;
  }

  // The value of a counter, from its initial value and its increments.
  std::optional<int64_t> IndexAt(VarId v, int at) const {
    int64_t steps = 0;
    for (int hops = 0; v != kNoVar && hops < 64; ++hops) {
      const int w = view_.WriterBefore(v, at);
      if (w < 0) return std::nullopt;
      const ir::Op& op = OpAt(w);
      at = w;
      if (op.type() == "fill_constant") {
        for (const auto& slot : op.inputs)
          if (!slot.empty()) return std::nullopt;
        const std::string& text = op.Attr<std::string>("str_value");
        if (!op.var_attrs.empty() || !text.empty()) return Parse(text, steps);
        return static_cast<int64_t>(op.Attr<double>("value")) + steps;
      }
      if (op.type() != "increment" && op.type() != "assign") return std::nullopt;
      if (op.type() == "increment") steps += static_cast<int64_t>(op.Attr<double>("step"));
      v = OnlyIn(op, "X");
    }
    return std::nullopt;
  }
  static std::optional<int64_t> Parse(const std::string& text, int64_t steps) {
    if (text.empty() || text.size() > 9 || text.find_first_not_of("0123456789") != text.npos)
      return std::nullopt;
    return std::stoll(text) + steps;
  }
};

}  // namespace
}  // namespace heddle::passes

HEDDLE_PASS(array_reads) {
  pass.doc = "readers of an array's element read the tensor that was written there";
  pass.before = "write_to_array(array, 0, a); b = read_from_array(array, 0); c = relu(b)";
  pass.after = "write_to_array(array, 0, a); c = relu(a)";
  pass.refuses =
      "positions that are not known; arrays that another operator than write_to_array, or a "
      "block, writes in between; tensors that are written again; results that are fetched or "
      "named by several blocks";
  pass.level = 1;
  pass.repeat = true;
  pass.seeks = OfTypes({"read_from_array"});
  pass.run = RunSweep<ArrayReads>;
}
