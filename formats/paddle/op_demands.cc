#include "formats/paddle/op_demands.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "core/tables/packed_rows.h"

namespace heddle::paddle {
namespace {

struct Row {
  std::string_view op, outputs, attributes;
};
constexpr std::string_view kText[][3] = {
// sorted by the first column
#include "formats/paddle/op_demands.inc"
};
constexpr PackedRows<std::size(kText), 3, BytesOfRows(kText)> kRows(kText);

std::optional<Row> Find(std::string_view op) {
  const size_t at = kRows.LowerBound(op);
  if (!kRows.Is(at, op)) return std::nullopt;
  const auto [name, outputs, attributes] = kRows[at];
  return Row{name, outputs, attributes};
}

// Calls fn(word) for each word, until it returns true.
template <typename Fn>
void EachWord(std::string_view text, Fn&& fn) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (fn(text.substr(0, end))) return;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// Operands and attributes of Paddle's operators that Paddle lacks.
struct OwnParts {
  std::string_view op, parts;  // sorted by the first; parts are separated by spaces
};
constexpr OwnParts kOwnParts[] = {
    {"arg_max", "AxisTensor"},
    {"arg_min", "AxisTensor"},
    {"batch_norm", "lone_passes saves_variance unbiased"},
    {"batch_norm_grad", "lone_passes saves_variance"},
    {"bincount", "Size binary rows like_weights"},
    {"cumprod", "AxisTensor exclusive reverse"},
    {"cumsum", "AxisTensor copies_single"},
    {"expand_v2", "mutual"},
    {"eye", "Like diagonal"},
    {"fill_constant", "dtype"},
    {"flatten2", "scalar_to_matrix"},
    {"flip", "AxisTensor"},
    {"gather", "index_shape wrap batch_dims"},
    {"gather_nd", "batch_dims wrap"},
    {"linspace", "from_start"},
    {"logcumsumexp", "AxisTensor copies_single from_infinity"},
    {"one_hot_v2", "Values axis out_of_range wrap"},
    {"pad", "Paddings Axes Value axes before_first mode"},
    {"pad_grad", "Paddings Axes axes before_first mode"},
    {"pixel_shuffle", "mode"},
    {"pixel_unshuffle", "mode"},
    {"pool2d_grad", "Shape"},
    {"pool3d_grad", "Shape"},
    {"prelu", "axis"},
    {"range", "wrong_way by_product"},
    {"reshape2", "literal_zero"},
    {"roi_align", "Images mode"},
    {"roi_pool", "Images"},
    {"roll", "AxisTensor"},
    {"split", "SectionsTensor uneven"},
    {"squeeze2", "AxesTensor"},
    {"strided_slice", "AxesTensor bounds"},
    {"top_k_v2", "index_type"},
    {"transpose2", "Perm reversed"},
    {"tril_triu", "Diagonal"},
    {"unique", "Axis nan_differs"},
    {"unsqueeze2", "in_result"},
    {"where", "leading_axes"},
    {"where_index", "by_axis"},
};

// Whether the operator says something in this operand or attribute.
bool Says(const ir::Op& op, std::string_view part) {
  if (const int slot = op.def->FindInput(part); slot >= 0)
    return !op.inputs[static_cast<size_t>(slot)].empty();
  const int a = op.def->FindAttr(part);
  if (a < 0) return false;
  const AttrValue& value = op.attrs[static_cast<size_t>(a)];
  // A dtype that an operand decides; any other is Paddle's.
  if (part == "dtype") return value == AttrValue(int64_t{-1});
  return value != op.def->attrs()[static_cast<size_t>(a)].default_value;
}

}  // namespace

bool IsForeign(std::string_view op) {
  const auto row = Find(op);
  return row && row->outputs == "-";
}

bool IsForeign(const ir::Op& op) {
  const auto* const own = std::lower_bound(
      std::begin(kOwnParts), std::end(kOwnParts), op.type(),
      [](const OwnParts& parts, const std::string& type) { return parts.op < type; });
  bool says = false;
  if (own != std::end(kOwnParts) && own->op == op.type())
    EachWord(own->parts, [&](std::string_view part) { return says = Says(op, part); });
  return says || IsForeign(op.type());
}

std::vector<DemandedOutput> DemandedOutputs(std::string_view op) {
  std::vector<DemandedOutput> outputs;
  if (const auto row = Find(op); row && !IsForeign(op))
    EachWord(row->outputs, [&](std::string_view slot) {
      const bool list = slot.ends_with('*');
      if (list) slot.remove_suffix(1);
      outputs.push_back({slot, list});
      return false;
    });
  return outputs;
}

std::vector<std::pair<std::string_view, std::string_view>> DemandedTexts(std::string_view op) {
  std::vector<std::pair<std::string_view, std::string_view>> texts;
  if (const auto row = Find(op))
    EachWord(row->attributes, [&](std::string_view word) {
      const size_t at = word.find('=');
      if (at != std::string_view::npos) texts.emplace_back(word.substr(0, at), word.substr(at + 1));
      return false;
    });
  return texts;
}

proto::AttrType DemandedType(std::string_view op, std::string_view attribute) {
  static constexpr std::pair<std::string_view, proto::AttrType> kTypes[] = {
      {"bools", proto::BOOLEANS},    {"long", proto::LONG},       {"longs", proto::LONGS},
      {"float64s", proto::FLOAT64S}, {"float64", proto::FLOAT64}, {"scalar", proto::SCALAR},
      {"scalars", proto::SCALARS}};
  auto found = proto::AttrType(-1);
  auto row = Find(op);
  // A gradient operator has the attributes of its forward operator.
  while (!row && op.ends_with("_grad")) {
    op.remove_suffix(std::string_view("_grad").size());
    row = Find(op);
  }
  if (!row) return found;
  EachWord(row->attributes, [&](std::string_view word) {
    const size_t colon = word.find(':');
    if (word.substr(0, colon) != attribute) return false;
    for (const auto& [name, type] : kTypes)
      if (name == word.substr(colon + 1)) found = type;
    return true;
  });
  return found;
}

}  // namespace heddle::paddle
