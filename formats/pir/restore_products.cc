#include <unordered_map>

#include "formats/pir/lower.h"

namespace heddle::pir {
namespace {

const Ints* ShapeOf(const DraftOp& op) {
  for (const auto& [name, value] : op.attributes)
    if (name == "shape") return std::get_if<Ints>(&value);
  return nullptr;
}

int Only(const DraftOp::Slots<std::vector<int>>& slots, std::string_view slot) {
  for (const auto& [name, vars] : slots)
    if (name == slot && vars.size() == 1) return vars[0];
  return kNoDraft;
}

// The reshapes and products of one block, with their readers and writers.
class Products {
 public:
  Products(Draft* draft, const std::vector<int>& reads, const std::vector<int>& writes, int block)
      : vars_(draft->vars),
        ops_(draft->blocks[static_cast<size_t>(block)].ops),
        reads_(reads),
        writes_(writes) {}

  void Run() {
    for (size_t i = 0; i < ops_.size(); ++i)
      for (const auto& [slot, made] : ops_[i].outputs)
        for (int v : made)
          if (v != kNoDraft && writes_[static_cast<size_t>(v)] == 1) makers_[v] = i;
    for (size_t i = 0; i < ops_.size(); ++i)
      if (ops_[i].type == "reshape2") Restore(i);
  }

 private:
  // The operator of this block that alone writes `v`; null: there is none, or it is of another
  // type.
  DraftOp* MakerOf(int v, std::string_view type) {
    const auto found = makers_.find(v);
    if (v == kNoDraft || found == makers_.end()) return nullptr;
    DraftOp& op = ops_[found->second];
    return op.type == type ? &op : nullptr;
  }

  // The reshape that makes `v`, if it makes a matrix of a variable that is not written to again.
  DraftOp* Flattened(int v) {
    DraftOp* reshape = MakerOf(v, "reshape2");
    if (reshape == nullptr) return nullptr;
    const Ints* shape = ShapeOf(*reshape);
    const int x = Only(reshape->inputs, "X");
    if (shape == nullptr || shape->size() != 2 || x == kNoDraft) return nullptr;
    const DraftVar& var = vars_[static_cast<size_t>(x)];
    const bool stays = writes_[static_cast<size_t>(x)] == (var.fed || var.persistable ? 0 : 1);
    return var.ranked && stays ? reshape : nullptr;
  }

  // The number of leading dimensions after which the product of the rest is `columns`; 0: there is
  // none.
  static size_t Cut(const std::vector<int64_t>& dims, int64_t columns) {
    for (size_t k = 1; k < dims.size(); ++k) {
      int64_t product = 1;
      for (size_t i = k; i < dims.size(); ++i)
        product = dims[i] <= 0 || product > columns ? -1 : product * dims[i];
      if (product == columns) return k;
    }
    return 0;
  }

  // Replaces a product by mul, given its last reshape, if mul gives the same result.
  void Restore(size_t last) {
    const Ints* shape = ShapeOf(ops_[last]);
    const int product = Only(ops_[last].inputs, "X"), out = Only(ops_[last].outputs, "Out");
    DraftOp* matmul = MakerOf(product, "matmul_v2");
    if (shape == nullptr || out == kNoDraft || matmul == nullptr ||
        reads_[static_cast<size_t>(product)] != 1)
      return;
    for (const auto& [name, value] : matmul->attributes)
      if (const bool* flag = std::get_if<bool>(&value); flag != nullptr && *flag) return;
    const DraftOp* left = Flattened(Only(matmul->inputs, "X"));
    const DraftOp* right = Flattened(Only(matmul->inputs, "Y"));
    if (left == nullptr || right == nullptr) return;
    const int x = Only(left->inputs, "X"), y = Only(right->inputs, "X");
    const std::vector<int64_t>& rows = vars_[static_cast<size_t>(x)].dims;
    const std::vector<int64_t>& weights = vars_[static_cast<size_t>(y)].dims;
    const size_t k = Cut(rows, (*ShapeOf(*left))[1]);
    if (k == 0 || weights.size() != 2 || *ShapeOf(*right) != weights || weights[0] < 0) return;
    Ints made(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(k));
    made.push_back(weights[1]);
    if (made != *shape) return;
    DraftOp& mul = ops_[last];
    mul.type = "mul";
    mul.inputs = {{"X", {x}}, {"Y", {y}}};
    mul.outputs = {{"Out", {out}}};
    mul.attributes = {{"x_num_col_dims", static_cast<int64_t>(k)}, {"y_num_col_dims", int64_t{1}}};
    mul.source = matmul->source;
    matmul->optional = true;
    for (int v : {Only(matmul->inputs, "X"), Only(matmul->inputs, "Y")})
      MakerOf(v, "reshape2")->optional = true;
  }

  const std::vector<DraftVar>& vars_;
  std::vector<DraftOp>& ops_;
  const std::vector<int>&reads_, &writes_;  // per variable: how many operands and results it is
  std::unordered_map<int, size_t> makers_;
};

}  // namespace

void RestoreProducts(Draft* draft) {
  std::vector<int> reads(draft->vars.size()), writes(draft->vars.size());
  const auto count = [](const DraftOp::Slots<std::vector<int>>& slots, std::vector<int>* counts) {
    for (const auto& [slot, vars] : slots)
      for (int v : vars)
        if (v != kNoDraft) ++(*counts)[static_cast<size_t>(v)];
  };
  for (const DraftBlock& block : draft->blocks) {
    for (const DraftOp& op : block.ops) {
      count(op.inputs, &reads);
      count(op.attributes_from, &reads);
      count(op.outputs, &writes);
    }
  }
  for (const auto& [var, column] : draft->fetches) ++reads[static_cast<size_t>(var)];
  for (size_t b = 0; b < draft->blocks.size(); ++b)
    Products(draft, reads, writes, static_cast<int>(b)).Run();
}

}  // namespace heddle::pir
