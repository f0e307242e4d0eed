// Sums of products by index notation, of any number of operands and any dtype.
#include <cctype>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/elementwise/arithmetic.h"
#include "kernels/onnx/operands.h"

namespace heddle {
namespace {

// Every letter of the equation, and every dimension that an ellipsis stands for, is an index.
struct EinsumPlan {
  Shape out, summed;                              // extents of the result's indices, and the rest
  std::vector<std::vector<int64_t>> out_strides;  // per operand, of those indices
  std::vector<std::vector<int64_t>> sum_strides;
};

// Terms as lists of indices: a letter is its code, dimension k of an ellipsis (counted from its
// end) is -1 - k.
using Term = std::vector<int>;

Result<Term> TermOf(const std::string& text, int dots) {
  Term term;
  bool seen = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ') continue;
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      term.push_back(c);
    } else if (text.compare(i, 3, "...") == 0 && !seen) {
      for (int k = dots - 1; k >= 0; --k) term.push_back(-1 - k);
      seen = true;
      i += 2;
    } else {
      return InvalidArgument("equation has '", std::string(1, c), "' where a letter was expected");
    }
  }
  return term;
}

// Letters of a term, without spaces and ellipsis.
int LettersIn(const std::string& text) {
  int count = 0;
  for (const char c : text) count += std::isalpha(static_cast<unsigned char>(c)) != 0 ? 1 : 0;
  return count;
}

struct Equation {
  std::vector<std::string> terms;
  std::string result;
  bool has_result = false;
};

Equation EquationOf(const std::string& text) {
  Equation e;
  const size_t arrow = text.find("->");
  e.has_result = arrow != std::string::npos;
  if (e.has_result) e.result = text.substr(arrow + 2);
  const std::string left = text.substr(0, arrow);
  size_t begin = 0;
  for (;;) {
    const size_t comma = left.find(',', begin);
    e.terms.push_back(left.substr(begin, comma - begin));
    if (comma == std::string::npos) return e;
    begin = comma + 1;
  }
}

// Indices of the result when the equation does not say them: those of ellipses, then letters that
// occur once, in order.
Term ImplicitResult(const std::vector<Term>& terms, int dots) {
  Term out;
  for (int k = dots - 1; k >= 0; --k) out.push_back(-1 - k);
  for (int c = 0; c < 128; ++c) {
    int64_t count = 0;
    for (const Term& t : terms) count += std::count(t.begin(), t.end(), c);
    if (count == 1 && c > 0) out.push_back(c);
  }
  return out;
}

template <typename Context>
Result<EinsumPlan> EinsumPlanOf(const Context& ctx) {
  const Equation e = EquationOf(ctx.Str("equation"));
  const int operands = ctx.InCount("Inputs");
  if (e.terms.size() != static_cast<size_t>(operands))
    return InvalidArgument("equation '", ctx.Str("equation"), "' has ", e.terms.size(),
                           " terms for ", operands, " operands");
  std::vector<Term> terms;
  int most_dots = 0;
  for (int i = 0; i < operands; ++i) {
    const std::string& text = e.terms[static_cast<size_t>(i)];
    const int rank = ShapeIn(ctx, "Inputs", i).rank();
    const bool ellipsis = text.find('.') != std::string::npos;
    const int dots = ellipsis ? rank - LettersIn(text) : 0;
    if (dots < 0 || (!ellipsis && LettersIn(text) != rank))
      return InvalidArgument("term '", text, "' does not fit operand ", i, " of shape ",
                             ShapeIn(ctx, "Inputs", i).ToString());
    HEDDLE_ASSIGN_OR_RETURN(Term term, TermOf(text, dots));
    most_dots = std::max(most_dots, dots);
    terms.push_back(std::move(term));
  }
  Term out = ImplicitResult(terms, most_dots);
  if (e.has_result) {
    HEDDLE_ASSIGN_OR_RETURN(out, TermOf(e.result, most_dots));
  }
  Term all = out;
  for (const Term& t : terms)
    for (const int label : t)
      if (std::find(all.begin(), all.end(), label) == all.end()) all.push_back(label);
  if (out.size() > static_cast<size_t>(Shape::kMaxRank) ||
      all.size() - out.size() > static_cast<size_t>(Shape::kMaxRank))
    return InvalidArgument("equation '", ctx.Str("equation"), "' has too many indices");
  EinsumPlan plan;
  std::vector<int64_t> extent(all.size(), -1);
  std::vector<std::vector<int64_t>> strides(terms.size(), std::vector<int64_t>(all.size(), 0));
  for (size_t i = 0; i < terms.size(); ++i) {
    const Shape& shape = ShapeIn(ctx, "Inputs", static_cast<int>(i));
    const auto own = RowMajorStrides(shape);
    for (size_t axis = 0; axis < terms[i].size(); ++axis) {
      const auto at =
          static_cast<size_t>(std::find(all.begin(), all.end(), terms[i][axis]) - all.begin());
      const int64_t n = shape[static_cast<int>(axis)];
      if (extent[at] >= 0 && extent[at] != n && extent[at] != 1 && n != 1)
        return InvalidArgument("equation '", ctx.Str("equation"), "': an index is ", extent[at],
                               " long in one operand and ", n, " in operand ", i);
      if (extent[at] < 0 || extent[at] == 1) extent[at] = n;
      if (n != 1) strides[i][at] += own[axis];
    }
  }
  for (size_t k = 0; k < all.size(); ++k) {
    if (extent[k] < 0)
      return InvalidArgument("equation '", ctx.Str("equation"),
                             "' has an index in its result alone");
    if (std::count(out.begin(), out.end(), all[k]) > 1)
      return InvalidArgument("equation '", ctx.Str("equation"), "' repeats an index of its result");
    (k < out.size() ? plan.out : plan.summed).push_back(extent[k]);
  }
  const auto split = static_cast<std::ptrdiff_t>(out.size());
  for (const auto& s : strides) {
    plan.out_strides.emplace_back(s.begin(), s.begin() + split);
    plan.sum_strides.emplace_back(s.begin() + split, s.end());
  }
  return plan;
}

Status OnnxEinsumShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"Inputs"})) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const EinsumPlan plan, EinsumPlanOf(ctx));
  for (int i = 1; i < ctx.InCount("Inputs"); ++i)
    if (ctx.InDType("Inputs", i) != ctx.InDType("Inputs"))
      return InvalidArgument("operand ", i, " is ", Name(ctx.InDType("Inputs", i)), ", the first ",
                             Name(ctx.InDType("Inputs")));
  HEDDLE_RETURN_IF_ERROR(MakeShape(Ints(plan.out.begin(), plan.out.end()), "the result").status());
  ctx.SetOut("Output", plan.out, ctx.InDType("Inputs"));
  return Status::Ok();
}

struct EinsumState final : KernelState {
  explicit EinsumState(EinsumPlan p) : plan(std::move(p)) {}
  EinsumPlan plan;
};

Result<std::unique_ptr<KernelState>> PrepareOnnxEinsum(PrepareContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(EinsumPlan plan, EinsumPlanOf(ctx));
  return std::unique_ptr<KernelState>(std::make_unique<EinsumState>(std::move(plan)));
}

// Lists with one element for each operand, of which there are seldom more.
template <typename T>
using PerOperand = ShortList<T, 8>;

template <typename T>
struct OnnxEinsum {
  static Status Run(KernelContext& ctx) {
    if (ctx.has_state()) return Sum(ctx, ctx.State<EinsumState>().plan);
    HEDDLE_ASSIGN_OR_RETURN(const EinsumPlan plan, EinsumPlanOf(ctx));  // inside RunInFloat
    return Sum(ctx, plan);
  }

  static Status Sum(const KernelContext& ctx, const EinsumPlan& plan) {
    const size_t operands = plan.out_strides.size();
    T* to = ctx.Out("Output").template mutable_data<T>();
    PerOperand<const T*> from;
    for (size_t k = 0; k < operands; ++k)
      from.push_back(ctx.In("Inputs", static_cast<int>(k)).template data<T>());
    const int64_t summed = plan.summed.numel();
    ctx.ParallelFor(plan.out.numel(), 1 + 8192 / (1 + summed), [&](int64_t begin, int64_t end) {
      PerOperand<int64_t> base(operands);
      for (int64_t i = begin; i < end; ++i) {
        for (size_t k = 0; k < operands; ++k) base[k] = Offset(plan.out, plan.out_strides[k], i);
        T sum = 0;
        for (int64_t j = 0; j < summed; ++j) {
          T product = 1;
          for (size_t k = 0; k < operands; ++k)
            product = MulFn::Apply(product,
                                   from[k][base[k] + Offset(plan.summed, plan.sum_strides[k], j)]);
          sum = AddFn::Apply(sum, product);
        }
        to[i] = sum;
      }
    });
    return Status::Ok();
  }

  static int64_t Offset(const Shape& shape, const std::vector<int64_t>& strides, int64_t i) {
    int64_t at = 0;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      at += i % shape[axis] * strides[static_cast<size_t>(axis)];
      i /= shape[axis];
    }
    return at;
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_einsum) {
  op.Doc("sums of products by index notation, for any number of operands");
  op.Input("Inputs", kList).Output("Output").Attr("equation", "");
  op.InferShape(OnnxEinsumShape).Prepare(PrepareOnnxEinsum);
  op.Kernels<OnnxEinsum, float, double, int32_t, int64_t>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}

HEDDLE_EXAMPLES(onnx_einsum, R"(
example three operands
# oracle reference
attr equation STRING "ij,jk,k->i"
in Inputs float32 [2, 3] 1 2 3 4 5 6
in Inputs float32 [3, 2] 1 -1 2 0.5 0 3
in Inputs float32 [2] 2 -1
out Output float32 [2] 1 11.5

example implicit order
# oracle reference
attr equation STRING "ba"
in Inputs float32 [2, 3] 1 2 3 4 5 6
out Output float32 [3, 2] 1 4 2 5 3 6

example a diagonal
attr equation STRING "...ii ->...i"
in Inputs float64 [2, 2, 2] 1 2 3 4 5 6 7 8
out Output float64 [2, 2] 1 4 5 8

example batches by ellipsis
attr equation STRING "...ij, ...jk -> ...ik"
in Inputs float32 [2, 1, 2] 1 2 3 4
in Inputs float32 [2, 2, 1] 1 -1 0.5 2
out Output float32 [2, 1, 1] -1 9.5

example integers to a scalar
# oracle reference
attr equation STRING "i,i"
in Inputs int64 [3] 1 2 3
in Inputs int64 [3] 4 -5 6
out Output int64 [] 12
)")
