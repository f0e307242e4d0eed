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

// ScatterElements, and Scatter, its former name. Of two numbers of which neither is greater, the
// update stays.
bool LowerScatter(NodeLowering& n) {
  std::string how = n.Str("reduction", "none");
  how = how == "none" ? "assign" : how == "max" ? "amax" : how == "min" ? "amin" : how;
  n.Result(
      0,
      n.Make("put_along_axis",
             {{"Input", {n.Required(0)}}, {"Index", {n.Required(1)}}, {"Value", {n.Required(2)}}},
             {{"Axis", n.Int("axis", 0)}, {"Reduce", how}, {"undecided", std::string("new")}},
             "Result"));
  return true;
}

bool LowerScatterNd(NodeLowering& n) {
  const std::string how = n.Str("reduction", "none");
  n.Result(
      0, n.Make("scatter_nd",
                {{"X", {n.Required(0)}}, {"Index", {n.Required(1)}}, {"Updates", {n.Required(2)}}},
                {{"reduce", how == "none" ? std::string("assign") : how},
                 {"undecided", std::string("new")},
                 {"wrap", true}}));
  return true;
}

// CumSum and CumProd.
bool LowerRunning(NodeLowering& n) {
  const bool product = n.node().op_type == "CumProd";
  Ins ins = {{"X", {n.Required(0)}}};
  Attrs attrs = {{"exclusive", n.Int("exclusive", 0) != 0}, {"reverse", n.Int("reverse", 0) != 0}};
  const int axis = n.Required(1);
  if (const auto known = n.ConstantInts(axis); known && known->size() == 1)
    attrs.emplace_back(product ? "dim" : "axis", (*known)[0]);
  else
    ins.emplace_back("AxisTensor", std::vector<int>{axis});
  if (!product && n.Int("exclusive", 0) != 0) attrs.emplace_back("copies_single", false);
  n.Result(0, n.Make(product ? "cumprod" : "cumsum", std::move(ins), std::move(attrs)));
  return true;
}

bool LowerTopK(NodeLowering& n) {
  const int x = n.Required(0);
  Ins ins = {{"X", {x}}};
  Attrs attrs = {{"axis", n.Int("axis", -1)},
                 {"largest", n.Int("largest", 1) != 0},
                 {"sorted", n.Int("sorted", 1) != 0}};
  if (n.Find("k") != nullptr) {
    attrs.emplace_back("k", n.Int("k", 1));
  } else if (const auto k = n.ConstantInts(n.Required(1)); k && k->size() == 1) {
    attrs.emplace_back("k", (*k)[0]);
  } else {
    ins.emplace_back("K", std::vector<int>{n.In(1)});
  }
  const std::vector<int> made =
      n.MakeMany("top_k_v2", std::move(ins), std::move(attrs), {"Out", "Indices"});
  n.SetType(made[1], kInt64);
  for (size_t i = 0; i < 2; ++i)
    if (n.Wants(i)) n.Result(i, made[i]);
  return true;
}

// Distinct elements, the position of the first of each, which one each element is, and how often
// each occurs.
bool LowerUnique(NodeLowering& n) {
  const int x = n.Required(0);
  Attrs attrs = {{"is_sorted", n.Int("sorted", 1) != 0}};
  if (n.Find("axis") != nullptr) attrs.emplace_back("axis", Ints{n.Int("axis", 0)});
  static constexpr std::pair<std::string_view, std::string_view> kParts[] = {
      {"Out", ""},
      {"Indices", "return_index"},
      {"Index", "return_inverse"},
      {"Counts", "return_counts"}};
  std::vector<std::string_view> outs;
  std::vector<size_t> places;
  for (size_t i = 0; i < std::size(kParts); ++i) {
    if (i > 0 && !n.Wants(i)) continue;
    outs.push_back(kParts[i].first);
    places.push_back(i);
    if (i > 0) attrs.emplace_back(kParts[i].second, true);
  }
  const std::vector<int> made = n.MakeMany("unique", {{"X", {x}}}, std::move(attrs), outs);
  for (size_t k = 0; k < made.size(); ++k) {
    if (places[k] > 0) n.SetType(made[k], kInt64);
    n.Result(places[k], made[k]);
  }
  return true;
}

constexpr HandlerEntry kIndexEntries[] = {
    {"", "CumProd", &LowerRunning},
    {"", "CumSum", &LowerRunning},
    {"", "Gather", &LowerGather},
    {"", "Scatter", &LowerScatter},
    {"", "ScatterElements", &LowerScatter},
    {"", "ScatterND", &LowerScatterNd},
    {"", "TopK", &LowerTopK},
    {"", "Unique", &LowerUnique},
};

}  // namespace

std::span<const HandlerEntry> IndexHandlers() { return kIndexEntries; }

}  // namespace heddle::onnx
