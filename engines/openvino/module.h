// A group that OpenVINO has compiled. One whose shapes are declared has one plan, made when it is
// compiled; one with open shapes gets a plan for each set of shapes that runs bring, so that
// OpenVINO always plans for sizes that it knows.
//
// Ownership: a Module holds what OpenVINO made for it, and refers to the engine and to the group's
// ONNX model, which stay longer. Threads: one at a time for a module. Errors: a status of
// heddle_engine.h, and why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engines/openvino/openvino_c.h"
#include "engines/openvino/shape_table.h"
#include "heddle/heddle_engine.h"

namespace heddle_openvino {

struct Openvino {
  OpenvinoC c;
  Core* core = nullptr;
  std::string threads, target, fingerprint;

  Openvino() = default;
  Openvino(const Openvino&) = delete;
  Openvino& operator=(const Openvino&) = delete;
  ~Openvino() {
    if (core != nullptr) c.core_free(core);
  }
  std::vector<OvProperty> Properties() const {
    return {{"INFERENCE_NUM_THREADS", threads.c_str()},
            {"NUM_STREAMS", "1"},
            {"INFERENCE_PRECISION_HINT", "f32"},
            {"ENABLE_CPU_PINNING", "NO"}};
  }
};

constexpr char kDevice[] = "CPU";

struct FreeModel {
  const OpenvinoC* c;
  void operator()(Model* model) const { c->model_free(model); }
};
using ModelPtr = std::unique_ptr<Model, FreeModel>;

// OpenVINO's model of the group's ONNX bytes. Null, and why: OpenVINO does not read them.
ModelPtr Read(const Openvino& engine, const void* onnx, size_t bytes, std::string* why);

class Module {
 public:
  // Null, and why: the group is not for OpenVINO.
  static std::unique_ptr<Module> Compile(const Openvino& engine, const heddle_engine_group& group,
                                         std::string* why);
  // From what Save wrote for an equal group. `bytes`, aligned to 64, stay longer than the module.
  static std::unique_ptr<Module> Restore(const Openvino& engine, const heddle_engine_group& group,
                                         const void* bytes, size_t count, std::string* why);

  int Run(const heddle_engine_run& run, std::string* why);
  // Writes the plan that ran last. REFUSED: there is none yet.
  int Save(void* host, int (*write)(void*, const void*, size_t), std::string* why) const;

 private:
  struct Plan {
    explicit Plan(const OpenvinoC& c) : c(&c) {}
    Plan(Plan&& other) noexcept { *this = std::move(other); }
    Plan& operator=(Plan&& other) noexcept;
    ~Plan();

    const OpenvinoC* c = nullptr;
    CompiledModel* compiled = nullptr;
    Request* request = nullptr;
    std::string refused;  // why there is none for these shapes
  };

  Module(const Openvino& engine, const heddle_engine_group& group);
  std::string WhyNotHandedOver(const heddle_engine_group& group) const;
  std::string Check(Plan* plan) const;
  std::string CompileModel(const Model& model, Plan* plan) const;
  ModelPtr ReadModel(std::string* why);
  std::string MakePlan(const Shapes& shapes, Plan* plan);
  Plan* PlanFor(const heddle_engine_run& run);
  std::string Reshape(const Shapes& shapes, Model* model) const;
  std::string SetInput(const Plan& plan, size_t k, int32_t rank, const int64_t* dims,
                       const void* data) const;
  std::string WarmUp(const Shapes& shapes, const Plan& plan) const;
  std::string GiveOutput(const Plan& plan, const heddle_engine_run& run, size_t k) const;

  const Openvino& engine_;
  const void* onnx_;
  size_t onnx_bytes_;
  // Gives the model where it is not there.
  void* const host_;
  const void* (*const later_)(void*, size_t*);
  std::vector<int32_t> dtypes_;  // of the inputs
  std::vector<bool> is_open_;    // of the inputs: a dimension, or the rank
  bool open_ = false;            // one of them is
  size_t num_outputs_ = 0;
  Shapes declared_;          // where none is
  ModelPtr model_;           // of open shapes, for the first plan
  ShapeTable<Plan> plans_;   // `declared_` has one
  std::optional<Plan> any_;  // for any shapes, which come too rarely for one of their own
};

}  // namespace heddle_openvino
