// Demands that ONNX's definitions make in words, which the onnx package's tables lack: the ranks of
// operands and the values of attributes.
#include <algorithm>
#include <charconv>
#include <string>

#include "core/error.h"
#include "formats/lowering/type_list.h"
#include "formats/onnx/definitions/definitions.h"

namespace heddle::onnx {
namespace {

using formats::TakeWord;

struct Demand {
  std::string_view ops;  // of ONNX's own domain
  // "1:1 2:0-1": operand, and its least and most rank; "1:^": one less than that of operand 0.
  std::string_view ranks;
  std::string_view attributes;  // "exclusive:0|1": the values that there are; "size>1": the least
};

constexpr std::string_view kAutoPad = "auto_pad:NOTSET|SAME_UPPER|SAME_LOWER|VALID";
constexpr Demand kDemands[] = {
    {"AveragePool Conv ConvInteger ConvTranspose LpPool MaxPool QLinearConv", "", kAutoPad},
    {"BatchNormalization", "1:1 2:1 3:1 4:1", ""},
    {"Attention", "", "left_window_size>-1 right_window_size>-1"},
    {"Conv ConvTranspose", "2:1", ""},
    {"ConstantOfShape", "0:1", ""},
    {"CumProd CumSum", "1:0-1", "exclusive:0|1 reverse:0|1"},
    {"DepthToSpace", "0:4", "mode:DCR|CRD"},
    {"Dropout", "1:0 2:0", ""},
    {"Expand Pad Reshape Split Tile TopK", "1:1", ""},
    {"GRU LSTM RNN", "0:3 1:3 2:3 3:2 4:1", "direction:forward|reverse|bidirectional"},
    {"Gelu", "", "approximate:none|tanh"},
    {"Gemm", "0:2 1:2 2:0-2", ""},
    {"GlobalAveragePool GlobalLpPool GlobalMaxPool LRN", "0:2-9", ""},
    {"MaxPool", "", "storage_order:0|1"},
    {"MaxRoiPool", "0:4 1:2", ""},
    {"Mod", "", "fmod:0|1"},
    {"NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss", "1:^ 2:1", ""},
    {"NonMaxSuppression", "0:3 1:3 2:0-1 3:0-1 4:0-1", ""},
    {"OneHot", "1:0-1 2:1", ""},
    {"Pad", "", "mode:constant|reflect|edge|wrap"},
    {"Range", "0:0-1 1:0-1 2:0-1", ""},
    {"ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd "
     "ReduceSum ReduceSumSquare Squeeze",
     "1:1", ""},
    {"Resize", "3:1", "mode:nearest|linear|cubic"},
    {"ReverseSequence", "0:2-9 1:1", "batch_axis:0|1 time_axis:0|1"},
    {"RoiAlign", "0:4 1:2 2:1", "mode:avg|max"},
    {"Slice", "1:1 2:1 3:1 4:1", ""},
    {"SpaceToDepth", "0:4", ""},
    {"Split", "", "num_outputs>1"},
    {"TfIdfVectorizer", "", "max_gram_length>1 max_skip_count>0 min_gram_length>1"},
    {"Trilu Unsqueeze", "1:0-1", ""},
};

int64_t RankIn(std::string_view digits) {
  int64_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

bool Contains(std::string_view words, std::string_view word, char by) {
  while (!words.empty()) {
    const size_t end = std::min(words.find(by), words.size());
    if (words.substr(0, end) == word) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

bool CheckRanks(NodeLowering& n, std::string_view words) {
  bool right = true;
  while (!words.empty()) {
    const std::string_view word = TakeWord(&words), said = word.substr(word.find(':') + 1);
    const auto i = static_cast<size_t>(RankIn(word));
    const int v = n.Has(i) ? n.Lookup(n.node().inputs[i]) : kNoDraft;
    const size_t dash = said.find('-');
    const bool related = said == "^";
    if (related && (!n.Has(0) || n.rank(n.Lookup(n.node().inputs[0])) < 0)) continue;
    const int64_t least = related ? n.rank(n.Lookup(n.node().inputs[0])) - 1 : RankIn(said);
    const int64_t most = dash == std::string_view::npos ? least : RankIn(said.substr(dash + 1));
    if (v == kNoDraft || n.rank(v) < 0 || (n.rank(v) >= least && n.rank(v) <= most)) continue;
    n.Problem("input ", i, " ('", n.node().inputs[i], "') has rank ", n.rank(v), ", shape ",
              n.shape(v).ToString(), "; rank ", least, most == least ? "" : StrCat(" to ", most),
              " is expected");
    right = false;
  }
  return right;
}

bool CheckValues(NodeLowering& n, std::string_view words) {
  bool right = true;
  while (!words.empty()) {
    const std::string_view word = TakeWord(&words), name = word.substr(0, word.find_first_of(":>")),
                           values = word.substr(name.size() + 1);
    const Attribute* const a = n.Find(name);
    if (a == nullptr || (a->kind != Attribute::kInt && a->kind != Attribute::kString)) continue;
    if (word[name.size()] == '>') {
      if (a->kind != Attribute::kInt || a->i >= RankIn(values)) continue;
      n.Problem("attribute '", name, "' is ", a->i, "; ", values, " or more is expected");
      right = false;
      continue;
    }
    const std::string is = a->kind == Attribute::kInt ? std::to_string(a->i) : std::string(a->s);
    if (Contains(values, is, '|')) continue;
    n.Problem("attribute '", name, "' is ", is, "; one of ", values, " is expected");
    right = false;
  }
  return right;
}

// The attribute kernel_shape is the shape of the weights, which are input `w`.
bool CheckKernelShape(NodeLowering& n, size_t w) {
  const Ints kernel = n.IntList("kernel_shape");
  const int v = n.Has(w) ? n.Lookup(n.node().inputs[w]) : kNoDraft;
  if (kernel.empty() || v == kNoDraft || n.rank(v) < 2) return true;
  const Shape& shape = n.shape(v);
  bool fits = shape.rank() == static_cast<int>(kernel.size()) + 2;
  for (size_t i = 0; fits && i < kernel.size(); ++i) {
    const int64_t dim = shape[static_cast<int>(i) + 2];
    fits = dim < 0 || dim == kernel[i];
  }
  if (!fits)
    n.Problem("attribute 'kernel_shape' does not fit input ", w, ", which has shape ",
              shape.ToString());
  return fits;
}

// What an attribute and the form of the node have to do with each other.
bool CheckForm(NodeLowering& n) {
  const std::string_view op = n.node().op_type;
  if (op == "Conv" || op == "ConvTranspose" || op == "ConvInteger") return CheckKernelShape(n, 1);
  if (op == "QLinearConv") return CheckKernelShape(n, 3);
  if (op == "Split" && n.Find("num_outputs") != nullptr) {
    const auto outputs = static_cast<int64_t>(n.node().outputs.size());
    if (n.Int("num_outputs", 0) == outputs) return true;
    n.Problem("attribute 'num_outputs' is ", n.Int("num_outputs", 0), "; there are ", outputs,
              " outputs");
    return false;
  }
  if (op == "Flatten" && n.Has(0) && n.rank(n.Lookup(n.node().inputs[0])) >= 0) {
    const int64_t rank = n.rank(n.Lookup(n.node().inputs[0])), axis = n.Int("axis", 1);
    if (axis >= (n.opset() < 11 ? 0 : -rank) && axis <= rank) return true;
    n.Problem("attribute 'axis' is ", axis, ", and input 0 has rank ", rank);
    return false;
  }
  return true;
}

}  // namespace

bool CheckDemands(NodeLowering& n) {
  bool right = true;
  if (!n.node().domain.empty()) return right;
  for (const Demand& demand : kDemands) {
    if (!Contains(demand.ops, n.node().op_type, ' ')) continue;
    right = CheckRanks(n, demand.ranks) && right;
    right = CheckValues(n, demand.attributes) && right;
  }
  return CheckForm(n) && right;
}

}  // namespace heddle::onnx
