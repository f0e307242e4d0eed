#include "engines/openvino/module.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace heddle_openvino {
namespace {

constexpr char kMagic[8] = {'h', 'd', 'l', 'o', 'v', 'p', 'l', '2'};
constexpr size_t kAlignment = 64;

// The size of the header of saved bytes: a magic number, a count, and so many numbers, which tell
// the shapes. OpenVINO's bytes follow.
size_t HeadBytes(size_t numbers) {
  const size_t bytes = sizeof kMagic + sizeof(int64_t) * (1 + numbers);
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Memory with a name in the file system, since OpenVINO writes to files alone.
class MemoryFile {
 public:
  MemoryFile() : fd_(memfd_create("heddle_openvino", MFD_CLOEXEC)) {}
  ~MemoryFile() {
    if (fd_ >= 0) close(fd_);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }
  bool ok() const { return fd_ >= 0; }
  // Gives the contents to `write`; its status.
  int Give(void* host, int (*write)(void*, const void*, size_t)) const {
    std::vector<char> part(1 << 20);
    off_t at = 0;
    for (ssize_t n; (n = pread(fd_, part.data(), part.size(), at)) > 0; at += n)
      if (const int status = write(host, part.data(), static_cast<size_t>(n));
          status != HEDDLE_ENGINE_OK)
        return status;
    return HEDDLE_ENGINE_OK;
  }

 private:
  const int fd_;
};

// Heddles before this member have groups without it.
bool HasLater(const heddle_engine_group& group) {
  return group.size >= offsetof(heddle_engine_group, later) + sizeof group.later;
}

void AddShape(int32_t rank, const int64_t* dims, Shapes* shapes) {
  shapes->push_back(rank);
  if (rank > 0) shapes->insert(shapes->end(), dims, dims + rank);
}

// Calls fn(k, rank, dims) for each of the shapes. False: these are not as many.
template <typename Fn>
bool ForShapes(const Shapes& shapes, size_t count, Fn&& fn) {
  size_t at = 0;
  for (size_t k = 0; k < count; ++k) {
    if (at >= shapes.size()) return false;
    const int64_t rank = shapes[at++];
    if (rank < 0 || rank > HEDDLE_ENGINE_MAX_RANK || static_cast<size_t>(rank) > shapes.size() - at)
      return false;
    const int64_t* const dims = shapes.data() + at;
    if (std::any_of(dims, dims + rank, [](int64_t d) { return d < 0; })) return false;
    fn(k, static_cast<int32_t>(rank), dims);
    at += static_cast<size_t>(rank);
  }
  return at == shapes.size();
}

}  // namespace

ModelPtr Read(const Openvino& engine, const void* onnx, size_t bytes, std::string* why) {
  Model* model = nullptr;
  if (onnx == nullptr)
    *why = "it is not given as ONNX";
  else if (const OvStatus status = engine.c.core_read_model_from_memory_buffer(
               engine.core, static_cast<const char*>(onnx), bytes, nullptr, &model);
           status != 0)
    *why = ErrorOf(engine.c, status);
  return ModelPtr(model, FreeModel{&engine.c});
}

// ---- plans --------------------------------------------------------------------------------------

Module::Plan& Module::Plan::operator=(Plan&& other) noexcept {
  std::swap(c, other.c);
  std::swap(compiled, other.compiled);
  std::swap(request, other.request);
  std::swap(refused, other.refused);
  return *this;
}

Module::Plan::~Plan() {
  if (request != nullptr) c->infer_request_free(request);
  if (compiled != nullptr) c->compiled_model_free(compiled);
}

Module::Module(const Openvino& engine, const heddle_engine_group& group)
    : engine_(engine),
      onnx_(group.onnx),
      onnx_bytes_(group.onnx_bytes),
      host_(HasLater(group) ? group.host : nullptr),
      later_(HasLater(group) ? group.later : nullptr),
      num_outputs_(group.num_outputs),
      model_(nullptr, FreeModel{&engine.c}) {
  for (size_t k = 0; k < group.num_inputs; ++k) {
    const heddle_engine_value& v = *group.values[group.inputs[k]];
    dtypes_.push_back(v.dtype);
    is_open_.push_back(v.rank < 0 ||
                       std::any_of(v.dims, v.dims + v.rank, [](int64_t d) { return d < 0; }));
    open_ = open_ || is_open_.back();
    AddShape(v.rank, v.dims, &declared_);
  }
}

std::string Module::WhyNotHandedOver(const heddle_engine_group& group) const {
  if (group.num_inputs == 0) return "it has no inputs, and its results are constants";
  for (size_t k = 0; k < group.num_inputs; ++k)
    if (TypeNumber(engine_.c, dtypes_[k]) < 0)
      return std::string("input '") + group.values[group.inputs[k]]->name +
             "' is of an element type that is not handed over";
  return "";
}

// A compiled model has the group's inputs and outputs; makes its request.
std::string Module::Check(Plan* plan) const {
  const OpenvinoC& c = engine_.c;
  size_t inputs = 0, outputs = 0;
  if (c.compiled_model_inputs_size(plan->compiled, &inputs) != 0 ||
      c.compiled_model_outputs_size(plan->compiled, &outputs) != 0 || inputs != dtypes_.size() ||
      outputs != num_outputs_)
    return "has " + std::to_string(inputs) + " inputs and " + std::to_string(outputs) +
           " outputs where the group has " + std::to_string(dtypes_.size()) + " and " +
           std::to_string(num_outputs_);
  const OvStatus status = c.compiled_model_create_infer_request(plan->compiled, &plan->request);
  return status == 0 ? "" : ErrorOf(c, status);
}

std::string Module::CompileModel(const Model& model, Plan* plan) const {
  const auto properties = engine_.Properties();
  const OvStatus status = engine_.c.core_compile_model_props(
      engine_.core, &model, kDevice, properties.size(), properties.data(), &plan->compiled);
  return status == 0 ? Check(plan) : ErrorOf(engine_.c, status);
}

// Closes the shapes that are open.
std::string Module::Reshape(const Shapes& shapes, Model* model) const {
  std::vector<size_t> ports;
  std::vector<std::vector<OvDimension>> dimensions;
  std::vector<OvPartialShape> closed;
  ForShapes(shapes, dtypes_.size(), [&](size_t k, int32_t rank, const int64_t* dims) {
    if (!is_open_[k]) return;
    ports.push_back(k);
    auto& list = dimensions.emplace_back();
    for (int32_t i = 0; i < rank; ++i) list.push_back({dims[i], dims[i]});
    list.push_back({});  // so that no shape is a null pointer
    closed.push_back({{rank, rank}, list.data()});
  });
  const OvStatus status =
      engine_.c.model_reshape_by_port_indexes(model, ports.data(), closed.data(), ports.size());
  return status == 0 ? "" : ErrorOf(engine_.c, status);
}

ModelPtr Module::ReadModel(std::string* why) {
  if (onnx_ == nullptr && later_ != nullptr) onnx_ = later_(host_, &onnx_bytes_);
  return Read(engine_, onnx_, onnx_bytes_, why);
}

// With no `shapes`: for any.
std::string Module::MakePlan(const Shapes& shapes, Plan* plan) {
  std::string why;
  ModelPtr model = std::move(model_);
  if (model == nullptr) model = ReadModel(&why);
  if (why.empty() && open_ && !shapes.empty()) why = Reshape(shapes, model.get());
  if (why.empty()) why = CompileModel(*model, plan);
  return why;
}

Module::Plan* Module::PlanFor(const heddle_engine_run& run) {
  Shapes shapes;
  if (!open_) return plans_.Find(declared_);
  for (size_t k = 0; k < run.num_inputs; ++k)
    AddShape(run.inputs[k]->rank, run.inputs[k]->dims, &shapes);
  if (Plan* const plan = plans_.Find(shapes); plan != nullptr) return plan;
  const bool own = plans_.IsWorthOne(shapes);
  if (!own && any_) return &*any_;
  Plan plan(engine_.c);
  plan.refused = MakePlan(own ? shapes : Shapes(), &plan);
  return own ? plans_.Add(std::move(shapes), std::move(plan)) : &any_.emplace(std::move(plan));
}

// ---- runs ---------------------------------------------------------------------------------------

std::string Module::SetInput(const Plan& plan, size_t k, int32_t rank, const int64_t* dims,
                             const void* data) const {
  const OpenvinoC& c = engine_.c;
  static const int64_t nothing = 0;  // for tensors without elements, which may have no memory
  OvShape shape = {rank, const_cast<int64_t*>(rank > 0 ? dims : &nothing)};
  OvTensor* tensor = nullptr;
  // OpenVINO does not write to inputs.
  OvStatus status =
      c.tensor_create_from_host_ptr(TypeNumber(c, dtypes_[k]), shape,
                                    const_cast<void*>(data != nullptr ? data : &nothing), &tensor);
  if (status != 0) return ErrorOf(c, status);
  status = c.infer_request_set_input_tensor_by_index(plan.request, k, tensor);
  std::string why = status == 0 ? "" : ErrorOf(c, status);
  c.tensor_free(tensor);
  return why;
}

// The first run makes code and packs weights: it is made here.
std::string Module::WarmUp(const Shapes& shapes, const Plan& plan) const {
  std::vector<std::vector<char>> zeros;
  std::string why;
  ForShapes(shapes, dtypes_.size(), [&](size_t k, int32_t rank, const int64_t* dims) {
    size_t elements = 1;
    for (int32_t i = 0; i < rank; ++i) elements *= static_cast<size_t>(dims[i]);
    zeros.emplace_back(std::max<size_t>(8 * elements, 8), '\0');
    if (why.empty()) why = SetInput(plan, k, rank, dims, zeros.back().data());
  });
  if (!why.empty()) return why;
  const OvStatus status = engine_.c.infer_request_infer(plan.request);
  return status == 0 ? "" : ErrorOf(engine_.c, status);
}

// Copies output `k` to where the run wants it.
std::string Module::GiveOutput(const Plan& plan, const heddle_engine_run& run, size_t k) const {
  const OpenvinoC& c = engine_.c;
  OvTensor* tensor = nullptr;
  if (const OvStatus status = c.infer_request_get_output_tensor_by_index(plan.request, k, &tensor);
      status != 0)
    return ErrorOf(c, status);
  OvShape shape = {0, nullptr};
  int type = 0;
  size_t bytes = 0;
  void* data = nullptr;
  OvStatus status = c.tensor_get_element_type(tensor, &type);
  if (status == 0) status = c.tensor_get_byte_size(tensor, &bytes);
  // OpenVINO's C library makes no shape of rank 0, and calls the tensor's an argument that is
  // wrong.
  constexpr OvStatus kInvalidArgument = -14;
  if (status == 0) status = c.tensor_get_shape(tensor, &shape);
  if (status == kInvalidArgument && bytes > 0 && bytes <= 8) {
    shape = {0, nullptr};
    status = 0;
  }
  if (status == 0 && bytes > 0) status = c.tensor_data(tensor, &data);
  std::string why = status == 0 ? "" : ErrorOf(c, status);
  if (why.empty()) {
    void* const to =
        run.output(run.host, k, DtypeOf(c, type), static_cast<int32_t>(shape.rank), shape.dims);
    if (to == nullptr)
      why = "there is no such output";
    else if (bytes > 0)
      std::memcpy(to, data, bytes);
  }
  if (shape.dims != nullptr) c.shape_free(&shape);
  c.tensor_free(tensor);
  return why;
}

int Module::Run(const heddle_engine_run& run, std::string* why) {
  const Plan& plan = *PlanFor(run);
  *why = plan.refused;
  if (!why->empty()) return HEDDLE_ENGINE_REFUSED;
  for (size_t k = 0; k < run.num_inputs && why->empty(); ++k)
    *why = SetInput(plan, k, run.inputs[k]->rank, run.inputs[k]->dims, run.inputs[k]->data);
  if (why->empty())
    if (const OvStatus status = engine_.c.infer_request_infer(plan.request); status != 0)
      *why = ErrorOf(engine_.c, status);
  for (size_t k = 0; k < run.num_outputs && why->empty(); ++k) *why = GiveOutput(plan, run, k);
  return why->empty() ? HEDDLE_ENGINE_OK : HEDDLE_ENGINE_FAILED;
}

// ---- making and saving --------------------------------------------------------------------------

std::unique_ptr<Module> Module::Compile(const Openvino& engine, const heddle_engine_group& group,
                                        std::string* why) {
  std::unique_ptr<Module> module(new Module(engine, group));
  *why = module->WhyNotHandedOver(group);
  if (why->empty()) module->model_ = Read(engine, group.onnx, group.onnx_bytes, why);
  if (why->empty() && !module->open_) {
    Plan plan(engine.c);
    *why = module->MakePlan(module->declared_, &plan);
    if (why->empty()) *why = module->WarmUp(module->declared_, plan);
    if (why->empty()) module->plans_.Add(module->declared_, std::move(plan));
  }
  if (!why->empty()) module = nullptr;
  return module;
}

// A head with the shapes, filled up to where OpenVINO's bytes are aligned, and these.
int Module::Save(void* host, int (*write)(void*, const void*, size_t), std::string* why) const {
  if (plans_.plans().empty() || !plans_.plans().front().second.refused.empty()) {
    *why = "it has no plan yet";
    return HEDDLE_ENGINE_REFUSED;
  }
  const auto& [shapes, plan] = plans_.plans().front();
  const MemoryFile file;
  *why = file.ok() ? "" : "there is no memory for a saved module";
  if (why->empty())
    if (const OvStatus status =
            engine_.c.compiled_model_export_model(plan.compiled, file.path().c_str());
        status != 0)
      *why = ErrorOf(engine_.c, status);
  if (!why->empty()) return HEDDLE_ENGINE_FAILED;
  const auto count = static_cast<int64_t>(shapes.size());
  std::vector<char> head(HeadBytes(shapes.size()));
  std::memcpy(head.data(), kMagic, sizeof kMagic);
  std::memcpy(head.data() + sizeof kMagic, &count, sizeof count);
  std::memcpy(head.data() + sizeof kMagic + sizeof count, shapes.data(),
              shapes.size() * sizeof shapes[0]);
  const int status = write(host, head.data(), head.size());
  return status == HEDDLE_ENGINE_OK ? file.Give(host, write) : status;
}

// OpenVINO leaves the weights in `bytes`. What runs for the first time is not run here as by
// Compile: it has run where it was saved.
std::unique_ptr<Module> Module::Restore(const Openvino& engine, const heddle_engine_group& group,
                                        const void* bytes, size_t count, std::string* why) {
  std::unique_ptr<Module> module(new Module(engine, group));
  const auto* const from = static_cast<const char*>(bytes);
  constexpr size_t kFixed = sizeof kMagic + sizeof(int64_t);
  int64_t numbers = -1;
  if (count >= kFixed && std::memcmp(from, kMagic, sizeof kMagic) == 0)
    std::memcpy(&numbers, from + sizeof kMagic, sizeof numbers);
  Shapes shapes;
  bool good = numbers > 0 && static_cast<size_t>(numbers) <= count / sizeof(int64_t) &&
              HeadBytes(static_cast<size_t>(numbers)) <= count;
  if (good) {
    shapes.resize(static_cast<size_t>(numbers));
    std::memcpy(shapes.data(), from + kFixed, shapes.size() * sizeof(int64_t));
    good = ForShapes(shapes, module->dtypes_.size(), [](size_t, int32_t, const int64_t*) {}) &&
           (module->open_ || shapes == module->declared_);
  }
  *why = good ? module->WhyNotHandedOver(group) : "these are not the bytes that it saved";
  Plan plan(engine.c);
  if (why->empty()) {
    const size_t head = HeadBytes(shapes.size());
    const OvStatus status =
        engine.c.core_import_model(engine.core, from + head, count - head, kDevice, &plan.compiled);
    *why = status == 0 ? module->Check(&plan) : ErrorOf(engine.c, status);
  }
  if (why->empty())
    module->plans_.Add(std::move(shapes), std::move(plan));
  else
    module = nullptr;
  return module;
}

}  // namespace heddle_openvino
