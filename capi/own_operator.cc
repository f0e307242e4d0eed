// Operators from outside, of the C API.
#include "heddle/operators/own_operator.h"

#include <cstring>
#include <deque>
#include <span>
#include <type_traits>

#include "capi/handles.h"

using heddle::DType;
using heddle::OwnAttribute;
using heddle::OwnCall;
using heddle::OwnKernelCall;
using heddle::OwnNode;
using heddle::OwnOperator;
using heddle::OwnShapeCall;
using heddle::OwnValue;
using heddle::Shape;
using heddle::Status;
using heddle::StatusCode;
using heddle::capi::CheckCount;
using heddle::capi::Guard;
using heddle::capi::Invalid;
using heddle::capi::ReadOptions;

// The argument of an operator's functions. A shape function has `call` and `shapes`, a kernel
// `call` and `kernel`, a kernel creator `node` alone.
struct heddle_call {
  const OwnCall* call = nullptr;
  OwnShapeCall* shapes = nullptr;
  OwnKernelCall* kernel = nullptr;
  const OwnNode* node = nullptr;

  Status failure = {};  // the first one
  // Getters return pointers into these lists, which live until the call ends.
  std::deque<heddle_tensor> tensors = {};
  std::deque<Shape> dims = {};
  struct Attribute {
    OwnValue value;
    std::vector<const char*> texts;
    heddle_attribute view;
  };
  std::deque<Attribute> attributes = {};

  // `fn` asks the call; what it throws fails the call.
  template <typename T, typename Fn>
  T Ask(T otherwise, Fn&& fn) noexcept {
    try {
      return fn();
    } catch (const std::bad_alloc&) {
      Fail(StatusCode::kResourceExhausted, "out of memory");
    } catch (const std::exception& e) {
      Fail(StatusCode::kInvalidArgument, e.what());
    } catch (...) {
      Fail(StatusCode::kInternal, "unknown exception");
    }
    return otherwise;
  }
  void Fail(StatusCode code, const char* message) noexcept {
    try {
      if (failure.ok()) failure = Status(code, message);
    } catch (...) {
      failure = Status(StatusCode::kInternal, "");
    }
  }
};

namespace {

Status EndOf(heddle_call& call, int result) {
  if (!call.failure.ok()) return call.failure;
  if (result == 0) return Status::Ok();
  if (call.kernel != nullptr) HEDDLE_RETURN_IF_ERROR(call.kernel->Interrupted());
  return Status(StatusCode::kInternal, "failed, and does not say why");
}

heddle::OwnKernel ToKernel(heddle_call_function run, std::shared_ptr<void> argument) {
  return [run, argument = std::move(argument)](OwnKernelCall& call) {
    heddle_call seen{.call = &call, .kernel = &call};
    return EndOf(seen, run(&seen, argument.get()));
  };
}

// The caller's argument, which `release` is told of when nobody needs it.
std::shared_ptr<void> Held(void* argument, void (*release)(void*)) {
  return std::shared_ptr<void>(argument, [release](void* held) {
    if (release != nullptr) release(held);
  });
}

heddle::Result<OwnValue> ToValue(const heddle_attribute& a) {
  const auto list = [&](const auto* from, const char* what) -> Status {
    HEDDLE_RETURN_IF_ERROR(CheckCount("attribute: count", a.count, sizeof(*from)));
    if (a.count == 0 || from != nullptr) return Status::Ok();
    return Invalid("attribute '" + std::string(a.name) + "': " + what + " is NULL");
  };
  switch (a.type) {
    case HEDDLE_ATTRIBUTE_BOOL:
      return OwnValue(a.i != 0);
    case HEDDLE_ATTRIBUTE_INT:
      return OwnValue(a.i);
    case HEDDLE_ATTRIBUTE_FLOAT:
      return OwnValue(a.f);
    case HEDDLE_ATTRIBUTE_TEXT:
      return OwnValue(std::string(a.text != nullptr ? a.text : ""));
    case HEDDLE_ATTRIBUTE_INTS:
      HEDDLE_RETURN_IF_ERROR(list(a.ints, "ints"));
      return OwnValue(std::vector<int64_t>(a.ints, a.ints + a.count));
    case HEDDLE_ATTRIBUTE_FLOATS:
      HEDDLE_RETURN_IF_ERROR(list(a.floats, "floats"));
      return OwnValue(std::vector<double>(a.floats, a.floats + a.count));
    case HEDDLE_ATTRIBUTE_TEXTS: {
      HEDDLE_RETURN_IF_ERROR(list(a.texts, "texts"));
      std::vector<std::string> texts;
      for (size_t k = 0; k < a.count; ++k) texts.emplace_back(a.texts[k] ? a.texts[k] : "");
      return OwnValue(std::move(texts));
    }
    default:
      return Invalid("attribute '" + std::string(a.name) + "': " + std::to_string(a.type) +
                     " is not a type of attributes");
  }
}

// The view of an attribute's value, which the call keeps.
const heddle_attribute* View(heddle_call& call, const char* name, OwnValue value) {
  auto& kept = call.attributes.emplace_back();
  kept.value = std::move(value);
  heddle_attribute& view = kept.view;
  view = {};
  view.name = name;
  view.type = static_cast<heddle_attribute_type>(kept.value.index());
  std::visit(
      [&](const auto& v) {
        using V = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<V, bool> || std::is_same_v<V, int64_t>) {
          view.i = v;
        } else if constexpr (std::is_same_v<V, double>) {
          view.f = v;
        } else if constexpr (std::is_same_v<V, std::string>) {
          view.text = v.c_str();
        } else {
          view.count = v.size();
          if constexpr (std::is_same_v<V, std::vector<int64_t>>) view.ints = v.data();
          if constexpr (std::is_same_v<V, std::vector<double>>) view.floats = v.data();
          if constexpr (std::is_same_v<V, std::vector<std::string>>) {
            for (const std::string& text : v) kept.texts.push_back(text.c_str());
            view.texts = kept.texts.data();
          }
        }
      },
      kept.value);
  return &view;
}

Status ReadSlots(const char* what, const heddle_slot* slots, size_t count) {
  HEDDLE_RETURN_IF_ERROR(CheckCount(what, count, sizeof(*slots)));
  if (count > 0 && slots == nullptr) return Invalid(std::string(what) + " is NULL");
  for (size_t k = 0; k < count; ++k) {
    if (slots[k].name == nullptr) return Invalid(std::string(what) + ": a name is NULL");
    HEDDLE_RETURN_IF_ERROR(CheckCount("num_dtypes", slots[k].num_dtypes, sizeof(heddle_dtype)));
    for (size_t d = 0; d < slots[k].num_dtypes; ++d)
      if (slots[k].dtypes == nullptr || slots[k].dtypes[d] < HEDDLE_BOOL ||
          slots[k].dtypes[d] >= HEDDLE_UNKNOWN)
        return Invalid("slot '" + std::string(slots[k].name) + "': there is no such dtype");
  }
  return Status::Ok();
}

heddle::Result<OwnOperator> ToOperator(const heddle_operator* given) {
  if (given == nullptr) return Invalid("heddle_operator_add: op is NULL");
  heddle_operator known{};
  HEDDLE_RETURN_IF_ERROR(ReadOptions(given, known));
  if (known.name == nullptr) return Invalid("heddle_operator_add: the name is NULL");
  OwnOperator op;
  op.name = known.name;
  if (known.doc != nullptr) op.doc = known.doc;
  HEDDLE_RETURN_IF_ERROR(CheckCount("num_names_in_files", known.num_names_in_files, sizeof(char*)));
  for (size_t k = 0; k < known.num_names_in_files; ++k) {
    if (known.names_in_files == nullptr || known.names_in_files[k] == nullptr)
      return Invalid("heddle_operator_add: names_in_files has a NULL");
    op.names_in_files.emplace_back(known.names_in_files[k]);
  }
  HEDDLE_RETURN_IF_ERROR(ReadSlots("inputs", known.inputs, known.num_inputs));
  HEDDLE_RETURN_IF_ERROR(ReadSlots("outputs", known.outputs, known.num_outputs));
  for (const heddle_slot& in : std::span(known.inputs, known.num_inputs)) {
    op.inputs.push_back({.name = in.name,
                         .optional = in.optional != 0,
                         .list = in.list != 0,
                         .decides_shape = in.decides_shape != 0});
    for (size_t d = 0; d < in.num_dtypes; ++d)
      op.inputs.back().dtypes.push_back(static_cast<DType>(in.dtypes[d]));
    if (in.same_as != nullptr) op.inputs.back().same_as = in.same_as;
  }
  for (const heddle_slot& out : std::span(known.outputs, known.num_outputs))
    op.outputs.push_back({out.name, out.optional != 0, out.list != 0});
  HEDDLE_RETURN_IF_ERROR(
      CheckCount("num_attributes", known.num_attributes, sizeof(heddle_attribute)));
  if (known.num_attributes > 0 && known.attributes == nullptr) return Invalid("attributes is NULL");
  for (const heddle_attribute& a : std::span(known.attributes, known.num_attributes)) {
    if (a.name == nullptr) return Invalid("attributes: a name is NULL");
    HEDDLE_ASSIGN_OR_RETURN(OwnValue value, ToValue(a));
    op.attributes.push_back({a.name, std::move(value)});
  }
  if (known.shapes != nullptr)
    op.shapes = [shapes = known.shapes, argument = known.argument](OwnShapeCall& call) {
      heddle_call seen{.call = &call, .shapes = &call};
      return EndOf(seen, shapes(&seen, argument));
    };
  op.like_first_input = known.kernel_allocates == 0;
  if (known.kernel != nullptr) op.kernel = ToKernel(known.kernel, Held(known.argument, nullptr));
  op.side_effect = known.side_effect != 0;
  return op;
}

Shape ToShape(int rank, const int64_t* dims) {
  if (rank < 0) return Shape::Unknown();
  if (rank > HEDDLE_MAX_RANK || (rank > 0 && dims == nullptr))
    throw std::invalid_argument("a shape of rank " + std::to_string(rank) + " without dimensions");
  return Shape(std::span(dims, static_cast<size_t>(rank)));
}

// A slot's index as the C++ interface has it; past all of them, where it does not fit.
int Index(size_t index) { return static_cast<int>(std::min(index, size_t{0x7fffffff})); }

}  // namespace

heddle::KernelCreator heddle::capi::ToKernelCreator(const heddle_kernel_creator& creator) {
  if (creator.create == nullptr) return nullptr;
  return [creator](const OwnNode& node) -> heddle::Result<heddle::OwnKernel> {
    heddle_call seen{.node = &node};
    heddle_kernel made{};
    const int result = creator.create(&seen, &made, creator.argument);
    const bool has_one = made.run != nullptr;
    auto argument = has_one ? Held(made.argument, made.release) : std::shared_ptr<void>();
    HEDDLE_RETURN_IF_ERROR(EndOf(seen, result));
    return has_one ? ToKernel(made.run, std::move(argument)) : heddle::OwnKernel();
  };
}

heddle_error* heddle_operator_add(const heddle_operator* op) {
  return Guard([&]() -> Status {
    HEDDLE_ASSIGN_OR_RETURN(OwnOperator made, ToOperator(op));
    return heddle::AddOperator(std::move(made));
  });
}

heddle_error* heddle_kernel_creator_set(const heddle_kernel_creator* creator) {
  return Guard([&] {
    heddle::SetKernelCreator(creator != nullptr ? heddle::capi::ToKernelCreator(*creator)
                                                : nullptr);
    return Status::Ok();
  });
}

const char* heddle_call_op(heddle_call* call) {
  if (call == nullptr) return "";
  return call->node != nullptr ? call->node->op.c_str() : call->call->op().c_str();
}

size_t heddle_call_num_inputs(heddle_call* call, const char* slot) {
  if (call == nullptr || call->call == nullptr || slot == nullptr) return 0;
  return call->Ask(size_t{0}, [&] { return static_cast<size_t>(call->call->inputs(slot)); });
}

size_t heddle_call_num_outputs(heddle_call* call, const char* slot) {
  if (call == nullptr || call->call == nullptr || slot == nullptr) return 0;
  return call->Ask(size_t{0}, [&] { return static_cast<size_t>(call->call->outputs(slot)); });
}

heddle_info heddle_call_info(heddle_call* call, const char* slot, size_t index) {
  if (call == nullptr || call->call == nullptr || slot == nullptr) return heddle::capi::kNoInfo;
  return call->Ask(heddle::capi::kNoInfo, [&] {
    const OwnCall& c = *call->call;
    if (!c.has_input(slot, Index(index))) return heddle::capi::kNoInfo;
    const Shape& shape = call->dims.emplace_back(c.shape(slot, Index(index)));
    return heddle_info{slot, static_cast<heddle_dtype>(c.dtype(slot, Index(index))), shape.rank(),
                       shape.begin()};
  });
}

const heddle_tensor* heddle_call_input(heddle_call* call, const char* slot, size_t index) {
  if (call == nullptr || call->call == nullptr || slot == nullptr) return nullptr;
  const heddle_tensor* const none = nullptr;
  return call->Ask(none, [&]() -> const heddle_tensor* {
    if (!call->call->has_input(slot, Index(index))) return nullptr;
    const heddle::Tensor* t = call->kernel != nullptr ? &call->kernel->input(slot, Index(index))
                                                      : call->shapes->contents(slot, Index(index));
    return t == nullptr ? nullptr : &call->tensors.emplace_back(heddle_tensor{*t, true});
  });
}

heddle_tensor* heddle_call_output(heddle_call* call, const char* slot, size_t index) {
  if (call == nullptr || call->kernel == nullptr || slot == nullptr) return nullptr;
  heddle_tensor* const none = nullptr;
  return call->Ask(none, [&]() -> heddle_tensor* {
    if (!call->kernel->has_output(slot, Index(index))) return nullptr;
    return &call->tensors.emplace_back(heddle_tensor{call->kernel->output(slot, Index(index))});
  });
}

void heddle_call_set_output(heddle_call* call, const char* slot, size_t index, heddle_dtype dtype,
                            int rank, const int64_t* dims) {
  if (call == nullptr || call->call == nullptr || slot == nullptr) return;
  call->Ask(0, [&] {
    if (dtype < HEDDLE_BOOL || dtype > HEDDLE_UNKNOWN)
      throw std::invalid_argument("there is no dtype " + std::to_string(dtype));
    const Shape shape = ToShape(rank, dims);
    if (call->shapes != nullptr)
      call->shapes->SetOutput(slot, static_cast<DType>(dtype), shape, Index(index));
    else if (call->kernel->has_output(slot, Index(index)))
      call->kernel->Allocate(slot, static_cast<DType>(dtype), shape, Index(index));
    return 0;
  });
}

const heddle_attribute* heddle_call_attribute(heddle_call* call, const char* name) {
  if (call == nullptr || name == nullptr) return nullptr;
  const heddle_attribute* const none = nullptr;
  return call->Ask(none, [&]() -> const heddle_attribute* {
    if (call->node == nullptr) return View(*call, name, call->call->value(name));
    for (const auto& [known, value] : call->node->attributes)
      if (known == name) return View(*call, name, value);
    throw std::invalid_argument("operator '" + call->node->op + "' declares no attribute '" + name +
                                "'");
  });
}

void heddle_call_parallel(heddle_call* call, int64_t n, int64_t grain,
                          void (*part)(int64_t begin, int64_t end, void* argument),
                          void* argument) {
  if (call == nullptr || call->kernel == nullptr || part == nullptr) return;
  call->kernel->ParallelFor(n, grain,
                            [&](int64_t begin, int64_t end) { part(begin, end, argument); });
}

int heddle_call_interrupted(heddle_call* call) {
  return call != nullptr && call->kernel != nullptr && !call->kernel->Interrupted().ok() ? 1 : 0;
}

int heddle_call_fail(heddle_call* call, heddle_code code, const char* message) {
  if (call != nullptr)
    call->Fail(code > HEDDLE_OK && code <= HEDDLE_INTERNAL ? static_cast<StatusCode>(code)
                                                           : StatusCode::kInternal,
               message != nullptr && *message != '\0' ? message : "failed, and does not say why");
  return 1;
}
