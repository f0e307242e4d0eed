// Operators that pick elements by position.
#include "formats/onnx/handlers.h"

namespace heddle::onnx {
namespace {

// Gather of one index, a scalar: a slice that drops the axis.
bool LowerGather(NodeLowering& n) {
  const int x = n.Required(0), index = n.Required(1);
  if (n.IsString(x)) return false;
  const auto at = n.ConstantInts(index);
  const int64_t axis = n.Int("axis", 0);
  if (!at || n.rank(index) != 0) return false;
  const int64_t i = (*at)[0];
  const int64_t end = i == -1 ? (int64_t{1} << 31) - 1 : i + 1;
  n.Result(0, n.Make("slice", {{"Input", {x}}},
                     {{"axes", Ints{axis}},
                      {"starts", Ints{i}},
                      {"ends", Ints{end}},
                      {"decrease_axis", Ints{axis}}}));
  return true;
}

// Scatter, the former name of ScatterElements.
bool LowerScatter(NodeLowering& n) {
  if (!NodeLowering::HasOperator("onnx_scatter_elements")) return false;
  n.Result(0, n.Make("onnx_scatter_elements",
                     {{"data", {n.Required(0)}},
                      {"indices", {n.Required(1)}},
                      {"updates", {n.Required(2)}}},
                     {{"axis", n.Int("axis", 0)}}, "output"));
  return true;
}

constexpr HandlerEntry kIndexEntries[] = {
    {"", "Gather", &LowerGather},
    {"", "Scatter", &LowerScatter},
};

}  // namespace

std::span<const HandlerEntry> IndexHandlers() { return kIndexEntries; }

}  // namespace heddle::onnx
