// Plan: the immutable result of analysing a program for feeds of one signature.
//
// Ownership: a Plan owns no memory of a run. Threads: any number of runs may use one Plan at the
// same time; each has a RunState of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/bound_op.h"
#include "core/memory/bytes.h"
#include "core/programs/ir.h"
#include "core/scalar_steps.h"
#include "core/thread_annotations.h"
#include "executor/plan/calls/function_plan.h"
#include "executor/plan/calls/plan_ports.h"
#include "executor/plan/loops/loop_plan.h"
#include "executor/plan/meta_table.h"
#include "executor/plan/rare_list.h"
#include "executor/plan/shaped_calls.h"
#include "heddle/executor.h"
#include "scheduler/lane_schedule.h"

namespace heddle {

// Where a slot's contents are stored.
enum class Storage : uint8_t {
  kNone,    // nothing is stored: an optional output that is not read
  kFeed,    // the caller's tensor
  kScope,   // a variable of the scope
  kConst,   // a value known when the plan was made
  kArena,   // a fixed offset in the run's arena
  kOutput,  // fresh memory of known size, handed to the caller
  kView,    // another slot's memory, or a part of it, with another shape; bound before the run
  kPool,    // memory taken when the slot is written, released after the last reader
  kShape,   // none: another slot's dtype and shape, for operands of which nothing else is read
  kBound,   // an operand of a function: for each call another slot of the caller
};

// A slot: one version of one variable. A variable that only one block uses gets a slot per write,
// so that versions never interfere; a variable that several blocks use keeps one slot.
struct Slot {
  ir::VarId var = ir::kNoVar;
  Storage storage = Storage::kPool;
  bool versioned = false;  // written once: its contents never change after that
  bool crosses = false;    // several blocks touch it
  bool is_static = false;  // dtype and shape are known before the run
  DType dtype = DType::kUnknown;
  uint32_t base = kNoSlot;      // kView: the slot whose memory it uses
  uint8_t place = 0;            // in a device plan, see device/place_instructions.h
  int home = 0;                 // the block in whose work space it lies, see BlockPlan
  size_t offset = 0;            // kArena: in bytes
  size_t shift = 0;             // of a view: offset from its base, in bytes
  const Value* meta = nullptr;  // is_static: holds the shape, and the strides of a view that has
                                // gaps; the plan's (Plan::metas)
  // Precondition for both: is_static.
  const Shape& shape() const { return meta->tensor().shape(); }
  size_t bytes() const { return BytesFor(dtype, shape()); }
  bool is_dense() const { return meta->tensor().is_contiguous(); }
};

struct Instruction {
  enum class Mode : uint8_t {
    kStatic,   // all operands have shape and memory: only the kernel is called
    kPooled,   // shapes are known, memory for outputs is taken now
    kDynamic,  // shapes are inferred now
    kShare,    // the output is a view of the input
    kReplace,  // kStatic into hidden slots, whose contents then become the variables' (rewrites)
    kWide,     // kStatic, while all other lanes are idle: the kernel may use their threads
    kWhole,    // kStatic, and `whole`; in finished plans only
  };
  KernelFn fn = nullptr;  // null: chosen by dtype at run time
  const KernelState* state = nullptr;
  Mode mode = Mode::kDynamic;
  bool gives_back = false;  // `release` or `reads` is not empty
  bool once = false;        // in a loop's body: only the first iteration executes it
  bool told = false;        // kDynamic: shapes of outputs are expected, see Plan::misjudged
  bool appends = false;     // kDynamic: appends its other inputs to the input in `takeovers`
  bool whole = false;       // not to be interrupted: it writes to a variable of the scope
  bool claims = false;      // the declarations of some results are claims, see Plan::claimed
  bool measured = false;    // cost_ns was measured on its device
  float cost_ns = 0;        // estimate for one thread
  BoundOp op;
  std::shared_ptr<const KernelState> state_owner;
  std::unique_ptr<ShapedCalls> calls;  // kDynamic; nullptr: attributes or blocks matter too
  // An operator that reads and writes one variable writes to the slot `hidden`, whose contents then
  // become those of `real`. `inplace`: it may do so in the same memory.
  struct Rewrite {
    uint32_t hidden, real;
    bool inplace;
  };
  RareList<Rewrite> rewrites;
  // Pairs of positions in op.in and op.out, in turns: the output may take over the input's memory.
  IdList takeovers;
  uint32_t loop = kNoSlot;  // index in Plan::loops
  RareList<int> loops;      // blocks that it runs and that begin with `once` instructions
  // Attributes read from operands after those of the definition's slots: one list for each.
  RareList<int> var_attrs;
  std::unique_ptr<std::vector<AttrValue>> fixed_attrs;  // op.attrs, if variables gave known values
  IdList release;                                       // kPool slots whose last user it is
  IdList reads;                 // kPool slots that it reads and whose readers are counted
  int ir_block = 0, ir_op = 0;  // position in the program, for messages
};

// Its kernel's implementation (KernelState::Facts); empty: there is only one, or not known.
const std::string& ImplementationOf(const Instruction& in);

// How the instructions of block 0 are given to threads.
enum class Dispatch : uint8_t {
  kSerial,  // one after another
  kLanes,   // each thread's instructions, and the waits between lanes, are fixed
  kQueue,   // ready tasks wait in a queue for a free thread
  kDevice,  // one thread goes through them and puts those of a device on its streams
};

// The instructions of one block, in topological order; with lanes, lane after lane.
//
// The static values of a sub-block lie in a work space, which every run of the block reuses. The
// work space is itself a value of the block that runs this one; it is alive while the operator that
// runs the block executes.
struct BlockPlan {
  std::vector<Instruction> instructions;
  size_t once = 0;               // number of instructions at the beginning with Instruction::once
  uint32_t workspace = kNoSlot;  // the slot for its work space; block 0 has the arena instead
  uint32_t function = kNoSlot;   // index in Plan::functions; kNoSlot: it is none
  // Indices in the plan's kept_lists: lists that each run of this block writes first.
  std::vector<uint32_t> fills;
  // For a sub-block with lanes. The order, for one thread, begins with the `once` instructions.
  std::shared_ptr<const LaneSchedule> lanes;
  std::vector<uint32_t> serial_order;
  std::vector<uint32_t> counted_slots;  // slots whose readers each run of the block counts anew
  std::vector<ScalarStep> tail;         // of a loop's body: what its last instructions compute
};

struct DevicePlan;

struct Plan {
  std::shared_ptr<const ir::Program> program;
  std::vector<Slot> slots;
  MetaTable metas;                // dtypes and shapes of static slots
  std::vector<BlockPlan> blocks;  // by block id; blocks that do not run are empty
  Dispatch dispatch = Dispatch::kSerial;
  UnitGraph tasks;                            // kQueue: chains of instructions
  uint64_t shuffle_seed = 0;                  // kQueue, see CompileOptions
  std::shared_ptr<const LaneSchedule> lanes;  // kLanes
  std::vector<uint32_t> serial_order;         // kLanes: block 0 in an order for one thread
  std::shared_ptr<const DevicePlan> device;   // kDevice
  // kSerial: several threads, or lanes in sub-blocks, could be faster by estimated costs.
  bool worth_measuring = false, worth_body_lanes = false;
  int body_lanes = 0;  // kSerial: the largest number of lanes of a sub-block; 0: none has lanes
  bool writes_scope = false;
  std::vector<LoopPlan> loops;
  std::vector<FunctionPlan> functions;
  bool draws_random = false;  // some operator uses the run's generator
  uint32_t shaped_calls = 0;  // number of instructions that keep calls
  // Per variable: its declaration is a claim (passes/facts/declarations.h), with which each result
  // whose shape is found at run time is compared. Null: there is no claim.
  std::shared_ptr<const std::vector<bool>> claimed;
  std::vector<PlanFeed> feeds;
  std::vector<PlanFetch> fetches;
  std::vector<bool> constant;  // per slot: contents never change while the plan lives
  std::vector<std::pair<uint32_t, Value>> constants;  // kConst slots
  // Parameters that are read in place in their file.
  std::vector<std::pair<uint32_t, Value>> in_file;
  std::vector<uint32_t> scope_slots, output_slots, arena_slots, view_slots;  // views: bound per run
  // Per slot, if there is an arena: for a slot in it, the slot that identifies its buffer, in which
  // it lies from the buffer's offset on.
  std::vector<uint32_t> buffers;
  std::vector<uint32_t> run_slots;  // kPool: cleared after a run
  // kPool: lists (arrays, rows, records of steps) that belong to the run alone and are emptied
  // after it. A record comes before what it may share: records of inner blocks, and values.
  std::vector<uint32_t> list_slots;
  // kPool: lists that not every run writes, for which empty and absent differ. They are taken away
  // after a run, and given back, empty, to the block that writes them.
  std::vector<uint32_t> kept_lists;
  // Per slot: dtype, shape and sequence offsets are read after contents are released; or empty.
  std::vector<bool> keeps_shape;
  // A loose value: its memory is taken when it is written and released after its last reader.
  // `first`, `last`: its live range, in positions of an order in which the block may run. (Fetched
  // values and those carried from run to run of a sub-block are not loose.)
  struct Loose {
    uint32_t slot;
    int32_t first, last;
    uint32_t block;
  };
  std::vector<Loose> loose;
  std::vector<uint32_t> loose_of;       // per slot: index in `loose`, or kNoSlot; or empty
  std::vector<uint32_t> consumers;      // per slot: number of readers, if they are counted
  std::vector<uint32_t> counted_slots;  // those with consumers
  std::shared_ptr<Scope> scope;         // where persistable variables are looked up
  std::shared_ptr<Scope> root_scope;    // where those that do not exist are made
  std::shared_ptr<PackCache> packs;     // copies of parameters that kernel states share
  std::shared_ptr<const ForcedImplementations> forced;  // for kernels prepared at run time
  bool lean = false;  // for kernels prepared at run time; see CompileOptions::lean
  // Set by a run in which a `told` instruction makes another shape than expected. The run ends and
  // is repeated with a plan without open shapes. nullptr: no instruction is `told`.
  std::shared_ptr<std::atomic<bool>> misjudged;
  bool IsMisjudged() const { return misjudged && misjudged->load(std::memory_order_relaxed); }
  // What the plan relies on about a variable of the scope (parallel to scope_slots): its address,
  // perhaps also its dtype and shape, or its contents.
  struct ScopeUse {
    Scope::Stamp stamp;
    bool meta = false, contents = false;
    bool written = false;
  };
  std::vector<ScopeUse> scope_uses;
  size_t arena_bytes = 0, arena_bound = 0;
  // By block and position of the operator, if there was a choice.
  std::map<std::pair<int, int>, std::vector<ImplementationChoice>> choices;
  PlanStats stats;

  // nullptr: the block has no lanes.
  const LaneSchedule* LanesOf(int b) const { return b == 0 ? lanes.get() : blocks[b].lanes.get(); }
  // Precondition: the block has lanes.
  const std::vector<uint32_t>& SerialOrderOf(int b) const {
    return b == 0 ? serial_order : blocks[b].serial_order;
  }
  // The slot whose memory a view uses; any other slot is its own root.
  uint32_t RootOf(uint32_t slot) const {
    return slots[slot].base == kNoSlot ? slot : slots[slot].base;
  }
  bool Claims(const Instruction& in) const;  // some of its results are claimed variables
  // Tells the scope which variables a run has written, and returns their number.
  size_t MarkWritten() const;
  // The program's operator at the instruction's position; nullptr if its block has only
  // instructions that planning has added (copies, marks). OperatorOf is nullptr for these in any
  // block.
  const ir::Op* NearestOperator(const Instruction& in) const;
  const ir::Op* OperatorOf(const Instruction& in) const;
  OpLocation Locate(const Instruction& in) const;  // of NearestOperator
  // Adds to a failure of the instruction's kernel its location and, if known, the kernel's
  // implementation. A failure that has a location stays as it is.
  Status Blame(const Status& status, const Instruction& in) const;
  // Adds to a failure to get memory before any kernel runs the location of the operator with the
  // largest output.
  Status BlameLargest(const Status& status) const;
};

}  // namespace heddle
