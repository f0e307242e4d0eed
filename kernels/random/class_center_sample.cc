// class_center_sample: the classes of a batch and random others, renumbered.
#include <map>
#include <random>
#include <vector>

#include "core/interrupts.h"
#include "kernels/base/shape_checks.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

// --- class_center_sample ---

template <typename T>
struct ClassCenterSample {
  static Status Run(KernelContext& ctx) {
    const Tensor& label = ctx.In("Label");
    const int64_t classes = ctx.Int("num_classes"), wanted = ctx.Int("num_samples");
    if (ctx.Int("nranks") != 1)
      return Unimplemented("nranks is ", ctx.Int("nranks"), ": classes spread over several ranks");
    if (classes < 1 || wanted > classes)
      return InvalidArgument(wanted, " samples of ", classes, " classes");
    std::map<T, T> place;
    for (const int64_t i : Watched(label.numel())) {
      const T c = label.data<T>()[i];
      if (c < 0 || c >= classes) return OutOfRange("label ", c, " is not in [0, ", classes, ")");
      place.emplace(c, T(0));
    }
    std::vector<T> sampled;
    for (auto& [c, at] : place) {
      at = static_cast<T>(sampled.size());
      sampled.push_back(c);
    }
    T* remapped =
        ctx.Alloc("RemappedLabel", label.dtype(), label.shape()).template mutable_data<T>();
    for (const auto part : Stretches(label.numel()))
      for (int64_t i = part.begin; i < part.end; ++i) remapped[i] = place[label.data<T>()[i]];
    std::mt19937_64 fixed(static_cast<uint64_t>(ctx.Int("seed")));
    std::mt19937_64& engine = ctx.Bool("fix_seed") ? fixed : ctx.random();
    std::uniform_int_distribution<T> draw(0, static_cast<T>(classes - 1));
    while (std::ssize(sampled) < wanted)
      if (const T c = draw(engine); place.emplace(c, T(0)).second) sampled.push_back(c);
    Tensor& out = ctx.Alloc("SampledLocalClassCenter", label.dtype(), Shape{std::ssize(sampled)});
    std::copy(sampled.begin(), sampled.end(), out.mutable_data<T>());
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(class_center_sample) {
  op.Doc("the classes of a batch and some others, and labels as places among them");
  op.Input("Label").Output("RemappedLabel").Output("SampledLocalClassCenter");
  op.Attr("num_classes", 1).Attr("num_samples", 1).Attr("nranks", 1).Attr("rank", 0);
  op.Attr("ring_id", 0).Attr("fix_seed", false).Attr("seed", 0).Traits(kRandom);
  op.Kernels<ClassCenterSample, int32_t, int64_t>();
}
