// Products of matrices, and einsum.
#include <algorithm>
#include <cctype>
#include <limits>
#include <string>
#include <vector>

#include "core/shapes.h"
#include "formats/tensorflow/direct/ops_direct.h"

namespace heddle::tensorflow {
namespace {

bool IsEmpty(NodeLowering& n, int v) { return n.shape(v).is_static() && n.shape(v).numel() == 0; }

// A matrix product whose operands may be transposed or, for adjoints, also conjugated.
void Multiply(NodeLowering& n, int x, int y, bool trans_x, bool trans_y, bool conjugate) {
  if (conjugate && IsComplex(n.dtype(x))) {
    if (trans_x) x = n.Unary("conj", x);
    if (trans_y) y = n.Unary("conj", y);
  }
  int made;
  if ((IsEmpty(n, x) || IsEmpty(n, y)) && IsComplex(n.dtype(x)) && n.rank(x) == 2 &&
      n.rank(y) == 2) {
    const int64_t rows = n.shape(x)[trans_x ? 1 : 0], cols = n.shape(y)[trans_y ? 0 : 1];
    made =
        n.Make("fill_constant", {},
               {{"shape", Ints{rows, cols}}, {"dtype", DTypeToProto(n.dtype(x))}, {"value", 0.0}});
  } else {
    made =
        n.Make("matmul_v2", {{"X", {x}}, {"Y", {y}}}, {{"trans_x", trans_x}, {"trans_y", trans_y}});
  }
  ResultLike(n, 0, made, x);
}

bool LowerMatMul(NodeLowering& n) {
  Multiply(n, n.In(0), n.In(1), n.Bool("transpose_a", false), n.Bool("transpose_b", false), false);
  return true;
}
bool LowerBatchMatMul(NodeLowering& n) {
  int x = n.In(0), y = n.In(1);
  if (n.op() == "BatchMatMulV3") {
    const DType to = n.TypeAttr("Tout", n.dtype(x));
    x = n.Cast(x, to);
    y = n.Cast(y, to);
  }
  Multiply(n, x, y, n.Bool("adj_x", false), n.Bool("adj_y", false), true);
  return true;
}

bool Holds(std::string_view letters, char c) { return letters.find(c) != std::string_view::npos; }

// An operand of an einsum without repeated letters, with one letter per axis.
struct Lettered {
  int var;
  std::string letters;
  int64_t Size(const NodeLowering& n, char c) const {
    return n.shape(var)[static_cast<int>(letters.find(c))];
  }
};

int Reordered(NodeLowering& n, const Lettered& x, const std::string& letters) {
  Ints perm;
  for (const char c : letters) perm.push_back(static_cast<int64_t>(x.letters.find(c)));
  return x.letters == letters ? x.var : Permuted(n, x.var, perm);
}

// A product with a matrix, if both operands and the result keep the order of their axes. Several
// axes may form one axis of the matrix.
std::optional<int> ProductWithMatrix(NodeLowering& n, const Lettered& x, const Lettered& y,
                                     const std::string& rows, const std::string& inner,
                                     const std::string& columns) {
  int64_t depth = 1, width = 1;
  Ints flat(rows.size(), 0), split(rows.size(), 0);  // 0: the dimension of the input
  for (const char c : inner) {
    if (x.Size(n, c) != y.Size(n, c) || y.Size(n, c) <= 0 ||
        __builtin_mul_overflow(depth, y.Size(n, c), &depth))
      return std::nullopt;
  }
  for (const char c : columns) {
    if (y.Size(n, c) <= 0 || __builtin_mul_overflow(width, y.Size(n, c), &width))
      return std::nullopt;
    split.push_back(y.Size(n, c));
  }
  flat.push_back(depth);
  const int left = inner.size() > 1 ? n.Reshape(x.var, flat) : x.var;
  const int right = y.letters.size() > 2 ? n.Reshape(y.var, {depth, width}) : y.var;
  const int made = n.Binary("matmul_v2", left, right);
  return columns.size() > 1 ? n.Reshape(made, split) : made;
}

// An einsum that is a matrix product between transposes or reshapes: passes know more about these
// operators (attention, for one). Nothing: it is no such product, or a size that is needed is not
// known.
std::optional<int> EinsumProduct(NodeLowering& n, Lettered x, Lettered y, const std::string& out) {
  std::string batch, rows, columns, inner;
  for (const char c : out) {
    const bool in_x = Holds(x.letters, c), in_y = Holds(y.letters, c);
    if (!in_x && !in_y) return std::nullopt;
    (in_x && in_y ? batch : in_x ? rows : columns).push_back(c);
  }
  for (const char c : x.letters)
    if (!Holds(out, c)) inner.push_back(c);
  for (const char c : inner)
    if (!Holds(y.letters, c)) return std::nullopt;
  if (batch.size() + columns.size() + inner.size() != y.letters.size() || inner.empty() ||
      n.rank(x.var) != static_cast<int>(x.letters.size()) ||
      n.rank(y.var) != static_cast<int>(y.letters.size()))
    return std::nullopt;
  if (batch.empty())
    return x.letters == rows + inner && y.letters == inner + columns && out == rows + columns &&
                   !rows.empty() && !columns.empty()
               ? ProductWithMatrix(n, x, y, rows, inner, columns)
               : std::nullopt;
  if (rows.size() != 1 || columns.size() != 1 || inner.size() != 1) return std::nullopt;
  for (const char c : batch + inner)
    if (x.Size(n, c) >= 0 && y.Size(n, c) >= 0 && x.Size(n, c) != y.Size(n, c)) return std::nullopt;
  if (out.find(columns) < out.find(rows)) {
    std::swap(x, y);
    std::swap(rows, columns);
  }
  const bool turned = y.letters.find(columns) < y.letters.find(inner);
  const int left = Reordered(n, x, batch + rows + inner);
  const int right = Reordered(n, y, batch + (turned ? columns + inner : inner + columns));
  const int made = n.Make("matmul_v2", {{"X", {left}}, {"Y", {right}}}, {{"trans_y", turned}});
  return Reordered(n, {made, batch + rows + columns}, out);
}

// The shape of an einsum's result; a letter's size is known if it is in one operand.
Shape ShapeByLetters(const NodeLowering& n, const std::vector<Lettered>& operands,
                     const std::string& out) {
  Shape shape;
  for (const char c : out) {
    int64_t size = -1;
    for (const Lettered& x : operands)
      if (Holds(x.letters, c) && n.rank(x.var) == static_cast<int>(x.letters.size()))
        size = std::max(size, x.Size(n, c));
    shape.push_back(size);
  }
  return shape;
}

// An einsum of two real operands without repeated letters may be a product that passes know.
bool LowerEinsum(NodeLowering& n) {
  const std::vector<int> inputs = n.AllInputs();
  std::string equation = n.Str("equation", "");
  std::erase(equation, ' ');
  if (inputs.empty()) return false;
  std::string_view left = equation;
  left = left.substr(0, left.find("->"));
  bool plain = inputs.size() == 2 && equation.find("->") != std::string::npos &&
               (n.dtype(inputs[0]) == DType::kF32 || n.dtype(inputs[0]) == DType::kF64) &&
               equation.find('.') == std::string::npos;
  for (const int v : inputs) plain = plain && !IsEmpty(n, v);
  std::string seen;
  for (const char c : left) {
    if (c == ',') seen.clear();
    plain = plain && (c == ',' || seen.find(c) == std::string::npos);
    seen.push_back(c);
  }
  const std::string out = equation.substr(std::min(equation.size(), left.size() + 2));
  const size_t comma = std::min(left.find(','), left.size());
  for (const char c : out) plain = plain && std::count(out.begin(), out.end(), c) == 1;
  plain = plain && comma < left.size();
  if (plain) {
    const Lettered x{inputs[0], std::string(left.substr(0, comma))};
    const Lettered y{inputs[1], std::string(left.substr(comma + 1))};
    const auto product = EinsumProduct(n, x, y, out);
    const int made =
        product ? *product : n.Make("einsum", {{"Operands", inputs}}, {{"equation", equation}});
    if (!n.shape(made).is_static()) n.SetShape(made, ShapeByLetters(n, {x, y}, out));
    ResultLike(n, 0, made, inputs[0]);
  } else {
    ResultLike(n, 0, n.Make("einsum", {{"Operands", inputs}}, {{"equation", equation}}), inputs[0]);
  }
  return true;
}

constexpr HandlerEntry kProductEntries[] = {
    {"BatchMatMul", &LowerBatchMatMul},
    {"BatchMatMulV2", &LowerBatchMatMul},
    {"BatchMatMulV3", &LowerBatchMatMul},
    {"Einsum", &LowerEinsum},
    {"MatMul", &LowerMatMul},
};

}  // namespace

std::span<const HandlerEntry> ProductHandlers() { return kProductEntries; }

}  // namespace heddle::tensorflow
