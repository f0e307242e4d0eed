// TensorLists, which are values, and TensorArrays and stacks, whose handles refer to one array
// variable. The reader has already put the operators on such an array into order, by flows and
// edges.
#include "core/shapes.h"
#include "formats/tensorflow/blocks.h"
#include "formats/tensorflow/handlers.h"

namespace heddle::tensorflow {
namespace {

// The dtype of a list's items: texts are numbers of a pool there.
DType ItemDType(NodeLowering& n, std::string_view attribute) {
  return n.Type(attribute, kFloat) == kString ? DType::kI64 : n.TypeAttr(attribute, DType::kF32);
}

// Input `i`, which is to be put into a list.
int ItemIn(NodeLowering& n, size_t i) {
  const int v = n.In(i);
  return n.type(v) == kString && n.kind(v) == Kind::kTensor ? n.NumbersOf(v) : v;
}

// Makes what was taken out of a list the node's result.
void ResultItem(NodeLowering& n, size_t output, int v, std::string_view attribute) {
  n.Result(output, n.Type(attribute, kFloat) == kString ? n.TextsOf(v, kString) : v);
}

void AddDType(NodeLowering& n, std::string_view attribute, Attrs* attrs) {
  const DType dtype = ItemDType(n, attribute);
  if (dtype != DType::kUnknown) attrs->emplace_back("dtype", DTypeToProto(dtype));
}

// The shape of a list's items that input `i` states, as far as it is known.
Shape NamedShape(NodeLowering& n, size_t i) {
  if (i >= n.inputs()) return Shape::Unknown();
  const int v = n.In(i);
  if (n.rank(v) != 1) return Shape::Unknown();
  const auto known = n.ConstantInts(v);
  const Ints dims = known ? *known : n.facts(v).partial;
  if (dims.empty() && !known) return Shape::Unknown();
  Shape shape;
  for (int64_t d : dims)
    if (shape.rank() < Shape::kMaxRank) shape.push_back(d < 0 ? -1 : d);
  return shape;
}

int List(NodeLowering& n, std::string_view type, Ins ins, Attrs attrs, const Shape& items) {
  const int made = n.NewVar(DType::kUnknown);
  n.SetKind(made, Kind::kList);
  n.Emit(type, std::move(ins), std::move(attrs), {{"Out", {made}}});
  n.facts(made).type = n.Type("element_dtype", kFloat);
  n.SetShape(made, items);
  return made;
}

// The common shape of the list's items after one of shape `item` has been written; dimensions that
// differ are unknown.
Shape WithItem(NodeLowering& n, int list, const Shape& item) {
  const VarFacts& facts = n.facts(list);
  if (facts.says_shape) return facts.shape;
  return facts.has_items ? Joined(facts.shape, item) : item;
}

// Makes a list whose items have the shape that input `i` states.
int NewList(NodeLowering& n, Ins ins, Attrs attrs, size_t i) {
  const Shape named = NamedShape(n, i);
  const int list = List(n, "list_reserve", std::move(ins), std::move(attrs), named);
  n.facts(list).says_shape = named.known_rank();
  n.facts(list).has_items = false;
  return list;
}

// Records that a list has `count` items, if `count` keeps its value, which carried and written
// variables do not.
void NoteLength(NodeLowering& n, int list, int count) {
  const VarFacts& facts = n.facts(count);
  if (!facts.is_variable && facts.first == kNoDraft && n.rank(count) == 0)
    n.facts(list).length = count;
}

// The variable with the list's number of items, if operators here can read it.
int LengthOf(NodeLowering& n, int list) {
  const int count = n.facts(list).length;
  return count != kNoDraft && n.Sees(count) ? count : kNoDraft;
}

// Makes an operator that changes a list, in place if nothing else uses the list; returns the
// changed list.
int Changed(NodeLowering& n, int list, std::string_view type, Ins ins, Attrs attrs,
            const Shape& items, bool same_length) {
  const int length = same_length ? n.facts(list).length : kNoDraft;
  const int as_long = same_length ? n.facts(list).as_long : kNoDraft;
  int made = list;
  if (!n.MayTake(0) || n.kind(list) != Kind::kList) {
    ins.emplace_back("list", std::vector<int>{list});
    made = List(n, type, std::move(ins), std::move(attrs), items);
  } else {
    n.Emit(type, std::move(ins), std::move(attrs), {{"Out", {list}}});
    n.SetShape(list, items);
  }
  VarFacts& facts = n.facts(made);
  facts.length = length;
  facts.as_long = as_long;
  facts.says_shape = n.facts(list).says_shape;
  facts.has_items = true;
  return made;
}

// Makes an operator that reads a list and returns its result: one item, or several stacked on a new
// axis.
int Items(NodeLowering& n, std::string_view type, Ins ins, std::string_view dtype_attribute,
          const Shape& items, bool stacked, int64_t count = -1) {
  Attrs attrs;
  AddDType(n, dtype_attribute, &attrs);
  const int made = n.Make(type, std::move(ins), std::move(attrs));
  n.draft_var(made).dtype = ItemDType(n, dtype_attribute);
  n.facts(made).type = n.Type(dtype_attribute, kFloat);
  Shape shape = items;
  if (stacked && shape.known_rank() && shape.rank() < Shape::kMaxRank) shape.insert(0, count);
  n.SetShape(made, shape);
  return made;
}

int Length(NodeLowering& n, int list) {
  const int count = n.Make("lod_array_length", {{"X", {list}}});
  n.draft_var(count).dtype = DType::kI64;
  n.SetShape(count, Shape{1});
  return n.Cast(n.Reshape(count, {}), DType::kI32);
}

Shape ItemsOf(NodeLowering& n, int list, size_t shape_input) {
  const Shape named = NamedShape(n, shape_input);
  return named.known_rank() ? named : n.shape(list);
}

// --- TensorLists

bool LowerReserve(NodeLowering& n) {
  Attrs attrs;
  AddDType(n, "element_dtype", &attrs);
  const int count = n.In(1);
  const int list =
      NewList(n, {{"num_elements", {count}}, {"element_shape", {n.In(0)}}}, std::move(attrs), 0);
  NoteLength(n, list, count);
  n.Result(0, list);
  return true;
}

bool LowerEmpty(NodeLowering& n) {
  Attrs attrs;
  AddDType(n, "element_dtype", &attrs);
  n.Result(0, NewList(n, {{"num_elements", {n.IntConstant(0)}}, {"element_shape", {n.In(0)}}},
                      std::move(attrs), 0));
  return true;
}

bool LowerFromTensor(NodeLowering& n) {
  const int x = ItemIn(n, 0);
  Shape items = n.shape(x);
  if (items.rank() > 0) items.erase(0);
  n.Result(0, List(n, "list_split", {{"tensor", {x}}}, {{"keepdims", false}}, items));
  return true;
}

bool LowerSetItem(NodeLowering& n) {
  const int list = n.In(0), item = ItemIn(n, 2);
  const Shape items = WithItem(n, list, n.shape(item));
  const bool grows = n.Bool("resize_if_index_out_of_bounds", false);
  n.Result(0, Changed(n, list, "list_set_item", {{"index", {n.In(1)}}, {"item", {item}}},
                      {{"resize", grows}}, items, !grows));
  return true;
}

bool LowerGetItem(NodeLowering& n) {
  const int list = n.In(0);
  const int item =
      Items(n, "list_item", {{"list", {list}}, {"index", {n.In(1)}}, {"element_shape", {n.In(2)}}},
            "element_dtype", ItemsOf(n, list, 2), false);
  ResultItem(n, 0, item, "element_dtype");
  return true;
}

bool LowerPushBack(NodeLowering& n) {
  const int list = n.In(0), item = ItemIn(n, 1);
  n.Result(0, Changed(n, list, "list_insert", {{"item", {item}}}, {},
                      WithItem(n, list, n.shape(item)), false));
  return true;
}

bool LowerPopBack(NodeLowering& n) {
  const int list = n.In(0);
  const int rest = n.NewVar(DType::kUnknown), item = n.NewVar(ItemDType(n, "element_dtype"));
  n.SetKind(rest, Kind::kList);
  n.facts(rest).type = n.facts(item).type = n.Type("element_dtype", kFloat);
  n.SetShape(rest, n.shape(list));
  n.SetShape(item, ItemsOf(n, list, 1));
  Attrs attrs;
  AddDType(n, "element_dtype", &attrs);
  n.Emit("list_erase", {{"list", {list}}, {"element_shape", {n.In(1)}}}, std::move(attrs),
         {{"Out", {rest}}, {"item", {item}}});
  n.Result(0, rest);
  ResultItem(n, 1, item, "element_dtype");
  return true;
}

bool LowerStack(NodeLowering& n) {
  const int list = n.In(0);
  Ins ins = {{"list", {list}}, {"element_shape", {n.In(1)}}};
  const int length = LengthOf(n, list);
  if (length != kNoDraft) ins.emplace_back("num_elements", std::vector<int>{length});
  const int all = Items(n, "list_stack", std::move(ins), "element_dtype", ItemsOf(n, list, 1), true,
                        n.Int("num_elements", -1));
  ResultItem(n, 0, all, "element_dtype");
  return true;
}

bool LowerListGather(NodeLowering& n) {
  const int list = n.In(0);
  const int items = Items(n, "list_gather",
                          {{"list", {list}}, {"indices", {n.In(1)}}, {"element_shape", {n.In(2)}}},
                          "element_dtype", ItemsOf(n, list, 2), true);
  ResultItem(n, 0, items, "element_dtype");
  return true;
}

bool LowerListScatter(NodeLowering& n) {
  const int x = ItemIn(n, 0);
  Attrs attrs;
  AddDType(n, "element_dtype", &attrs);
  Shape items = n.shape(x);
  if (items.rank() > 0) items.erase(0);
  // The list has as many items as are asked for, or as the largest index needs.
  const int wanted = n.inputs() > 3 ? n.In(3) : n.IntConstant(0);
  const int count = n.Binary("elementwise_max", n.Cast(wanted, DType::kI64), n.IntConstant(0));
  const int empty =
      List(n, "list_reserve", {{"num_elements", {count}}, {"element_shape", {n.In(2)}}},
           std::move(attrs), items);
  n.Result(0, List(n, "list_scatter", {{"list", {empty}}, {"tensor", {x}}, {"indices", {n.In(1)}}},
                   {{"resize", true}}, items));
  return true;
}

bool LowerScatterInto(NodeLowering& n) {
  const int list = n.In(0), x = ItemIn(n, 1);
  Shape items = n.shape(x);
  if (items.rank() > 0) items.erase(0);
  n.Result(0, List(n, "list_scatter", {{"list", {list}}, {"tensor", {x}}, {"indices", {n.In(2)}}},
                   {{"resize", true}}, WithItem(n, list, items)));
  return true;
}

bool LowerListConcat(NodeLowering& n) {
  const int list = n.In(0);
  Attrs attrs;
  AddDType(n, "element_dtype", &attrs);
  Ins ins = {{"list", {list}}};
  if (n.op() == "TensorListConcatV2") ins.emplace_back("element_shape", std::vector<int>{n.In(1)});
  const auto made = n.MakeMany("list_concat", std::move(ins), std::move(attrs), {"Out", "lengths"});
  n.draft_var(made[0]).dtype = ItemDType(n, "element_dtype");
  n.draft_var(made[1]).dtype = DType::kI64;
  n.facts(made[1]).type = kInt64;
  n.SetShape(made[1], Shape{-1});
  ResultItem(n, 0, made[0], "element_dtype");
  n.Result(1, made[1]);
  return true;
}

bool LowerListSplit(NodeLowering& n) {
  n.Result(0, List(n, "list_split", {{"tensor", {ItemIn(n, 0)}}, {"lengths", {n.In(2)}}}, {},
                   Shape::Unknown()));
  return true;
}

bool LowerLength(NodeLowering& n) {
  const int list = n.In(0), length = LengthOf(n, list);
  n.Result(0, length != kNoDraft ? n.Cast(length, DType::kI32) : Length(n, list));
  return true;
}

bool LowerResize(NodeLowering& n) {
  const int list = n.In(0);
  n.Result(0, Changed(n, list, "list_resize", {{"size", {n.In(1)}}}, {}, n.shape(list), false));
  return true;
}

// --- TensorArrays and stacks

int Flow(NodeLowering& n) {
  const int flow = n.NewVar(DType::kUnknown);
  n.facts(flow).kind = Kind::kFlow;
  n.facts(flow).type = kFloat;
  return flow;
}

// The array that the handle in input 0 refers to; an error if there is none.
int ArrayOf(NodeLowering& n, Kind kind) {
  const int handle = n.In(0);
  if (n.kind(handle) == kind && n.facts(handle).target != kNoDraft) return n.facts(handle).target;
  n.Problem("input 0 is no handle of ", kind == Kind::kStack ? "a stack" : "a TensorArray");
  const int array = n.NewVar(DType::kUnknown);
  n.SetKind(array, Kind::kList);
  return array;
}

int NewArray(NodeLowering& n, int count, int type, const Shape& items) {
  const int array = n.NewVar(DType::kUnknown, "array");
  n.SetKind(array, Kind::kList);
  VarFacts& facts = n.facts(array);
  facts.type = type;
  facts.maker = &n.node();
  facts.says_shape = items.known_rank();
  facts.has_items = n.lowering().revisions().IsOpen(n.node(), 0);
  n.SetShape(array, items);
  Ins ins = {{"num_elements", {count}}};
  if (items.known_rank() && items.is_static())
    ins.emplace_back("element_shape",
                     std::vector<int>{n.IntsConstant(Ints(items.begin(), items.end()))});
  Attrs attrs;
  if (const DType dtype = type == kString ? DType::kI64 : StorageOf(type); dtype != DType::kUnknown)
    attrs.emplace_back("dtype", DTypeToProto(dtype));
  n.Emit("list_reserve", std::move(ins), std::move(attrs), {{"Out", {array}}});
  return array;
}

// Records that an item of this shape is written to an array. Reads, also by earlier nodes in a
// loop, rely on the shape of the first item; if another one differs, the graph is read again with
// the shape unknown.
void NoteItem(NodeLowering& n, int array, const Shape& item) {
  VarFacts& facts = n.facts(array);
  const Shape before = facts.shape;
  facts.shape = WithItem(n, array, item);
  if (facts.has_items && before.known_rank() && !Covers(before, item) && !facts.says_shape &&
      facts.maker != nullptr)
    n.lowering().revisions().Open(*facts.maker, 0);
  facts.has_items = true;
}

bool LowerArray(NodeLowering& n) {
  const int array = NewArray(n, n.In(0), n.Type("dtype", kFloat), n.ShapeAttr("element_shape"));
  const int handle = n.Handle(Kind::kTensorArray, array);
  n.facts(array).grows = n.Bool("dynamic_size", false);
  n.Result(0, handle);
  n.Result(1, Flow(n));
  return true;
}

bool LowerArrayWrite(NodeLowering& n) {
  const int array = ArrayOf(n, Kind::kTensorArray), item = ItemIn(n, 2);
  n.Emit("list_set_item", {{"index", {n.In(1)}}, {"item", {item}}},
         {{"resize", n.facts(array).grows}, {"add", n.facts(array).adds}}, {{"Out", {array}}});
  NoteItem(n, array, n.shape(item));
  n.Result(0, n.In(3));
  return true;
}

bool LowerArrayRead(NodeLowering& n) {
  const int array = ArrayOf(n, Kind::kTensorArray);
  const int item = Items(n, "list_item", {{"list", {array}}, {"index", {n.In(1)}}}, "dtype",
                         n.shape(array), false);
  ResultItem(n, 0, item, "dtype");
  return true;
}

bool LowerArrayGather(NodeLowering& n) {
  const int array = ArrayOf(n, Kind::kTensorArray);
  Shape items = n.ShapeAttr("element_shape");
  if (!items.known_rank()) items = n.shape(array);
  Ins ins = {{"list", {array}}, {"indices", {n.In(1)}}};
  if (items.known_rank())
    ins.emplace_back("element_shape",
                     std::vector<int>{n.IntsConstant(Ints(items.begin(), items.end()))});
  ResultItem(n, 0, Items(n, "list_gather", std::move(ins), "dtype", items, true), "dtype");
  return true;
}

bool LowerArrayScatter(NodeLowering& n) {
  const int array = ArrayOf(n, Kind::kTensorArray), x = ItemIn(n, 2);
  n.Emit("list_scatter", {{"tensor", {x}}, {"indices", {n.In(1)}}},
         {{"resize", n.facts(array).grows}}, {{"Out", {array}}});
  Shape items = n.shape(x);
  if (items.rank() > 0) items.erase(0);
  NoteItem(n, array, items);
  n.Result(0, n.In(3));
  return true;
}

bool LowerArraySize(NodeLowering& n) {
  n.Result(0, Length(n, ArrayOf(n, Kind::kTensorArray)));
  return true;
}

bool LowerArrayConcat(NodeLowering& n) {
  const int array = ArrayOf(n, Kind::kTensorArray);
  Attrs attrs;
  AddDType(n, "dtype", &attrs);
  const auto made =
      n.MakeMany("list_concat", {{"list", {array}}}, std::move(attrs), {"Out", "lengths"});
  n.draft_var(made[0]).dtype = ItemDType(n, "dtype");
  n.draft_var(made[1]).dtype = DType::kI64;
  n.SetShape(made[1], Shape{-1});
  ResultItem(n, 0, made[0], "dtype");
  n.Result(1, made[1]);
  return true;
}

bool LowerArraySplit(NodeLowering& n) {
  const int array = ArrayOf(n, Kind::kTensorArray);
  const int x = ItemIn(n, 1);
  n.Emit("list_split", {{"tensor", {x}}, {"lengths", {n.In(2)}}}, {}, {{"Out", {array}}});
  Shape items = n.shape(x);
  if (items.rank() > 0) items[0] = -1;
  NoteItem(n, array, items);
  n.Result(0, n.In(3));
  return true;
}

// Makes the array for the gradients of an array's items, one per `source`. It is made in the
// array's own block, before any loop that adds to it.
bool LowerArrayGrad(NodeLowering& n) {
  const int array = ArrayOf(n, Kind::kTensorArray);
  const std::string source = n.Str("source", "");
  int& known = n.lowering().GradientArray(array, source);
  if (known == kNoDraft) {
    const int outer = n.SwitchBlock(n.draft_var(array).block);
    known = n.NewVar(DType::kUnknown, "gradients");
    n.SetKind(known, Kind::kList);
    n.facts(known).type = n.type(array);
    n.SetShape(known, n.shape(array));
    n.facts(known).maker = n.facts(array).maker;
    n.facts(known).says_shape = n.facts(array).says_shape;
    n.facts(known).has_items = n.facts(array).has_items;
    n.facts(known).adds = true;
    n.facts(known).grows = n.facts(array).grows;
    n.Emit("list_like", {{"list", {array}}}, {}, {{"Out", {known}}});
    n.SwitchBlock(outer);
  }
  n.Result(0, n.Handle(Kind::kTensorArray, known));
  n.Result(1, Flow(n));
  return true;
}

bool LowerStackNew(NodeLowering& n) {
  const int array = NewArray(n, n.IntConstant(0), n.Type("elem_type", kFloat), Shape::Unknown());
  n.Result(0, n.Handle(Kind::kStack, array));
  return true;
}

bool LowerStackPush(NodeLowering& n) {
  const int array = ArrayOf(n, Kind::kStack), item = ItemIn(n, 1);
  n.Emit("list_insert", {{"item", {item}}}, {}, {{"Out", {array}}});
  n.facts(array).type = n.type(n.In(1));
  NoteItem(n, array, n.shape(item));
  n.Result(0, n.In(1));
  return true;
}

bool LowerStackPop(NodeLowering& n) {
  const int array = ArrayOf(n, Kind::kStack);
  const int item = n.NewVar(ItemDType(n, "elem_type"));
  n.facts(item).type = n.Type("elem_type", kFloat);
  n.SetShape(item, n.shape(array));
  Attrs attrs;
  AddDType(n, "elem_type", &attrs);
  n.Emit("list_erase", {}, std::move(attrs), {{"Out", {array}}, {"item", {item}}});
  ResultItem(n, 0, item, "elem_type");
  return true;
}

bool LowerClose(NodeLowering&) { return true; }

constexpr HandlerEntry kListEntries[] = {
    {"TensorListReserve", &LowerReserve},
    {"EmptyTensorList", &LowerEmpty},
    {"TensorListFromTensor", &LowerFromTensor},
    {"TensorListSetItem", &LowerSetItem},
    {"TensorListGetItem", &LowerGetItem},
    {"TensorListPushBack", &LowerPushBack},
    {"TensorListPopBack", &LowerPopBack},
    {"TensorListStack", &LowerStack},
    {"TensorListGather", &LowerListGather},
    {"TensorListScatter", &LowerListScatter},
    {"TensorListScatterV2", &LowerListScatter},
    {"TensorListScatterIntoExistingList", &LowerScatterInto},
    {"TensorListConcat", &LowerListConcat},
    {"TensorListConcatV2", &LowerListConcat},
    {"TensorListSplit", &LowerListSplit},
    {"TensorListLength", &LowerLength},
    {"TensorListResize", &LowerResize},
    {"TensorArrayV3", &LowerArray},
    {"TensorArrayWriteV3", &LowerArrayWrite},
    {"TensorArrayReadV3", &LowerArrayRead},
    {"TensorArrayGatherV3", &LowerArrayGather},
    {"TensorArrayScatterV3", &LowerArrayScatter},
    {"TensorArraySizeV3", &LowerArraySize},
    {"TensorArrayConcatV3", &LowerArrayConcat},
    {"TensorArraySplitV3", &LowerArraySplit},
    {"TensorArrayGradV3", &LowerArrayGrad},
    {"TensorArrayCloseV3", &LowerClose},
    {"StackV2", &LowerStackNew},
    {"StackPushV2", &LowerStackPush},
    {"StackPopV2", &LowerStackPop},
    {"StackCloseV2", &LowerClose},
};

}  // namespace

std::span<const HandlerEntry> ListHandlers() { return kListEntries; }

}  // namespace heddle::tensorflow
