#include <algorithm>

#include "core/interrupts.h"
#include "core/op_registry.h"
#include "core/shapes.h"

namespace heddle {
namespace {

// `shape` of `numel` elements, -1 where that is not known.
Result<Shape> Whole(const Ints& shape, int64_t numel) {
  Shape whole;
  int open = -1;
  int64_t rest = 1;
  for (int64_t d : shape) {
    if (d == -1 && open < 0)
      open = whole.rank();
    else if (d <= 0)
      return InvalidArgument("'shape' must have positive dimensions and one -1 at most");
    else
      rest *= d;
    whole.push_back(d);
  }
  if (numel < 0) return whole;
  if (open >= 0) whole[open] = numel / rest;
  if (whole.numel() != numel)
    return InvalidArgument("'X' has ", numel, " elements, which do not make ",
                           Shape(std::span(shape)).ToString());
  return whole;
}

Status InferShape(ShapeContext& ctx) {
  const int groups = ctx.InCount("X");
  const Ints &shape = ctx.IntList("shape"), &sections = ctx.IntList("sections");
  if (groups == 0 || shape.empty()) return InvalidArgument("'X' and 'shape' must not be empty");
  bool known = true;
  for (int i = 0; i < groups; ++i) {
    const Shape& x = ctx.InShape("X", i);
    if (!x.known_rank()) return ctx.Defer();
    known = known && x.is_static();
    if (x.rank() == 0 || (x.is_static() && x != ctx.InShape("X") && ctx.InShape("X").is_static()))
      return InvalidArgument("'X' [", i, "] of shape ", x.ToString(), ": expected ",
                             ctx.InShape("X").ToString(), ", as 'X' [0]");
  }
  const Shape& x = ctx.InShape("X");
  if (x[x.rank() - 1] >= 0 && x[x.rank() - 1] * groups != shape.back())
    return InvalidArgument("'X' [0] of shape ", x.ToString(), ": expected a last dimension of ",
                           shape.back() / groups);
  HEDDLE_ASSIGN_OR_RETURN(Shape out, Whole(shape, known ? x.numel() * groups : -1));
  if (static_cast<int>(sections.size()) != ctx.OutCount("Out"))
    return InvalidArgument("'Out' names ", ctx.OutCount("Out"), " tensors, but there are ",
                           sections.size(), " sections");
  int64_t sum = 0;
  for (size_t i = 0; i < sections.size(); ++i) {
    sum += sections[i];
    out[out.rank() - 1] = sections[i];
    ctx.SetOut("Out", out, ctx.InDType("X"), static_cast<int>(i));
  }
  if (sum != shape.back() || *std::min_element(sections.begin(), sections.end()) <= 0)
    return InvalidArgument("the sections make ", sum, "; expected ", shape.back());
  return Status::Ok();
}

constexpr int kMostGroups = 16;

// Channels [first, first + width) of `rows` rows, of what takes its channels from the groups in
// turn.
void Interleave(const float* const* x, int64_t groups, int64_t channels, int64_t first,
                int64_t width, int64_t begin, int64_t end, float* out) {
  if (groups == 2 && first % 2 == 0 && width % 2 == 0) {
    for (const int64_t r : Watched(begin, end)) {
      const float* __restrict a = x[0] + r * channels + first / 2;
      const float* __restrict b = x[1] + r * channels + first / 2;
      float* __restrict to = out + r * width;
      for (int64_t c = 0; c < width / 2; ++c) {
        to[2 * c] = a[c];
        to[2 * c + 1] = b[c];
      }
    }
    return;
  }
  for (const int64_t r : Watched(begin, end))
    for (int64_t c = 0; c < width; ++c)
      out[r * width + c] = x[(first + c) % groups][r * channels + (first + c) / groups];
}

Status Run(KernelContext& ctx) {
  constexpr int64_t kGrain = 1 << 12;  // elements; what a thread wrote is near it still
  const int groups = ctx.InCount("X");
  if (groups > kMostGroups) return InvalidArgument("'X' names more than ", kMostGroups, " tensors");
  const float* x[kMostGroups];
  for (int i = 0; i < groups; ++i) x[i] = ctx.In("X", i).data<float>();
  const int64_t channels = ctx.In("X").dim(-1), whole = channels * groups;
  if (channels == 0) return Status::Ok();
  const int64_t rows = ctx.In("X").numel() / channels;
  const Ints& sections = ctx.IntList("sections");
  float* out[kMostGroups];
  if (sections.size() > kMostGroups)
    return InvalidArgument("'Out' names more than ", kMostGroups, " tensors");
  for (size_t i = 0; i < sections.size(); ++i)
    out[i] = ctx.Out("Out", static_cast<int>(i)).mutable_data<float>();
  ctx.ParallelFor(rows, 1 + kGrain / whole, [&](int64_t begin, int64_t end) {
    int64_t first = 0;
    for (size_t i = 0; i < sections.size(); first += sections[i++])
      Interleave(x, groups, channels, first, sections[i], begin, end, out[i]);
  });
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(fused_channel_shuffle) {
  op.Doc(
      "The tensors of X, alike in shape, with their last dimensions interleaved: element c of X[g] "
      "becomes element c * groups + g, for as many groups as there are tensors. The result gets "
      "`shape` and is cut along the last dimension into `sections`");
  op.Input("X", kList).Output("Out", kList);
  op.Attr("shape", Ints{}).Attr("sections", Ints{});
  op.InferShape(InferShape).Kernel(DType::kF32, Run);
}
