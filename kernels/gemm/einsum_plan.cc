#include "kernels/gemm/einsum_plan.h"

#include <algorithm>
#include <map>

#include "kernels/gemm/gemm.h"

namespace heddle {
namespace {

// A side of an equation: letters, with '.' once where the ellipsis stands.
Result<std::string> CleanTerm(const std::string& term) {
  std::string out;
  for (size_t i = 0; i < term.size(); ++i) {
    const char c = term[i];
    if (c == ' ') continue;
    if (c == '.') {
      if (term.compare(i, 3, "...") != 0 || out.find('.') != std::string::npos)
        return InvalidArgument("misplaced '.' in the equation's term '", term, "'");
      i += 2;
    } else if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))) {
      return InvalidArgument("unexpected '", std::string(1, c), "' in the equation");
    }
    out.push_back(c);
  }
  return out;
}

struct Equation {
  std::vector<std::string> terms;
  std::string out;
};

Result<Equation> ParseEquation(const std::string& text, size_t operands) {
  Equation e;
  const size_t arrow = text.find("->");
  const std::string left = text.substr(0, arrow);
  for (size_t begin = 0; begin <= left.size();) {
    const size_t comma = std::min(left.find(',', begin), left.size());
    HEDDLE_ASSIGN_OR_RETURN(std::string term, CleanTerm(left.substr(begin, comma - begin)));
    e.terms.push_back(std::move(term));
    begin = comma + 1;
  }
  if (e.terms.size() != operands)
    return InvalidArgument("equation '", text, "' has ", e.terms.size(), " terms for ", operands,
                           " operands");
  if (arrow != std::string::npos) {
    HEDDLE_ASSIGN_OR_RETURN(e.out, CleanTerm(text.substr(arrow + 2)));
    return e;
  }
  // Without an arrow: the ellipsis, then every letter that occurs once, in alphabetical order.
  std::map<char, int> seen;
  for (const std::string& term : e.terms)
    for (char c : term) ++seen[c];
  for (const auto& [c, count] : seen)
    if (c == '.' || count == 1) e.out.push_back(c);
  return e;
}

constexpr int kEllipsisBase = 256;  // labels of the ellipsis' axes, counted from the last one

// The labels of one term's axes.
Result<std::vector<int>> LabelsOf(const std::string& term, int rank) {
  const bool dots = term.find('.') != std::string::npos;
  const int hidden = rank - static_cast<int>(term.size()) + (dots ? 1 : 0);
  if (hidden < 0 || (!dots && hidden > 0))
    return InvalidArgument("the equation's term '", term, "' does not fit an operand of rank ",
                           rank);
  std::vector<int> labels;
  for (char c : term) {
    if (c != '.') labels.push_back(static_cast<unsigned char>(c));
    for (int i = hidden - 1; c == '.' && i >= 0; --i) labels.push_back(kEllipsisBase + i);
  }
  return labels;
}

// One axis after the other, the last fastest.
struct Axis {
  int64_t size;
  int64_t stride;
};

// Calls fn(offset) for all positions of `axes`, in order.
template <typename Fn>
void Walk(const std::vector<Axis>& axes, size_t depth, int64_t offset, const Fn& fn) {
  if (depth == axes.size()) return fn(offset);
  for (int64_t i = 0; i < axes[depth].size; ++i)
    Walk(axes, depth + 1, offset + i * axes[depth].stride, fn);
}

// Copies the elements at `axes` in order, each the sum over `summed`.
template <typename T>
void Pack(const T* from, const std::vector<Axis>& axes, const std::vector<Axis>& summed, T* to) {
  if (!summed.empty()) {
    Walk(axes, 0, 0, [&](int64_t at) {
      T sum = 0;
      Walk(summed, 0, at, [&](int64_t k) { sum += from[k]; });
      *to++ = sum;
    });
    return;
  }
  if (axes.empty()) {
    *to = *from;
    return;
  }
  const std::vector<Axis> outer(axes.begin(), axes.end() - 1);
  const auto [n, stride] = axes.back();
  Walk(outer, 0, 0, [&, n = n, stride = stride](int64_t at) {
    for (int64_t i = 0; i < n; ++i) to[i] = from[at + i * stride];
    to += n;
  });
}

// The labels of a contraction by what is done with them.
struct Groups {
  std::vector<size_t> batch, m, n, k, sum_a, sum_b;
};

Groups GroupLabels(const EinsumPlan& plan) {
  Groups g;
  const bool two = plan.operands.size() == 2;
  for (size_t l = 0; l < plan.sizes.size(); ++l) {
    const bool a = plan.operands[0].has[l], b = two && plan.operands[1].has[l];
    const bool out = plan.out.has[l];
    auto& group = out ? (a && b ? g.batch : b ? g.n : g.m) : (a && b ? g.k : a ? g.sum_a : g.sum_b);
    if (out || a || b) group.push_back(l);
  }
  return g;
}

std::vector<Axis> AxesOf(const EinsumPlan& plan, const LabelledView& view,
                         std::initializer_list<const std::vector<size_t>*> groups) {
  std::vector<Axis> axes;
  for (const auto* group : groups)
    for (size_t l : *group) axes.push_back({plan.sizes[l], view.strides[l]});
  return axes;
}

int64_t Count(const EinsumPlan& plan, const std::vector<size_t>& group) {
  int64_t n = 1;
  for (size_t l : group) n *= plan.sizes[l];
  return n;
}

template <typename T>
void Scatter(const T* from, const std::vector<Axis>& axes, T* to) {
  Walk(axes, 0, 0, [&](int64_t at) { to[at] = *from++; });
}

}  // namespace

Result<EinsumPlan> PlanEinsum(const std::string& equation, const std::vector<Shape>& shapes) {
  if (shapes.empty() || shapes.size() > 2)
    return InvalidArgument("einsum takes one or two operands, not ", shapes.size());
  HEDDLE_ASSIGN_OR_RETURN(const Equation e, ParseEquation(equation, shapes.size()));
  std::map<int, size_t> ids;
  std::vector<std::vector<int>> labels;
  EinsumPlan plan;
  int hidden = 0;
  for (size_t i = 0; i < shapes.size(); ++i) {
    HEDDLE_ASSIGN_OR_RETURN(std::vector<int> own, LabelsOf(e.terms[i], shapes[i].rank()));
    for (size_t axis = 0; axis < own.size(); ++axis) {
      const int64_t size = shapes[i][static_cast<int>(axis)];
      const auto [it, fresh] = ids.try_emplace(own[axis], plan.sizes.size());
      if (own[axis] >= kEllipsisBase) hidden = std::max(hidden, own[axis] - kEllipsisBase + 1);
      if (fresh) {
        plan.sizes.push_back(size);
      } else if (int64_t& known = plan.sizes[it->second]; known != size) {
        if (known != 1 && size != 1)
          return InvalidArgument("equation '", equation, "': an axis has sizes ", known, " and ",
                                 size);
        known = std::max(known, size) == 1 ? 1 : known == 1 ? size : known;
      }
    }
    labels.push_back(std::move(own));
  }
  const size_t count = plan.sizes.size();
  for (size_t i = 0; i < shapes.size(); ++i) {
    LabelledView view{std::vector<int64_t>(count, 0), std::vector<bool>(count, false)};
    int64_t stride = 1;
    for (int axis = shapes[i].rank() - 1; axis >= 0; --axis) {
      const size_t l = ids[labels[i][static_cast<size_t>(axis)]];
      const int64_t size = shapes[i][axis];
      if (size == plan.sizes[l]) {
        view.strides[l] += size == 1 ? 0 : stride;
        view.has[l] = true;
      }
      stride *= size;
    }
    plan.operands.push_back(std::move(view));
  }
  plan.out = LabelledView{std::vector<int64_t>(count, 0), std::vector<bool>(count, false)};
  const bool dots = e.out.find('.') != std::string::npos;
  const int rank = static_cast<int>(e.out.size()) + (dots ? hidden - 1 : 0);
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<int> out, LabelsOf(e.out, rank));
  for (int label : out) {
    const auto it = ids.find(label);
    if (it == ids.end() || plan.out.has[it->second])
      return InvalidArgument("equation '", equation, "': an output label is unknown or repeats");
    plan.out.has[it->second] = true;
    if (plan.out_shape.rank() == Shape::kMaxRank)
      return InvalidArgument("equation '", equation, "' has too many output axes");
    plan.out_shape.push_back(plan.sizes[it->second]);
  }
  int64_t stride = 1;
  for (size_t i = out.size(); i-- > 0;) {
    plan.out.strides[ids[out[i]]] = stride;
    stride *= plan.sizes[ids[out[i]]];
  }
  return plan;
}

EinsumPlan GradientPlan(const EinsumPlan& plan, int which) {
  EinsumPlan grad;
  grad.sizes = plan.sizes;
  grad.operands.push_back(plan.out);
  if (plan.operands.size() == 2) grad.operands.push_back(plan.operands[which == 0 ? 1 : 0]);
  grad.out = plan.operands[static_cast<size_t>(which)];
  return grad;
}

template <typename T>
void Contract(const EinsumPlan& plan, const std::vector<const T*>& operands, T* out) {
  const Groups g = GroupLabels(plan);
  const int64_t batch = Count(plan, g.batch), m = Count(plan, g.m), n = Count(plan, g.n),
                k = Count(plan, g.k);
  if (batch * m * n == 0) return;
  std::vector<T> a(static_cast<size_t>(batch * m * k)), c;
  Pack(operands[0], AxesOf(plan, plan.operands[0], {&g.batch, &g.m, &g.k}),
       AxesOf(plan, plan.operands[0], {&g.sum_a}), a.data());
  if (plan.operands.size() == 2) {
    std::vector<T> b(static_cast<size_t>(batch * k * n));
    Pack(operands[1], AxesOf(plan, plan.operands[1], {&g.batch, &g.k, &g.n}),
         AxesOf(plan, plan.operands[1], {&g.sum_b}), b.data());
    c.resize(static_cast<size_t>(batch * m * n));
    for (int64_t i = 0; i < batch; ++i)
      Gemm<T>(GemmDims::Dense(m, n, k), T(1), a.data() + i * m * k, b.data() + i * k * n, T(0),
              c.data() + i * m * n);
  } else {
    c = std::move(a);
  }
  Scatter(c.data(), AxesOf(plan, plan.out, {&g.batch, &g.m, &g.n}), out);
}

template void Contract<float>(const EinsumPlan&, const std::vector<const float*>&, float*);
template void Contract<double>(const EinsumPlan&, const std::vector<const double*>&, double*);
template void Contract<std::complex<float>>(const EinsumPlan&,
                                            const std::vector<const std::complex<float>*>&,
                                            std::complex<float>*);
template void Contract<std::complex<double>>(const EinsumPlan&,
                                             const std::vector<const std::complex<double>*>&,
                                             std::complex<double>*);

}  // namespace heddle
