#include "tests/support/net_program.h"

#include <algorithm>

#include "core/shapes.h"

namespace heddle::testing {
namespace {

Ints Dims(const Shape& s) { return {s.begin(), s.end()}; }
Attrs Is(const std::string& name, AttrValue v) { return {{name, std::move(v)}}; }

}  // namespace

NetProgram::NetProgram(uint32_t seed, int ops) : rng_(seed) {
  Feed(DType::kF32, {2, 3, 4}, 1);
  Feed(DType::kF32, {4, 6}, 1);
  Feed(DType::kF32, {4, 6}, 1);
  Feed(DType::kF32, {2, 3, 6, 6}, 1);
  Feed(DType::kI64, {4, 6}, 3);
  builder_.Feed("flag", DType::kBool, {1});
  feeds_.push_back({"flag", Bool(Pick(2) == 0)});
  for (int p = 0; p < 2; ++p) updated_.push_back(Param({4, 6}, 1));
  Param({6}, 1);
  Param({6, 6}, 0.5);
  while (count_ < ops) Step();
  if (OneIn(4)) Projections();
  if (OneIn(4)) ProductsOfOne();
  if (OneIn(4)) SummedGradients();
  if (OneIn(4)) ReshapedElements();
  if (OneIn(4)) Calls();
  if (seed % 8 == 1) ConvolutionChain();
  if (seed % 8 == 3) Quantized();
  if (seed % 8 == 5) JoinedProduct();
  // Results from anywhere, and the last ones.
  for (size_t i = 0; i < vars_.size(); ++i)
    if (vars_[i].writable && (OneIn(5) || i + 2 >= vars_.size())) builder_.Fetch(vars_[i].name);
  builder_.Fetch(vars_[0].name);
}

Tensor NetProgram::RandomTensor(DType dtype, const Shape& shape, double bound) {
  std::uniform_real_distribution<float> value(static_cast<float>(-bound),
                                              static_cast<float>(bound));
  const auto n = static_cast<size_t>(shape.numel());
  if (dtype == DType::kI64) {
    std::vector<int64_t> v(n);
    for (int64_t& x : v) x = Pick(static_cast<int>(bound) + 1);
    return I64(shape, v);
  }
  std::vector<float> v(n);
  for (float& x : v) x = value(rng_);
  return F32(shape, v);
}

std::string NetProgram::Feed(DType dtype, const Shape& shape, double bound) {
  const std::string name = "in" + std::to_string(feeds_.size());
  builder_.Feed(name, dtype, shape);
  feeds_.push_back({name, RandomTensor(dtype, shape, bound)});
  vars_.push_back({name, shape, dtype, bound, OneIn(2)});
  return name;
}

std::string NetProgram::Param(const Shape& shape, double bound, bool positive) {
  const std::string name = "w" + std::to_string(params_.size());
  const int block = builder_.current();
  builder_.In(0).Param(name, DType::kF32, shape).In(block);
  Tensor t = RandomTensor(DType::kF32, shape, bound);
  for (int64_t i = 0; positive && i < t.numel(); ++i)
    t.mutable_data<float>()[i] = 0.5f + std::abs(t.data<float>()[i]);
  params_.emplace_back(name, std::move(t));
  vars_.push_back({name, shape, DType::kF32, bound + 0.5 * positive, false});
  return name;
}

std::shared_ptr<Scope> NetProgram::NewScope() const {
  auto scope = std::make_shared<Scope>();
  for (const auto& [name, value] : params_) scope->Set(name, Value(value.Clone()));
  return scope;
}

std::string NetProgram::NewVar(const Shape& shape, DType dtype, double bound, bool writable) {
  const std::string name = "v" + std::to_string(names_++);
  builder_.Var(name, dtype, shape);
  vars_.push_back({name, shape, dtype, bound, writable});
  return name;
}

std::string NetProgram::Out(const Shape& shape, DType dtype, double bound) {
  Var old;
  if ((nested_ ? OneIn(2) : OneIn(4)) &&
      Choose([&](const Var& v) { return v.writable && v.shape == shape && v.dtype == dtype; },
             &old)) {
    for (Var& v : vars_)
      if (v.name == old.name) v.bound = std::max(bound, nested_ ? v.bound : 0.0);
    return old.name;
  }
  return NewVar(shape, dtype, bound);
}

void NetProgram::Op(const std::string& type, const Slots& in, const Slots& out,
                    const Attrs& attrs) {
  builder_.Op(type, in, out, attrs);
  if (!nested_) emitted_.push_back({type, in, out, attrs});
  ++count_;
}

void NetProgram::Step() {
  Var x;
  const auto any = [&](auto&& test) { return Choose(test, &x); };
  const auto f32 = [](const Var& v) { return v.dtype == DType::kF32; };
  constexpr int kNested[] = {0, 0, 0, 1, 1, 1, 2, 4};
  switch (nested_ ? kNested[Pick(8)] : Pick(14)) {
    case 0:
      if (any(f32)) Unary(x);
      break;
    case 1:
      if (any(f32)) Binary(x);
      break;
    case 2:
    case 3:
      if (any([&](const Var& v) { return f32(v) && v.shape.rank() >= 2 && v.bound < 10; }))
        Product(x);
      break;
    case 4:
    case 5:
      if (any([&](const Var& v) {
            return f32(v) && v.shape.rank() == 4 && v.shape[2] > 2 && v.bound < 10;
          }))
        Convolution(x);
      break;
    case 6:
      if (any([&](const Var& v) { return f32(v) && v.shape.rank() >= 2; })) Norm(x);
      break;
    case 7:
      if (any([&](const Var& v) { return f32(v) && v.shape.rank() >= 2 && v.bound < 10; }))
        Reduce(x);
      break;
    case 8:
      if (any([](const Var& v) { return v.shape.rank() >= 2 && v.dtype != DType::kF64; }))
        Layout(x);
      break;
    case 9:
      if (any([](const Var&) { return true; })) Nothing(x);
      break;
    case 10:
      Parameters();
      break;
    case 11:
      Again();
      break;
    case 12:
      if (OneIn(4))
        Recurrence();
      else if (OneIn(2))
        SubBlock();
      else
        Update();
      break;
    default:
      if (!any([](const Var&) { return true; })) break;
      if (OneIn(3))
        Arrays(x);
      else
        Cast(x);
  }
}

void NetProgram::Unary(const Var& x) {
  struct Form {
    const char* type;
    Attrs attrs;
    double bound;
  };
  const std::vector<Form> forms = {{"tanh", {}, 1},
                                   {"sigmoid", {}, 1},
                                   {"relu", {}, x.bound},
                                   {"gelu", {{"approximate", OneIn(2)}}, x.bound},
                                   {"leaky_relu", Is("alpha", 0.1), x.bound},
                                   {"relu6", Is("threshold", 6.0), 6},
                                   {"hard_swish", {}, x.bound + 1},
                                   {"abs", {}, x.bound},
                                   {"scale", {{"scale", 0.5}, {"bias", 0.25}}, x.bound / 2 + 1},
                                   {"scale", {{"scale", 1.0}, {"bias", -0.5}}, x.bound + 1}};
  const Form& f = forms[static_cast<size_t>(x.bound > 10 ? Pick(2) : Pick(10))];
  Op(f.type, {{"X", {x.name}}}, {{"Out", {Out(x.shape, x.dtype, f.bound)}}}, f.attrs);
}

void NetProgram::Binary(const Var& x) {
  const char* kTypes[] = {"elementwise_add", "elementwise_sub", "elementwise_mul",
                          "elementwise_max", "elementwise_min"};
  const int kind = Pick(5);
  Var y;
  const auto fits = [&](const Var& v) {
    if (v.dtype != DType::kF32 || v.bound > 10 || x.bound > 10) return false;
    return v.shape == x.shape || (v.shape.rank() == 1 && !nested_ && v.shape[0] == x.shape.dim(-1));
  };
  if (x.shape.rank() == 0 || !Choose(fits, &y)) return;
  const double bound = kind == 2 ? x.bound * y.bound : x.bound + y.bound;
  Op(kTypes[kind], {{"X", {x.name}}, {"Y", {y.name}}}, {{"Out", {Out(x.shape, x.dtype, bound)}}});
}

void NetProgram::Activation(const std::string& x, const Shape& shape) {
  const char* kTypes[] = {"relu", "tanh", "sigmoid", "gelu"};
  const int kind = Pick(4);
  Op(kTypes[kind], {{"X", {x}}}, {{"Out", {NewVar(shape, DType::kF32, 20)}}},
     kind == 3 ? Is("approximate", false) : Attrs{});
  vars_.back().bound = kind == 1 || kind == 2 ? 1 : 20;
}

void NetProgram::Attention(const Var& x) {
  Var k, v;
  const auto like = [&](const Var& other) {
    return other.dtype == x.dtype && other.shape == x.shape && other.bound < 10;
  };
  if (!Choose(like, &k) || !Choose(like, &v)) return;
  const Shape to{x.shape[0], x.shape[1], x.shape[2], x.shape[2]};
  const std::string product = NewVar(to, x.dtype, 20), scores = NewVar(to, x.dtype, 20),
                    weights = NewVar(to, x.dtype, 1);
  Op("matmul_v2", {{"X", {x.name}}, {"Y", {k.name}}}, {{"Out", {product}}}, Is("trans_y", true));
  Op("scale", {{"X", {product}}}, {{"Out", {scores}}}, Is("scale", 0.01));
  Op("softmax", {{"X", {scores}}}, {{"Out", {weights}}});
  Op("matmul_v2", {{"X", {weights}}, {"Y", {v.name}}}, {{"Out", {Out(x.shape, x.dtype, v.bound)}}});
}

void NetProgram::Product(const Var& x) {
  if (x.shape.rank() == 4 && OneIn(2)) return Attention(x);
  const int64_t k = x.shape.dim(-1), n = OneIn(2) ? 6 : 4;
  const bool transposed = OneIn(3);
  const std::string w = Param(transposed ? Shape{n, k} : Shape{k, n}, 0.5);
  Shape to = x.shape;
  to[to.rank() - 1] = n;
  const double bound = x.bound * 0.5 * static_cast<double>(k);
  std::string out = Out(to, DType::kF32, bound);
  Op("matmul_v2", {{"X", {x.name}}, {"Y", {w}}}, {{"Out", {out}}}, Is("trans_y", transposed));
  if (OneIn(3)) return;
  const std::string sum = NewVar(to, DType::kF32, bound + 1), bias = Param({n}, 1);
  Op("elementwise_add", {{"X", {out}}, {"Y", {bias}}}, {{"Out", {sum}}});
  if (OneIn(2)) Activation(sum, to);
}

void NetProgram::Convolution(const Var& x) {
  const int64_t channels = x.shape[1];
  const bool depthwise = OneIn(4);
  const int64_t to_channels = depthwise ? channels : OneIn(2) ? 3 : 4;
  const std::string w = Param({to_channels, depthwise ? 1 : channels, 3, 3}, 0.2);
  const Shape to{x.shape[0], to_channels, x.shape[2], x.shape[3]};
  const double bound = x.bound * 2 * static_cast<double>(depthwise ? 1 : channels);
  std::string last = NewVar(to, DType::kF32, bound);
  Op(depthwise ? "depthwise_conv2d" : "conv2d", {{"Input", {x.name}}, {"Filter", {w}}},
     {{"Output", {last}}},
     {{"paddings", Ints{1, 1}}, {"groups", depthwise ? channels : int64_t{1}}});
  if (OneIn(2)) {
    const std::string scale = Param({to_channels}, 1), bias = Param({to_channels}, 1),
                      mean = Param({to_channels}, 0.5), var = Param({to_channels}, 1, true),
                      out = NewVar(to, DType::kF32, bound * 2 + 2);
    Slots outputs = {{"Y", {out}}};
    if (OneIn(2)) {
      outputs.push_back({"MeanOut", {mean}});
      outputs.push_back({"VarianceOut", {var}});
    }
    Op("batch_norm",
       {{"X", {last}}, {"Scale", {scale}}, {"Bias", {bias}}, {"Mean", {mean}}, {"Variance", {var}}},
       outputs, Is("is_test", true));
    if (!nested_) emitted_.pop_back();  // its parameters are used once
    last = out;
  } else if (OneIn(2)) {
    const std::string bias = Param({to_channels}, 1), out = NewVar(to, DType::kF32, bound + 1);
    Op("elementwise_add", {{"X", {last}}, {"Y", {bias}}}, {{"Out", {out}}}, Is("axis", int64_t{1}));
    last = out;
  }
  if (OneIn(2)) Activation(last, to);
}

void NetProgram::Norm(const Var& x) {
  if (OneIn(2)) {
    Op("softmax", {{"X", {x.name}}}, {{"Out", {Out(x.shape, x.dtype, 1)}}});
    return;
  }
  const std::string scale = Param({x.shape.dim(-1)}, 1), bias = Param({x.shape.dim(-1)}, 1);
  std::string from = x.name;
  Var y;
  if (OneIn(2) &&
      Choose([&](const Var& v) { return v.dtype == x.dtype && v.shape == x.shape; }, &y)) {
    from = NewVar(x.shape, x.dtype, x.bound + y.bound);
    Op("elementwise_add", {{"X", {x.name}}, {"Y", {y.name}}}, {{"Out", {from}}});
  }
  Op("layer_norm", {{"X", {from}}, {"Scale", {scale}}, {"Bias", {bias}}},
     {{"Y", {Out(x.shape, x.dtype, 4)}}},
     {{"begin_norm_axis", int64_t{x.shape.rank() - 1}}, {"epsilon", 0.1}});
}

void NetProgram::Reduce(const Var& x) {
  if (x.shape.rank() == 4 && OneIn(2)) {
    const Shape to{x.shape[0], x.shape[1], (x.shape[2] - 2) / 2 + 1, (x.shape[3] - 2) / 2 + 1};
    if (to[2] < 1 || x.shape[2] < 2 || x.shape[3] < 2) return;
    Op("pool2d", {{"X", {x.name}}}, {{"Out", {Out(to, x.dtype, x.bound)}}},
       {{"ksize", Ints{2, 2}},
        {"strides", Ints{2, 2}},
        {"pooling_type", std::string(OneIn(2) ? "max" : "avg")}});
    return;
  }
  Shape to = x.shape;
  to[to.rank() - 1] = 1;
  const bool sum = OneIn(2);
  const double bound = sum ? x.bound * static_cast<double>(x.shape.dim(-1)) : x.bound;
  Op(sum ? "reduce_sum" : "reduce_mean", {{"X", {x.name}}}, {{"Out", {Out(to, x.dtype, bound)}}},
     {{"dim", Ints{-1}}, {"keep_dim", true}});
}

void NetProgram::Layout(const Var& x) {
  if (x.dtype == DType::kF32 && x.shape.numel() < 300 && OneIn(4)) return Shuffle(x);
  const int rank = x.shape.rank();
  const int kind = Pick(5);
  if (kind <= 1) {
    Ints axis;
    Shape to;
    for (int i = 0; i < rank; ++i) axis.push_back(i);
    std::shuffle(axis.begin(), axis.end(), rng_);
    for (int64_t a : axis) to.push_back(x.shape[static_cast<int>(a)]);
    std::string from = x.name;
    if (OneIn(3)) {  // in two steps
      Ints back;
      for (int i = rank; i-- > 0;) back.push_back(i);
      Shape turned;
      for (int64_t a : back) turned.push_back(x.shape[static_cast<int>(a)]);
      from = NewVar(turned, x.dtype, x.bound);
      Op("transpose2", {{"X", {x.name}}}, {{"Out", {from}}}, Is("axis", back));
      for (int64_t& a : axis) a = rank - 1 - a;
    }
    Op("transpose2", {{"X", {from}}}, {{"Out", {Out(to, x.dtype, x.bound)}}}, Is("axis", axis));
  } else if (kind == 2) {
    const Shape to =
        rank == 2 ? Shape{x.shape[1], 1, x.shape[0]} : Shape{x.shape[0], x.shape.Product(1, rank)};
    Ints dims = Dims(to);
    if (OneIn(2)) dims[0] = -1;
    std::string from = x.name;
    if (OneIn(2)) {  // in two steps
      from = NewVar({x.shape.numel()}, x.dtype, x.bound);
      Op("reshape2", {{"X", {x.name}}}, {{"Out", {from}}}, Is("shape", Ints{-1}));
    }
    Op("reshape2", {{"X", {from}}}, {{"Out", {Out(to, x.dtype, x.bound)}}}, Is("shape", dims));
  } else if (kind == 3 && x.shape[0] == 4) {
    Shape half = x.shape;
    half[0] = 2;
    const std::string a = NewVar(half, x.dtype, x.bound), b = NewVar(half, x.dtype, x.bound);
    Op("split", {{"X", {x.name}}}, {{"Out", {a, b}}}, {{"axis", int64_t{0}}, {"num", int64_t{2}}});
    Op("concat", {{"X", {b, a}}}, {{"Out", {Out(x.shape, x.dtype, x.bound)}}},
       Is("axis", int64_t{0}));
  } else if (x.shape[1] > 1) {
    Shape to = x.shape;
    to[1] -= 1;
    Op("slice", {{"Input", {x.name}}}, {{"Out", {Out(to, x.dtype, x.bound)}}},
       {{"axes", Ints{1}}, {"starts", Ints{0}}, {"ends", Ints{to[1]}}});
  }
}

// What changes nothing.
void NetProgram::Nothing(const Var& x) {
  const auto out = [&] { return Out(x.shape, x.dtype, x.bound); };
  const int rank = x.shape.rank();
  const int kind = Pick(6);
  const Slots in = {{"X", {x.name}}};
  Ints axis;
  for (int i = 0; i < rank; ++i) axis.push_back(i);
  if (kind == 1 && x.dtype == DType::kF32) {
    Op("scale", in, {{"Out", {out()}}}, {{"scale", 1.0}, {"bias", 0.0}});
  } else if (kind == 2) {
    Op("cast", in, {{"Out", {out()}}},
       {{"in_dtype", DTypeToProto(x.dtype)}, {"out_dtype", DTypeToProto(x.dtype)}});
  } else if (kind == 3 && rank > 0) {
    Op("transpose2", in, {{"Out", {out()}}}, Is("axis", axis));
  } else if (kind == 4 && rank > 0) {
    Op("reshape2", in, {{"Out", {out()}}}, Is("shape", Dims(x.shape)));
  } else if (kind == 5 && x.dtype == DType::kF32) {
    Op("dropout", in, {{"Out", {out()}}},
       {{"is_test", true}, {"dropout_implementation", std::string("upscale_in_train")}});
  } else {
    Op("assign", in, {{"Out", {out()}}});
  }
}

// What parameters and constants alone give.
void NetProgram::Parameters() {
  Var w;
  const auto constant = [&](const Var& v) {
    return v.name[0] == 'w' && v.shape.rank() == 2 &&
           std::find(updated_.begin(), updated_.end(), v.name) == updated_.end();
  };
  if (!Choose(constant, &w)) return;
  if (OneIn(3)) {
    const std::string c = NewVar(w.shape, DType::kF32, 1, false);
    Op("fill_constant", {}, {{"Out", {c}}}, {{"shape", Dims(w.shape)}, {"value", 0.5}});
    Op("elementwise_mul", {{"X", {w.name}}, {"Y", {c}}},
       {{"Out", {NewVar(w.shape, DType::kF32, w.bound)}}});
  } else if (OneIn(2)) {
    Op("transpose2", {{"X", {w.name}}},
       {{"Out", {NewVar({w.shape[1], w.shape[0]}, DType::kF32, w.bound)}}}, Is("axis", Ints{1, 0}));
  } else {
    Op("scale", {{"X", {w.name}}}, {{"Out", {Out(w.shape, DType::kF32, w.bound)}}},
       Is("scale", 0.75));
  }
}

// The same operator a second time, to new variables.
void NetProgram::Again() {
  if (emitted_.empty()) return;
  Emitted e = emitted_[static_cast<size_t>(Pick(static_cast<int>(emitted_.size())))];
  // One whose variables have kept their shapes and bounds.
  for (auto& [slot, names] : e.out) {
    for (std::string& name : names) {
      const auto v = std::find_if(vars_.begin(), vars_.end(),
                                  [&](const Var& known) { return known.name == name; });
      if (v == vars_.end()) return;
      const Var old = *v;
      name = NewVar(old.shape, old.dtype, 20);
    }
  }
  if (e.in.size() == 2 && e.type == "elementwise_add" && OneIn(2) && e.attrs.empty()) {
    const auto shape = [&](const std::string& name) {
      for (const Var& v : vars_)
        if (v.name == name) return v.shape;
      return Shape::Unknown();
    };
    if (shape(e.in[0].second[0]) == shape(e.in[1].second[0]))
      std::swap(e.in[0].second, e.in[1].second);
  }
  Op(e.type, e.in, e.out, e.attrs);
}

void NetProgram::Update() {
  Var x;
  if (!Choose(
          [](const Var& v) {
            return v.dtype == DType::kF32 && v.shape == Shape{4, 6} && v.bound <= 4;
          },
          &x))
    return;
  const std::string& p = updated_[static_cast<size_t>(Pick(2))];
  const bool halves = OneIn(2);
  if (count_ % 3 == 0 && !nested_) {
    SparseUpdate(p);
    x.bound += 1;
  } else if (halves) {
    Op("scale", {{"X", {p}}}, {{"Out", {p}}}, Is("scale", 0.5));
  } else {
    Op("assign", {{"X", {x.name}}}, {{"Out", {p}}});
  }
  for (Var& v : vars_)
    if (v.name == p) v.bound = std::max(v.bound, x.bound);
}

// Rewrites variables that exist, or not, or several times.
void NetProgram::SubBlock() {
  const bool loop = OneIn(2);
  const std::string id = std::to_string(names_++), i = "i" + id, n = "n" + id, go = "go" + id;
  if (loop) {
    builder_.Fill(i, {1}, 0, DType::kI64).Fill(n, {1}, Pick(3), DType::kI64);
    builder_.Binary("less_than", i, n, go);
  }
  const int body = builder_.Block(0);
  builder_.In(body);
  const int first = builder_.desc().blocks(body).ops_size();
  const size_t vars = vars_.size();
  nested_ = true;
  for (int k = 1 + Pick(7); k > 0; --k) Step();
  if (loop) CarriedTransposed(vars);
  nested_ = false;
  vars_.resize(vars);  // what the block declared is its own
  std::vector<std::string> read, written;
  const auto add = [](std::vector<std::string>* list, const std::string& name) {
    if (std::find(list->begin(), list->end(), name) == list->end()) list->push_back(name);
  };
  const auto& ops = builder_.desc().blocks(body);
  for (int k = first; k < ops.ops_size(); ++k) {
    for (const auto& slot : ops.ops(k).inputs())
      for (const auto& name : slot.arguments()) add(&read, name);
    for (const auto& slot : ops.ops(k).outputs())
      for (const auto& name : slot.arguments()) add(&written, name);
  }
  const auto own = [&](const std::string& name) {
    return std::any_of(ops.vars().begin(), ops.vars().end(),
                       [&](const auto& v) { return v.name() == name; });
  };
  std::erase_if(read, own);
  std::erase_if(written, own);
  for (const std::string& name : written) add(&read, name);  // the block may leave them as they are
  for (Var& v : vars_)
    if (std::find(written.begin(), written.end(), v.name) != written.end()) v.bound = 20;
  if (loop) {
    builder_.Increment(i).Binary("less_than", i, n, go).In(0);
    for (const std::string& name : {i, n}) read.push_back(name);
    for (const std::string& name : {i, go}) written.push_back(name);
    builder_.Op("while", {{"X", read}, {"Condition", {go}}}, {{"Out", written}, {"StepScopes", {}}},
                {{"sub_block", BlockRef{body}}});
  } else {
    builder_.In(0).Op("conditional_block", {{"Cond", {"flag"}}, {"Input", read}},
                      {{"Out", written}, {"Scope", {}}},
                      {{"sub_block", BlockRef{body}}, {"is_scalar_condition", true}});
  }
}

// Two elements written, at places that a counter gives, and one of them read.
void NetProgram::Arrays(const Var& x) {
  Var y;
  if (!Choose([&](const Var& v) { return v.dtype == x.dtype && v.shape == x.shape; }, &y)) return;
  const std::string id = std::to_string(names_++), array = "array" + id, i = "at" + id,
                    k = "k" + id;
  builder_.Array(array).Fill(i, {1}, 0, DType::kI64).Fill(k, {1}, Pick(2), DType::kI64);
  builder_.Op("write_to_array", {{"X", {x.name}}, {"I", {i}}}, {{"Out", {array}}});
  builder_.Increment(i);
  builder_.Op("write_to_array", {{"X", {y.name}}, {"I", {i}}}, {{"Out", {array}}});
  builder_.Op("read_from_array", {{"X", {array}}, {"I", {k}}},
              {{"Out", {Out(x.shape, x.dtype, std::max(x.bound, y.bound))}}});
  count_ += 3;
}

// Queries, keys and values of one tensor, and the attention between them.
void NetProgram::Projections() {
  Var x;
  if (!Choose(
          [](const Var& v) {
            return v.dtype == DType::kF32 && v.shape.rank() == 3 && v.bound < 10;
          },
          &x))
    return;
  const Shape flat{x.shape[0], x.shape[1], 4}, parted{x.shape[0], x.shape[1], 2, 2};
  const double bound = x.bound * 0.5 * static_cast<double>(x.shape[2]) + 1;
  const bool biased = OneIn(2);
  std::vector<std::string> operands;
  for (int k = 0; k < 3; ++k) {
    std::string last = NewVar(flat, DType::kF32, bound);
    Op("matmul_v2", {{"X", {x.name}}, {"Y", {Param({x.shape[2], 4}, 0.5)}}}, {{"Out", {last}}});
    if (biased) {
      const std::string sum = NewVar(flat, DType::kF32, bound);
      Op("elementwise_add", {{"X", {last}}, {"Y", {Param({4}, 1)}}}, {{"Out", {sum}}});
      last = sum;
    }
    operands.push_back(NewVar(parted, DType::kF32, bound));
    Op("reshape2", {{"X", {last}}}, {{"Out", {operands.back()}}}, Is("shape", Ints{0, 0, 2, 2}));
  }
  Op("scaled_dot_attention", {{"Q", {operands[0]}}, {"K", {operands[1]}}, {"V", {operands[2]}}},
     {{"Out", {NewVar(parted, DType::kF32, bound)}}},
     {{"scale", 0.1}, {"layouts", Ints{1, 1, 1, 1}}});
}

// A block as a function, that may rewrite its parameter, and one that calls it.
void NetProgram::Calls() {
  Var x;
  if (!Choose([](const Var& v) { return v.dtype == DType::kF32 && v.bound < 10; }, &x)) return;
  const std::string id = std::to_string(names_++), p = "p" + id, r = "r" + id;
  const auto call = [&](int block, const std::string& from, const std::string& to) {
    builder_.Op("call", {{"X", {from}}}, {{"Out", {to}}},
                {{"sub_block", BlockRef{block}},
                 {"parameters", Strings{p}},
                 {"results", Strings{r}},
                 {"noinline", OneIn(5)}});
    ++count_;
  };
  const int inner = builder_.Block(0), outer = builder_.Block(0);
  const bool rewrites = OneIn(2);
  builder_.In(inner).Var(p, x.dtype, x.shape).Var(r, x.dtype, x.shape).Var("t", x.dtype, x.shape);
  builder_.Unary("tanh", p, rewrites ? p : "t");
  builder_.Binary("elementwise_add", rewrites ? p : "t", x.name, r);
  builder_.In(outer).Var(p, x.dtype, x.shape).Var(r, x.dtype, x.shape).Var("t", x.dtype, x.shape);
  call(inner, p, "t");
  call(inner, OneIn(2) ? p : "t", r);
  builder_.In(0);
  const std::string first = NewVar(x.shape, x.dtype, x.bound + 1);
  call(outer, x.name, first);
  call(OneIn(2) ? inner : outer, first, NewVar(x.shape, x.dtype, x.bound + 1));
}

void NetProgram::Cast(const Var& x) {
  // Never a float to an integer: rounding would become visible.
  const DType to = x.dtype == DType::kF32 ? DType::kF64 : DType::kF32;
  Op("cast", {{"X", {x.name}}}, {{"Out", {Out(x.shape, to, x.bound)}}},
     {{"in_dtype", DTypeToProto(x.dtype)}, {"out_dtype", DTypeToProto(to)}});
}

}  // namespace heddle::testing
