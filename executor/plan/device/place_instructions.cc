#include "executor/plan/device/place_instructions.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <random>
#include <string_view>

#include "core/error.h"
#include "core/op_traits.h"
#include "device/device.h"
#include "executor/plan/block_access.h"
#include "executor/plan/device/device_bodies.h"

namespace heddle {

namespace {

// The place that an operator's attribute op_device names.
struct NamedPlace {
  std::string_view kind, index;  // of "gpu:3"; an empty index: any
};
NamedPlace ParsePlace(std::string_view name) {
  const size_t colon = std::min(name.find(':'), name.size());
  std::string_view index = name.substr(std::min(colon + 1, name.size()));
  if (index == "all") index = {};
  return {name.substr(0, colon), index};
}
bool IsHost(std::string_view name) { return ParsePlace(name).kind == "cpu"; }
// The index as a number; 0 if it is none.
size_t NumberOf(const NamedPlace& place) {
  size_t number = 0;
  std::from_chars(place.index.data(), place.index.data() + place.index.size(), number);
  return number;
}

// If the executor has one device, all operators must name the same device: it stands for that one,
// whatever its number.
Status CheckOneDevice(const ir::Program& program) {
  // The first operators to name a kind and an index.
  const ir::Op *kind = nullptr, *index = nullptr;
  for (const ir::Op& op : program.blocks[0].ops) {
    if (op.device.empty() || IsHost(op.device)) continue;
    const NamedPlace place = ParsePlace(op.device);
    if (kind == nullptr) kind = &op;
    if (index == nullptr && !place.index.empty()) index = &op;
    const bool other_kind = ParsePlace(kind->device).kind != place.kind;
    if (!other_kind && (place.index.empty() || ParsePlace(index->device).index == place.index))
      continue;
    const ir::Op& first = other_kind ? *kind : *index;
    return Unimplemented("is to run on '", op.device, "', and operator ", first.type(),
                         " before it", " on '", first.device, "': the executor has one device")
        .At(program.Locate(0, op));
  }
  return Status::Ok();
}

// If the executor has several devices, operators must name one kind of device, and numbers that
// exist.
Status CheckNumbers(const ir::Program& program, size_t devices) {
  const ir::Op* first = nullptr;
  for (const ir::Op& op : program.blocks[0].ops) {
    if (op.device.empty() || IsHost(op.device)) continue;
    const NamedPlace place = ParsePlace(op.device);
    if (first == nullptr) first = &op;
    if (ParsePlace(first->device).kind != place.kind)
      return Unimplemented("is to run on '", op.device, "', and operator ", first->type(),
                           " before it on '", first->device, "': devices are of one kind")
          .At(program.Locate(0, op));
    if (!place.index.empty() && NumberOf(place) >= devices)
      return InvalidArgument("is to run on '", op.device, "': the executor has ", devices,
                             " devices, from ", place.kind, ":0 on")
          .At(program.Locate(0, op));
  }
  return Status::Ok();
}

class Placer {
 public:
  explicit Placer(PlanDraft& d)
      : d_(d),
        plan_(*d.plan),
        access_(plan_),
        place_of_(plan_.slots.size(), kOnHost),
        random_(d.request.placement_seed),
        tensor_(plan_.slots.size(), true) {
    for (size_t i = 0; i < plan_.feeds.size(); ++i)
      tensor_[plan_.feeds[i].slot] = d.request.feeds[i].kind == Value::Kind::kTensor;
  }

  Places Run() {
    if (d_.request.placement == Placement::kDevice) FollowCopies();
    places_.resize(plan_.blocks.size());
    d_.device_bodies.assign(plan_.blocks.size(), false);
    PlaceBlock(0);
    return std::move(places_);
  }

 private:
  static constexpr int64_t kSmall = 1;  // elements

  void PlaceBlock(int b) {
    std::vector<uint8_t>& place = places_[b];
    place.clear();
    for (const Instruction& in : plan_.blocks[b].instructions) {
      place.push_back(PlaceOf(in, place.size()));
      if (in.op.def->has(kControlFlow) && place.back() != kOnHost) {
        // The host has waited for the condition, so what it computes from it needs no copy back.
        if (IsSmall(ConditionOf(in))) place_of_[ConditionOf(in)] = kOnHost;
        has_bodies_ = true;
        continue;
      }
      for (uint32_t s : in.op.out)
        if (s != kNoSlot) place_of_[s] = place.back();
      for (const auto& r : in.rewrites) place_of_[r.real] = place.back();
    }
  }

  // Places the instructions of a block, if a device is to execute it. At first, variables of one
  // element are assumed to be on the host whenever the block begins, so that counters and
  // conditions stay there. An assumption that turns out wrong is dropped, and the block is placed
  // again.
  bool PlaceBody(const Instruction& in, uint8_t place) {
    const int b = FindBody(d_, access_, in);
    if (b < 0 || d_.request.devices.size() != 1 || !followed_.empty()) return false;
    const std::vector<uint8_t> outside = place_of_;
    std::vector<uint32_t> rewritten;
    for (uint32_t s : access_.Of(b).writes)
      if (!plan_.slots[s].versioned) rewritten.push_back(s);
    std::vector<bool> on_device(plan_.slots.size(), false);
    for (uint32_t s : rewritten) on_device[s] = !IsSmall(s);
    for (bool settled = false; !settled;) {
      place_of_ = outside;
      for (uint32_t s : rewritten) place_of_[s] = on_device[s] ? place : uint8_t{kOnHost};
      PlaceBlock(b);
      settled = true;
      for (uint32_t s : rewritten) {
        if (on_device[s] || place_of_[s] == kOnHost) continue;
        on_device[s] = true;
        settled = false;
      }
    }
    if (IsWorthIt(b)) return d_.device_bodies[b] = true;
    LeaveToHost(b);
    place_of_ = outside;
    for (uint32_t s : access_.Of(b).writes) place_of_[s] = kOnHost;
    return false;
  }
  void LeaveToHost(int b) {
    places_[b].clear();
    d_.device_bodies[b] = false;
    for (const Instruction& in : plan_.blocks[b].instructions)
      for (int inner : BlocksOf(plan_, in)) LeaveToHost(inner);
  }

  // Whether the device gets at least half of the block's work, by the estimates. Not if an operator
  // inside runs a block on the host.
  bool IsWorthIt(int b) const {
    const auto& ins = plan_.blocks[b].instructions;
    double host_ns = 0, device_ns = 0;
    for (size_t i = 0; i < ins.size(); ++i) {
      const bool on_host = places_[b][i] == kOnHost;
      if (on_host && ins[i].op.def->has(kControlFlow)) return false;
      (on_host ? host_ns : device_ns) += static_cast<double>(ins[i].cost_ns);
    }
    if (d_.request.placement == Placement::kRandom) return device_ns > 0;
    return device_ns > 0 && device_ns >= host_ns;
  }

  bool IsSmall(uint32_t s) const {
    const Slot& slot = plan_.slots[s];
    return slot.is_static && slot.shape().numel() <= kSmall;
  }
  // Whether the instruction computes values of one element from values of one element on the host.
  bool StaysSmall(const Instruction& in) const {
    for (uint32_t s : in.op.in)
      if (s != kNoSlot && (!IsSmall(s) || place_of_[s] != kOnHost)) return false;
    return std::all_of(in.op.out.begin(), in.op.out.end(),
                       [&](uint32_t s) { return s == kNoSlot || IsSmall(s); });
  }

  // The place to which a copying operator of the program moves its operand.
  static std::optional<uint8_t> TargetOf(const Instruction& in) {
    const unsigned traits = in.op.def->traits() & (kToHost | kToDevice);
    if (traits == 0) return std::nullopt;
    if (traits == kToHost) return kOnHost;
    if (traits == kToDevice) return kOnDevice;
    const int64_t type = std::get<int64_t>(in.op.attrs[in.op.def->FindAttr("dst_place_type")]);
    if (type < 0) return std::nullopt;
    return type == 0 || type == 2 ? kOnHost : kOnDevice;
  }

  // Places instructions by the program's own copies. The source of a copy is computed at the place
  // from which it copies, and so are the operators that it depends on, back to earlier copies.
  // Operators that no copy depends on run at the target of the last copy. A copy itself gets its
  // source's place: its reader then moves the value.
  void FollowCopies() {
    const auto& ins = plan_.blocks[0].instructions;
    std::vector<std::optional<uint8_t>> wanted(plan_.slots.size());
    std::vector<std::optional<uint8_t>> by_copies(ins.size());
    std::optional<uint8_t> last;
    for (size_t i = ins.size(); i-- > 0;) {
      const std::optional<uint8_t> target = TargetOf(ins[i]);
      if (target) {
        by_copies[i] = *target == kOnHost ? kOnDevice : kOnHost;
        if (!last) last = target;
      } else {
        for (uint32_t s : ins[i].op.out)
          if (s != kNoSlot && !by_copies[i]) by_copies[i] = wanted[s];
      }
      if (!by_copies[i]) continue;
      for (uint32_t s : ins[i].op.in)
        if (s != kNoSlot && !wanted[s]) wanted[s] = by_copies[i];
    }
    if (!last) return;
    for (auto& place : by_copies) followed_.push_back(place.value_or(*last));
  }

  uint8_t PlaceOf(const Instruction& in, size_t at) {
    uint32_t from, to;
    if (d_.FindView(in, &from, &to)) return place_of_[from];
    if (in.op.def->has(kControlFlow)) {
      const uint8_t wanted = Wanted(in, at);
      if (wanted != kOnHost && PlaceBody(in, wanted)) return wanted;
      return kOnHost;
    }
    if (!MayMove(in)) return kOnHost;
    const uint8_t wanted = Wanted(in, at);
    if (wanted != kOnHost && HasKernel(in, wanted)) return wanted;
    return kOnHost;
  }
  uint8_t Wanted(const Instruction& in, size_t at) {
    const std::string& named = d_.program.blocks[in.ir_block].ops[in.ir_op].device;
    if (!named.empty()) {
      if (IsHost(named)) return kOnHost;
      if (d_.request.devices.size() == 1) return kOnDevice;
      return static_cast<uint8_t>(kOnDevice + NumberOf(ParsePlace(named)));
    }
    if (!followed_.empty()) return followed_[at];
    switch (d_.request.placement) {
      case Placement::kHost:
        return kOnHost;
      case Placement::kRandom:
        return static_cast<uint8_t>(random_() % (1 + d_.request.devices.size()));
      case Placement::kDevice:
        break;
    }
    return kOnDevice;
  }
  bool HasKernel(const Instruction& in, uint8_t place) const {
    const bool is_static = in.mode == Instruction::Mode::kStatic;
    const Device& device = *d_.request.devices[place - kOnDevice];
    return device.HasKernel(CallView(in.op, d_.frame.data(), is_static));
  }

  bool IsTensor(uint32_t s) const {
    return tensor_[s] && d_.program.vars[plan_.slots[s].var].kind == ir::VarKind::kTensor;
  }

  bool MayMove(const Instruction& in) const {
    if (!in.rewrites.empty() || !in.var_attrs.empty()) return false;
    const bool is_static = in.mode == Instruction::Mode::kStatic;
    const bool inside = in.ir_block != 0;
    if (inside && !is_static) return false;
    if ((inside || has_bodies_) && d_.request.placement == Placement::kDevice && StaysSmall(in))
      return false;
    for (uint32_t s : in.op.in)
      if (s != kNoSlot && !IsTensor(s)) return false;
    for (uint32_t s : in.op.out) {
      if (s == kNoSlot) continue;
      const Slot& slot = plan_.slots[s];
      const bool in_place =
          is_static && (slot.storage == Storage::kScope || inside || MayBeRewritten(s));
      if (!IsTensor(s) || (!slot.versioned && !in_place)) return false;
    }
    return !OnlyShapes(in);
  }

  // Whether an operator outside of bodies may write the variable, which loops on the device use;
  // counters stay on the host.
  bool MayBeRewritten(uint32_t s) const {
    const Slot& slot = plan_.slots[s];
    return slot.storage == Storage::kPool && slot.is_static && !d_.handed[s] && !IsSmall(s);
  }

  // Whether the instruction reads only shapes of values on the host, which has the answer.
  bool OnlyShapes(const Instruction& in) const {
    const auto& inputs = in.op.def->inputs();
    size_t present = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const uint32_t count = in.op.in_begin[i + 1] - in.op.in_begin[i];
      present += count;
      if (count > 0 && (inputs[i].flags & kNoBuffer) == 0) return false;
      for (uint32_t k = in.op.in_begin[i]; k < in.op.in_begin[i + 1]; ++k)
        if (in.op.in[k] != kNoSlot && place_of_[in.op.in[k]] != kOnHost) return false;
    }
    return present > 0;
  }

  PlanDraft& d_;
  const Plan& plan_;
  BlockAccess access_;
  Places places_;
  std::vector<uint8_t> place_of_;  // per slot: the place where it is written
  std::mt19937_64 random_;
  bool has_bodies_ = false;  // a device executes a block so far visited
  // Per instruction: its place by copies; empty: the program has none.
  std::vector<uint8_t> followed_;
  std::vector<bool> tensor_;  // per slot; false: a feed of another kind
};

}  // namespace

Result<Places> PlaceInstructions(PlanDraft& draft) {
  const size_t devices = draft.request.devices.size();
  if (devices > kMostDevices)
    return InvalidArgument("the executor has ", devices, " devices, at most ", kMostDevices,
                           " are possible");
  HEDDLE_RETURN_IF_ERROR(devices == 1 ? CheckOneDevice(draft.program)
                                      : CheckNumbers(draft.program, devices));
  return Placer(draft).Run();
}

}  // namespace heddle
