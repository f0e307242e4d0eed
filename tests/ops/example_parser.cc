#include "tests/ops/example_parser.h"

#include <algorithm>
#include <set>

#include "core/error.h"
#include "tests/ops/example_words.h"

namespace heddle::testing {
namespace {

struct Statement {
  std::string text;
  int line = 0;
};

// Lines without comments, continuations joined.
std::vector<Statement> Statements(std::string_view text, int line) {
  std::vector<Statement> statements;
  for (size_t at = 0; at < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view one = text.substr(at, end - at);
    at = end + 1;
    if (one.empty() || one[0] == '#') continue;
    if (one[0] == ' ' && !statements.empty())
      statements.back().text += one;
    else
      statements.push_back({std::string(one), line});
  }
  return statements;
}

class Parser {
 public:
  Parser(const std::string& op, const std::string& file) : op_(op), file_(file) {}

  Result<std::vector<Example>> Run(const std::vector<Statement>& statements) {
    for (const Statement& s : statements) {
      try {
        Words words(s.text);
        line_ = s.line;
        One(words.Next("a statement"), &words);
        if (!words.empty()) throw BadExample("'" + std::string(words.rest()) + "' is left over");
      } catch (const BadExample& e) {
        return InvalidArgument(file_, ":", s.line, ": ", e.what());
      }
    }
    if (items_left_ > 0)
      return InvalidArgument(file_, ":", line_, ": the array lacks an 'item' line");
    for (const Example& e : examples_)
      if (e.outputs.empty())
        return InvalidArgument(file_, ":", e.line, ": the example has no 'out' line");
    return std::move(examples_);
  }

 private:
  void One(const std::string& what, Words* words) {
    if (items_left_ > 0) {
      if (what != "item") throw BadExample("the array lacks an 'item' line");
      return Item(words);
    }
    if (what == "example") return Begin(words);
    if (examples_.empty()) throw BadExample("expected 'example', not '" + what + "'");
    Example& e = examples_.back();
    if (what == "in") return In(words, &e);
    if (what == "out") return Out(words, &e);
    if (what == "attr") return Attribute(words, &e);
    if (what == "op") return Operator(words, &e);
    if (what == "var") return Variable(words, &e);
    if (what == "block") return Block(words, &e);
    if (what == "from") return PaddleOperator(words);
    if (what == "close") {
      e.close = {ToDouble(words->Next("RTOL")), ToDouble(words->Next("ATOL"))};
    } else if (what == "random") {
      e.random = true;
    } else if (what == "seed") {
      e.seed = static_cast<uint64_t>(ToInt(words->Next("a number")));
    } else if (what == "dtypes") {
      std::string* const reason = words->Take("none:")   ? &e.no_dtypes
                                  : words->Take("real:") ? &e.no_complex
                                                         : nullptr;
      if (reason == nullptr) throw BadExample("expected 'none:' or 'real:'");
      *reason = TakeRest(words, "a reason");
    } else if (what == "gradient") {
      Gradient(words, &e);
    } else {
      throw BadExample("unknown statement '" + what + "'");
    }
  }

  // "none: REASON", "none of SLOT …: REASON" or "symmetric: REASON".
  static void Gradient(Words* words, Example* e) {
    if (words->Take("symmetric:")) {
      e->symmetric = TakeRest(words, "a reason");
      return;
    }
    if (words->Take("none")) {
      if (!words->Take("of")) throw BadExample("expected 'none:' or 'none of'");
      do {
        e->no_gradient_slots.push_back(words->Next("an operand"));
      } while (e->no_gradient_slots.back().back() != ':');
      e->no_gradient_slots.back().pop_back();
    } else if (!words->Take("none:")) {
      throw BadExample("expected 'none:', 'none of' or 'symmetric:'");
    }
    e->no_gradient = TakeRest(words, "a reason");
  }

  static std::string TakeRest(Words* words, const char* what) {
    std::string rest(words->rest());
    if (rest.empty()) throw BadExample(std::string(what) + " is missing");
    *words = Words("");
    return rest;
  }

  void Begin(Words* words) {
    const std::string title = TakeRest(words, "a title");
    if (!titles_.insert(title).second) throw BadExample("there is an example '" + title + "'");
    examples_.emplace_back();
    Example& e = examples_.back();
    e.op = op_;
    e.title = title;
    e.file = file_;
    e.line = line_;
    block_ = 0;
    attrs_are_paddles_ = false;
  }

  void In(Words* words, Example* e) {
    ExampleInput& in = e->inputs.emplace_back();
    in.slot = words->Next("a slot");
    if (words->Take("array")) return BeginArray(words, &in.value, nullptr);
    const DType dtype = ToDType(words->Next("a dtype"));
    const Shape shape = ToShape(words->Next("a shape"));
    const Options options = TakeOptions(words);
    in.param = options.param;
    Tensor tensor;
    if (words->Take("none")) {
      in.nothing = true;
      tensor = Tensor::Zeros(dtype, shape);
    } else {
      tensor = ToTensor(dtype, shape, words);
    }
    in.value = Dress(std::move(tensor), options);
  }

  void Out(Words* words, Example* e) {
    ExampleOutput& out = e->outputs.emplace_back();
    out.slot = words->Next("a slot");
    if (const size_t equals = out.slot.find('='); equals != std::string::npos) {
      out.same_as = out.slot.substr(equals + 1);
      out.slot.resize(equals);
      if (const size_t dot = out.same_as.rfind('.'); dot != std::string::npos) {
        out.same_index = static_cast<int>(ToInt(out.same_as.substr(dot + 1)));
        out.same_as.resize(dot);
      }
    }
    if (words->Take("?")) {
      out.check = Check::kNothing;
      return;
    }
    if (words->Take("array")) return BeginArray(words, &out.value, &out);
    const DType dtype = ToDType(words->Next("a dtype"));
    const Shape shape = ToShape(words->Next("a shape"));
    const Options options = TakeOptions(words);
    out.value = Dress(Expected(dtype, shape, words, &out), options);
  }

  // The tensor; where its values are not written, one of zeros.
  static Tensor Expected(DType dtype, const Shape& shape, Words* words, ExampleOutput* out) {
    if (words->Take("?")) {
      out->check = Check::kMeta;
    } else if (TakeStatistics(words, &out->statistics)) {
      out->check = Check::kStatistics;
    } else {
      return ToTensor(dtype, shape, words);
    }
    return Tensor::Zeros(dtype, shape);
  }

  static std::pair<double, double> TakePair(Words* words) {
    const double first = ToDouble(words->Next("a number"));
    return {first, ToDouble(words->Next("a second number"))};
  }

  static bool TakeStatistics(Words* words, Statistics* s) {
    bool any = false;
    for (;; any = true) {
      if (words->Take("mean"))
        s->mean = TakePair(words);
      else if (words->Take("var"))
        s->variance = TakePair(words);
      else if (words->Take("range"))
        s->range = TakePair(words);
      else if (words->Take("count"))
        s->distinct = ToInt(words->Next("a number"));
      else
        return any;
    }
  }

  struct Options {
    LoD lod;
    bool param = false, is_rows = false;
    std::vector<int64_t> rows;
    int64_t height = 0;
  };
  static Options TakeOptions(Words* words) {
    Options o;
    while (true) {
      if (words->Take("lod")) {
        o.lod = ToLoD(words->Next("sequence offsets"));
      } else if (words->Take("param")) {
        o.param = true;
      } else if (words->Take("rows")) {
        o.is_rows = true;
        o.rows = ToIntList(words->Next("row numbers"));
        if (!words->Take("height")) throw BadExample("expected 'height'");
        o.height = ToInt(words->Next("a height"));
      } else {
        return o;
      }
    }
  }
  static Value Dress(Tensor tensor, const Options& o) {
    if (!o.lod.empty()) tensor.set_lod(o.lod);
    if (o.is_rows) return Value(SelectedRows{o.rows, o.height, std::move(tensor)});
    return Value(std::move(tensor));
  }

  void BeginArray(Words* words, Value* value, ExampleOutput* out) {
    items_left_ = ToInt(words->Next("a number"));
    items_ = value;
    items_of_ = out;
    *items_ = Value(TensorArray());
  }
  void Item(Words* words) {
    const DType dtype = ToDType(words->Next("a dtype"));
    const Shape shape = ToShape(words->Next("a shape"));
    const Options options = TakeOptions(words);
    Tensor tensor = items_of_ != nullptr ? Expected(dtype, shape, words, items_of_)
                                         : ToTensor(dtype, shape, words);
    if (!options.lod.empty()) tensor.set_lod(options.lod);
    items_->mutable_array().push_back(std::move(tensor));
    --items_left_;
  }

  void Attribute(Words* words, Example* e) {
    const std::string name = words->Next("a name"), type = words->Next("a type");
    auto attr = ToAttr(name, type, TakeRest(words, "a value"));
    if (attrs_are_paddles_) return;
    auto& attrs = e->is_program() ? e->program.back().attrs : e->attrs;
    attrs.push_back(std::move(attr));
  }

  // An operator of Paddle that made the expected values: nothing for heddle to run.
  void PaddleOperator(Words* words) {
    TakeRest(words, "an operator");
    attrs_are_paddles_ = true;
  }

  void Operator(Words* words, Example* e) {
    ExampleOp op;
    op.type = words->Next("an operator");
    op.block = block_;
    attrs_are_paddles_ = false;
    auto* slots = &op.inputs;
    while (!words->empty()) {
      if (words->Take("->")) {
        slots = &op.outputs;
        continue;
      }
      const std::string word = words->Next("a slot");
      const size_t equals = word.find('=');
      if (equals == std::string::npos) throw BadExample("'" + word + "' is not SLOT=variables");
      auto& [slot, names] = slots->emplace_back(word.substr(0, equals), std::vector<std::string>());
      for (size_t at = equals + 1; at < word.size();) {
        const size_t comma = std::min(word.find(',', at), word.size());
        names.push_back(word.substr(at, comma - at));
        at = comma + 1;
      }
    }
    e->program.push_back(std::move(op));
  }

  void Variable(Words* words, Example* e) {
    ExampleVar var;
    var.name = words->Next("a name");
    var.kind = words->Next("a kind");
    var.block = block_;
    if (!words->empty()) var.dtype = ToDType(words->Next("a dtype"));
    if (!words->empty()) var.shape = ToShape(words->Next("a shape"));
    e->vars.push_back(std::move(var));
  }

  void Block(Words* words, Example* e) {
    const int64_t number = ToInt(words->Next("a number"));
    const int64_t parent = ToInt(words->Next("a parent"));
    if (number != static_cast<int64_t>(e->block_parents.size()) || parent < 0 || parent >= number)
      throw BadExample("blocks are numbered from 1 on, behind their parents");
    e->block_parents.push_back(static_cast<int>(parent));
    e->forward_blocks.push_back(words->empty() ? -1
                                               : static_cast<int>(ToInt(words->Next("a block"))));
    block_ = static_cast<int>(number);
  }

  const std::string op_, file_;
  int line_ = 0;
  std::vector<Example> examples_;
  std::set<std::string> titles_;
  int block_ = 0;
  bool attrs_are_paddles_ = false;
  int64_t items_left_ = 0;  // of the array that the lines before began
  Value* items_ = nullptr;
  ExampleOutput* items_of_ = nullptr;
};

}  // namespace

Tolerance DefaultTolerance(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return {2e-3, 1e-3};
    case DType::kBF16:
      return {2e-2, 1e-2};
    case DType::kF32:
    case DType::kC64:
      return {1e-5, 1e-6};
    case DType::kF64:
    case DType::kC128:
      return {1e-9, 1e-11};
    default:
      return {};
  }
}

Result<std::vector<Example>> ParseExamples(const std::string& op, std::string_view text,
                                           const std::string& file, int line) {
  return Parser(op, file).Run(Statements(text, line));
}

}  // namespace heddle::testing
