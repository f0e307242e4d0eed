// hierarchical_sigmoid: the cost of a class as a path of binary decisions down a tree, by default
// the complete binary tree over all classes.
#include <bit>
#include <cmath>
#include <set>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "core/operands/slot_kinds.h"
#include "kernels/base/shape_checks.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

// The decisions on the way to the class of one row: which node, and which side.
struct Step {
  int64_t node, bit;
};

class Tree {
 public:
  static Result<Tree> Of(KernelContext& ctx) {
    Tree tree;
    const Tensor& x = ctx.In("X");
    const Tensor &w = ctx.In("W"), *table = ctx.InOpt("PathTable"), *code = ctx.InOpt("PathCode");
    if (x.rank() < 2 || w.rank() != 2 || w.dim(1) != x.dim(1) || w.dtype() != x.dtype())
      return InvalidArgument("W ", w.shape().ToString(), " does not fit X ", x.shape().ToString());
    tree.rows_ = x.dim(0);
    tree.width_ = x.dim(1);
    tree.nodes_ = w.dim(0);
    HEDDLE_RETURN_IF_ERROR(table != nullptr ? tree.UseTable(*table, code)
                                            : tree.UseLabels(ctx, ctx.In("Label")));
    for (const auto& path : tree.paths_)
      for (const Step& s : path)
        if (s.node < 0 || s.node >= tree.nodes_)
          return OutOfRange("node ", s.node, " is not in [0, ", tree.nodes_, ")");
    if (const Tensor* bias = ctx.InOpt("Bias"); bias != nullptr && bias->numel() < tree.nodes_)
      return InvalidArgument("Bias has ", bias->numel(), " elements, W has ", tree.nodes_, " rows");
    return tree;
  }

  int64_t rows() const { return rows_; }
  int64_t width() const { return width_; }
  int64_t longest() const { return longest_; }
  const std::vector<Step>& path(int64_t row) const { return paths_[static_cast<size_t>(row)]; }

 private:
  Status UseTable(const Tensor& table, const Tensor* code) {
    if (table.rank() != 2 || table.dim(0) != rows_ || code == nullptr ||
        code->numel() != table.numel())
      return InvalidArgument("PathTable and PathCode do not fit X");
    const Ints nodes = ToInts(table), bits = ToInts(*code);
    longest_ = table.dim(1);
    for (const int64_t r : Watched(rows_)) {
      paths_.emplace_back();
      for (int64_t k = r * longest_; k < (r + 1) * longest_ && nodes[static_cast<size_t>(k)] >= 0;
           ++k)
        paths_.back().push_back(
            {nodes[static_cast<size_t>(k)], bits[static_cast<size_t>(k)] != 0 ? 1 : 0});
    }
    return Status::Ok();
  }

  // A class's number, counted from the number of classes on, has the path in its binary digits.
  Status UseLabels(KernelContext& ctx, const Tensor& label) {
    const int64_t classes = ctx.Int("num_classes");
    if (classes < 2 || label.numel() != rows_)
      return InvalidArgument("Label ", label.shape().ToString(), " does not fit ", rows_,
                             " rows and ", classes, " classes");
    longest_ = static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(classes - 1)));
    const Labels labels(ctx, label);
    for (const int64_t r : Watched(rows_)) {
      if (labels[r] < 0 || labels[r] >= classes)
        return OutOfRange("label ", labels[r], " is not in [0, ", classes, ")");
      const auto number = static_cast<uint64_t>(labels[r] + classes);
      paths_.emplace_back();
      for (int bit = 0; bit < static_cast<int>(std::bit_width(number)) - 1; ++bit)
        paths_.back().push_back({static_cast<int64_t>(number >> (bit + 1)) - 1,
                                 static_cast<int64_t>(number >> bit & 1)});
    }
    return Status::Ok();
  }

  int64_t rows_ = 0, width_ = 0, nodes_ = 0, longest_ = 0;
  std::vector<std::vector<Step>> paths_;
};

// PreOut holds log(1 + e^z) for each decision's score z, and log 2 past the end of a path; Out
// counts those, too.
template <typename T>
struct HierarchicalSigmoid {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const Tree tree, Tree::Of(ctx));
    const Tensor &x = ctx.In("X"), &w = ctx.In("W"), *bias = ctx.InOpt("Bias");
    const int64_t d = tree.width(), longest = tree.longest();
    T* out = ctx.Alloc("Out", x.dtype(), Shape{tree.rows(), 1}).template mutable_data<T>();
    const Shape shape{tree.rows(), longest};
    Tensor pre = ctx.HasOut("PreOut") ? ctx.Alloc("PreOut", x.dtype(), shape)
                                      : ctx.Scratch(x.dtype(), shape);
    for (const int64_t r : Watched(tree.rows())) {
      T* to = pre.mutable_data<T>() + r * longest;
      WatchedFill(to, longest, std::log(T(2)));
      T taken = 0, sum = 0;
      const T* row = x.data<T>() + r * d;
      for (size_t k = 0; k < tree.path(r).size(); ++k) {
        const Step& s = tree.path(r)[k];
        T z = bias != nullptr ? bias->data<T>()[s.node] : T(0);
        for (int64_t i = 0; i < d; ++i) z += w.data<T>()[s.node * d + i] * row[i];
        z = std::min(std::max(z, T(-40)), T(40));
        if (s.bit != 0) taken += z;
        to[k] = std::log(T(1) + std::exp(z));
      }
      for (int64_t k = 0; k < longest; ++k) sum += to[k];
      out[r] = sum - taken;
    }
    return Status::Ok();
  }
};

template <typename T>
struct HierarchicalSigmoidGrad {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const Tree tree, Tree::Of(ctx));
    const Tensor &x = ctx.In("X"), &w = ctx.In("W"), &pre = ctx.In("PreOut");
    const Tensor& d_out = ctx.In("Out@GRAD");
    const int64_t d = tree.width();
    if (pre.numel() != tree.rows() * tree.longest() || d_out.numel() != tree.rows())
      return InvalidArgument("PreOut or Out@GRAD does not fit X");
    T* dx = Zeros(ctx, "X@GRAD", x.shape());
    const Tensor* bias = ctx.InOpt("Bias");
    T* db = bias != nullptr ? Zeros(ctx, "Bias@GRAD", bias->shape()) : nullptr;
    std::vector<int64_t> place;  // of a node's gradient, when only some rows have one
    T* dw = WeightGrad(ctx, tree, &place);
    for (const int64_t r : Watched(tree.rows())) {
      const T* row = x.data<T>() + r * d;
      for (size_t k = 0; k < tree.path(r).size(); ++k) {
        const Step& s = tree.path(r)[k];
        const T p =
            T(1) - T(1) / std::exp(pre.data<T>()[r * tree.longest() + static_cast<int64_t>(k)]);
        const T dz = (p - static_cast<T>(s.bit)) * d_out.data<T>()[r];
        if (db != nullptr) db[s.node] += dz;
        for (int64_t i = 0; i < d && dx != nullptr; ++i)
          dx[r * d + i] += dz * w.data<T>()[s.node * d + i];
        if (dw == nullptr) continue;
        T* to = dw + (place.empty() ? s.node : place[static_cast<size_t>(s.node)]) * d;
        for (int64_t i = 0; i < d; ++i) to[i] += dz * row[i];
      }
    }
    return Status::Ok();
  }

  static T* Zeros(const KernelContext& ctx, Key slot, const Shape& shape) {
    if (!ctx.HasOut(slot)) return nullptr;
    Tensor& t = ctx.Alloc(slot, kDTypeOf<T>, shape);
    ZeroAll(t);
    return t.mutable_data<T>();
  }

  // With is_sparse, rows for the nodes that the paths name.
  static T* WeightGrad(const KernelContext& ctx, const Tree& tree, std::vector<int64_t>* place) {
    const Shape& shape = ctx.In("W").shape();
    if (!ctx.Bool("is_sparse") || ctx.InOpt("PathTable") == nullptr)
      return Zeros(ctx, "W@GRAD", shape);
    if (!ctx.HasOut("W@GRAD")) return nullptr;
    std::set<int64_t> nodes;
    for (int64_t node : ToInts(ctx.In("PathTable")))
      if (node >= 0 && node < shape[0]) nodes.insert(node);
    SelectedRows rows{{nodes.begin(), nodes.end()}, shape[0], Tensor()};
    place->assign(static_cast<size_t>(shape[0]), 0);
    for (size_t i = 0; i < rows.rows.size(); ++i)
      (*place)[static_cast<size_t>(rows.rows[i])] = static_cast<int64_t>(i);
    rows.value = ctx.Scratch(kDTypeOf<T>, Shape{std::ssize(rows.rows), tree.width()});
    ZeroAll(rows.value);
    T* data = rows.value.mutable_data<T>();
    ctx.OutVar("W@GRAD")->mutable_rows() = std::move(rows);
    return data;
  }
};

void Define(OpDef& op) {
  op.Input("X").Input("W").Input("Label").Input("PathTable", kOptional);
  op.Input("PathCode", kOptional).Input("Bias", kOptional);
  op.Attr("num_classes", 2).Attr("is_sparse", false);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(hierarchical_sigmoid) {
  op.Doc("the cost of classes as paths of binary decisions down a tree");
  Define(op);
  op.Output("Out").Output("PreOut", kOptional).Kernels<HierarchicalSigmoid, float, double>();
}
HEDDLE_OP(hierarchical_sigmoid_grad) {
  Define(op);
  op.Input("PreOut")
      .Input("Out@GRAD")
      .Output("X@GRAD", kOptional)
      .Output("W@GRAD", kOptional | kTakesRows);
  op.Output("Bias@GRAD", kOptional).Kernels<HierarchicalSigmoidGrad, float, double>();
}
