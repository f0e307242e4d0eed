#include <map>

#include "core/interrupts.h"
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

constexpr KeyPair kCounts[] = {{"AccumulatePositivePair", "PositivePair"},
                               {"AccumulateNegativePair", "NegativePair"},
                               {"AccumulateNeutralPair", "NeutralPair"}};

Status PairShape(ShapeContext& ctx) {
  const Shape& score = ctx.InShape("Score");
  if (score.known_rank() && score.rank() != 2)
    return InvalidArgument("Score has shape ", score.ToString(), ", expected a matrix");
  for (Key key : {Key("Label"), Key("QueryID")})
    if (score.is_static() && ctx.InShape(key).is_static() && ctx.InShape(key).numel() != score[0])
      return InvalidArgument(key.name, " must have one value for each of ", score[0], " rows");
  for (const KeyPair& p : kCounts)
    if (ctx.HasOut(p.out)) ctx.SetOut(p.out, {1}, ctx.InDType("Score"));
  return Status::Ok();
}

// Pairs of one query with different labels: right when the scores are in the labels' order. Equal
// scores count as neutral and, as in Paddle, as wrong.
template <typename T>
struct PositiveNegativePair {
  static Status Run(KernelContext& ctx) {
    const Tensor& score = ctx.In("Score");
    const int64_t n = score.dim(0), width = score.dim(1), wanted = ctx.Int("column");
    const int64_t column = wanted < 0 ? wanted + width : wanted;
    if (column < 0 || column >= width)
      return InvalidArgument("'column' ", wanted, " is not one of ", width);
    const Tensor* weight = ctx.InOpt("Weight");
    if (weight != nullptr && weight->numel() != n)
      return InvalidArgument("Weight must have one value for each of ", n, " rows");
    const Labels query(ctx, ctx.In("QueryID"));
    const T* label = ctx.In("Label").template data<T>();
    std::map<int64_t, std::vector<int64_t>> rows;
    for (const auto part : Stretches(n))
      for (int64_t i = part.begin; i < part.end; ++i) rows[query[i]].push_back(i);
    T counts[3];
    for (int k = 0; k < 3; ++k) {
      const Tensor* before = ctx.InOpt(kCounts[k].in);
      counts[k] = before != nullptr && before->numel() == 1 ? *before->data<T>() : T(0);
    }
    const auto weight_of = [&](int64_t i) { return weight ? weight->data<T>()[i] : T(1); };
    for (const auto& [id, members] : rows)
      for (const int64_t a : Watched(std::ssize(members)))
        for (size_t b = static_cast<size_t>(a) + 1; b < members.size(); ++b) {
          const int64_t i = members[static_cast<size_t>(a)], j = members[b];
          if (label[i] == label[j]) continue;
          const T w = (weight_of(i) + weight_of(j)) * T(0.5);
          const T by = score.data<T>()[i * width + column] - score.data<T>()[j * width + column];
          if (by == T(0)) counts[2] += w;
          counts[by * (label[i] - label[j]) > T(0) ? 0 : 1] += w;
        }
    for (int k = 0; k < 3; ++k)
      if (Tensor* out = ctx.OutOpt(kCounts[k].out)) *out->template mutable_data<T>() = counts[k];
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(positive_negative_pair) {
  op.Doc("pairs of a query that are ranked right, wrong and equal");
  op.Input("Score").Input("Label").Input("QueryID").Input("Weight", kOptional);
  for (const auto& p : heddle::kCounts)
    op.Input(p.in.name, heddle::kOptional).Output(p.out.name, heddle::kOptional);
  op.Attr("column", -1).InferShape(PairShape).Kernels<PositiveNegativePair, float, double>();
}
