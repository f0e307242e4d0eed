// heddle._heddle: programs, scopes, executors. The rest of the package is Python.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/heddle.h"
#include "heddle/model_files.h"
#include "heddle/onnx.h"
#include "python/src/arrays.h"
#include "python/src/builder.h"
#include "python/src/errors.h"
#include "python/src/exchange.h"
#include "python/src/gil.h"
#include "python/src/infos.h"
#include "python/src/interrupt.h"
#include "python/src/mirror.h"
#include "python/src/session.h"
#include "python/src/training.h"
#include "python/src/with_writes.h"

namespace heddle::python {
namespace {

// The contents of an object with the buffer protocol, copied unless it is `bytes`: no thread can
// change them while they are read without the GIL. `what` is for messages.
nb::bytes BytesOf(nb::handle object, const char* what) {
  if (PyBytes_Check(object.ptr())) return nb::borrow<nb::bytes>(object);
  if (!PyObject_CheckBuffer(object.ptr())) {
    const std::string text = std::string(what) + " is of " + Py_TYPE(object.ptr())->tp_name +
                             ", not bytes, a bytearray or a memoryview";
    throw nb::type_error(text.c_str());
  }
  nb::object copy = nb::steal(PyBytes_FromObject(object.ptr()));
  if (!copy.is_valid()) throw nb::python_error();
  return nb::borrow<nb::bytes>(copy);
}

void BindProgram(nb::module_& module) {
  nb::class_<Program>(module, "Program",
                      "A checked program: Program.load(path) or Program.parse(bytes). Immutable.")
      .def_static(
          "load",
          [](const std::string& path) {
            Result<Program> program = Program();
            {
              const ReleasedGil released;
              program = Program::Load(path);
            }
            return Check(std::move(program));
          },
          nb::arg("path"))
      .def_static(
          "parse",
          [](nb::handle given, const std::string& name) {
            const nb::bytes bytes = BytesOf(given, "the program");
            const std::string_view text(bytes.c_str(), bytes.size());
            Result<Program> program = Program();
            {
              const ReleasedGil released;  // the caller's bytes do not change
              program = Program::Parse(text, name);
            }
            return Check(std::move(program));
          },
          nb::arg("bytes").none(), nb::arg("name") = "program")
      .def_prop_ro("inputs", [](const Program& p) { return Declared(p.inputs(), InputTypes(p)); })
      .def_prop_ro("outputs",
                   [](const Program& p) { return Declared(p.outputs(), OutputTypes(p)); })
      .def_prop_ro("persistables", &Program::persistables)
      .def_prop_ro("written",
                   [](const Program& p) {
                     std::vector<std::string> names;
                     for (const TensorInfo& info : p.written()) names.push_back(info.name);
                     return names;
                   })
      .def_prop_ro("loss", &Program::loss)
      .def_prop_ro("version", &Program::version)
      .def_prop_ro("hash", &Program::hash)
      .def_prop_ro("num_ops", &Program::num_ops)
      .def_prop_ro("num_blocks", &Program::num_blocks)
      .def_prop_ro("op_counts",
                   [](const Program& p) {
                     nb::dict counts;
                     for (const auto& c : p.op_counts()) counts[c.type.c_str()] = c.count;
                     return counts;
                   })
      .def(
          "variable", [](const Program& p, const std::string& name) { return p.variable(name); },
          nb::arg("name"))
      .def(
          "serialize",
          [](const Program& p, const std::string& format) {
            Result<std::string> written = std::string();
            {
              const ReleasedGil released;
              written = p.Serialize(format);
            }
            const std::string bytes = Check(std::move(written));
            return nb::bytes(bytes.data(), bytes.size());
          },
          nb::arg("format") = "");
}

// The keys of an ONNX model's outputs that are sequences of maps, by the outputs' names.
nb::dict OnnxMapKeys([[maybe_unused]] const Program& program) {
  nb::dict keys;
#ifdef HEDDLE_WITH_ONNX
  if (!IsOnnx(program)) return keys;
  for (const OnnxPort& port : Check(OnnxOutputs(program))) {
    if (!port.keys.empty())
      keys[port.name.c_str()] = nb::cast(port.keys);
    else if (!port.int_keys.empty())
      keys[port.name.c_str()] = nb::cast(port.int_keys);
  }
#endif
  return keys;
}

// Deletes a scope that was made in another. It may be its parent's last owner, and that one its
// parent's: a chain of any length goes one by one, not each within the next.
void LetGo(Scope* scope) {
  static thread_local std::vector<Scope*>* leaving = nullptr;  // of the thread's outermost call
  if (leaving != nullptr) return leaving->push_back(scope);
  std::vector<Scope*> all{scope};
  leaving = &all;
  while (!all.empty()) {
    Scope* const last = all.back();
    all.pop_back();
    delete last;
  }
  leaving = nullptr;
}

void BindScope(nb::module_& module) {
  nb::class_<Scope>(module, "Scope",
                    "Variables by name that outlive runs. get() copies, set() copies in.")
      .def(nb::init<>())
      // A scope whose variables are found before this one's, which it keeps alive.
      .def("new_scope",
           [](std::shared_ptr<Scope> s) {
             return std::shared_ptr<Scope>(new Scope(std::move(s)), &LetGo);
           })
      .def("names", &Scope::Names)
      .def(
          "has",
          [](const Scope& s, const std::string& name) {
            const Value* const v = s.StampOf(name).value;  // without reading its file
            return v != nullptr && v->initialized();
          },
          nb::arg("name"))
      // A copy: the variable itself may be written to by the next run.
      .def(
          "get",
          [](Scope& s, const std::string& name) -> nb::object {
            Result<Value*> found = static_cast<Value*>(nullptr);
            Value copy;
            bool there = false;
            WithWrites(s, [&] {
              found = FindVariable(s, name);
              const Value* const v = found.ok() ? *found : nullptr;
              there = v != nullptr && v->initialized();
              if (there) copy = v->is_tensor() ? Value(v->tensor().Clone()) : *v;
            });
            Check(std::move(found));
            if (!there) return nb::none();
            if (copy.is_tensor() && !copy.tensor().initialized()) throw std::bad_alloc();
            if (copy.is_tensor()) return nb::cast(std::move(copy.tensor()));
            return ToPython(std::move(copy));
          },
          nb::arg("name"))
      .def(
          "set",
          [](Scope& s, const std::string& name, nb::handle array, const std::string& dtype) {
            Tensor own = ToOwnTensor(array, DTypeNamed(dtype), name);
            WithWrites(s, [&] { s.Set(name, Value(std::move(own))); });
          },
          nb::arg("name"), nb::arg("array"), nb::arg("dtype") = "")
      .def(
          "erase", [](Scope& s, const std::string& name) { WithWrites(s, [&] { s.Erase(name); }); },
          nb::arg("name"))
      .def_prop_ro("version", &Scope::version);
}

void BindParams(nb::module_& module) {
  nb::class_<Generator>(
      module, "Generator",
      "Random numbers that go on from run to run: Paddle's after paddle.seed(seed).")
      .def(nb::init<uint64_t>(), nb::arg("seed") = 0)
      .def("seed", &Generator::Seed, nb::arg("seed"))
      .def_prop_rw("state", &Generator::State,
                   [](Generator& g, const std::string& state) { Check(g.SetState(state)); });

  module.def(
      "load_parameters",
      [](const Program& program, const std::string& path, const std::shared_ptr<Scope>& scope) {
        // Runs wait while variables are replaced, not while the file is read.
        const auto read = std::make_shared<Scope>(scope);
        Status status;
        {
          const ReleasedGil released;
          status = LoadParameters(program, path, *read);
        }
        Check(status);
        WithWrites(*scope, [&] {
          for (const std::string& name : read->Names())
            scope->Set(name, std::move(*read->StampOf(name).value));
        });
      },
      nb::arg("program"), nb::arg("path"), nb::arg("scope"));
  module.def(
      "save_parameters",
      [](const Program& program, const Scope& scope, const std::string& path) {
        Status status;
        {
          const ReleasedGil released;
          status = SaveParameters(program, scope, path);
        }
        Check(status);
      },
      nb::arg("program"), nb::arg("scope"), nb::arg("path"));
  module.def(
      "load_model",
      [](const std::string& path, const std::string& params, const std::string& signature,
         const std::vector<std::string>& feeds, const std::vector<std::string>& fetches) {
        Result<Model> model = Model();
        const InterruptScope signals;
        {
          const ReleasedGil released;
          const LimitScope limits(signals.limits());
          model = LoadModel(path, params, {signature, feeds, fetches, {}});
        }
        signals.ThrowIfInterrupted();
        Model loaded = Check(std::move(model));
        return std::make_pair(std::move(loaded.program), std::move(loaded.scope));
      },
      nb::arg("path"), nb::arg("params") = "", nb::arg("signature") = "",
      nb::arg("feeds") = std::vector<std::string>(),
      nb::arg("fetches") = std::vector<std::string>());
  module.def(
      "parse_model",
      [](nb::handle given, nb::handle given_params, const std::string& name,
         const std::string& signature, const std::vector<std::string>& feeds,
         const std::vector<std::string>& fetches) {
        const nb::bytes program = BytesOf(given, "the program");
        const nb::bytes params = BytesOf(given_params, "what holds the parameters");
        const std::string_view text(program.c_str(), program.size());
        const std::string_view values(params.c_str(), params.size());
        Result<Model> model = Model();
        const InterruptScope signals;
        {
          const ReleasedGil released;  // the caller's bytes do not change
          const LimitScope limits(signals.limits());
          model = ParseModel(text, values, name, {signature, feeds, fetches, {}});
        }
        signals.ThrowIfInterrupted();
        Model parsed = Check(std::move(model));
        return std::make_pair(std::move(parsed.program), std::move(parsed.scope));
      },
      nb::arg("program").none(), nb::arg("params").none(), nb::arg("name") = "program",
      nb::arg("signature") = "", nb::arg("feeds") = std::vector<std::string>(),
      nb::arg("fetches") = std::vector<std::string>());
  module.def(
      "signatures_of",
      [](const std::string& path) {
        Result<std::vector<std::string>> signatures = std::vector<std::string>();
        {
          const ReleasedGil released;
          signatures = SignaturesOf(path);
        }
        return Check(std::move(signatures));
      },
      nb::arg("path"));
  module.def(
      "save_model",
      [](const Program& program, const std::shared_ptr<Scope>& scope, const std::string& directory,
         const std::string& format) {
        Result<SavedModel> saved = SavedModel();
        {
          const ReleasedGil released;
          saved = SaveModel({program, scope}, directory, format);
        }
        return Check(std::move(saved)).program;
      },
      nb::arg("program"), nb::arg("scope"), nb::arg("directory"), nb::arg("format") = "");
  module.def("supported_ops", &SupportedOps);
  module.def("onnx_map_keys", &OnnxMapKeys, nb::arg("program"));
  module.def(
      "describe_op", [](const std::string& type) { return Check(DescribeOp(type)); },
      nb::arg("type"));
  module.def(
      "write_tensors",
      [](const std::string& path, const std::vector<std::pair<std::string, nb::object>>& arrays) {
        NamedTensors tensors;
        for (const auto& [name, array] : arrays)
          tensors.emplace_back(name, ToOwnTensor(array, DType::kUnknown, name));
        Status status;
        {
          const ReleasedGil released;
          status = WriteTensors(path, tensors);
        }
        Check(status);
      },
      nb::arg("path"), nb::arg("arrays"));
}

}  // namespace

NB_MODULE(_heddle, module) {
  // A cast fails when an object has another type than a function needs, or was never made.
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const nb::cast_error&) {
      PyErr_SetString(PyExc_TypeError, "an object is not of the type that is needed here");
    }
  });
  heddle::python::InitInterrupts();
  module.attr("__version__") = HEDDLE_VERSION;
  BindTensor(module);
  BindInfos(module);
  BindProgram(module);
  BindScope(module);
  BindParams(module);
  BindMirror(module);
  BindExchange(module);  // before the executor, which takes a rank
  BindSession(module);
  BindBuilder(module);
  BindTraining(module);
}

}  // namespace heddle::python
