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

#include "core/memory/bytes.h"
#include "core/op_context.h"
#include "core/programs/ir.h"
#include "core/scalar_steps.h"
#include "core/thread_annotations.h"
#include "executor/plan/loops/loop_plan.h"
#include "executor/plan/meta_table.h"
#include "executor/plan/rare_list.h"
#include "executor/plan/shaped_calls.h"
#include "heddle/executor.h"
#include "scheduler/lane_schedule.h"

namespace heddle {

// The memory that holds a slot's contents.
enum class Storage : uint8_t {
  kNone,    // nothing is stored: an optional output nobody reads
  kFeed,    // the caller's tensor
  kScope,   // a variable of the scope
  kConst,   // a value known when the plan was made
  kArena,   // a fixed offset in the run's arena
  kOutput,  // fresh memory of known size, handed to the caller
  kView,    // another slot's memory with another shape, or a part of it, bound before the run
  kPool,    // memory taken when the slot is written, given back after the last reader
  kShape,   // none: dtype and shape of another slot, for operands of which nothing else is read
};

// One version of one variable. A variable that only one block uses gets a slot per write, so that
// versions never disturb each other; one that blocks share keeps one slot.
struct Slot {
  ir::VarId var = ir::kNoVar;
  Storage storage = Storage::kPool;
  bool versioned = false;  // written once: the slot's contents never change after that
  bool crosses = false;    // several blocks touch it
  bool is_static = false;  // dtype and shape are known before the run
  DType dtype = DType::kUnknown;
  uint32_t base = kNoSlot;      // kView: the slot whose memory it is
  uint8_t place = 0;            // of a device plan, see device/place_instructions.h
  int home = 0;                 // the block in whose work space it lies, see BlockPlan
  size_t offset = 0;            // kArena
  size_t shift = 0;             // of a view: bytes from where its base begins
  const Value* meta = nullptr;  // is_static: holds the shape, and the strides of a view that has
                                // gaps; the plan's (Plan::metas)
  // Precondition for both: is_static.
  const Shape& shape() const { return meta->tensor().shape(); }
  size_t bytes() const { return BytesFor(dtype, shape()); }
  bool is_dense() const { return meta->tensor().is_contiguous(); }
};

struct Instruction {
  enum class Mode : uint8_t {
    kStatic,   // every operand has its shape and memory: just call the kernel
    kPooled,   // shapes known, memory of outputs taken now
    kDynamic,  // shapes inferred now
    kShare,    // output = input with another shape, the memory shared
    kReplace,  // kStatic into hidden slots, whose bytes then become the variables' (rewrites)
    kWide,     // kStatic, while no other lane has anything to do: it may use their threads
    kWhole,    // kStatic, and `whole`; in finished plans alone
  };
  KernelFn fn = nullptr;  // null: chosen by dtype at run time
  const KernelState* state = nullptr;
  Mode mode = Mode::kDynamic;
  bool gives_back = false;  // release or reads hold something
  bool once = false;        // of a body: only the loop's first iteration executes it
  bool told = false;        // kDynamic: shapes of outputs are known, see Plan::misjudged
  bool appends = false;     // kDynamic: joins what lies behind the input of `takeovers` to it
  bool whole = false;       // ends what it began: it writes to the memory of the scope's variables
  bool claims = false;      // declarations of some results are claims, see Plan::claimed
  bool measured = false;    // cost_ns is a time that its device took
  float cost_ns = 0;        // estimate on one thread
  BoundOp op;
  std::shared_ptr<const KernelState> state_owner;
  std::unique_ptr<ShapedCalls> calls;  // kDynamic; nullptr: attributes or blocks decide, too
  // Operators that read and write one variable write to the first slot, which then becomes the
  // second; `inplace`: they may work in the same memory.
  struct Rewrite {
    uint32_t hidden, real;
    bool inplace;
  };
  RareList<Rewrite> rewrites;
  // Pairs of positions, one behind the other, in op.in and op.out: the output may take over the
  // input's memory.
  IdList takeovers;
  uint32_t loop = kNoSlot;  // its place in Plan::loops
  RareList<int> loops;      // blocks that it runs and that begin with instructions `once`
  // Attributes read from the operands behind the definition's slots, one list of operands each.
  RareList<int> var_attrs;
  std::unique_ptr<std::vector<AttrValue>> fixed_attrs;  // op.attrs, where their values were known
  IdList release;               // kPool slots whose contents nobody needs afterwards
  IdList reads;                 // kPool slots read whose readers are counted
  int ir_block = 0, ir_op = 0;  // position in the program, for messages
};

// Its kernel's implementation (KernelState::Facts); empty: there is one only, or it is not known.
const std::string& ImplementationOf(const Instruction& in);

// The way in which the instructions of block 0 reach the threads.
enum class Dispatch : uint8_t {
  kSerial,  // one after another
  kLanes,   // each thread's instructions are decided; waits between the lanes are too
  kQueue,   // ready tasks wait in a queue for a free thread
  kDevice,  // one thread goes through them, and puts those of a device on its streams
};

// The instructions of one block: in a valid order; with lanes, lane after lane.
//
// Memory of a sub-block's own static values: each block has one layout, which every run of the
// block uses anew. It lies, as a value of its own, in the layout of the block that runs it, and
// there it is alive while the operator runs that runs the block.
struct BlockPlan {
  std::vector<Instruction> instructions;
  size_t once = 0;               // of them, the first so many are Instruction::once
  uint32_t workspace = kNoSlot;  // a slot that stands for the layout; block 0's is the arena
  // Places in the plan's kept_lists: what this block writes before it uses it otherwise.
  std::vector<uint32_t> fills;
  // Of a sub-block with lanes. The order, for one thread, begins with the `once` instructions.
  std::shared_ptr<const LaneSchedule> lanes;
  std::vector<uint32_t> serial_order;
  std::vector<uint32_t> counted_slots;  // each run of the block counts their readers anew
  std::vector<ScalarStep> tail;         // of a loop: what the last so many instructions compute
};

struct PlanFeed {
  std::string name;
  uint32_t slot = kNoSlot;
  bool copied = false;  // the program writes to it: runs work on a copy
};
struct PlanFetch {
  std::string name;
  uint32_t slot = kNoSlot;
  bool move = false;  // the run owns the memory: handed over instead of copied
};

struct DevicePlan;

struct Plan {
  std::shared_ptr<const ir::Program> program;
  std::vector<Slot> slots;
  MetaTable metas;                // shapes of the static ones
  std::vector<BlockPlan> blocks;  // by block id; blocks that run nowhere are empty
  Dispatch dispatch = Dispatch::kSerial;
  UnitGraph tasks;                            // kQueue: chains of instructions
  uint64_t shuffle_seed = 0;                  // kQueue, see CompileOptions
  std::shared_ptr<const LaneSchedule> lanes;  // kLanes
  std::vector<uint32_t> serial_order;         // kLanes: block 0 in an order for one thread
  std::shared_ptr<const DevicePlan> device;   // kDevice
  // kSerial: the instructions, or those of a sub-block, could share threads if costs allow.
  bool worth_measuring = false, worth_body_lanes = false;
  int body_lanes = 0;  // kSerial: the most lanes that a sub-block has; 0: none has any
  bool writes_scope = false;
  std::vector<LoopPlan> loops;
  bool draws_random = false;  // some operator uses the run's generator
  uint32_t shaped_calls = 0;  // instructions that keep calls
  // Per variable: its declaration is a claim (passes/facts/declarations.h), so each result whose
  // shape is found while running is compared with it. Null: there is no claim.
  std::shared_ptr<const std::vector<bool>> claimed;
  std::vector<PlanFeed> feeds;
  std::vector<PlanFetch> fetches;
  std::vector<bool> constant;  // per slot: contents never change while the plan lives
  std::vector<std::pair<uint32_t, Value>> constants;  // kConst slots
  std::vector<std::pair<uint32_t, Value>> in_file;    // parameters read where their file has them
  std::vector<uint32_t> scope_slots, output_slots, arena_slots, view_slots;  // views: bound per run
  // Per slot, where there is an arena: of one in it, the slot that stands for the buffer that it
  // shares; it lies there from the buffer's offset on.
  std::vector<uint32_t> buffers;
  std::vector<uint32_t> run_slots;  // kPool: cleared after a run
  // kPool: lists (arrays, rows, records of steps) that only the run has: emptied after it. A record
  // comes before what it may share: records of inner blocks, and values.
  std::vector<uint32_t> list_slots;
  // kPool: lists that not every run writes, so that an empty one would not be the same as nothing.
  // Taken away after a run; the block that fills one is given it back, empty.
  std::vector<uint32_t> kept_lists;
  // Per slot: its dtype, shape and sequence offsets are read after its contents were given back.
  // Empty: none is.
  std::vector<bool> keeps_shape;
  // Values whose memory is taken when they are written and that end with their last reader: where,
  // in an order in which the block may run. (Not those that outlive it: fetched, carried from run
  // to run of a sub-block.)
  struct Loose {
    uint32_t slot;
    int32_t first, last;
    uint32_t block;
  };
  std::vector<Loose> loose;
  std::vector<uint32_t> loose_of;       // per slot: its place in `loose`, or kNoSlot; or empty
  std::vector<uint32_t> consumers;      // per slot: readers, where they are counted
  std::vector<uint32_t> counted_slots;  // those with consumers
  std::shared_ptr<Scope> scope;         // looked up for persistable variables
  std::shared_ptr<Scope> root_scope;    // where those that do not exist yet are made
  std::shared_ptr<PackCache> packs;     // derived copies of parameters that kernel states share
  std::shared_ptr<const ForcedImplementations> forced;  // for kernels prepared while running
  bool lean = false;  // how kernels are prepared, also while running; see CompileOptions::lean
  // Set by a run in which a `told` instruction makes another shape than planned; the run ends and
  // is repeated with a plan without open shapes. nullptr: no instruction is told.
  std::shared_ptr<std::atomic<bool>> misjudged;
  bool IsMisjudged() const { return misjudged && misjudged->load(std::memory_order_relaxed); }
  // The facts about a variable of the scope that the plan relies on (parallel to scope_slots): its
  // address always, perhaps also its dtype and shape, or its contents.
  struct ScopeUse {
    Scope::Stamp stamp;
    bool meta = false, contents = false;
    bool written = false;
  };
  std::vector<ScopeUse> scope_uses;
  size_t arena_bytes = 0, arena_bound = 0;
  // By block and position of the operator, where there was something to choose.
  std::map<std::pair<int, int>, std::vector<ImplementationChoice>> choices;
  PlanStats stats;

  // nullptr: the block has no lanes.
  const LaneSchedule* LanesOf(int b) const { return b == 0 ? lanes.get() : blocks[b].lanes.get(); }
  // Precondition: the block has lanes.
  const std::vector<uint32_t>& SerialOrderOf(int b) const {
    return b == 0 ? serial_order : blocks[b].serial_order;
  }
  // The slot whose memory a view's is; any other slot is its own root.
  uint32_t RootOf(uint32_t slot) const {
    return slots[slot].base == kNoSlot ? slot : slots[slot].base;
  }
  bool Claims(const Instruction& in) const;  // some of its results are of claimed variables
  // Tells the scope which variables a run has written to: returns how many.
  size_t MarkWritten() const;
  // The program's operator at the instruction's position; nullptr: its block holds nothing but what
  // planning has made, as copies and marks are. OperatorOf: nullptr for these, too.
  const ir::Op* NearestOperator(const Instruction& in) const;
  const ir::Op* OperatorOf(const Instruction& in) const;
  OpLocation Locate(const Instruction& in) const;  // of the nearest one
  // The failure of an instruction's kernel, with its place and, where the plan knows it, the
  // kernel's implementation. What has a place already is left as it is.
  Status Blame(const Status& status, const Instruction& in) const;
  // A failure to get memory before any kernel runs, with the place of the operator whose output
  // takes most.
  Status BlameLargest(const Status& status) const;
};

}  // namespace heddle
