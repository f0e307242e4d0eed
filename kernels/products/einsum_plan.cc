#include "kernels/products/einsum_plan.h"

#include <algorithm>
#include <limits>
#include <new>
#include <string>
#include <utility>

#include "core/dtype_of.h"
#include "core/interrupts.h"
#include "kernels/base/short_list.h"
#include "kernels/gemm/gemm.h"

namespace heddle {
namespace {

// A side of an equation: letters, with '.' once where the ellipsis stands. What fits an operand is
// short enough for a string without memory of its own.
Result<std::string> CleanTerm(std::string_view term) {
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
  std::array<std::string, kEinsumOperands> terms;
  std::string out;
};

Result<Equation> ParseEquation(std::string_view text, size_t operands) {
  Equation e;
  const size_t arrow = text.find("->");
  const std::string_view left = text.substr(0, arrow);
  size_t terms = 0;
  for (size_t begin = 0; begin <= left.size(); ++terms) {
    const size_t comma = std::min(left.find(',', begin), left.size());
    HEDDLE_ASSIGN_OR_RETURN(std::string term, CleanTerm(left.substr(begin, comma - begin)));
    if (terms < operands) e.terms[terms] = std::move(term);
    begin = comma + 1;
  }
  if (terms != operands)
    return InvalidArgument("equation '", text, "' has ", terms, " terms for ", operands,
                           " operands");
  if (arrow != std::string_view::npos) {
    HEDDLE_ASSIGN_OR_RETURN(e.out, CleanTerm(text.substr(arrow + 2)));
    return e;
  }
  // Without an arrow: the ellipsis, then every letter that occurs once, in alphabetical order.
  std::array<int, 128> seen{};
  for (const std::string& term : e.terms)
    for (char c : term) ++seen[static_cast<size_t>(c)];
  for (size_t c = 0; c < seen.size(); ++c)
    if (seen[c] == 1 || (c == '.' && seen[c] > 0)) e.out.push_back(static_cast<char>(c));
  return e;
}

constexpr int kEllipsisBase = 128;  // labels of the ellipsis' axes, counted from the last one
using Labels = ShortList<int, Shape::kMaxRank>;

// The labels of one term's axes.
Result<Labels> LabelsOf(const std::string& term, int rank) {
  const bool dots = term.find('.') != std::string::npos;
  const int hidden = rank - static_cast<int>(term.size()) + (dots ? 1 : 0);
  if (hidden < 0 || (!dots && hidden > 0))
    return InvalidArgument("the equation's term '", term, "' does not fit an operand of rank ",
                           rank);
  Labels labels;
  for (char c : term) {
    if (c != '.') labels.push_back(c);
    for (int i = hidden - 1; c == '.' && i >= 0; --i) labels.push_back(kEllipsisBase + i);
  }
  return labels;
}

// One axis after the other, the last fastest.
struct Axis {
  int64_t size;
  int64_t stride;
};
using Axes = ShortList<Axis, kEinsumLabels>;

// The elements lie in the order of the axes, without a gap.
bool IsDense(const Axes& axes) {
  int64_t stride = 1;
  for (size_t i = axes.size(); i-- > 0;) {
    if (axes[i].size != 1 && axes[i].stride != stride) return false;
    stride *= axes[i].size;
  }
  return true;
}

// Calls fn(offset) for all positions of `axes`, in order.
template <typename Fn>
void Walk(std::span<const Axis> axes, size_t depth, int64_t offset, const Fn& fn) {
  if (depth == axes.size()) return fn(offset);
  for (const int64_t i : Watched(axes[depth].size))
    Walk(axes, depth + 1, offset + i * axes[depth].stride, fn);
}

// Copies the elements at `axes` in order, each the sum over `summed`.
template <typename T>
void Pack(const T* from, const Axes& axes, const Axes& summed, T* to) {
  if (!summed.empty()) {
    Walk(std::span<const Axis>(axes), 0, 0, [&](int64_t at) {
      T sum = 0;
      Walk(std::span<const Axis>(summed), 0, at, [&](int64_t k) { sum += from[k]; });
      *to++ = sum;
    });
    return;
  }
  if (axes.empty()) {
    *to = *from;
    return;
  }
  const std::span<const Axis> outer(axes.data(), axes.size() - 1);
  const auto [n, stride] = axes.back();
  Walk(outer, 0, 0, [&, n = n, stride = stride](int64_t at) {
    for (const auto part : Stretches(n))
      for (int64_t i = part.begin; i < part.end; ++i) to[i] = from[at + i * stride];
    to += n;
  });
}

// The labels of a contraction by what is done with them.
struct Groups {
  using List = ShortList<size_t, kEinsumLabels>;
  List batch, m, n, k, sum_a, sum_b;
};

Groups GroupLabels(const EinsumPlan& plan) {
  Groups g;
  const bool two = plan.operand_count == 2;
  for (size_t l = 0; l < plan.labels; ++l) {
    const bool a = plan.operands[0].has[l], b = two && plan.operands[1].has[l];
    const bool out = plan.out.has[l];
    auto& group = out ? (a && b ? g.batch : b ? g.n : g.m) : (a && b ? g.k : a ? g.sum_a : g.sum_b);
    if (out || a || b) group.push_back(l);
  }
  return g;
}

Axes AxesOf(const EinsumPlan& plan, const LabelledView& view,
            std::initializer_list<const Groups::List*> groups) {
  Axes axes;
  for (const Groups::List* group : groups)
    for (const size_t l : *group) axes.push_back({plan.sizes[l], view.strides[l]});
  return axes;
}

int64_t Count(const EinsumPlan& plan, const Groups::List& group) {
  int64_t n = 1;
  for (const size_t l : group) n *= plan.sizes[l];
  return n;
}

// An operand with its axes in the order that the products want: itself where it lies so, else a
// copy in `room`.
template <typename T>
const T* Ordered(const KernelContext& ctx, const T* from, const Axes& axes, const Axes& summed,
                 int64_t count, Tensor* room) {
  if (summed.empty() && IsDense(axes)) return from;
  *room = ctx.CallScratch(kDTypeOf<T>, {count});
  Pack(from, axes, summed, room->mutable_data<T>());
  return room->data<T>();
}

}  // namespace

Result<EinsumPlan> PlanEinsum(std::string_view equation, std::span<const Shape> shapes) {
  if (shapes.empty() || shapes.size() > kEinsumOperands)
    return InvalidArgument("einsum takes one to ", kEinsumOperands, " operands, not ",
                           shapes.size());
  HEDDLE_ASSIGN_OR_RETURN(const Equation e, ParseEquation(equation, shapes.size()));
  constexpr size_t kNone = kEinsumLabels;
  std::array<size_t, kEllipsisBase + Shape::kMaxRank> ids;  // per label: its place in the plan
  ids.fill(kNone);
  std::array<Labels, kEinsumOperands> labels;
  EinsumPlan plan;
  plan.operand_count = shapes.size();
  int hidden = 0;
  for (size_t i = 0; i < shapes.size(); ++i) {
    HEDDLE_ASSIGN_OR_RETURN(labels[i], LabelsOf(e.terms[i], shapes[i].rank()));
    for (size_t axis = 0; axis < labels[i].size(); ++axis) {
      const int label = labels[i][axis];
      const int64_t size = shapes[i][static_cast<int>(axis)];
      if (label >= kEllipsisBase) hidden = std::max(hidden, label - kEllipsisBase + 1);
      size_t& id = ids[static_cast<size_t>(label)];
      if (id == kNone) {
        if (plan.labels == kEinsumLabels)
          return InvalidArgument("equation '", equation, "' has too many axes");
        id = plan.labels++;
        plan.sizes[id] = size;
      } else if (int64_t& known = plan.sizes[id]; known != size) {
        if (known != 1 && size != 1)
          return InvalidArgument("equation '", equation, "': an axis has sizes ", known, " and ",
                                 size);
        if (known == 1) known = size;
      }
    }
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    LabelledView& view = plan.operands[i];
    int64_t stride = 1;
    for (int axis = shapes[i].rank() - 1; axis >= 0; --axis) {
      const size_t l = ids[static_cast<size_t>(labels[i][static_cast<size_t>(axis)])];
      const int64_t size = shapes[i][axis];
      if (size == plan.sizes[l]) {
        view.strides[l] += size == 1 ? 0 : stride;
        view.has[l] = true;
      }
      stride *= size;
    }
  }
  const bool dots = e.out.find('.') != std::string::npos;
  const int rank = static_cast<int>(e.out.size()) + (dots ? hidden - 1 : 0);
  HEDDLE_ASSIGN_OR_RETURN(const Labels out, LabelsOf(e.out, rank));
  for (const int label : out) {
    const size_t id = ids[static_cast<size_t>(label)];
    if (id == kNone || plan.out.has[id])
      return InvalidArgument("equation '", equation, "': an output label is unknown or repeats");
    plan.out.has[id] = true;
    if (plan.out_shape.rank() == Shape::kMaxRank)
      return InvalidArgument("equation '", equation, "' has too many output axes");
    plan.out_shape.push_back(plan.sizes[id]);
  }
  int64_t stride = 1;
  for (size_t i = out.size(); i-- > 0;) {
    const size_t id = ids[static_cast<size_t>(out[i])];
    plan.out.strides[id] = stride;
    stride *= plan.sizes[id];
  }
  return plan;
}

EinsumPlan GradientPlan(const EinsumPlan& plan, size_t which) {
  EinsumPlan grad;
  grad.labels = plan.labels;
  grad.sizes = plan.sizes;
  grad.operand_count = plan.operand_count;
  grad.operands[0] = plan.out;
  size_t at = 0;
  for (size_t i = 0; i < plan.operand_count; ++i)
    if (i != which) grad.operands[++at] = plan.operands[i];
  grad.out = plan.operands[which];
  return grad;
}

namespace {

// Of one or two operands.
template <typename T>
void ContractPair(const KernelContext& ctx, const EinsumPlan& plan, const T* const* operands,
                  T* out) {
  const Groups g = GroupLabels(plan);
  const int64_t batch = Count(plan, g.batch), m = Count(plan, g.m), n = Count(plan, g.n),
                k = Count(plan, g.k);
  if (batch * m * n == 0) return;
  const Axes out_axes = AxesOf(plan, plan.out, {&g.batch, &g.m, &g.n});
  Tensor a_room, b_room, c_room;
  const T* const a =
      Ordered(ctx, operands[0], AxesOf(plan, plan.operands[0], {&g.batch, &g.m, &g.k}),
              AxesOf(plan, plan.operands[0], {&g.sum_a}), batch * m * k, &a_room);
  const T* c = a;
  if (plan.operand_count == 2) {
    const T* const b =
        Ordered(ctx, operands[1], AxesOf(plan, plan.operands[1], {&g.batch, &g.k, &g.n}),
                AxesOf(plan, plan.operands[1], {&g.sum_b}), batch * k * n, &b_room);
    T* to = out;
    if (!IsDense(out_axes)) {
      c_room = ctx.CallScratch(kDTypeOf<T>, {batch * m * n});
      to = c_room.mutable_data<T>();
    }
    ctx.ParallelFor(batch, 1 + (int64_t{1} << 16) / (1 + m * n * k),
                    [&](int64_t begin, int64_t end) {
                      for (const int64_t i : Watched(begin, end))
                        Gemm<T>(GemmDims::Dense(m, n, k), T(1), a + i * m * k, b + i * k * n, T(0),
                                to + i * m * n);
                    });
    if (to == out) return;
    c = to;
  }
  Walk(std::span<const Axis>(out_axes), 0, 0, [&](int64_t at) { out[at] = *c++; });
}

// The two operands with the least work.
std::pair<size_t, size_t> BestPair(const EinsumPlan& plan) {
  std::pair<size_t, size_t> best{0, 1};
  double least = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < plan.operand_count; ++i)
    for (size_t j = i + 1; j < plan.operand_count; ++j) {
      double work = 1;
      for (size_t l = 0; l < plan.labels; ++l)
        if (plan.operands[i].has[l] || plan.operands[j].has[l])
          work *= static_cast<double>(plan.sizes[l]);
      if (work < least) best = {i, j}, least = work;
    }
  return best;
}

// The product of operands `i` and `j`, dense over the labels that the rest needs.
EinsumPlan PairPlan(const EinsumPlan& plan, size_t i, size_t j, int64_t* count) {
  EinsumPlan pair;
  pair.labels = plan.labels;
  pair.sizes = plan.sizes;
  pair.operand_count = 2;
  pair.operands[0] = plan.operands[i];
  pair.operands[1] = plan.operands[j];
  std::bitset<kEinsumLabels> needed = plan.out.has;
  for (size_t k = 0; k < plan.operand_count; ++k)
    if (k != i && k != j) needed |= plan.operands[k].has;
  pair.out.has = needed & (pair.operands[0].has | pair.operands[1].has);
  *count = 1;
  for (size_t l = plan.labels; l-- > 0;) {
    if (!pair.out.has[l]) continue;
    pair.out.strides[l] = *count;
    if (__builtin_mul_overflow(*count, plan.sizes[l], count)) throw std::bad_alloc();
  }
  return pair;
}

}  // namespace

template <typename T>
void Contract(const KernelContext& ctx, const EinsumPlan& plan, std::span<const T* const> operands,
              T* out) {
  if (plan.operand_count <= 2) return ContractPair<T>(ctx, plan, operands.data(), out);
  EinsumPlan rest = plan;
  std::array<const T*, kEinsumOperands> data{};
  std::array<Tensor, kEinsumOperands> rooms;
  std::copy(operands.begin(), operands.end(), data.begin());
  while (rest.operand_count > 2) {
    const auto [i, j] = BestPair(rest);
    int64_t count = 0;
    const EinsumPlan pair = PairPlan(rest, i, j, &count);
    Tensor room = ctx.CallScratch(kDTypeOf<T>, {count});
    const std::array<const T*, 2> both{data[i], data[j]};
    ContractPair<T>(ctx, pair, both.data(), room.mutable_data<T>());
    rest.operands[i] = pair.out;
    data[i] = room.data<T>();
    rooms[i] = std::move(room);
    const size_t last = --rest.operand_count;
    std::move(rest.operands.begin() + j + 1, rest.operands.begin() + last + 1,
              rest.operands.begin() + j);
    std::move(data.begin() + j + 1, data.begin() + last + 1, data.begin() + j);
    std::move(rooms.begin() + j + 1, rooms.begin() + last + 1, rooms.begin() + j);
  }
  ContractPair<T>(ctx, rest, data.data(), out);
}

template void Contract<float>(const KernelContext&, const EinsumPlan&,
                              std::span<const float* const>, float*);
template void Contract<double>(const KernelContext&, const EinsumPlan&,
                               std::span<const double* const>, double*);
template void Contract<int32_t>(const KernelContext&, const EinsumPlan&,
                                std::span<const int32_t* const>, int32_t*);
template void Contract<int64_t>(const KernelContext&, const EinsumPlan&,
                                std::span<const int64_t* const>, int64_t*);
template void Contract<std::complex<float>>(const KernelContext&, const EinsumPlan&,
                                            std::span<const std::complex<float>* const>,
                                            std::complex<float>*);
template void Contract<std::complex<double>>(const KernelContext&, const EinsumPlan&,
                                             std::span<const std::complex<double>* const>,
                                             std::complex<double>*);

}  // namespace heddle
