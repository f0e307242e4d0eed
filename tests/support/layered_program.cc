#include "tests/support/layered_program.h"

#include <map>

namespace heddle::testing {

LayeredProgram::LayeredProgram(const Options& options)
    : options_(options), random_(options.seed * 2654435761u + 1) {
  const bool conv = options.kind == Kind::kConv;
  const Shape shape = conv ? Shape{1, options.width, options.rows, options.rows}
                           : Shape{options.rows, options.width};
  b_.Feed("x", DType::kF32, options.open && !conv ? Shape{-1, options.width} : shape);
  feeds_.push_back({"x", RandomF32(shape, options.seed)});
  ChooseSteps();
  std::string now = Op("scale", {{"X", {"x"}}}, {{"scale", 0.5}}), before = now;
  for (int layer = 0; layer < options.layers; ++layer) {
    const std::string name = "layer" + std::to_string(layer);
    const bool odd = layer == options.odd;
    std::string next;
    switch (options.kind) {
      case Kind::kTransformer:
        next = Transformer(now, name, odd);
        break;
      case Kind::kMlp:
        next = Mlp(now, name, odd);
        break;
      case Kind::kConv:
        next = Conv(now, name, odd);
        break;
      case Kind::kRandom:
      case Kind::kTraining:
        next = Random(now, before, name, odd);
        break;
    }
    before = std::exchange(now, next);
  }
  const std::string last = Op("tanh", {{"X", {now}}});
  b_.Fetch(last);
  if (options.kind == Kind::kTraining) AddGradients(now);
  program_ = b_.Build();
}

std::shared_ptr<Scope> LayeredProgram::NewScope() const {
  auto scope = std::make_shared<Scope>();
  uint32_t seed = options_.seed;
  for (const Value& v : parameters_) {
    Tensor t = RandomF32(v.shape, ++seed, v.bound);
    if (v.offset != 0)
      for (int64_t i = 0; i < t.numel(); ++i) t.mutable_data<float>()[i] += v.offset;
    scope->Set(v.name, std::move(t));
  }
  return scope;
}

std::string LayeredProgram::Param(const std::string& name, const Shape& shape, float bound,
                                  float offset) {
  b_.Param(name, DType::kF32, shape);
  parameters_.push_back({name, shape, bound, offset});
  parameter_names_.push_back(name);
  return name;
}

std::string LayeredProgram::Op(const std::string& type, Slots inputs, const Attrs& attrs,
                               const char* out) {
  const std::string name = "v" + std::to_string(numbers_++);
  b_.Op(type, inputs, {{out, {name}}}, attrs);
  return name;
}

std::string LayeredProgram::Product(const std::string& x, const std::string& name, int from,
                                    int to) {
  const float bound = 1.5f / std::max(1.0f, static_cast<float>(from) / 16);
  const std::string w = Param(name + ".w", {from, to}, bound / 4);
  const std::string p = Op("matmul_v2", {{"X", {x}}, {"Y", {w}}});
  return Op("elementwise_add", {{"X", {p}}, {"Y", {Param(name + ".b", {to}, 0.1f)}}});
}

std::string LayeredProgram::Norm(const std::string& x, const std::string& name) {
  const std::string out = "v" + std::to_string(numbers_++);
  b_.Op("layer_norm",
        {{"X", {x}},
         {"Scale", {Param(name + ".scale", {options_.width}, 0.2f, 1)}},
         {"Bias", {Param(name + ".bias", {options_.width}, 0.1f)}}},
        {{"Y", {out}}, {"Mean", {out + ".mean"}}, {"Variance", {out + ".variance"}}},
        {{"begin_norm_axis", int64_t{1}}, {"epsilon", 1e-5}});
  return out;
}

std::string LayeredProgram::Transformer(const std::string& x, const std::string& name, bool odd) {
  const int width = options_.width, heads = 4;
  std::vector<std::string> parts;
  for (const char* part : {".q", ".k", ".v"}) {
    const std::string p = Product(x, name + part, width, width);
    const std::string r =
        Op("reshape2", {{"X", {p}}}, {{"shape", Ints{1, -1, heads, width / heads}}});
    parts.push_back(Op("transpose2", {{"X", {r}}}, {{"axis", Ints{0, 2, 1, 3}}}));
  }
  const std::string scaled = Op("scale", {{"X", {parts[0]}}}, {{"scale", 0.25}});
  const std::string scores =
      Op("matmul_v2", {{"X", {scaled}}, {"Y", {parts[1]}}}, {{"trans_y", true}});
  const std::string weights = Op("softmax", {{"X", {scores}}}, {{"axis", int64_t{-1}}});
  const std::string mixed = Op("matmul_v2", {{"X", {weights}}, {"Y", {parts[2]}}});
  const std::string back = Op("transpose2", {{"X", {mixed}}}, {{"axis", Ints{0, 2, 1, 3}}});
  const std::string flat = Op("reshape2", {{"X", {back}}}, {{"shape", Ints{-1, width}}});
  const std::string out = Product(flat, name + ".out", width, width);
  const std::string normed = Norm(Op("elementwise_add", {{"X", {out}}, {"Y", {x}}}), name + ".n1");
  const std::string wide = Product(normed, name + ".up", width, 4 * width);
  const std::string active = Op(odd ? "tanh" : "gelu", {{"X", {wide}}});
  const std::string down = Product(active, name + ".down", 4 * width, width);
  return Norm(Op("elementwise_add", {{"X", {down}}, {"Y", {normed}}}), name + ".n2");
}

std::string LayeredProgram::Mlp(const std::string& x, const std::string& name, bool odd) {
  const int width = options_.width;
  const std::string a =
      Op(odd ? "sigmoid" : "relu", {{"X", {Product(x, name + ".a", width, 2 * width)}}});
  const std::string b = Op("tanh", {{"X", {Product(a, name + ".b", 2 * width, width)}}});
  return Op("elementwise_add", {{"X", {b}}, {"Y", {x}}});
}

std::string LayeredProgram::Conv(const std::string& x, const std::string& name, bool odd) {
  const int width = options_.width;
  std::string now = x;
  for (const char* part : {".a", ".b"}) {
    const std::string n = name + part;
    const Attrs attrs = {{"paddings", Ints{1, 1}}, {"strides", Ints{1, 1}}};
    now =
        Op("conv2d", {{"Input", {now}}, {"Filter", {Param(n + ".w", {width, width, 3, 3}, 0.1f)}}},
           attrs, "Output");
    const std::string out = "v" + std::to_string(numbers_++);
    const std::string mean = Param(n + ".mean", {width}, 0.1f);
    const std::string variance = Param(n + ".variance", {width}, 0.2f, 1);
    b_.Op("batch_norm",
          {{"X", {now}},
           {"Scale", {Param(n + ".scale", {width}, 0.2f, 1)}},
           {"Bias", {Param(n + ".bias", {width}, 0.1f)}},
           {"Mean", {mean}},
           {"Variance", {variance}}},
          {{"Y", {out}},
           {"MeanOut", {mean}},
           {"VarianceOut", {variance}},
           {"SavedMean", {out + ".mean"}},
           {"SavedVariance", {out + ".variance"}}},
          {{"is_test", true}});
    now = Op(odd ? "tanh" : "relu", {{"X", {out}}});
  }
  return Op("elementwise_add", {{"X", {now}}, {"Y", {x}}});
}

// The steps of each layer of the random kinds: value 0 is the layer's operand.
void LayeredProgram::ChooseSteps() {
  const bool training = options_.kind == Kind::kTraining;
  const int count = 5 + Pick(8);
  for (int k = 0; k < count; ++k) {
    Step s;
    const int kind = k == 0 ? 0 : Pick(training ? 7 : 10);
    s.kind = kind < 2   ? Step::kProduct
             : kind < 3 ? Step::kBias
             : kind < 5 ? Step::kActivation
             : kind < 7 ? Step::kSum
             : kind < 9 ? Step::kNorm
                        : Step::kOld;
    // Mostly the newest value, so that few are read by nobody.
    s.from = Pick(3) > 0 ? k : Pick(k + 1);
    s.with = Pick(k + 1);
    s.type = training ? (Pick(2) == 0 ? "relu" : "tanh")
                      : std::vector<std::string>{"relu", "tanh", "sigmoid",
                                                 "gelu"}[static_cast<size_t>(Pick(4))];
    steps_.push_back(s);
  }
}

std::string LayeredProgram::Random(const std::string& x, const std::string& old,
                                   const std::string& name, bool odd) {
  const int width = options_.width;
  std::vector<std::string> values = {x};
  for (size_t k = 0; k < steps_.size(); ++k) {
    const Step& s = steps_[k];
    const std::string p = name + "." + std::to_string(k);
    Made made{s, values[static_cast<size_t>(s.from)], "", ""};
    switch (s.kind) {
      case Step::kProduct:
        made.y = Param(p + ".w", {width, width}, 2.0f / static_cast<float>(width));
        made.out = Op("matmul_v2", {{"X", {made.x}}, {"Y", {made.y}}});
        break;
      case Step::kBias:
        made.y = Param(p + ".b", {width}, 0.1f);
        made.out = Op("elementwise_add", {{"X", {made.x}}, {"Y", {made.y}}});
        break;
      case Step::kActivation:
        if (odd) made.step.type = s.type == "tanh" ? "relu" : "tanh";
        made.out = Op(made.step.type, {{"X", {made.x}}});
        break;
      case Step::kSum:
        made.y = values[static_cast<size_t>(s.with)];
        made.out = Op("elementwise_add", {{"X", {made.x}}, {"Y", {made.y}}});
        break;
      case Step::kNorm:
        made.out = Norm(made.x, p);
        break;
      case Step::kOld:
        made.y = old;
        made.out = Op("elementwise_add", {{"X", {made.x}}, {"Y", {made.y}}});
        break;
    }
    made_.push_back(made);
    values.push_back(made.out);
  }
  return values.back();
}

// Adds the gradients of the sum of the last value's squares, in the layers' reverse order, and an
// update of each parameter.
void LayeredProgram::AddGradients(const std::string& last) {
  std::map<std::string, std::vector<std::string>> found;  // by value: its gradients so far
  const auto gradient_of = [&](const std::string& value) -> std::string {
    std::vector<std::string>& all = found[value];
    if (all.empty()) return "";
    if (all.size() > 1) all = {Op("sum", {{"X", all}})};
    return all[0];
  };
  found[last] = {Op("scale", {{"X", {last}}}, {{"scale", 0.01}})};
  const auto grad = [&](const std::string& type, Slots inputs, const Made& m, bool two,
                        const Attrs& attrs = {}) {
    const std::string dx = "g" + std::to_string(numbers_++);
    Slots outputs = {{"X@GRAD", {dx}}};
    if (two) outputs.push_back({"Y@GRAD", {dx + "y"}});
    b_.Op(type, inputs, outputs, attrs);
    found[m.x].push_back(dx);
    if (two) found[m.y].push_back(dx + "y");
  };
  for (auto m = made_.rbegin(); m != made_.rend(); ++m) {
    const std::string d = gradient_of(m->out);
    if (d.empty()) continue;  // nobody reads the value
    if (m->step.kind == Step::kActivation)
      grad(m->step.type + "_grad", {{"Out", {m->out}}, {"Out@GRAD", {d}}}, *m, false);
    else
      grad(m->step.kind == Step::kProduct ? "matmul_v2_grad" : "elementwise_add_grad",
           {{"X", {m->x}}, {"Y", {m->y}}, {"Out@GRAD", {d}}}, *m, true);
  }
  const std::string rate = Param("rate", {1}, 0, 0.05f);
  for (const std::string& p : std::vector<std::string>(parameter_names_)) {
    const std::string d = gradient_of(p);
    if (p == rate || d.empty()) continue;
    b_.Op("sgd", {{"Param", {p}}, {"Grad", {d}}, {"LearningRate", {rate}}}, {{"ParamOut", {p}}});
  }
}

}  // namespace heddle::testing
