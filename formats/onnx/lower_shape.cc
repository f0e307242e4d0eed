// Constants, dimensions, and operators that rearrange elements.
#include <algorithm>
#include <limits>
#include <numeric>

#include "core/shapes.h"
#include "formats/onnx/handlers.h"

namespace heddle::onnx {
namespace {

// The values of an input that was an attribute before opset `since`; nothing where they are
// computed at run time. `given`: whether the node has them at all.
std::optional<Ints> IntsOf(NodeLowering& n, std::string_view name, size_t input, int64_t since,
                           bool* given) {
  if (n.opset() < since) {
    *given = n.Find(name) != nullptr;
    return n.IntList(name);
  }
  *given = n.Has(input);
  return *given ? n.ConstantInts(n.In(input)) : Ints();
}

bool LowerConstant(NodeLowering& n) {
  static constexpr std::string_view kNames[] = {"value",        "sparse_value", "value_float",
                                                "value_floats", "value_int",    "value_ints",
                                                "value_string", "value_strings"};
  const Attribute* a = nullptr;
  for (std::string_view name : kNames)
    if (a == nullptr) a = n.Find(name);
  if (a == nullptr || n.node().outputs.size() != 1) {
    n.Problem("has no value, or not one output");
    return true;
  }
  n.ResultConstant(*a);
  return true;
}

bool LowerConstantOfShape(NodeLowering& n) {
  const int shape = n.Required(0);
  Tensor value = Tensor::Zeros(DType::kF32, {1});
  int type = kFloat;
  if (const Attribute* a = n.Find("value"); a != nullptr && a->tensor != nullptr) {
    auto made = MakeTensor(*a->tensor);
    if (!made.ok() || made->numel() != 1) {
      n.Problem("needs one element as 'value'");
      n.Result(0, shape);
      return true;
    }
    value = *std::move(made);
    type = a->tensor->type;
  }
  const int element = n.HoldConstant(value, type);
  const auto number = n.ConstantFloats(element);
  const auto dims = n.ConstantInts(shape);
  Attrs attrs = {{"value", number ? (*number)[0] : 0.0}, {"dtype", DTypeToProto(value.dtype())}};
  Ins ins;
  if (!number) ins.push_back({"ValueTensor", {element}});
  // fill_constant's attribute is a double: larger integers would be rounded.
  constexpr int64_t kExact = int64_t{1} << std::numeric_limits<double>::digits;
  if (const auto whole = n.ConstantInts(element); whole && number)
    if ((*whole)[0] > kExact || (*whole)[0] < -kExact) ins.push_back({"ValueTensor", {element}});
  int made = 0;
  if (dims) {
    attrs.emplace_back("shape", *dims);
    made = n.Make("fill_constant", std::move(ins), std::move(attrs));
  } else {
    ins.push_back({"ShapeTensor", {shape}});
    made = n.Make("fill_constant", std::move(ins), std::move(attrs));
    n.draft_var(made).dtype = value.dtype();
  }
  n.SetType(made, type);
  n.Result(0, made);
  return true;
}

bool LowerShape(NodeLowering& n) {
  const int x = n.Required(0);
  if (NodeLowering::HasOperator("onnx_shape") || n.IsString(x)) return false;
  int made = n.ShapeOf(x);
  const int64_t start = n.Int("start", 0);
  const Attribute* end = n.Find("end");
  if (start != 0 || end != nullptr)
    made = n.Make("slice", {{"Input", {made}}},
                  {{"axes", Ints{0}},
                   {"starts", Ints{start}},
                   {"ends", Ints{end == nullptr ? std::numeric_limits<int32_t>::max() : end->i}}});
  n.SetType(made, kInt64);
  n.Result(0, made);
  return true;
}

bool LowerSize(NodeLowering& n) {
  const int x = n.Required(0);
  if (NodeLowering::HasOperator("onnx_size") || n.IsString(x)) return false;
  const int made = n.Make("size", {{"Input", {x}}});
  n.SetType(made, kInt64);
  n.Result(0, made);
  return true;
}

bool LowerReshape(NodeLowering& n) {
  const int x = n.Required(0);
  if (n.IsString(x)) return false;
  bool given = false;
  const auto shape = IntsOf(n, "shape", 1, 5, &given);
  const bool zeros_stay = n.Int("allowzero", 0) == 1;
  if (shape && (!zeros_stay || std::count(shape->begin(), shape->end(), 0) == 0)) {
    n.Result(0, n.Reshape(x, *shape));
    return true;
  }
  if (zeros_stay) return false;
  const int wanted = n.Required(1);
  const Entries* entries = n.EntriesOf(wanted);
  if (entries == nullptr) {
    n.Result(0, n.Make("reshape2", {{"X", {x}}, {"Shape", {wanted}}}));
    return true;
  }
  Ints dims;
  for (size_t i = 0; i < entries->size(); ++i) {
    const Entry& e = (*entries)[i];
    const bool stays = e.of == x && e.dim == static_cast<int>(i) && !zeros_stay;
    dims.push_back(e.value ? *e.value : stays ? 0 : -1);
  }
  // At most one dimension is computed at run time: -1, which follows from the others.
  if (std::count(dims.begin(), dims.end(), -1) <= 1) {
    n.Result(0, n.Reshape(x, dims));
    return true;
  }
  const int made = n.Make("reshape2", {{"X", {x}}, {"Shape", {wanted}}});
  if (dims.size() <= static_cast<size_t>(Shape::kMaxRank)) {
    for (size_t i = 0; i < dims.size(); ++i)
      if (dims[i] == 0)
        dims[i] = static_cast<int>(i) < n.rank(x) ? n.shape(x)[static_cast<int>(i)] : -1;
    n.facts(made).shape = Shape(std::span<const int64_t>(dims));
  }
  n.Result(0, made);
  return true;
}

bool LowerFlatten(NodeLowering& n) {
  const int x = n.Required(0);
  int64_t axis = n.Int("axis", 1);
  if (n.rank(x) < 0) return false;  // heddle's Flatten operator reads the rank at run time
  if (axis < 0) axis += n.rank(x);
  if (n.rank(x) == 0) {  // a scalar becomes one row with one element
    n.Result(0, n.Reshape(x, {1, 1}));
    return true;
  }
  n.Result(0, n.Unary("flatten2", x, {{"axis", axis}}));
  return true;
}

// Axes are positions in the output, made non-negative and sorted.
bool LowerUnsqueeze(NodeLowering& n) {
  const int x = n.Required(0);
  if (n.IsString(x)) return false;
  bool given = false;
  auto axes = IntsOf(n, "axes", 1, 13, &given);
  if (!axes) return false;
  const bool negative = std::any_of(axes->begin(), axes->end(), [](int64_t a) { return a < 0; });
  const int rank = n.rank(x);
  if (negative && rank < 0 && axes->size() > 1) return false;
  if (negative && rank >= 0)
    for (int64_t& a : *axes) a += a < 0 ? rank + static_cast<int64_t>(axes->size()) : 0;
  std::sort(axes->begin(), axes->end());
  if (std::adjacent_find(axes->begin(), axes->end()) != axes->end()) {
    n.Problem("inserts an axis twice");
    n.Result(0, x);
    return true;
  }
  n.Result(0, axes->empty() ? x : n.Unsqueeze(x, *axes));
  return true;
}

bool LowerSqueeze(NodeLowering& n) {
  const int x = n.Required(0);
  if (n.IsString(x)) return false;
  bool given = false;
  const auto axes = IntsOf(n, "axes", 1, 13, &given);
  if (!axes) return false;
  if (given && axes->empty()) {
    n.Result(0, x);
    return true;
  }
  const int made = n.Squeeze(x, *axes);
  // squeeze2 keeps named axes that are not 1, so its rank is not known. ONNX requires them to be 1.
  if (const int rank = n.rank(x); given && rank >= 0 && !n.shape(made).known_rank()) {
    std::vector<bool> gone(static_cast<size_t>(rank));
    for (int64_t a : *axes)
      if (a >= -rank && a < rank) gone[static_cast<size_t>(a < 0 ? a + rank : a)] = true;
    Shape shape;
    for (int i = 0; i < rank; ++i)
      if (!gone[static_cast<size_t>(i)]) shape.push_back(n.shape(x)[i]);
    n.facts(made).shape = shape;
  }
  n.Result(0, made);
  return true;
}

bool LowerTranspose(NodeLowering& n) {
  const int x = n.Required(0);
  if (n.IsString(x)) return false;
  Ints perm = n.IntList("perm");
  if (n.Find("perm") == nullptr && n.rank(x) < 0) {
    n.Result(0, n.Unary("transpose2", x, {{"reversed", true}}));
    return true;
  }
  if (n.Find("perm") == nullptr) {
    perm.resize(static_cast<size_t>(n.rank(x)));
    std::iota(perm.rbegin(), perm.rend(), 0);
  }
  if (perm.empty()) {
    n.Result(0, x);
    return true;
  }
  const int made = n.Unary("transpose2", x, {{"axis", perm}});
  if (!n.shape(made).known_rank() && perm.size() <= static_cast<size_t>(Shape::kMaxRank))
    n.facts(made).shape = Shape(std::vector<int64_t>(perm.size(), -1));  // only the rank is known
  n.Result(0, made);
  return true;
}

bool LowerConcat(NodeLowering& n) {
  const std::vector<int> all = n.AllInputs();
  if (all.empty() || n.IsString(all[0])) return false;
  const int made = n.Make("concat", {{"X", all}}, {{"axis", n.Int("axis", n.opset() < 4 ? 1 : 0)}});
  n.Result(0, made);
  return true;
}

bool LowerSplit(NodeLowering& n) {
  const int x = n.Required(0);
  if (n.IsString(x)) return false;
  const size_t count = n.node().outputs.size();
  bool given = false;
  auto sections = IntsOf(n, "split", 1, 13, &given);
  int64_t axis = n.Int("axis", 0);
  Ins ins = {{"X", {x}}};
  Attrs attrs = {{"axis", axis}};
  if (!sections) {
    ins.emplace_back("SectionsTensor", std::vector<int>{n.In(1)});
  } else if (given) {
    attrs.emplace_back("sections", *sections);
  } else {
    // Equal parts, but for a shorter last one.
    if (axis < 0 && n.rank(x) >= 0) axis += n.rank(x);
    const int64_t dim =
        axis >= 0 && axis < n.rank(x) ? n.shape(x)[static_cast<int>(axis)] : int64_t{-1};
    const auto parts = static_cast<int64_t>(count);
    attrs.emplace_back("num", parts);
    if (dim < 0 || parts == 0 || dim % parts != 0) attrs.emplace_back("uneven", true);
  }
  const std::vector<int> made = n.MakeMany("split", std::move(ins), std::move(attrs),
                                           std::vector<std::string_view>(count, "Out"));
  for (size_t i = 0; i < count; ++i) n.Result(i, made[i]);
  return true;
}

bool LowerSlice(NodeLowering& n) {
  const int x = n.Required(0);
  if (n.IsString(x)) return false;
  bool given = false, has_axes = false, has_steps = false;
  auto starts = IntsOf(n, "starts", 1, 10, &given), ends = IntsOf(n, "ends", 2, 10, &given);
  auto axes = IntsOf(n, "axes", 3, 10, &has_axes);
  const auto steps =
      n.opset() < 10 ? std::optional<Ints>(Ints()) : IntsOf(n, "steps", 4, 1, &has_steps);
  if (!starts || !ends || !axes || !steps) return false;
  const bool strided = std::any_of(steps->begin(), steps->end(), [](int64_t s) { return s != 1; });
  if (!has_axes) {
    axes->resize(starts->size());
    std::iota(axes->begin(), axes->end(), 0);
  }
  if (starts->size() != ends->size() || axes->size() != starts->size()) {
    n.Problem("has ", starts->size(), " starts, ", ends->size(), " ends and ", axes->size(),
              " axes");
    n.Result(0, x);
    return true;
  }
  // Axes of which all elements are taken are left out.
  for (size_t i = strided ? 0 : axes->size(); i-- > 0;) {
    if ((*starts)[i] != 0 || (*ends)[i] < std::numeric_limits<int32_t>::max()) continue;
    if (n.rank(x) < 0 || (*axes)[i] < -n.rank(x) || (*axes)[i] >= n.rank(x)) continue;
    for (auto* list : {&*axes, &*starts, &*ends})
      list->erase(list->begin() + static_cast<int64_t>(i));
  }
  if (axes->empty()) {
    n.Result(0, x);
    return true;
  }
  // Limits are clamped to 32 bits, which the operator takes; dimensions are smaller.
  const auto limited = [](Ints values) {
    for (int64_t& v : values)
      v = std::clamp<int64_t>(v, -(int64_t{1} << 31) + 1, (int64_t{1} << 31) - 1);
    return values;
  };
  Attrs attrs = {{"axes", *axes}, {"starts", limited(*starts)}, {"ends", limited(*ends)}};
  if (strided) {
    attrs.emplace_back("strides", *steps);
    attrs.emplace_back("bounds", std::string("from_end"));
  }
  n.Result(0, n.Make(strided ? "strided_slice" : "slice", {{"Input", {x}}}, std::move(attrs)));
  return true;
}

bool LowerExpand(NodeLowering& n) {
  const int x = n.Required(0);
  if (n.IsString(x)) return false;
  const auto wanted = n.ConstantInts(n.Required(1));
  if (!wanted || !n.shape(x).is_static() || wanted->size() > Shape::kMaxRank) return false;
  const auto both = BroadcastShape(n.shape(x), Shape(std::span<const int64_t>(*wanted)), -1);
  if (!both.ok() || both->numel() == 0) return false;
  n.Result(0, n.Make("expand_v2", {{"X", {x}}}, {{"shape", Ints(both->begin(), both->end())}}));
  return true;
}

bool LowerTile(NodeLowering& n) {
  const int x = n.Required(0);
  if (n.opset() < 6 || n.IsString(x)) return false;
  const auto repeats = n.ConstantInts(n.Required(1));
  const bool plain =
      repeats && std::all_of(repeats->begin(), repeats->end(), [](int64_t r) { return r > 0; });
  // Paddle's tile also takes lists that are longer or shorter than the rank; ONNX's does not.
  const bool fits = plain && n.rank(n.In(1)) == 1 && n.rank(x) == static_cast<int>(repeats->size());
  if (!fits || repeats->empty()) return false;
  n.Result(0, n.Make("tile", {{"X", {x}}}, {{"repeat_times", *repeats}}));
  return true;
}

// Constant amounts become attributes: before and after each dimension.
bool LowerPad(NodeLowering& n) {
  const int x = n.Required(0);
  bool given = false, has_axes = false;
  const char* name = n.opset() < 2 ? "paddings" : "pads";
  const auto pads = IntsOf(n, name, 1, 11, &given);
  auto axes = IntsOf(n, "axes", 3, 11, &has_axes);
  Ins ins = {{"X", {x}}};
  Attrs attrs = {{"mode", n.Str("mode", "constant")}};
  if (n.opset() < 11) {
    attrs.emplace_back("pad_value", n.Float("value", 0));
  } else if (n.Has(2)) {
    int value = n.In(2);
    if (n.dtype(x) != DType::kUnknown) value = n.Cast(value, n.dtype(x));
    const auto constant = IsFloat(n.dtype(x)) ? n.ConstantFloats(n.In(2)) : std::optional<Floats>();
    if (constant && constant->size() == 1)
      attrs.emplace_back("pad_value", (*constant)[0]);
    else
      ins.emplace_back("Value", std::vector<int>{value});
  }
  if (pads && axes && pads->size() % 2 == 0) {
    const size_t count = pads->size() / 2;
    Ints pairs;
    for (size_t i = 0; i < count; ++i) {
      pairs.push_back((*pads)[i]);
      pairs.push_back((*pads)[count + i]);
    }
    attrs.emplace_back("paddings", pairs);
    if (has_axes) attrs.emplace_back("axes", *axes);
  } else {
    ins.emplace_back("Paddings", std::vector<int>{pads ? n.IntsConstant(*pads) : n.In(1)});
    attrs.emplace_back("before_first", true);
    if (has_axes) ins.emplace_back("Axes", std::vector<int>{n.In(3)});
  }
  n.Result(0, n.Make("pad", std::move(ins), std::move(attrs)));
  return true;
}

bool LowerEyeLike(NodeLowering& n) {
  const int x = n.Required(0);
  const auto type = static_cast<int>(n.Int("dtype", 0));
  const int made = n.Make("eye", {{"Like", {x}}},
                          {{"dtype", type == 0 ? int64_t{-1} : DTypeToProto(StorageOf(type))},
                           {"diagonal", n.Int("k", 0)}});
  if (type != 0) n.SetType(made, type);
  n.Result(0, made);
  return true;
}

bool LowerTrilu(NodeLowering& n) {
  Ins ins = {{"X", {n.Required(0)}}};
  Attrs attrs = {{"lower", n.Int("upper", 1) == 0}};
  const auto k = n.Has(1) ? n.ConstantInts(n.In(1)) : Ints{0};
  if (k && k->size() == 1)
    attrs.emplace_back("diagonal", (*k)[0]);
  else
    ins.emplace_back("Diagonal", std::vector<int>{n.In(1)});
  n.Result(0, n.Make("tril_triu", std::move(ins), std::move(attrs)));
  return true;
}

constexpr HandlerEntry kShapeEntries[] = {
    {"", "Concat", &LowerConcat},
    {"", "Constant", &LowerConstant},
    {"", "ConstantOfShape", &LowerConstantOfShape},
    {"", "Expand", &LowerExpand},
    {"", "EyeLike", &LowerEyeLike},
    {"", "Flatten", &LowerFlatten},
    {"", "Pad", &LowerPad},
    {"", "Reshape", &LowerReshape},
    {"", "Shape", &LowerShape},
    {"", "Size", &LowerSize},
    {"", "Slice", &LowerSlice},
    {"", "Split", &LowerSplit},
    {"", "Squeeze", &LowerSqueeze},
    {"", "Tile", &LowerTile},
    {"", "Transpose", &LowerTranspose},
    {"", "Trilu", &LowerTrilu},
    {"", "Unsqueeze", &LowerUnsqueeze},
};

}  // namespace

std::span<const HandlerEntry> ShapeHandlers() { return kShapeEntries; }

}  // namespace heddle::onnx
