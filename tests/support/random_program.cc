#include "tests/support/random_program.h"

#include <algorithm>
#include <cmath>

namespace heddle::testing {
namespace {

const Shape kShapes[] = {{6}, {2, 3}, {3, 2}};
constexpr int64_t kPermutation[] = {3, 5, 0, 1, 4, 2};

Ints ToInts(const Shape& s) { return {s.begin(), s.end()}; }

}  // namespace

RandomProgram::RandomProgram(uint32_t seed, const Options& options)
    : rng_(seed), options_(options) {
  ProgramBuilder b;
  auto start = [&](const std::string& name) {
    Var v{kShapes[Pick(3)], {}};
    for (int i = 0; i < 6; ++i) v.values.push_back(static_cast<float>(Pick(9) - 4));
    shapes_[name] = v.shape;
    start_[name] = std::move(v);
  };
  for (const char* name : {"a", "b", "c"}) {
    start(name);
    b.Feed(name, DType::kF32, start_[name].shape);
  }
  b.Feed("permutation", DType::kI64, {6});
  for (int f = 0; f < 2; ++f) {
    b.Feed("flag" + std::to_string(f), DType::kBool, {1});
    flags_[f] = Pick(2) == 1;
  }
  if (options_.parameters) {
    for (const char* name : {"p", "q"}) {
      start(name);
      b.Param(name, DType::kF32, start_[name].shape);
      parameters_.emplace_back(name);
    }
  }
  Generate(&steps_, options_.ops, 0);
  Emit(b, steps_);
  for (const auto& [name, shape] : shapes_)
    if (Pick(2) == 0) fetches_.push_back(name);
  fetches_.push_back(shapes_.begin()->first);
  if (Pick(2) == 0) fetches_.push_back(fetches_[0]);  // one variable twice
  for (const std::string& name : fetches_) b.Fetch(name);
  bytes_ = b.Bytes();
}

bool RandomProgram::IsParameter(const std::string& name) const {
  return std::find(parameters_.begin(), parameters_.end(), name) != parameters_.end();
}

std::string RandomProgram::WithShape(const Shape& shape, bool writable_only) {
  std::vector<std::string> names;
  for (const auto& [name, s] : shapes_)
    if (s == shape && !(writable_only && name[0] == 'n')) names.push_back(name);
  return names.empty() ? "" : Any(names);
}

void RandomProgram::Generate(std::vector<Step>* steps, int count, int depth) {
  for (int i = 0; i < count;) {
    Step step{};
    if (!MakeStep(&step, depth)) continue;
    steps->push_back(std::move(step));
    ++i;
  }
}

bool RandomProgram::MakeStep(Step* step, int depth) {
  const int kinds = options_.control_flow && depth < 3 ? Step::kWhile + 1 : Step::kJoin + 1;
  step->kind = static_cast<Step::Kind>(Pick(kinds));
  if (step->kind >= Step::kIf) {
    if (Pick(2) == 0) return false;  // rarer
    step->flag = Pick(2);
    step->trips = Pick(4);
    step->id = ++blocks_;
    Generate(&step->body, 1 + Pick(6), depth + 1);
    for (const Step& inner : step->body)
      if (inner.local) shapes_.erase(inner.out);
    return true;
  }
  std::vector<std::string> all;
  for (const auto& [name, shape] : shapes_) all.push_back(name);
  step->x = Any(all);
  Shape shape = shapes_[step->x];
  constexpr float kScales[] = {1, -1, 0.5f, 2};
  step->scale = kScales[Pick(4)];
  step->bias = static_cast<float>(Pick(5) - 2);
  if (step->kind == Step::kAdd || step->kind == Step::kSub || step->kind == Step::kMax)
    step->y = WithShape(shape, false);
  if (step->kind == Step::kScatter) {
    if (!(shape == kShapes[0])) return false;
    step->y = WithShape(shape, false);
  }
  if (step->kind == Step::kJoin) {
    if (depth > 0 || !(shape == kShapes[0])) return false;
    step->y = WithShape(shape, false);
    for (int& part : step->parts) part = Pick(4);
  }
  if (step->kind == Step::kReshape) shape = kShapes[Pick(3)];
  if (step->kind == Step::kTranspose) {
    if (shape.rank() != 2) return false;
    shape = Shape{shape[1], shape[0]};
  }
  step->shape = shape;
  // Inside a block, and for parameters, a variable keeps its shape; outside it may change or be
  // new.
  const bool fresh = depth == 0 && Pick(2) == 0;
  step->local = depth > 0 && Pick(2) == 0;
  if (step->local) {
    step->out = "l" + std::to_string(++locals_);
    shapes_[step->out] = shape;
    return true;
  }
  step->out = fresh ? std::string(1, static_cast<char>('r' + Pick(6))) : WithShape(shape, true);
  if (step->out.empty()) return false;
  if (fresh) shapes_[step->out] = shape;
  return true;
}

void RandomProgram::Names(const std::vector<Step>& steps, std::vector<std::string>* read,
                          std::vector<std::string>* written) {
  auto add = [](std::vector<std::string>* list, const std::string& name) {
    if (!name.empty() && !IsLocal(name) &&
        std::find(list->begin(), list->end(), name) == list->end())
      list->push_back(name);
  };
  for (const Step& s : steps) {
    add(read, s.x);
    add(read, s.y);
    add(written, s.out);
    if (s.kind == Step::kScatter) add(read, "permutation");
    if (s.kind == Step::kIf) add(read, "flag" + std::to_string(s.flag));
    Names(s.body, read, written);
  }
}

void RandomProgram::EmitBlock(ProgramBuilder& b, const Step& s) const {
  std::vector<std::string> read, written;
  Names(s.body, &read, &written);
  for (const std::string& name : written)  // the block may leave them as they are
    if (std::find(read.begin(), read.end(), name) == read.end()) read.push_back(name);
  const int outer = b.current();
  const std::string id = std::to_string(s.id), i = "i" + id, n = "trips" + id, go = "go" + id;
  if (s.kind == Step::kWhile) {
    b.Fill(i, {1}, 0, DType::kI64).Fill(n, {1}, s.trips, DType::kI64);
    b.Binary("less_than", i, n, go);
    written.push_back(i);
    written.push_back(go);
  }
  const int body = b.Block(outer);
  b.In(body);
  Emit(b, s.body);
  if (s.kind == Step::kWhile) {
    b.Increment(i);
    b.Binary("less_than", i, n, go);
    b.In(outer);
    read.push_back(i);
    read.push_back(n);
    b.Op("while", {{"X", read}, {"Condition", {go}}}, {{"Out", written}, {"StepScopes", {}}},
         {{"sub_block", BlockRef{body}}});
  } else {
    b.In(outer);
    b.Op("conditional_block", {{"Cond", {"flag" + std::to_string(s.flag)}}, {"Input", read}},
         {{"Out", written}, {"Scope", {}}},
         {{"sub_block", BlockRef{body}}, {"is_scalar_condition", true}});
  }
}

// Joined, worked on as one, and cut again; large enough that the pieces may lie in the whole. The
// same few variables every time.
void RandomProgram::EmitJoin(ProgramBuilder& b, const Step& s) const {
  const Attrs eight = {{"repeat_times", Ints{8}}}, axis = {{"axis", int64_t{0}}};
  b.Op("tile", {{"X", {s.x}}}, {{"Out", {"join.x"}}}, eight);
  b.Op("tile", {{"X", {s.y}}}, {{"Out", {"join.y"}}}, eight);
  b.Scale("join.x", "join.scaled", s.scale, s.bias);
  b.Op("concat", {{"X", {"join.y", "join.x"}}}, {{"Out", {"join.two"}}}, axis);
  b.Op("concat", {{"X", {"join.scaled", "join.two", "join.scaled"}}}, {{"Out", {"join.all"}}},
       axis);
  b.Scale("join.all", "join.all", 2);
  b.Op("split", {{"X", {"join.all"}}},
       {{"Out", {"join.part0", "join.part1", "join.part2", "join.part3"}}},
       {{"axis", int64_t{0}}, {"num", int64_t{4}}});
  const auto part = [&](int k) { return "join.part" + std::to_string(s.parts[k]); };
  b.Binary("elementwise_sub", part(0), part(1), "join.difference");
  b.Op("slice", {{"Input", {"join.difference"}}}, {{"Out", {s.out}}},
       {{"axes", Ints{0}}, {"starts", Ints{6}}, {"ends", Ints{12}}});
}

void RandomProgram::Emit(ProgramBuilder& b, const std::vector<Step>& steps) const {
  for (const Step& s : steps) {
    if (s.local) b.Var(s.out, DType::kF32, s.shape);
    switch (s.kind) {
      case Step::kScale:
        b.Scale(s.x, s.out, s.scale, s.bias);
        break;
      case Step::kRelu:
        b.Unary("relu", s.x, s.out);
        break;
      case Step::kAdd:
        b.Binary("elementwise_add", s.x, s.y, s.out);
        break;
      case Step::kSub:
        b.Binary("elementwise_sub", s.x, s.y, s.out);
        break;
      case Step::kMax:
        b.Binary("elementwise_max", s.x, s.y, s.out);
        break;
      case Step::kAssign:
        b.Unary("assign", s.x, s.out);
        break;
      case Step::kReshape:
        b.Reshape(s.x, s.out, ToInts(s.shape));
        break;
      case Step::kTranspose:
        b.Op("transpose2", {{"X", {s.x}}}, {{"Out", {s.out}}}, {{"axis", Ints{1, 0}}});
        break;
      case Step::kScatter:
        b.Op("scatter", {{"X", {s.x}}, {"Ids", {"permutation"}}, {"Updates", {s.y}}},
             {{"Out", {s.out}}});
        break;
      case Step::kJoin:
        EmitJoin(b, s);
        break;
      default:
        EmitBlock(b, s);
    }
  }
}

bool RandomProgram::Run(const std::vector<Step>& steps, State* state) const {
  for (const Step& s : steps) {
    if (s.kind == Step::kIf || s.kind == Step::kWhile) {
      const int times = s.kind == Step::kIf ? flags_[s.flag] : s.trips;
      for (int k = 0; k < times; ++k)
        if (!Run(s.body, state)) return false;
      continue;
    }
    const std::vector<float> x = (*state)[s.x].values;
    const std::vector<float> y = s.y.empty() ? x : (*state)[s.y].values;
    Var out{s.shape, x};
    for (size_t i = 0; i < 6; ++i) {
      float& o = out.values[i];
      switch (s.kind) {
        case Step::kScale:
          o = x[i] * s.scale + s.bias;
          break;
        case Step::kRelu:
          o = x[i] < 0 ? 0 : x[i];
          break;
        case Step::kAdd:
          o = x[i] + y[i];
          break;
        case Step::kSub:
          o = x[i] - y[i];
          break;
        case Step::kMax:
          o = std::max(x[i], y[i]);
          break;
        case Step::kTranspose: {
          const size_t rows = static_cast<size_t>(s.shape[0]), columns = 6 / rows;
          o = x[i % columns * rows + i / columns];
          break;
        }
        case Step::kScatter:
          out.values[static_cast<size_t>(kPermutation[i])] = y[i];
          break;
        case Step::kJoin: {
          const float scaled = x[i] * s.scale + s.bias, all[] = {scaled, y[i], x[i], scaled};
          o = 2 * all[s.parts[0]] - 2 * all[s.parts[1]];
          break;
        }
        default:
          break;
      }
    }
    for (float v : out.values)
      if (std::fabs(v) > 1e30f) return false;
    (*state)[s.out] = std::move(out);
  }
  return true;
}

bool RandomProgram::Execute(State* state) const { return Run(steps_, state); }

std::vector<heddle::Feed> RandomProgram::Feeds() const {
  std::vector<heddle::Feed> feeds;
  for (const char* name : {"a", "b", "c"}) {
    const Var& v = start_.at(name);
    feeds.push_back({name, F32(v.shape, v.values)});
  }
  feeds.push_back({"permutation", I64({6}, {std::begin(kPermutation), std::end(kPermutation)})});
  for (int f = 0; f < 2; ++f) feeds.push_back({"flag" + std::to_string(f), Bool(flags_[f])});
  return feeds;
}

std::shared_ptr<Scope> RandomProgram::NewScope() const {
  auto scope = std::make_shared<Scope>();
  for (const std::string& name : parameters_)
    scope->Set(name, F32(start_.at(name).shape, start_.at(name).values));
  return scope;
}

}  // namespace heddle::testing
