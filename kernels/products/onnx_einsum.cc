// Sums of products by index notation, of any number of operands and any dtype.
#include <cctype>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

// Every letter of the equation, and every dimension that an ellipsis stands for, is an index.
struct EinsumPlan {
  Shape out, summed;                              // extents of the result's indices, and the rest
  std::vector<std::vector<int64_t>> out_strides;  // per operand, of those indices
  std::vector<std::vector<int64_t>> sum_strides;
  bool in_steps = false;  // factors are multiplied two by two, which is less work
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
  plan.in_steps = terms.size() > 2;
  for (size_t k = out.size(); k < all.size(); ++k) {
    // Summed before any product where one operand alone has it.
    const auto has = std::count_if(strides.begin(), strides.end(),
                                   [&](const auto& of_operand) { return of_operand[k] != 0; });
    plan.in_steps = plan.in_steps || (terms.size() > 1 && has == 1 && extent[k] > 1);
  }
  // Few products are computed sooner than they are taken apart, and without memory.
  constexpr double kWorthSteps = 1 << 14;
  const auto size = [](const Shape& shape) {
    double product = 1;
    for (const int64_t n : shape) product *= static_cast<double>(n);
    return product;
  };
  plan.in_steps = plan.in_steps && size(plan.out) * size(plan.summed) > kWorthSteps;
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

  // A factor of the product: its strides along the plan's indices, 0 where it lacks one.
  struct Factor {
    const T* data;
    std::vector<int64_t> strides;
    Tensor memory;  // of one that was computed here
  };

  static Status Sum(const KernelContext& ctx, const EinsumPlan& plan) {
    return plan.in_steps ? InSteps(ctx, plan) : AtOnce(ctx, plan);
  }

  static Status AtOnce(const KernelContext& ctx, const EinsumPlan& plan) {
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
        for (const auto part : Stretches(summed)) {
          for (int64_t j = part.begin; j < part.end; ++j) {
            T product = 1;
            for (size_t k = 0; k < operands; ++k)
              product = MulFn::Apply(
                  product, from[k][base[k] + Offset(plan.summed, plan.sum_strides[k], j)]);
            sum = AddFn::Apply(sum, product);
          }
        }
        to[i] = sum;
      }
    });
    return Status::Ok();
  }

  // Factors are multiplied two by two, the pair with the least work first, and an index is summed
  // as soon as one factor alone has it: four operands without common letters are four sums.
  static Status InSteps(const KernelContext& ctx, const EinsumPlan& plan) {
    const auto outs = static_cast<size_t>(plan.out.rank());
    std::vector<int64_t> extent(plan.out.begin(), plan.out.end());
    extent.insert(extent.end(), plan.summed.begin(), plan.summed.end());
    std::vector<Factor> factors;
    for (size_t k = 0; k < plan.out_strides.size(); ++k) {
      std::vector<int64_t> strides = plan.out_strides[k];
      strides.insert(strides.end(), plan.sum_strides[k].begin(), plan.sum_strides[k].end());
      factors.push_back(
          {ctx.In("Inputs", static_cast<int>(k)).template data<T>(), std::move(strides), {}});
    }
    const Contraction c{ctx, extent, outs};
    for (size_t k = 0; k < factors.size(); ++k)
      if (factors.size() > 1 && c.HasLone(factors, k)) factors[k] = c.Product(factors, {k});
    while (factors.size() > 2) {
      const auto [first, second] = c.BestPair(factors);
      Factor product = c.Product(factors, {first, second});
      factors.erase(factors.begin() + static_cast<std::ptrdiff_t>(second));
      factors[first] = std::move(product);
    }
    std::vector<size_t> all(factors.size());
    std::iota(all.begin(), all.end(), size_t{0});
    std::vector<bool> kept(extent.size());
    WatchedFill(kept.begin(), outs, true);
    c.Multiply(factors, all, kept, ctx.Out("Output").template mutable_data<T>());
    return Status::Ok();
  }

  struct Contraction {
    const KernelContext& ctx;
    const std::vector<int64_t>& extent;  // of the result's indices, then of those that are summed
    const size_t outs;

    bool Has(const Factor& f, size_t index) const {
      return f.strides[index] != 0 && extent[index] != 1;
    }
    // Whether an index that factors `of` have is needed once they are multiplied.
    bool Stays(const std::vector<Factor>& all, const std::vector<size_t>& of, size_t index) const {
      if (index < outs) return true;
      for (size_t k = 0; k < all.size(); ++k)
        if (std::find(of.begin(), of.end(), k) == of.end() && Has(all[k], index)) return true;
      return false;
    }
    bool HasLone(const std::vector<Factor>& all, size_t k) const {
      for (size_t i = outs; i < extent.size(); ++i)
        if (Has(all[k], i) && !Stays(all, {k}, i)) return true;
      return false;
    }
    std::pair<size_t, size_t> BestPair(const std::vector<Factor>& all) const {
      std::pair<size_t, size_t> best{0, 1};
      double least = std::numeric_limits<double>::infinity();
      for (size_t i = 0; i < all.size(); ++i)
        for (size_t j = i + 1; j < all.size(); ++j) {
          double work = 1;
          for (size_t k = 0; k < extent.size(); ++k)
            if (Has(all[i], k) || Has(all[j], k)) work *= static_cast<double>(extent[k]);
          if (work < least) best = {i, j}, least = work;
        }
      return best;
    }
    Factor Product(const std::vector<Factor>& all, const std::vector<size_t>& of) const {
      std::vector<bool> kept(extent.size());
      Factor product{nullptr, std::vector<int64_t>(extent.size(), 0), {}};
      int64_t numel = 1;
      for (size_t i = extent.size(); i-- > 0;) {
        bool has = false;
        for (const size_t k : of) has = has || Has(all[k], i);
        kept[i] = has && Stays(all, of, i);
        if (!kept[i]) continue;
        product.strides[i] = numel;
        numel = CheckedProduct(numel, extent[i]);
      }
      product.memory = ctx.Scratch(kDTypeOf<T>, {numel});
      Multiply(all, of, kept, product.memory.template mutable_data<T>());
      product.data = product.memory.template data<T>();
      return product;
    }
    // Sums over the indices that the factors have and that are not kept; `to` is dense.
    void Multiply(const std::vector<Factor>& all, const std::vector<size_t>& of,
                  const std::vector<bool>& kept, T* to) const {
      std::vector<int64_t> out, sum;
      std::vector<std::vector<int64_t>> out_strides(of.size()), sum_strides(of.size());
      for (size_t i = 0; i < extent.size(); ++i) {
        bool has = false;
        for (const size_t k : of) has = has || Has(all[k], i);
        if (!kept[i] && !has) continue;
        (kept[i] ? out : sum).push_back(extent[i]);
        for (size_t f = 0; f < of.size(); ++f)
          (kept[i] ? out_strides : sum_strides)[f].push_back(all[of[f]].strides[i]);
      }
      const auto numel = [](const std::vector<int64_t>& sizes) {
        return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
      };
      const int64_t summed = numel(sum);
      ctx.ParallelFor(numel(out), 1 + 8192 / (1 + summed), [&](int64_t begin, int64_t end) {
        PerOperand<int64_t> base(of.size());
        for (int64_t i = begin; i < end; ++i) {
          for (size_t f = 0; f < of.size(); ++f) base[f] = Offset(out, out_strides[f], i);
          T total = 0;
          for (const auto part : Stretches(summed))
            for (int64_t j = part.begin; j < part.end; ++j) {
              T product = 1;
              for (size_t f = 0; f < of.size(); ++f)
                product = MulFn::Apply(product,
                                       all[of[f]].data[base[f] + Offset(sum, sum_strides[f], j)]);
              total = AddFn::Apply(total, product);
            }
          to[i] = total;
        }
      });
    }
  };

  static int64_t CheckedProduct(int64_t a, int64_t b) {
    int64_t product = 0;
    if (__builtin_mul_overflow(a, b, &product)) throw std::bad_alloc();
    return product;
  }

  template <typename Sizes>
  static int64_t Offset(const Sizes& shape, const std::vector<int64_t>& strides, int64_t i) {
    int64_t at = 0;
    for (size_t axis = strides.size(); axis-- > 0;) {
      const int64_t n = *(shape.begin() + axis);
      at += i % n * strides[axis];
      i /= n;
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
