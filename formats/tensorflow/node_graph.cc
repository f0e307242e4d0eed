#include "formats/tensorflow/node_graph.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/interrupts.h"

namespace heddle::tensorflow {
namespace {

// Operators with several output arguments, and the arguments' names.
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
    {"RaggedTensorToSparse", "sparse_indices sparse_values sparse_dense_shape"},
    {"RefSwitch", "output_false output_true"},
    {"SelfAdjointEigV2", "e v"},
    {"SoftmaxCrossEntropyWithLogits", "loss backprop"},
    {"SparseConcat", "output_indices output_values output_shape"},
    {"SparseCross", "output_indices output_values output_shape"},
    {"SparseCrossHashed", "output_indices output_values output_shape"},
    {"SparseCrossV2", "output_indices output_values output_shape"},
    {"SparseFillEmptyRows", "output_indices output_values empty_row_indicator reverse_index_map"},
    {"SparseReorder", "output_indices output_values"},
    {"SparseReshape", "output_indices output_shape"},
    {"SparseSlice", "output_indices output_values output_shape"},
    {"SparseSoftmaxCrossEntropyWithLogits", "loss backprop"},
    {"StringNGrams", "ngrams ngrams_splits"},
    {"StringSplit", "indices values shape"},
    {"StringSplitV2", "indices values shape"},
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
    {"UnicodeDecode", "row_splits char_values"},
    {"UnicodeDecodeWithOffsets", "row_splits char_values char_to_byte_starts"},
    {"Unique", "y idx"},
    {"UniqueV2", "y idx"},
    {"UniqueWithCounts", "y idx count"},
    {"UniqueWithCountsV2", "y idx count"},
};

// The number that `text` states; -1 if it is none.
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

std::string_view OutputNames(std::string_view op) {
  for (const Outputs& outputs : kOutputs)
    if (outputs.op == op) return outputs.names;
  return {};
}

NodeGraph::NodeGraph(const std::vector<Node>& nodes) : nodes_(&nodes) { Link(); }

NodeGraph::NodeGraph(const Function& function, const std::vector<size_t>& argument_sizes,
                     FindOutputs find)
    : nodes_(&function.nodes), find_outputs_(std::move(find)) {
  int first = 0;
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    const auto count = static_cast<int>(argument_sizes[i]);
    arguments_.emplace(function.inputs[i].name, OutputRange{first, count});
    first += count;
  }
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
        for (const Source& source : ResolveAll(input)) {
          links.inputs.push_back(source);
          links.names.push_back(input);
        }
      }
    }
  }
}

int NodeGraph::Find(std::string_view name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? Source::kMissing : found->second;
}

Source NodeGraph::Resolve(std::string_view reference) const {
  const std::vector<Source> sources = ResolveAll(reference);
  return sources.empty() ? Source{} : sources[0];
}

std::vector<Source> NodeGraph::ResolveAll(std::string_view reference) const {
  const auto values_of = [](int node, OutputRange range) {
    std::vector<Source> values;
    for (int k = 0; k < std::max(range.count, range.count < 0 ? 1 : 0); ++k)
      values.push_back({node, range.first + k});
    return values;
  };
  const auto value_of = [](int node, OutputRange range, std::string_view number) {
    const int k = NumberOf(number);
    const bool has = k >= 0 && (range.count < 0 || k < range.count);
    return std::vector<Source>{has ? Source{node, range.first + k} : Source{}};
  };
  const size_t colon = reference.find(':');
  const std::string_view name = reference.substr(0, colon);
  if (const auto found = arguments_.find(name); found != arguments_.end()) {
    if (colon == std::string_view::npos) return values_of(Source::kArgument, found->second);
    return value_of(Source::kArgument, found->second, reference.substr(colon + 1));
  }
  const int place = Find(name);
  if (place < 0) return {Source{}};
  if (colon == std::string_view::npos) return {Source{place, 0}};
  const std::string_view rest = reference.substr(colon + 1);
  const size_t second = rest.find(':');
  if (const int port = NumberOf(rest); port >= 0) return {Source{place, port}};
  const auto range =
      find_outputs_ == nullptr ? std::nullopt : find_outputs_(node(place), rest.substr(0, second));
  if (!range) return {Source{}};
  if (second == std::string_view::npos) return values_of(place, *range);
  return value_of(place, *range, rest.substr(second + 1));
}

Source NodeGraph::Original(int node, size_t i) const {
  // Nothing is replaced in a function. Its inputs are not resolved by name, since one name may be
  // several.
  return find_outputs_ == nullptr ? Resolve(links(node).names[i]) : links(node).inputs[i];
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
