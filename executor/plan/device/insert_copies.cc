#include "executor/plan/device/insert_copies.h"

#include <bit>
#include <map>
#include <utility>

#include "core/error.h"
#include "core/programs/sub_block_slots.h"
#include "device/device.h"
#include "executor/plan/block_access.h"
#include "executor/plan/device/device_bodies.h"

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

const OpDef& MarkDef() {
  static const OpDef def("mark");
  return def;
}

bool IsAdded(const Instruction& in) {
  return in.op.def == &CopyDef() || in.op.def == &AwaitDef() || in.op.def == &MarkDef();
}

bool IsPeerCopy(const Plan& plan, const Instruction& in) {
  return in.op.def == &CopyDef() && plan.slots[in.op.in[0]].place != kOnHost &&
         plan.slots[in.op.out[0]].place != kOnHost;
}

namespace {

class CopyInserter {
 public:
  CopyInserter(PlanDraft& d, Places* places, std::vector<std::pair<uint32_t, uint32_t>>* resident)
      : d_(d),
        plan_(*d.plan),
        places_(*places),
        resident_(*resident),
        blocks_(plan_),
        twins_(d.request.devices.size(), std::vector<uint32_t>(plan_.slots.size(), kNoSlot)),
        valid_(plan_.slots.size(), kHostBit),
        copied_out_(plan_.slots.size(), false),
        uses_(plan_.blocks.size()) {
    for (const Slot& slot : plan_.slots) written_.push_back(slot.storage != Storage::kPool);
  }

  void Run() {
    // The accesses of sub-blocks are gathered before any instruction moves.
    for (size_t b = 1; b < plan_.blocks.size(); ++b)
      if (d_.RunsOnDevice(static_cast<int>(b))) Gather(static_cast<int>(b));
    auto ins = std::move(plan_.blocks[0].instructions);
    const std::vector<uint8_t> wanted = std::move(places_[0]);
    Visit(&ins, wanted);
    at_ = nullptr;
    for (const PlanFetch& f : plan_.fetches) Need(f.slot, kOnHost);
    for (uint32_t s : plan_.scope_slots) Need(s, kOnHost);
    plan_.blocks[0].instructions = std::move(out_);
    places_[0] = std::move(place_);
  }

 private:
  static constexpr uint32_t kHostBit = 1u << kOnHost;

  // How a block on a device, with the blocks inside it, uses a slot.
  struct Use {
    uint32_t head = 0;  // places that read the value from before the block
    uint32_t last = 0;  // places that have the value after the block
    bool written = false;
    // The places that have the value whenever the block begins, and after its end.
    uint32_t places() const { return head != 0 ? head : last; }
  };
  using Uses = std::map<uint32_t, Use>;

  // Precondition: a device executes the block.
  const Uses& Gather(int b) {
    if (!uses_[b].empty()) return uses_[b];
    Uses uses;
    const auto read = [&](uint32_t s, uint32_t places) {
      if (s == kNoSlot || plan_.slots[s].storage == Storage::kShape) return;
      if (Use& use = uses[s]; !use.written) use.head |= places;
    };
    const auto write = [&](uint32_t s, uint32_t places) {
      if (s == kNoSlot) return;
      uses[s].written = true;
      uses[s].last = places;
    };
    for (size_t i = 0; i < places_[b].size(); ++i) {
      const Instruction& in = plan_.blocks[b].instructions[i];
      const uint32_t place = 1u << places_[b][i];
      if (in.op.def->has(kControlFlow)) {
        read(ConditionOf(in), kHostBit);
        for (const auto& [s, use] : Gather(BlocksOf(plan_, in)[0])) {
          if (HasBefore(s, use)) read(s, use.places());
          if (use.written) write(s, use.places());
        }
        continue;
      }
      for (uint32_t s : in.op.in) read(s, place);
      for (uint32_t s : in.op.out) write(s, place);
      for (const auto& r : in.rewrites) write(r.real, place);
    }
    return uses_[b] = std::move(uses);
  }

  void Visit(std::vector<Instruction>* instructions, const std::vector<uint8_t>& wanted) {
    for (size_t i = 0; i < instructions->size(); ++i) {
      Instruction& in = (*instructions)[i];
      at_ = &in;
      if (wanted[i] == kOnHost)
        OnHost(&in);
      else if (in.op.def->has(kControlFlow))
        WithBody(&in, wanted[i]);
      else
        OnDevice(&in, wanted[i]);
      at_ = &in;
      last_op_ = in.ir_op;
      Emit(std::move(in), wanted[i]);
    }
  }

  // Visits an operator whose kernel, on the host, decides whether its block runs on the device.
  void WithBody(Instruction* in, uint8_t place) {
    const int body = BlocksOf(plan_, *in)[0];
    const bool again = ir::RunsAgain(*in->op.def);
    Uses uses = uses_[body];
    const uint32_t condition = ConditionOf(*in);
    if (again || uses.contains(condition)) uses[condition].head |= kHostBit;
    for (const auto& [s, use] : uses) {
      if (HasBefore(s, use)) BringTo(s, use.places());
      // The block reads it in each iteration, so none of its readers may release it.
      if (use.head >> place & 1) plan_.slots[Twin(s, place)].crosses = true;
    }
    AwaitCopied(condition);
    std::vector<uint32_t> tokens = std::exchange(tokens_, {});
    for (uint32_t& s : in->op.in)
      if (s != condition) s = kNoSlot;
    for (uint32_t& s : in->op.out) s = kNoSlot;
    for (uint32_t token : tokens) in->op.in.push_back(token);

    auto out = std::exchange(out_, {});
    auto outside = std::exchange(place_, {});
    const int block = std::exchange(block_, body);
    for (const auto& [s, use] : uses) {
      if (!use.written) continue;
      valid_[s] = use.places();
      written_[s] = true;
    }
    EmitMark(place);
    auto instructions = std::move(plan_.blocks[body].instructions);
    const std::vector<uint8_t> wanted = std::move(places_[body]);
    Visit(&instructions, wanted);
    at_ = nullptr;
    // A further iteration must find the values that the host reads on the host.
    for (const auto& [s, use] : uses)
      if (use.written) again ? BringTo(s, use.places()) : NeedAt(s, use.places());
    EmitMark(place);
    plan_.blocks[body].instructions = std::move(out_);
    places_[body] = std::move(place_);
    out_ = std::move(out);
    place_ = std::move(outside);
    block_ = block;
    for (const auto& [s, use] : uses)
      if (use.written) valid_[s] = use.places();
  }
  // Whether the slot has a value before the block: not if it has one version, which the block
  // writes.
  bool HasBefore(uint32_t s, const Use& use) const {
    return use.head != 0 || !plan_.slots[s].versioned;
  }
  void NeedAt(uint32_t s, uint32_t places) {
    if (!written_[s]) {  // no value to copy yet
      valid_[s] |= places;
      return;
    }
    for (uint8_t place = 0; places >> place != 0; ++place)
      if ((places >> place & 1) != 0) Need(s, place);
  }
  // The same; the host also waits for a copy to it.
  void BringTo(uint32_t s, uint32_t places) {
    NeedAt(s, places & ~kHostBit);
    if ((places & kHostBit) != 0) AwaitCopied(s);
  }
  void AwaitCopied(uint32_t s) {
    Need(s, kOnHost);
    if (!copied_out_[s]) return;
    Await(s);
    copied_out_[s] = false;
  }
  void EmitMark(uint8_t place) {
    Instruction mark;
    mark.mode = Instruction::Mode::kPooled;
    mark.op.def = &MarkDef();
    mark.op.in_begin = {0};
    mark.op.out_begin = {0};
    for (uint32_t token : std::exchange(tokens_, {})) mark.op.in.push_back(token);
    mark.ir_block = block_;
    mark.ir_op = last_op_;
    Emit(std::move(mark), place);
  }

  // Adds a slot of the device; the host has no value of it.
  uint32_t AddSlot(const Slot& slot) {
    const auto s = static_cast<uint32_t>(plan_.slots.size());
    plan_.slots.push_back(slot);
    plan_.constant.push_back(false);
    d_.fetched.push_back(false);
    copied_out_.push_back(false);
    valid_.push_back(kHostBit);
    written_.push_back(true);
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
  // The device with the present contents, if the host does not have them.
  uint8_t DeviceWith(uint32_t s) const {
    return static_cast<uint8_t>(std::countr_zero(valid_[s] & ~kHostBit));
  }

  // A device that has the present contents and from which the device at `place` can copy. kOnHost
  // if the host has them too, or if there is no such device.
  uint8_t PeerWith(uint32_t s, uint8_t place) const {
    const auto& devices = d_.request.devices;
    if (valid_[s] & kHostBit) return kOnHost;
    for (size_t k = 0; k < devices.size(); ++k)
      if ((valid_[s] >> (kOnDevice + k) & 1) != 0 &&
          devices[place - kOnDevice]->CanReach(*devices[k]))
        return static_cast<uint8_t>(kOnDevice + k);
    return kOnHost;
  }

  // The slot to read at `place`, after adding a copy if it is needed.
  uint32_t Need(uint32_t s, uint8_t place) {
    if (s == kNoSlot || plan_.slots[s].storage == Storage::kShape) return s;
    const uint32_t bit = 1u << place;
    const uint32_t there = place == kOnHost ? s : Twin(s, place);
    if (valid_[s] & bit) return there;
    // Directly from device to device if one can read the other's memory, else through the host.
    const uint8_t source = place == kOnHost ? DeviceWith(s) : PeerWith(s, place);
    if (source == kOnHost) Need(s, kOnHost);
    const uint32_t from = source == kOnHost ? s : Twin(s, source);
    valid_[s] |= bit;
    if (place != kOnHost && plan_.constant[s]) {
      plan_.constant[there] = true;
      plan_.slots[there].versioned = false;  // the copy stays when its last reader is done
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
    if (place != kOnHost && source == kOnHost) AwaitSource(s, &copy);
    copy.ir_block = block_;
    copy.ir_op = at_ != nullptr ? at_->ir_op : last_op_;
    Emit(std::move(copy), place);
    if (place == kOnHost) copied_out_[s] = true;
    return there;
  }

  // The host reads the source of a copy to a device when it comes to the copy. If the source was
  // itself copied from that device, in a body, the host must wait for it. (With several devices the
  // copy waits for the event instead.)
  void AwaitSource(uint32_t s, Instruction* copy) {
    if (!copied_out_[s] || d_.request.devices.size() > 1) return;
    const auto tokens = std::exchange(tokens_, {});
    AwaitCopied(s);
    for (uint32_t token : std::exchange(tokens_, tokens)) copy->op.in.push_back(token);
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
        // Dtype and shape are also known from the value on the device.
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
      for (uint32_t s : blocks_.Of(b).writes) WrittenByHost(s);
    }
    for (uint32_t s : in->op.out)
      if (s != kNoSlot) WrittenByHost(s);
    for (const auto& r : in->rewrites) WrittenByHost(r.real);
  }
  void WrittenByHost(uint32_t s) {
    valid_[s] = kHostBit;
    copied_out_[s] = false;
    written_[s] = true;
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
    // After the operands: the values that the host reads to infer shapes.
    for (uint32_t s : read_by_host) in->op.in.push_back(s);
    for (uint32_t token : tokens_) in->op.in.push_back(token);
    tokens_.clear();
    for (uint32_t& s : in->op.out) {
      if (s == kNoSlot) continue;
      const uint32_t t = Twin(s, place);
      valid_[s] = 1u << place;
      written_[s] = true;
      s = t;
    }
  }

  // Makes the host wait for the slot's contents before the present instruction.
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
    await.ir_block = block_;
    await.ir_op = at_ != nullptr ? at_->ir_op : last_op_;
    Emit(std::move(await), kOnHost);
    tokens_.push_back(t);
  }

  PlanDraft& d_;
  Plan& plan_;
  Places& places_;
  std::vector<std::pair<uint32_t, uint32_t>>& resident_;
  BlockAccess blocks_;
  std::vector<std::vector<uint32_t>> twins_;  // per device and slot of the host
  std::vector<uint32_t> valid_;               // per slot: places with its present contents, as bits
  std::vector<bool> copied_out_;  // per slot: the host's contents are a copy not yet awaited
  // Per slot: it has contents, from an instruction so far or from before the run.
  std::vector<bool> written_;
  std::vector<Uses> uses_;        // per block on a device
  std::vector<Instruction> out_;  // the present block's instructions; place_ has their places
  std::vector<uint8_t> place_;
  std::vector<uint32_t> tokens_;
  int block_ = 0;
  const Instruction* at_ = nullptr;
  int last_op_ = 0;
};

}  // namespace

void InsertCopies(PlanDraft& draft, Places* places,
                  std::vector<std::pair<uint32_t, uint32_t>>* resident) {
  CopyInserter(draft, places, resident).Run();
}

// Operands must lie at their instruction's place; a copy has one operand at each place. An operator
// that runs a block keeps only its condition, on the host.
Status CheckPlaces(const Plan& plan, const Places& places) {
  size_t misplaced = 0, count = 0;
  const Instruction* first = nullptr;
  for (size_t b = 0; b < places.size(); ++b) {
    const auto& ins = plan.blocks[b].instructions;
    const std::vector<uint8_t>& place = places[b];
    if (b > 0 && place.empty()) continue;
    count += ins.size();
    if (ins.size() != place.size()) {
      misplaced += ins.size();
      if (first == nullptr && !ins.empty()) first = &ins[0];
    }
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
        // The host may read the shape of a device value.
        const bool elsewhere = copy && s != kNoSlot && plan.slots[s].place != place[i];
        const bool condition = in.op.def->has(kControlFlow) && fits(s, kOnHost);
        all = all && (elsewhere || condition || (!copy && fits(s, place[i])) ||
                      (!copy && place[i] == kOnHost && !PlanDraft::ReadsContents(in, s)));
      }
      for (uint32_t s : in.op.out) all = all && fits(s, place[i]);
      if (all) continue;
      if (misplaced++ == 0) first = &in;
    }
  }
  if (misplaced == 0) return Status::Ok();
  return Internal(misplaced, " of ", count, " instructions have operands at another place than ",
                  "theirs: all or none are to have a place")
      .At(plan.Locate(*first));
}

}  // namespace heddle
