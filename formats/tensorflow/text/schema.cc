#include "formats/tensorflow/text/schema.h"

#include <algorithm>
#include <iterator>
#include <span>

#include "formats/tensorflow/types.h"

namespace heddle::tensorflow {
namespace {

using F = TextField;
using M = Message;

constexpr F kGraphFields[] = {{"node", 1, F::kMessage, M::kNode},
                              {"library", 2, F::kMessage, M::kLibrary},
                              {"version", 3, F::kInt32},
                              {"versions", 4, F::kMessage, M::kVersions},
                              {"debug_info", 5}};
constexpr F kNodeFields[] = {{"name", 1, F::kBytes},
                             {"op", 2, F::kBytes},
                             {"input", 3, F::kBytes},
                             {"device", 4, F::kBytes},
                             {"attr", 5, F::kMessage, M::kAttributeEntry},
                             {"experimental_debug_info", 6},
                             {"experimental_type", 7}};
constexpr F kAttributeEntryFields[] = {{"key", 1, F::kBytes},
                                       {"value", 2, F::kMessage, M::kAttribute}};
constexpr F kAttributeFields[] = {{"list", 1, F::kMessage, M::kAttributeList},
                                  {"s", 2, F::kBytes},
                                  {"i", 3, F::kInt64},
                                  {"f", 4, F::kFloat},
                                  {"b", 5, F::kBool},
                                  {"type", 6, F::kType},
                                  {"shape", 7, F::kMessage, M::kShape},
                                  {"tensor", 8, F::kMessage, M::kTensor},
                                  {"placeholder", 9, F::kBytes},
                                  {"func", 10, F::kMessage, M::kFunctionName}};
constexpr F kAttributeListFields[] = {{"s", 2, F::kBytes},
                                      {"i", 3, F::kInt64},
                                      {"f", 4, F::kFloat},
                                      {"b", 5, F::kBool},
                                      {"type", 6, F::kType},
                                      {"shape", 7, F::kMessage, M::kShape},
                                      {"tensor", 8, F::kMessage, M::kTensor},
                                      {"func", 9, F::kMessage, M::kFunctionName}};
constexpr F kFunctionNameFields[] = {{"name", 1, F::kBytes},
                                     {"attr", 2, F::kMessage, M::kAttributeEntry}};
constexpr F kShapeFields[] = {{"dim", 2, F::kMessage, M::kDimension},
                              {"unknown_rank", 3, F::kBool}};
constexpr F kDimensionFields[] = {{"size", 1, F::kInt64}, {"name", 2, F::kBytes}};
constexpr F kTensorFields[] = {{"dtype", 1, F::kType},
                               {"tensor_shape", 2, F::kMessage, M::kShape},
                               {"version_number", 3, F::kInt32},
                               {"tensor_content", 4, F::kBytes},
                               {"float_val", 5, F::kFloat},
                               {"double_val", 6, F::kDouble},
                               {"int_val", 7, F::kInt32},
                               {"string_val", 8, F::kBytes},
                               {"scomplex_val", 9, F::kFloat},
                               {"int64_val", 10, F::kInt64},
                               {"bool_val", 11, F::kBool},
                               {"dcomplex_val", 12, F::kDouble},
                               {"half_val", 13, F::kInt32},
                               {"resource_handle_val", 14},
                               {"variant_val", 15},
                               {"uint32_val", 16, F::kUint32},
                               {"uint64_val", 17, F::kUint64},
                               {"float8_val", 18}};
constexpr F kLibraryFields[] = {
    {"function", 1, F::kMessage, M::kFunction}, {"gradient", 2}, {"registered_gradients", 3}};
constexpr F kFunctionFields[] = {{"signature", 1, F::kMessage, M::kOpDef},
                                 {"node_def", 3, F::kMessage, M::kNode},
                                 {"ret", 4, F::kMessage, M::kTextEntry},
                                 {"attr", 5, F::kMessage, M::kAttributeEntry},
                                 {"control_ret", 6, F::kMessage, M::kTextEntry},
                                 {"arg_attr", 7},
                                 {"resource_arg_unique_id", 8}};
constexpr F kTextEntryFields[] = {{"key", 1, F::kBytes}, {"value", 2, F::kBytes}};
constexpr F kOpDefFields[] = {{"name", 1, F::kBytes},
                              {"input_arg", 2, F::kMessage, M::kArgument},
                              {"output_arg", 3, F::kMessage, M::kArgument},
                              {"attr", 4, F::kMessage, M::kDeclaredAttribute},
                              {"summary", 5},
                              {"description", 6},
                              {"deprecation", 8},
                              {"is_aggregate", 16},
                              {"is_stateful", 17, F::kBool},
                              {"is_commutative", 18},
                              {"allows_uninitialized_input", 19},
                              {"control_output", 20, F::kBytes},
                              {"is_distributed_communication", 21}};
constexpr F kArgumentFields[] = {{"name", 1, F::kBytes},
                                 {"description", 2},
                                 {"type", 3, F::kType},
                                 {"type_attr", 4, F::kBytes},
                                 {"number_attr", 5, F::kBytes},
                                 {"type_list_attr", 6, F::kBytes},
                                 {"handle_data", 7},
                                 {"is_ref", 16, F::kBool},
                                 {"experimental_full_type", 17}};
constexpr F kDeclaredAttributeFields[] = {{"name", 1, F::kBytes},
                                          {"type", 2, F::kBytes},
                                          {"default_value", 3, F::kMessage, M::kAttribute},
                                          {"description", 4},
                                          {"has_minimum", 5},
                                          {"minimum", 6},
                                          {"allowed_values", 7}};
constexpr F kVersionsFields[] = {
    {"producer", 1, F::kInt32}, {"min_consumer", 2, F::kInt32}, {"bad_consumers", 3, F::kInt32}};
constexpr F kSavedModelFields[] = {{"saved_model_schema_version", 1, F::kInt64},
                                   {"meta_graphs", 2, F::kMessage, M::kMetaGraph}};
constexpr F kMetaGraphFields[] = {{"meta_info_def", 1, F::kMessage, M::kMetaInfo},
                                  {"graph_def", 2, F::kMessage, M::kGraph},
                                  {"saver_def", 3, F::kMessage, M::kSaver},
                                  {"collection_def", 4},
                                  {"signature_def", 5, F::kMessage, M::kSignatureEntry},
                                  {"asset_file_def", 6},
                                  {"object_graph_def", 7}};
constexpr F kMetaInfoFields[] = {
    {"meta_graph_version", 1},     {"stripped_op_list", 2},   {"any_info", 3},
    {"tags", 4, F::kBytes},        {"tensorflow_version", 5}, {"tensorflow_git_version", 6},
    {"stripped_default_attrs", 7}, {"function_aliases", 8}};
constexpr F kSaverFields[] = {{"filename_tensor_name", 1, F::kBytes},
                              {"save_tensor_name", 2, F::kBytes},
                              {"restore_op_name", 3, F::kBytes},
                              {"max_to_keep", 4},
                              {"sharded", 5},
                              {"keep_checkpoint_every_n_hours", 6},
                              {"version", 7}};
constexpr F kSignatureEntryFields[] = {{"key", 1, F::kBytes},
                                       {"value", 2, F::kMessage, M::kSignature}};
constexpr F kSignatureFields[] = {{"inputs", 1, F::kMessage, M::kTensorEntry},
                                  {"outputs", 2, F::kMessage, M::kTensorEntry},
                                  {"method_name", 3, F::kBytes},
                                  {"defaults", 4}};
constexpr F kTensorEntryFields[] = {{"key", 1, F::kBytes},
                                    {"value", 2, F::kMessage, M::kTensorInfo}};
constexpr F kTensorInfoFields[] = {{"name", 1, F::kBytes},
                                   {"dtype", 2, F::kType},
                                   {"tensor_shape", 3, F::kMessage, M::kShape},
                                   {"coo_sparse", 4},
                                   {"composite_tensor", 5}};

struct Description {
  std::string_view name;
  std::span<const F> fields;
};
// Indexed by Message.
constexpr Description kMessages[] = {
    {"GraphDef", kGraphFields},
    {"NodeDef", kNodeFields},
    {"AttrEntry", kAttributeEntryFields},
    {"AttrValue", kAttributeFields},
    {"AttrValue.ListValue", kAttributeListFields},
    {"NameAttrList", kFunctionNameFields},
    {"TensorShapeProto", kShapeFields},
    {"TensorShapeProto.Dim", kDimensionFields},
    {"TensorProto", kTensorFields},
    {"FunctionDefLibrary", kLibraryFields},
    {"FunctionDef", kFunctionFields},
    {"RetEntry", kTextEntryFields},
    {"OpDef", kOpDefFields},
    {"OpDef.ArgDef", kArgumentFields},
    {"OpDef.AttrDef", kDeclaredAttributeFields},
    {"VersionDef", kVersionsFields},
    {"SavedModel", kSavedModelFields},
    {"MetaGraphDef", kMetaGraphFields},
    {"MetaGraphDef.MetaInfoDef", kMetaInfoFields},
    {"SaverDef", kSaverFields},
    {"SignatureDefEntry", kSignatureEntryFields},
    {"SignatureDef", kSignatureFields},
    {"TensorInfoEntry", kTensorEntryFields},
    {"TensorInfo", kTensorInfoFields},
};
static_assert(std::size(kMessages) == static_cast<size_t>(Message::kTensorInfo) + 1);

// Indexed by the type's number.
constexpr std::string_view kTypes[] = {"INVALID",
                                       "FLOAT",
                                       "DOUBLE",
                                       "INT32",
                                       "UINT8",
                                       "INT16",
                                       "INT8",
                                       "STRING",
                                       "COMPLEX64",
                                       "INT64",
                                       "BOOL",
                                       "QINT8",
                                       "QUINT8",
                                       "QINT32",
                                       "BFLOAT16",
                                       "QINT16",
                                       "QUINT16",
                                       "UINT16",
                                       "COMPLEX128",
                                       "HALF",
                                       "RESOURCE",
                                       "VARIANT",
                                       "UINT32",
                                       "UINT64",
                                       "FLOAT8_E5M2",
                                       "FLOAT8_E4M3FN",
                                       "FLOAT8_E4M3FNUZ",
                                       "FLOAT8_E4M3B11FNUZ",
                                       "FLOAT8_E5M2FNUZ",
                                       "INT4",
                                       "UINT4",
                                       "INT2",
                                       "UINT2"};

}  // namespace

std::string_view NameOf(Message message) { return kMessages[static_cast<size_t>(message)].name; }

const TextField* FindTextField(Message message, std::string_view name) {
  for (const F& field : kMessages[static_cast<size_t>(message)].fields)
    if (field.name == name) return &field;
  return nullptr;
}

std::optional<int> TypeNumber(std::string_view name) {
  constexpr std::string_view kPrefix = "DT_", kSuffix = "_REF";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  const bool reference = name.ends_with(kSuffix);
  if (reference) name.remove_suffix(kSuffix.size());
  const auto* at = std::find(std::begin(kTypes), std::end(kTypes), name);
  if (at == std::end(kTypes)) return std::nullopt;
  return static_cast<int>(at - std::begin(kTypes)) + (reference ? kReference : 0);
}

}  // namespace heddle::tensorflow
