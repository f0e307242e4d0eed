#include "passes/partition.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "core/op_traits.h"
#include "core/shape_context.h"

namespace heddle::passes {
namespace {

std::string_view KindOf(std::string_view device) {
  return device.substr(0, std::min(device.find(':'), device.size()));
}

size_t NumberOf(std::string_view device) {
  const size_t colon = device.find(':');
  size_t number = 0;
  if (colon != std::string_view::npos)
    std::from_chars(device.data() + colon + 1, device.data() + device.size(), number);
  return number;
}

}  // namespace

DeclaredCall::DeclaredCall(const ir::Program& program, const ir::Op& op) {
  op_.def = op.def;
  op_.attrs = op.attrs.data();
  const auto bind = [&](const std::vector<std::vector<ir::VarId>>& slots, size_t count,
                        IdList* begin, IdList* list) {
    begin->push_back(0);
    for (size_t s = 0; s < count; ++s) {
      for (ir::VarId v : slots[s]) {
        if (v == ir::kNoVar) {
          list->push_back(kNoSlot);
          continue;
        }
        const ir::Var& var = program.vars[v];
        Tensor tensor;
        tensor.SetMeta(var.dtype, var.shape);
        static_ = static_ && var.dtype != DType::kUnknown && var.shape.is_static();
        list->push_back(static_cast<uint32_t>(values_.size()));
        values_.emplace_back(std::move(tensor));
      }
      begin->push_back(static_cast<uint32_t>(list->size()));
    }
  };
  bind(op.inputs, op.def->inputs().size(), &op_.in_begin, &op_.in);
  bind(op.outputs, op.def->outputs().size(), &op_.out_begin, &op_.out);
  for (Value& v : values_) frame_.push_back(&v);
}

std::string PlaceOf(const ir::Op& op, const std::vector<DeviceView>& devices) {
  if (devices.empty() || KindOf(op.device) == "cpu") return "cpu";
  if (op.device.empty()) return "";
  const size_t number = devices.size() == 1 ? 0 : NumberOf(op.device);
  return number < devices.size() ? devices[number].place : "";
}

std::string DeviceText(const ir::Program& program, const std::string& place,
                       const std::vector<DeviceView>& devices) {
  if (place == "cpu") return place;
  for (size_t k = 0; k < devices.size(); ++k) {
    if (devices[k].place != place) continue;
    // All devices of a program are of one kind.
    for (const ir::Op& op : program.blocks[0].ops)
      if (!op.device.empty() && KindOf(op.device) != "cpu")
        return devices.size() == 1 ? std::string(KindOf(op.device))
                                   : std::string(KindOf(op.device)) + ":" + std::to_string(k);
    return place;
  }
  return "";
}

void Partition(const std::vector<DeviceView>& devices, ir::Program* program) {
  auto& ops = program->blocks[0].ops;
  if (devices.empty() || std::any_of(ops.begin(), ops.end(), [](const ir::Op& op) {
        return (op.def->traits() & (kToHost | kToDevice)) != 0;
      }))
    return;
  const std::string first = DeviceText(*program, devices[0].place, devices);
  for (ir::Op& op : ops) {
    if (!op.device.empty()) continue;
    const bool stays = op.def->has(kControlFlow) || op.def->has(kSideEffect);
    const DeclaredCall call(*program, op);
    op.device = !stays && devices[0].has_kernel(call.op(), call.frame()) ? first : "cpu";
  }
}

double CostNs(const ir::Program& program, const ir::Op& op) {
  // As in plans, for operators without a cost function.
  constexpr double kCallNs = 30, kNsPerByte = 0.05;
  const DeclaredCall call(program, op);
  if (!call.is_static()) return 0;
  if (op.def->cost() != nullptr) {
    ShapeContext context(call.op(), call.frame());
    return op.def->cost()(context);
  }
  double bytes = 0;
  for (const auto* slots : {&op.inputs, &op.outputs})
    for (const auto& slot : *slots)
      for (ir::VarId v : slot)
        if (v != ir::kNoVar)
          bytes += static_cast<double>(program.vars[v].shape.numel()) *
                   static_cast<double>(SizeOf(program.vars[v].dtype));
  return kCallNs + kNsPerByte * bytes;
}

}  // namespace heddle::passes
