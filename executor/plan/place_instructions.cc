#include "executor/plan/place_instructions.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>
#include <random>
#include <string_view>

#include "core/error.h"
#include "core/op_traits.h"
#include "device/device.h"
#include "executor/plan/block_access.h"

namespace heddle {

const OpDef& CopyDef() {
  static const OpDef def = [] {
    OpDef d("copy");
    d.Input("X").Output("Out");
    return d;
  }();
  return def;
}

const OpDef& AwaitDef() {
  static const OpDef def = [] {
    OpDef d("await");
    d.Input("X").Output("Out");
    return d;
  }();
  return def;
}

bool IsPeerCopy(const Plan& plan, const Instruction& in) {
  return in.op.def == &CopyDef() && plan.slots[in.op.in[0]].place != kOnHost &&
         plan.slots[in.op.out[0]].place != kOnHost;
}

namespace {

// The place that an operator's attribute op_device names.
struct NamedPlace {
  std::string_view kind, index;  // of "gpu:3"; no index: any
};
NamedPlace ParsePlace(std::string_view name) {
  const size_t colon = std::min(name.find(':'), name.size());
  std::string_view index = name.substr(std::min(colon + 1, name.size()));
  if (index == "all") index = {};
  return {name.substr(0, colon), index};
}
bool IsHost(std::string_view name) { return ParsePlace(name).kind == "cpu"; }
// Of what is no number: the first.
size_t NumberOf(const NamedPlace& place) {
  size_t number = 0;
  std::from_chars(place.index.data(), place.index.data() + place.index.size(), number);
  return number;
}

// With one device in the executor, the operators' devices are one: it is that, whatever its number.
Status CheckOneDevice(const ir::Program& program) {
  const ir::Op *kind = nullptr, *index = nullptr;  // the first to name one
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

// With several devices, those of one kind are the executor's by their number.
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
  explicit Placer(const PlanDraft& d)
      : d_(d),
        plan_(*d.plan),
        place_of_(plan_.slots.size(), kOnHost),
        random_(d.request.placement_seed),
        tensor_(plan_.slots.size(), true) {
    for (size_t i = 0; i < plan_.feeds.size(); ++i)
      tensor_[plan_.feeds[i].slot] = d.request.feeds[i].kind == Value::Kind::kTensor;
  }

  std::vector<uint8_t> Run() {
    if (d_.request.placement == Placement::kDevice) FollowCopies();
    std::vector<uint8_t> place;
    for (const Instruction& in : plan_.blocks[0].instructions) {
      place.push_back(PlaceOf(in, place.size()));
      for (uint32_t s : in.op.out)
        if (s != kNoSlot) place_of_[s] = place.back();
    }
    return place;
  }

 private:
  // The place to which a copy of the program moves its operand.
  static std::optional<uint8_t> TargetOf(const Instruction& in) {
    const unsigned traits = in.op.def->traits() & (kToHost | kToDevice);
    if (traits == 0) return std::nullopt;
    if (traits == kToHost) return kOnHost;
    if (traits == kToDevice) return kOnDevice;
    const int64_t type = std::get<int64_t>(in.op.attrs[in.op.def->FindAttr("dst_place_type")]);
    if (type < 0) return std::nullopt;
    return type == 0 || type == 2 ? kOnHost : kOnDevice;
  }

  // The source of a copy between places is computed at the other place, and so are the operators
  // that lead to it, back to earlier copies. Operators that lead to no copy run at the place to
  // which the last copy moves. A copy itself counts to its source's place: its reader moves the
  // value.
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
    if (!MayMove(in)) return kOnHost;
    const uint8_t wanted = Wanted(in, at);
    if (wanted != kOnHost && HasKernel(in, wanted)) return wanted;
    return kOnHost;
  }
  uint8_t Wanted(const Instruction& in, size_t at) {
    const std::string& named = d_.program.blocks[0].ops[static_cast<size_t>(in.ir_op)].device;
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
    for (uint32_t s : in.op.in)
      if (s != kNoSlot && !IsTensor(s)) return false;
    for (uint32_t s : in.op.out) {
      if (s == kNoSlot) continue;
      const Slot& slot = plan_.slots[s];
      const bool in_place = is_static && slot.storage == Storage::kScope;
      if (!IsTensor(s) || (!slot.versioned && !in_place)) return false;
    }
    return !OnlyShapes(in);
  }

  // Only shapes of values on the host are read: the answer is at hand there.
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

  const PlanDraft& d_;
  const Plan& plan_;
  std::vector<uint8_t> place_of_;  // per slot: where it is written
  std::mt19937_64 random_;
  std::vector<uint8_t> followed_;  // per instruction: its place by copies; empty: there are none
  std::vector<bool> tensor_;       // false: fed with something else
};

class CopyInserter {
 public:
  CopyInserter(PlanDraft& d, std::vector<uint8_t>* place,
               std::vector<std::pair<uint32_t, uint32_t>>* resident)
      : d_(d),
        plan_(*d.plan),
        place_(*place),
        resident_(*resident),
        blocks_(plan_),
        twins_(d.request.devices.size(), std::vector<uint32_t>(plan_.slots.size(), kNoSlot)),
        valid_(plan_.slots.size(), kHostBit) {}

  void Run() {
    // The accesses of sub-blocks are computed before any instruction moves.
    auto ins = std::move(plan_.blocks[0].instructions);
    const std::vector<uint8_t> wanted = std::move(place_);
    place_.clear();
    for (size_t i = 0; i < ins.size(); ++i) {
      at_ = &ins[i];
      if (wanted[i] == kOnHost)
        OnHost(&ins[i]);
      else
        OnDevice(&ins[i], wanted[i]);
      Emit(std::move(ins[i]), wanted[i]);
      last_op_ = out_.back().ir_op;
    }
    at_ = nullptr;
    for (const PlanFetch& f : plan_.fetches) Need(f.slot, kOnHost);
    for (uint32_t s : plan_.scope_slots) Need(s, kOnHost);
    plan_.blocks[0].instructions = std::move(out_);
  }

 private:
  static constexpr uint32_t kHostBit = 1u << kOnHost;

  // Slots made after the start are the device's own.
  uint32_t AddSlot(const Slot& slot) {
    const auto s = static_cast<uint32_t>(plan_.slots.size());
    plan_.slots.push_back(slot);
    plan_.constant.push_back(false);
    d_.fetched.push_back(false);
    return s;
  }

  // The slot's counterpart on a device.
  uint32_t Twin(uint32_t s, uint8_t place) {
    uint32_t& twin = twins_[place - kOnDevice][s];
    if (twin != kNoSlot) return twin;
    Slot slot = plan_.slots[s];
    slot.storage = Storage::kPool;
    slot.place = place;
    return twin = AddSlot(slot);
  }
  // The place that holds the present contents, if the host does not.
  uint8_t DeviceWith(uint32_t s) const {
    return static_cast<uint8_t>(std::countr_zero(valid_[s] & ~kHostBit));
  }

  // A device that holds the present contents and that the device at `place` can copy from. The
  // host, if it holds them too or if no such device exists.
  uint8_t PeerWith(uint32_t s, uint8_t place) const {
    const auto& devices = d_.request.devices;
    if (valid_[s] & kHostBit) return kOnHost;
    for (size_t k = 0; k < devices.size(); ++k)
      if ((valid_[s] >> (kOnDevice + k) & 1) != 0 &&
          devices[place - kOnDevice]->CanReach(*devices[k]))
        return static_cast<uint8_t>(kOnDevice + k);
    return kOnHost;
  }

  // The slot to read at `place`, after a copy where one is needed.
  uint32_t Need(uint32_t s, uint8_t place) {
    if (s == kNoSlot || plan_.slots[s].storage == Storage::kShape) return s;
    const uint32_t bit = 1u << place;
    const uint32_t there = place == kOnHost ? s : Twin(s, place);
    if (valid_[s] & bit) return there;
    // From device to device where one can read the other's memory, else by way of the host.
    const uint8_t source = place == kOnHost ? DeviceWith(s) : PeerWith(s, place);
    if (source == kOnHost) Need(s, kOnHost);
    const uint32_t from = source == kOnHost ? s : Twin(s, source);
    valid_[s] |= bit;
    if (place != kOnHost && plan_.constant[s]) {
      plan_.constant[there] = true;
      plan_.slots[there].versioned = false;  // stays when its last reader is done
      resident_.emplace_back(s, there);
      return there;
    }
    Instruction copy;
    copy.mode = Instruction::Mode::kPooled;
    copy.op.def = &CopyDef();
    copy.op.in_begin = {0, 1};
    copy.op.out_begin = {0, 1};
    copy.op.in = {from};
    copy.op.out = {there};
    copy.ir_op = at_ != nullptr ? at_->ir_op : last_op_;
    Emit(std::move(copy), place);
    return there;
  }

  void Emit(Instruction in, uint8_t place) {
    out_.push_back(std::move(in));
    place_.push_back(place);
  }

  void OnHost(Instruction* in) {
    for (size_t i = 0; i + 1 < in->op.in_begin.size(); ++i) {
      const auto& slots = in->op.def->inputs();
      const bool shape_only = i < slots.size() && (slots[i].flags & kNoBuffer) != 0;
      for (uint32_t k = in->op.in_begin[i]; k < in->op.in_begin[i + 1]; ++k) {
        uint32_t& s = in->op.in[k];
        // Dtype and shape can be read off the value on the device as well.
        if (shape_only && s != kNoSlot && !(valid_[s] & kHostBit) &&
            !in->op.def->has(kControlFlow) && !IsOutput(*in, s))
          s = Twin(s, DeviceWith(s));
        else
          s = Need(s, kOnHost);
      }
    }
    for (int b : BlocksOf(plan_, *in)) {
      for (uint32_t s : blocks_.Of(b).reads) Need(s, kOnHost);
      for (uint32_t s : blocks_.Of(b).writes) Need(s, kOnHost);
      for (uint32_t s : blocks_.Of(b).writes) valid_[s] = kHostBit;
    }
    for (uint32_t s : in->op.out)
      if (s != kNoSlot) valid_[s] = kHostBit;
    for (const auto& r : in->rewrites) valid_[r.real] = kHostBit;
  }

  static bool IsOutput(const Instruction& in, uint32_t slot) {
    for (uint32_t s : in.op.out)
      if (s == slot) return true;
    return false;
  }

  void OnDevice(Instruction* in, uint8_t place) {
    const auto& inputs = in->op.def->inputs();
    const bool dynamic = in->mode != Instruction::Mode::kStatic;
    std::vector<uint32_t> read_by_host;
    for (size_t i = 0; i < inputs.size(); ++i) {
      for (uint32_t k = in->op.in_begin[i]; k < in->op.in_begin[i + 1]; ++k) {
        uint32_t& s = in->op.in[k];
        if (s == kNoSlot) continue;
        if (dynamic && ((inputs[i].flags & kShapeValue) != 0)) {
          Await(s);
          read_by_host.push_back(s);
        }
        s = Need(s, place);
      }
    }
    // Behind the operands: what the host looks at when it infers shapes.
    for (uint32_t s : read_by_host) in->op.in.push_back(s);
    for (uint32_t token : tokens_) in->op.in.push_back(token);
    tokens_.clear();
    for (uint32_t& s : in->op.out) {
      if (s == kNoSlot) continue;
      const uint32_t t = Twin(s, place);
      valid_[s] = 1u << place;
      s = t;
    }
  }

  // The host has the slot's contents before it comes to the present instruction.
  void Await(uint32_t s) {
    if (plan_.constant[s]) return;
    Need(s, kOnHost);
    Slot token;
    token.var = plan_.slots[s].var;
    token.versioned = true;
    const uint32_t t = AddSlot(token);
    Instruction await;
    await.mode = Instruction::Mode::kPooled;
    await.op.def = &AwaitDef();
    await.op.in_begin = {0, 1};
    await.op.out_begin = {0, 1};
    await.op.in = {s};
    await.op.out = {t};
    await.ir_op = at_->ir_op;
    Emit(std::move(await), kOnHost);
    tokens_.push_back(t);
  }

  PlanDraft& d_;
  Plan& plan_;
  std::vector<uint8_t>& place_;
  std::vector<std::pair<uint32_t, uint32_t>>& resident_;
  BlockAccess blocks_;
  std::vector<std::vector<uint32_t>> twins_;  // per device and slot of the host
  std::vector<uint32_t> valid_;               // places that have the slot's present contents
  std::vector<Instruction> out_;
  std::vector<uint32_t> tokens_;
  const Instruction* at_ = nullptr;
  int last_op_ = 0;
};

}  // namespace

Result<std::vector<uint8_t>> PlaceInstructions(const PlanDraft& draft) {
  const size_t devices = draft.request.devices.size();
  if (devices > kMostDevices)
    return InvalidArgument("the executor has ", devices, " devices, at most ", kMostDevices,
                           " are possible");
  HEDDLE_RETURN_IF_ERROR(devices == 1 ? CheckOneDevice(draft.program)
                                      : CheckNumbers(draft.program, devices));
  return Placer(draft).Run();
}

void InsertCopies(PlanDraft& draft, std::vector<uint8_t>* place,
                  std::vector<std::pair<uint32_t, uint32_t>>* resident) {
  CopyInserter(draft, place, resident).Run();
}

// Operands lie at the place of their instruction; a copy has one operand at each place.
Status CheckPlaces(const Plan& plan, const std::vector<uint8_t>& place) {
  const auto& ins = plan.blocks[0].instructions;
  size_t misplaced = ins.size() == place.size() ? 0 : ins.size();
  const Instruction* first = ins.empty() ? nullptr : &ins[0];
  for (size_t i = 0; i < ins.size() && i < place.size(); ++i) {
    const Instruction& in = ins[i];
    const bool copy = in.op.def == &CopyDef();
    const auto fits = [&](uint32_t s, uint8_t wanted) {
      return s == kNoSlot || plan.slots[s].storage == Storage::kShape ||
             plan.slots[s].place == wanted;
    };
    bool all = true;
    for (size_t k = 0; k < in.op.in_begin.back(); ++k) {
      const uint32_t s = in.op.in[k];
      // The host may look at the shape of what lies on the device.
      const bool elsewhere = copy && s != kNoSlot && plan.slots[s].place != place[i];
      all = all && (elsewhere || (!copy && fits(s, place[i])) ||
                    (!copy && place[i] == kOnHost && !PlanDraft::ReadsContents(in, s)));
    }
    for (uint32_t s : in.op.out) all = all && fits(s, place[i]);
    if (all) continue;
    if (misplaced++ == 0) first = &in;
  }
  if (misplaced == 0) return Status::Ok();
  return Internal(misplaced, " of ", ins.size(),
                  " instructions have operands at another place than ",
                  "theirs: all or none are to have a place")
      .At(plan.Locate(*first));
}

}  // namespace heddle
