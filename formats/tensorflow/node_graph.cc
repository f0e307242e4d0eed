#include "formats/tensorflow/node_graph.h"

#include <algorithm>
#include <charconv>

#include "core/interrupts.h"

namespace heddle::tensorflow {
namespace {

// Operators with several output arguments, and their names; those of a list end with `*`. Any other
// operator has one argument, so that its name says nothing.
struct Outputs {
  std::string_view op, names;
};
constexpr Outputs kOutputs[] = {
    {"BatchNormWithGlobalNormalizationGrad", "dx dm dv db dg"},
    {"BlockLSTM", "i cs f o ci co h"},
    {"BlockLSTMV2", "i cs f o ci co h"},
    {"BroadcastGradientArgs", "r0 r1"},
    {"CTCGreedyDecoder", "decoded_indices decoded_values decoded_shape log_probability"},
    {"CTCLoss", "loss gradient"},
    {"CombinedNonMaxSuppression", "nmsed_boxes nmsed_scores nmsed_classes valid_detections"},
    {"FusedBatchNorm", "y batch_mean batch_variance reserve_space_1 reserve_space_2"},
    {"FusedBatchNormGrad",
     "x_backprop scale_backprop offset_backprop reserve_space_3 reserve_space_4"},
    {"FusedBatchNormGradV2",
     "x_backprop scale_backprop offset_backprop reserve_space_3 reserve_space_4"},
    {"FusedBatchNormGradV3",
     "x_backprop scale_backprop offset_backprop reserve_space_4 reserve_space_5"},
    {"FusedBatchNormV2", "y batch_mean batch_variance reserve_space_1 reserve_space_2"},
    {"FusedBatchNormV3",
     "y batch_mean batch_variance reserve_space_1 reserve_space_2 reserve_space_3"},
    {"GRUBlockCell", "r u c h"},
    {"LSTMBlockCell", "i cs f o ci co h"},
    {"ListDiff", "out idx"},
    {"LogMatrixDeterminant", "sign log_abs_determinant"},
    {"MaxPoolWithArgmax", "output argmax"},
    {"Merge", "output value_index"},
    {"NonMaxSuppressionV4", "selected_indices valid_outputs"},
    {"NonMaxSuppressionV5", "selected_indices selected_scores valid_outputs"},
    {"Qr", "q r"},
    {"RaggedRange", "rt_nested_splits rt_dense_values"},
    {"SelfAdjointEigV2", "e v"},
    {"SoftmaxCrossEntropyWithLogits", "loss backprop"},
    {"SparseFillEmptyRows", "output_indices output_values empty_row_indicator reverse_index_map"},
    {"SparseReshape", "output_indices output_shape"},
    {"SparseSoftmaxCrossEntropyWithLogits", "loss backprop"},
    {"Svd", "s u v"},
    {"Switch", "output_false output_true"},
    {"TensorArrayConcatV3", "value lengths"},
    {"TensorArrayGradV3", "grad_handle flow_out"},
    {"TensorArrayV3", "handle flow"},
    {"TensorListConcat", "tensor lengths"},
    {"TensorListConcatV2", "tensor lengths"},
    {"TensorListPopBack", "output_handle tensor"},
    {"TopK", "values indices"},
    {"TopKV2", "values indices"},
    {"Unique", "y idx"},
    {"UniqueV2", "y idx"},
    {"UniqueWithCounts", "y idx count"},
    {"UniqueWithCountsV2", "y idx count"},
};

// The number that `text` is; -1 where it is none.
int NumberOf(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool all = error == std::errc() && end == text.data() + text.size() && !text.empty();
  return all && number >= 0 ? number : -1;
}

}  // namespace

bool WritesVariable(std::string_view op) {
  for (std::string_view name :
       {"Assign", "Apply", "ResourceApply", "SparseApply", "ResourceSparseApply", "Scatter",
        "ResourceScatter", "ResourceStridedSliceAssign", "StridedSliceAssign", "CountUpTo",
        "ResourceCountUpTo", "LookupTableInsert", "LookupTableImport", "InitializeTable"})
    if (op.starts_with(name)) return op != "ScatterNd" && op != "ScatterNdNonAliasingAdd";
  return false;
}

bool DrawsNumbers(std::string_view op) {
  for (std::string_view name : {"RandomUniform", "RandomStandardNormal", "TruncatedNormal",
                                "RandomUniformInt", "Multinomial", "RandomShuffle"})
    if (op == name) return true;
  return false;
}

int PortOf(const Node& node, std::string_view argument, int k) {
  for (const Outputs& outputs : kOutputs) {
    if (outputs.op != node.op) continue;
    std::string_view rest = outputs.names;
    for (int port = 0; !rest.empty(); ++port) {
      const size_t end = std::min(rest.find(' '), rest.size());
      if (rest.substr(0, end) == argument) return k == 0 ? port : -1;
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return -1;
  }
  return k;
}

NodeGraph::NodeGraph(const std::vector<Node>& nodes) : nodes_(&nodes) { Link(); }

NodeGraph::NodeGraph(const Function& function) : nodes_(&function.nodes), function_(&function) {
  for (size_t i = 0; i < function.inputs.size(); ++i)
    arguments_.emplace(function.inputs[i].name, static_cast<int>(i));
  Link();
}

void NodeGraph::Link() {
  for (size_t i = 0; i < nodes_->size(); ++i)
    if (!places_.emplace((*nodes_)[i].name, static_cast<int>(i)).second && duplicate_.empty())
      duplicate_ = (*nodes_)[i].name;
  links_.resize(nodes_->size());
  for (size_t i = 0; i < nodes_->size(); ++i) {
    LookForInterrupt();
    Links& links = links_[i];
    for (std::string_view input : (*nodes_)[i].inputs) {
      if (input.starts_with('^')) {
        links.controls.push_back(Find(input.substr(1)));
        links.control_names.push_back(input.substr(1));
      } else {
        links.inputs.push_back(Resolve(input));
        links.names.push_back(input);
      }
    }
  }
}

int NodeGraph::Find(std::string_view name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? Source::kMissing : found->second;
}

Source NodeGraph::Resolve(std::string_view reference) const {
  const size_t colon = reference.find(':');
  const std::string_view name = reference.substr(0, colon);
  if (function_ != nullptr) {
    if (colon == std::string_view::npos)
      if (const auto found = arguments_.find(name); found != arguments_.end())
        return {Source::kArgument, found->second};
  }
  const int place = Find(name);
  if (place < 0) return {};
  if (colon == std::string_view::npos) return {place, 0};
  const std::string_view rest = reference.substr(colon + 1);
  const size_t second = rest.find(':');
  if (second == std::string_view::npos) {
    const int port = NumberOf(rest);
    return port < 0 ? Source{} : Source{place, port};
  }
  const int k = NumberOf(rest.substr(second + 1));
  const int port = k < 0 ? -1 : PortOf(node(place), rest.substr(0, second), k);
  return port < 0 ? Source{} : Source{place, port};
}

void NodeGraph::Replace(const std::map<Source, int>& arguments) {
  for (Links& links : links_)
    for (Source& input : links.inputs)
      if (const auto to = arguments.find(input); to != arguments.end())
        input = {Source::kArgument, to->second};
}

std::vector<bool> NodeGraph::Ancestors(const std::vector<Source>& values,
                                       const std::vector<int>& nodes) const {
  std::vector<bool> marked(size());
  std::vector<int> open;
  const auto mark = [&](int node) {
    if (node < 0 || marked[static_cast<size_t>(node)]) return;
    marked[static_cast<size_t>(node)] = true;
    open.push_back(node);
  };
  for (const Source& value : values) mark(value.node);
  for (int node : nodes) mark(node);
  while (!open.empty()) {
    const Links& links = links_[static_cast<size_t>(open.back())];
    open.pop_back();
    for (const Source& input : links.inputs) mark(input.node);
    for (int control : links.controls) mark(control);
  }
  return marked;
}

void NodeGraph::NoteUses(const std::vector<bool>& marked, const std::vector<Source>& results) {
  uses_.clear();
  const auto note = [&](const Source& source) {
    if (source.node != Source::kMissing) ++uses_[KeyOf(source)];
  };
  for (const Source& result : results) note(result);
  for (size_t i = 0; i < size(); ++i)
    if (marked[i])
      for (const Source& input : links_[i].inputs) note(input);
}

int NodeGraph::Uses(Source value) const {
  const auto found = uses_.find(KeyOf(value));
  return found == uses_.end() ? 0 : found->second;
}

}  // namespace heddle::tensorflow
