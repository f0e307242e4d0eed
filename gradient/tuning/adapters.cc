// Adapters of low rank beside weights.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/error.h"
#include "gradient/tuning/products.h"
#include "gradient/tuning/tuning.h"

namespace heddle::gradient {
namespace {

using ir::kNoVar;
using ir::Op;
using ir::VarId;

constexpr std::string_view kLeft = ".lora_left", kRight = ".lora_right", kScale = ".lora_scale";

int64_t RowsOf(const Shape& shape) { return shape[0]; }
int64_t ColumnsOf(const Shape& shape) { return shape.Product(1, shape.rank()); }

bool IsAdaptable(DType dtype) { return dtype == DType::kF32 || dtype == DType::kF64; }

class AdapterMaker {
 public:
  AdapterMaker(const Program& program, const AdapterRequest& request)
      : edit_(program), request_(request) {}

  Result<Adapted> Run() {
    if (request_.given.empty())
      HEDDLE_RETURN_IF_ERROR(MakeNew());
    else
      HEDDLE_RETURN_IF_ERROR(TakeGiven());
    const std::set<VarId> needed = Needed();
    int64_t elements = 0, of_weights = 0;
    for (const Adapter& adapter : made_.adapters) {
      elements += adapter.left.numel() + adapter.right.numel();
      of_weights += RowsOf(adapter.left.shape()) * ColumnsOf(adapter.right.shape());
      const bool trained =
          request_.losses.empty() || needed.contains(edit_.ir().Find(0, adapter.weight));
      Insert(adapter, trained);
    }
    const int64_t tenths = of_weights == 0 ? 0 : (1000 * elements + of_weights / 2) / of_weights;
    made_.said = StrCat("adapters beside ", made_.adapters.size(),
                        made_.adapters.size() == 1 ? " weight: " : " weights: ", elements,
                        " numbers, ", tenths / 10, ".", tenths % 10, " % of these weights");
    made_.program = std::move(edit_).Finish();
    return std::move(made_);
  }

 private:
  // The weights of products, each once, in the order of the program.
  Status MakeNew() {
    if (request_.rank < 1) return InvalidArgument("the rank of an adapter is at least 1");
    const std::set<VarId> needed = Needed();
    std::map<VarId, bool> seen;
    std::string names;
    for (size_t k = 0; k < edit_.ops().size(); ++k) {
      const auto product = WeightedAt(edit_, edit_.ir(), static_cast<int>(k));
      if (!product || !seen.emplace(product->weight, true).second) continue;
      if (!request_.losses.empty() && !needed.contains(product->weight)) continue;
      // Rows of inputs and windows are no matrix of inputs and outputs.
      if (product->convolution && product->output_axis != 0) continue;
      const ir::Var& var = edit_.var(product->weight);
      const bool wanted =
          request_.on ? request_.on(var.name) : !product->convolution || product->window == 1;
      names += (names.empty() ? "'" : ", '") + var.name + "'";
      if (!wanted) continue;
      if (!IsAdaptable(var.dtype))
        return Unimplemented("the weights '", var.name, "' are of dtype ", Name(var.dtype),
                             "; adapters are for float32 and float64");
      made_.adapters.push_back(NewAdapter(*product, var));
    }
    if (made_.adapters.empty())
      return InvalidArgument("no weights of products are to be adapted",
                             names.empty() ? "; the model has none" : "; there are " + names);
    return Status::Ok();
  }

  // What the losses depend on.
  std::set<VarId> Needed() const {
    std::set<VarId> needed;
    for (const std::string& name : request_.losses)
      if (const VarId v = edit_.ir().Find(0, name); v != kNoVar) needed.insert(v);
    const auto& ops = edit_.ops();
    for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
      bool leads = false;
      for (const auto& slot : op->outputs)
        for (const VarId v : slot) leads = leads || needed.contains(v);
      if (!leads) continue;
      for (const auto& slot : op->inputs) needed.insert(slot.begin(), slot.end());
    }
    return needed;
  }

  Adapter NewAdapter(const Weighted& product, const ir::Var& var) const {
    const int64_t rows = RowsOf(var.shape), columns = ColumnsOf(var.shape);
    Adapter adapter;
    adapter.weight = var.name;
    adapter.scale = request_.alpha < 0 ? 1 : request_.alpha / static_cast<double>(request_.rank);
    const Shape left{rows, request_.rank}, right{request_.rank, columns};
    // What meets the inputs is random.
    const bool rows_are_outputs = product.output_axis == 0;
    const double limit = 1 / std::sqrt(static_cast<double>(rows_are_outputs ? columns : rows));
    adapter.left = rows_are_outputs
                       ? Tensor::Zeros(var.dtype, left)
                       : UniformTensor(var.dtype, left, limit, request_.seed, var.name);
    adapter.right = rows_are_outputs
                        ? UniformTensor(var.dtype, right, limit, request_.seed, var.name)
                        : Tensor::Zeros(var.dtype, right);
    return adapter;
  }

  Status TakeGiven() {
    for (const Adapter& adapter : request_.given) {
      const VarId v = edit_.ir().Find(0, adapter.weight);
      if (v == kNoVar || !edit_.var(v).persistable)
        return NotFound("the adapter of '", adapter.weight,
                        "': the model has no parameter of that name");
      const ir::Var& var = edit_.var(v);
      if (var.dtype != adapter.left.dtype() || !var.shape.is_static() || var.shape.rank() < 2 ||
          RowsOf(var.shape) != adapter.left.shape()[0] ||
          ColumnsOf(var.shape) != adapter.right.shape()[1])
        return InvalidArgument("the adapter of '", adapter.weight, "' is for ",
                               Name(adapter.left.dtype()), " of ", adapter.left.shape()[0], " x ",
                               adapter.right.shape()[1], ", and the parameter is ", Name(var.dtype),
                               " ", var.shape.ToString());
      made_.adapters.push_back(adapter);
    }
    return Status::Ok();
  }

  // All readers of the weights read the sum.
  void Insert(const Adapter& adapter, bool trained) {
    const VarId w = edit_.ir().Find(0, adapter.weight);
    const ir::Var var = edit_.var(w);
    const VarId left = edit_.AddParameter(LeftName(var.name), var.dtype, adapter.left.shape());
    const VarId right = edit_.AddParameter(RightName(var.name), var.dtype, adapter.right.shape());
    made_.parameters.emplace_back(edit_.var(left).name, adapter.left);
    made_.parameters.emplace_back(edit_.var(right).name, adapter.right);
    for (const VarId side : {left, right})
      if (trained) made_.trained.push_back(edit_.var(side).name);
    int at = 0;
    VarId delta =
        edit_.Emit("matmul_v2", {{"X", {left}}, {"Y", {right}}}, {}, var.name + "@LORA", {}, at++);
    if (adapter.scale != 1)
      delta = edit_.Emit("scale", {{"X", {delta}}}, {{"scale", adapter.scale}}, var.name + "@LORA",
                         {}, at++);
    if (var.shape.rank() != 2)
      delta = edit_.Emit("reshape2", {{"X", {delta}}},
                         {{"shape", Ints(var.shape.begin(), var.shape.end())}}, var.name + "@LORA",
                         {}, at++);
    const VarId sum = edit_.Emit("elementwise_add", {{"X", {w}}, {"Y", {delta}}}, {},
                                 var.name + "@ADAPTED", {}, at++);
    for (ir::Block& block : edit_.ir().blocks)
      for (size_t k = block.id == 0 ? static_cast<size_t>(at) : 0; k < block.ops.size(); ++k)
        for (auto& slot : block.ops[k].inputs) std::replace(slot.begin(), slot.end(), w, sum);
  }

  Edit edit_;
  const AdapterRequest& request_;
  Adapted made_;
};

double ElementOf(const Tensor& t, int64_t k) {
  return t.dtype() == DType::kF64 ? t.data<double>()[k] : static_cast<double>(t.data<float>()[k]);
}

template <typename T>
void AddProduct(const Adapter& adapter, T* weight) {
  const int64_t rows = adapter.left.shape()[0], rank = adapter.left.shape()[1];
  const int64_t columns = adapter.right.shape()[1];
  const T* left = adapter.left.data<T>();
  const T* right = adapter.right.data<T>();
  const T scale = static_cast<T>(adapter.scale);
  std::vector<T> row(static_cast<size_t>(columns));
  for (int64_t i = 0; i < rows; ++i) {
    std::fill(row.begin(), row.end(), T{0});
    for (int64_t k = 0; k < rank; ++k) {
      const T factor = left[i * rank + k];
      for (int64_t j = 0; j < columns; ++j)
        row[static_cast<size_t>(j)] += factor * right[k * columns + j];
    }
    for (int64_t j = 0; j < columns; ++j)
      weight[i * columns + j] += scale * row[static_cast<size_t>(j)];
  }
}

}  // namespace

std::string LeftName(const std::string& weight) { return weight + "@LORA_LEFT"; }
std::string RightName(const std::string& weight) { return weight + "@LORA_RIGHT"; }

Result<Adapted> AddAdapters(const Program& program, const AdapterRequest& request) {
  return AdapterMaker(program, request).Run();
}

NamedTensors ArraysOf(const std::vector<Adapter>& adapters) {
  NamedTensors arrays;
  for (const Adapter& adapter : adapters) {
    Tensor scale = Tensor::Zeros(DType::kF64, Shape());
    scale.mutable_data<double>()[0] = adapter.scale;
    arrays.emplace_back(StrCat(adapter.weight, kLeft), adapter.left);
    arrays.emplace_back(StrCat(adapter.weight, kRight), adapter.right);
    arrays.emplace_back(StrCat(adapter.weight, kScale), std::move(scale));
  }
  return arrays;
}

Result<std::vector<Adapter>> AdaptersOf(const NamedTensors& arrays) {
  std::map<std::string, Adapter> found;
  for (const auto& [name, tensor] : arrays) {
    const size_t dot = name.rfind('.');
    const std::string weight = name.substr(0, dot);
    const std::string_view part =
        dot == std::string::npos ? std::string_view() : std::string_view(name).substr(dot);
    const bool side = part == kLeft || part == kRight;
    if ((!side && part != kScale) || !IsAdaptable(tensor.dtype()) ||
        (side ? tensor.rank() != 2 : tensor.numel() != 1))
      return InvalidArgument("array '", name, "' is no part of an adapter: WEIGHT", kLeft,
                             ", WEIGHT", kRight, " (matrices of floats) and WEIGHT", kScale,
                             " are");
    Adapter& adapter = found[weight];
    adapter.weight = weight;
    if (part == kLeft) adapter.left = tensor.Contiguous();
    if (part == kRight) adapter.right = tensor.Contiguous();
    if (part == kScale) adapter.scale = ElementOf(tensor, 0);
  }
  std::vector<Adapter> adapters;
  for (auto& [weight, adapter] : found) {
    if (!adapter.left.initialized() || !adapter.right.initialized() ||
        adapter.left.dtype() != adapter.right.dtype() ||
        adapter.left.shape()[1] != adapter.right.shape()[0])
      return InvalidArgument("the adapter of '", weight, "' lacks a side, or its sides do not fit");
    adapters.push_back(std::move(adapter));
  }
  if (adapters.empty()) return InvalidArgument("holds no adapter");
  return adapters;
}

Status MergeAdapters(const std::vector<Adapter>& adapters, Scope* scope) {
  for (const Adapter& adapter : adapters) {
    const Value* value = scope->Find(adapter.weight);
    if (value == nullptr || !value->is_tensor() || !value->initialized())
      return NotFound("the adapter of '", adapter.weight,
                      "': the model has no parameter of that name");
    const Tensor before = value->tensor().Contiguous();
    if (before.dtype() != adapter.left.dtype() || before.rank() < 2 ||
        RowsOf(before.shape()) != adapter.left.shape()[0] ||
        ColumnsOf(before.shape()) != adapter.right.shape()[1])
      return InvalidArgument("the adapter of '", adapter.weight, "' is for ",
                             Name(adapter.left.dtype()), " of ", adapter.left.shape()[0], " x ",
                             adapter.right.shape()[1], ", and the parameter is ",
                             Name(before.dtype()), " ", before.shape().ToString());
    Tensor sum = before.Clone();
    if (sum.dtype() == DType::kF64)
      AddProduct(adapter, sum.mutable_data<double>());
    else
      AddProduct(adapter, sum.mutable_data<float>());
    scope->Set(adapter.weight, std::move(sum));
  }
  return Status::Ok();
}

}  // namespace heddle::gradient
