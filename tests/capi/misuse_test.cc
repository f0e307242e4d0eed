// Calls of the C API that no sensible program makes, drawn from a seed: NULL where a handle is
// needed, sizes and numbers out of range, structures of other lengths, callbacks that call back,
// eight threads at one model. Each gives one clear error or the right answer, and what was there
// before works afterwards.
#include "tests/capi/misuse.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "heddle.h"

namespace {

using heddle_misuse::kDigits;
using heddle_misuse::Mischief;
using heddle_misuse::Shared;
using heddle_misuse::Turns;

class Caller : Mischief {
 public:
  Caller(Shared& shared, unsigned seed, bool alone)
      : Mischief(seed), shared_(shared), alone_(alone) {}
  using Mischief::answered;
  using Mischief::refused;
  ~Caller() {
    while (!tensors_.empty()) FreeTensor();
    while (!models_.empty()) FreeModel();
    while (!runs_.empty()) FreeRun();
    for (heddle_executor* e : executors_) heddle_executor_free(e);
  }

  void Make(int turns) {
    using Act = void (Caller::*)();
    constexpr Act kActs[] = {&Caller::NewExecutor, &Caller::LoadModel,  &Caller::ParseModel,
                             &Caller::NewTensor,   &Caller::WrapTensor, &Caller::LookAtTensor,
                             &Caller::Run,         &Caller::Start,      &Caller::UseRun,
                             &Caller::UseRun,      &Caller::Plan,       &Caller::Queue,
                             &Caller::Ranks,       &Caller::Parameters, &Caller::Ask,
                             &Caller::PassNull,    &Caller::FreeTensor, &Caller::FreeModel,
                             &Caller::FreeRun,     &Caller::Memory,     &Caller::CallFromItself};
    for (int turn = 0; turn < turns; ++turn) {
      turn_ = turn;
      (this->*kActs[Below(std::size(kActs))])();
      if (turn % 4 == 0) Check();
      if (tensors_.size() > 30) FreeTensor();
      if (models_.size() > 3) FreeModel();
      if (runs_.size() > 8) FreeRun();
    }
  }

 private:
  struct Lent {
    Shared* shared;
    std::unique_ptr<char[]> memory;
  };

  void NewExecutor() {
    heddle_executor_options options{};
    options.size = sizeof options;
    if (Now(3)) options.threads = OddInt();
    if (Now(4)) options.plan_cache_capacity = OddInt();
    if (Now(4)) options.memory_limit = OddSize();
    if (Now(4)) options.runs_at_once = OddInt();
    if (Now(4)) options.place = OddText();
    if (Now(9)) options.rank = OddInt();
    bool bad = false;
    const auto sized = Resized(options, &bad);
    heddle_executor* made = nullptr;
    if (!bad) {
      if (!JUDGE(heddle_executor_new(sized.get(), &made))) return;
      EXPECT_GT(heddle_executor_threads(made), 0);
      executors_.push_back(made);
      if (executors_.size() > 2) {
        heddle_executor_free(executors_.front());
        executors_.erase(executors_.begin());
      }
    } else {
      REFUSE(heddle_executor_new(sized.get(), &made));
    }
  }
  heddle_executor* AnExecutor() {
    return executors_.empty() || Now(2) ? shared_.executor : executors_[Below(executors_.size())];
  }

  void OddModelOptions(heddle_model_options* options) {
    heddle_model_options_init(options);
    if (Now(4)) options->opt_level = OddInt();
    if (Now(4)) options->schedule = static_cast<heddle_schedule>(OddInt());
    if (Now(4)) options->seed = OddSize();
    if (Now(4)) options->bf16 = OddInt();
    if (Now(4)) options->int8_weights = OddInt();
    if (Now(4)) options->lean = OddInt();
    if (Now(4)) options->outline = OddInt();
    if (Now(4)) options->no_reuse = OddInt();
    if (Now(4)) options->reuse_edges = OddInt();
    if (Now(6)) options->force = OddText();
    if (Now(8)) options->packed_weights = Of<const char*>({"", "/dev/full", "/nowhere/x", "/"});
    if (Now(4)) {
      names_[0] = OddText();
      options->fetches = Now(4) ? nullptr : names_;
      options->num_fetches = Below(2);
    }
    if (Now(4)) {
      for (int64_t& d : dims_) d = OddDim();
      most_ = {Now(2) ? "x" : OddText(), Now(6) ? nullptr : dims_, Below(Now(4) ? 100 : 5)};
      if (most_.rank > 10) most_.rank = OddSize() | 16;
      options->max_shapes = Now(6) ? nullptr : &most_;
      options->num_max_shapes = Below(2);
    }
  }

  void LoadModel() {
    heddle_model_options options;
    OddModelOptions(&options);
    bool bad = false;
    const auto sized = Resized(options, &bad);
    heddle_model* made = nullptr;
    heddle_error* error = nullptr;
    const char* path = Now(4) ? OddText() : kDigits.c_str();
    if (Now(3)) {
      heddle_program_part part{};
      part.size = Of<size_t>({sizeof part, sizeof part, 0, 8, ~size_t{0}});
      names_[1] = OddText();
      if (Now(3)) part.signature = OddText();
      if (Now(3)) part.fetches = &names_[1];
      if (Now(3)) part.num_fetches = Below(2);
      error = heddle_model_load_part(AnExecutor(), path, Now(3) ? OddText() : nullptr, &part,
                                     Now(2) ? nullptr : sized.get(), &made);
    } else if (Now(3)) {
      error = heddle_model_compile(AModel(), sized.get(), &made);
    } else {
      error =
          heddle_model_load(AnExecutor(), path, Now(3) ? OddText() : nullptr, sized.get(), &made);
      if (bad) return Refuse(error, "heddle_model_load with another size");
    }
    if (Judge(error, "heddle_model_load")) models_.push_back(made);
  }

  void ParseModel() {
    std::string program = shared_.program, params = shared_.params;
    const auto damage = [&](std::string& bytes) {
      if (Now(2)) bytes.resize(Below(bytes.size() + 1));
      for (size_t k = Below(4); k > 0 && !bytes.empty(); --k)
        bytes[Below(bytes.size())] = static_cast<char>(Below(256));
    };
    if (!Now(3)) damage(program);
    if (Now(2)) damage(params);
    heddle_model* made = nullptr;
    heddle_error* const error =
        Now(2) ? heddle_model_parse(AnExecutor(), program.data(), program.size(),
                                    Now(2) ? (kDigits + "/model.pdiparams").c_str() : OddText(),
                                    nullptr, &made)
               : heddle_model_parse_all(AnExecutor(), program.data(), program.size(),
                                        Now(9) ? nullptr : params.data(), params.size(), nullptr,
                                        &made);
    if (Judge(error, "heddle_model_parse")) models_.push_back(made);
  }
  heddle_model* AModel() {
    return models_.empty() || Now(2) ? shared_.model : models_[Below(models_.size())];
  }
  void FreeModel() {
    if (models_.empty()) return;
    const size_t at = Below(models_.size());
    heddle_model_free(models_[at]);
    models_.erase(models_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  // Whether a tensor of such dimensions can be, and its bytes.
  bool Fits(heddle_dtype dtype, int rank, size_t* bytes) const {
    if (dtype < 0 || dtype >= HEDDLE_UNKNOWN || rank < 0 || rank > HEDDLE_MAX_RANK) return false;
    int64_t all = static_cast<int64_t>(heddle_dtype_size(dtype));
    bool fits = true, empty = false;
    for (int i = 0; i < rank; ++i) {
      if (dims_[i] < 0) return false;
      empty = empty || dims_[i] == 0;
      if (dims_[i] > 0) fits = fits && !__builtin_mul_overflow(all, dims_[i], &all);
    }
    *bytes = empty ? 0 : static_cast<size_t>(all);
    return fits;
  }
  void OddDims(heddle_dtype* dtype, int* rank) {
    *dtype = OddDType();
    *rank = Now(4) ? OddInt() : static_cast<int>(Below(5));
    for (int64_t& d : dims_) d = Now(2) ? 1 + static_cast<int64_t>(Below(3)) : OddDim();
    if (!Now(3)) return;
    *dtype = HEDDLE_FLOAT32;  // an image
    *rank = 4;
    const int64_t image[] = {static_cast<int64_t>(Below(4)), 1, 8, 8};
    std::copy_n(image, 4, dims_);
  }
  void NewTensor() {
    heddle_dtype dtype;
    int rank;
    OddDims(&dtype, &rank);
    size_t bytes = 0;
    const bool fits = Fits(dtype, rank, &bytes);
    if (fits && bytes > 1 << 20 && bytes < size_t{1} << 46) return;  // there may be memory
    heddle_tensor* made = nullptr;
    heddle_error* error = heddle_tensor_new(dtype, rank, dims_, &made);
    if (!fits || bytes > 1 << 20) return Refuse(error, "heddle_tensor_new");
    if (!Judge(error, "heddle_tensor_new")) return;
    EXPECT_EQ(heddle_tensor_bytes(made), bytes);
    if (bytes > 0) std::memset(heddle_tensor_data(made), 0, bytes);
    tensors_.push_back(made);
  }
  static void Release(void* argument) {
    auto* lent = static_cast<Lent*>(argument);
    ++lent->shared->released;
    delete lent;
  }
  void WrapTensor() {
    heddle_dtype dtype;
    int rank;
    OddDims(&dtype, &rank);
    size_t bytes = 0;
    const bool fits = Fits(dtype, rank, &bytes);
    if (fits && bytes > 1 << 20) return;
    const size_t off = Now(3) ? 1 + Below(7) : 0;  // not at a multiple of an element
    auto* lent = new Lent{&shared_, std::make_unique<char[]>((fits ? bytes : 0) + off + 1)};
    void* data = Now(9) ? nullptr : lent->memory.get() + off;
    ++shared_.wrapped;
    heddle_tensor* made = nullptr;
    heddle_error* error =
        heddle_tensor_wrap(dtype, rank, dims_, data, &Release, lent, Now(20) ? nullptr : &made);
    if (!fits || (data == nullptr && bytes > 0)) return Refuse(error, "heddle_tensor_wrap");
    if (Judge(error, "heddle_tensor_wrap")) tensors_.push_back(made);
  }
  heddle_tensor* ATensor() { return tensors_.empty() ? nullptr : tensors_[Below(tensors_.size())]; }
  void FreeTensor() {
    if (tensors_.empty()) return;
    const size_t at = Below(tensors_.size());
    heddle_tensor_free(tensors_[at]);
    tensors_.erase(tensors_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  void LookAtTensor() {
    heddle_tensor* const tensor = ATensor();
    if (tensor == nullptr) return;
    EXPECT_GE(heddle_tensor_rank(tensor), 0);
    int64_t all = 1;
    for (int i = 0; i < heddle_tensor_rank(tensor); ++i) all *= heddle_tensor_dims(tensor)[i];
    EXPECT_TRUE(heddle_tensor_bytes(tensor) == 0 || all == heddle_tensor_numel(tensor));
    size_t count = 7;
    const size_t* offsets = heddle_tensor_lod(tensor, OddInt(), Now(4) ? nullptr : &count);
    EXPECT_TRUE(offsets != nullptr || count == 7 || count == 0);
    const size_t given[] = {Of<size_t>({0, 0, 0, 1}), OddSize(), OddSize()};
    JUDGE(heddle_tensor_add_lod(tensor, Now(9) ? nullptr : given, Below(4)));
    heddle_tensor* other = nullptr;
    if (JUDGE(heddle_tensor_share(tensor, &other))) tensors_.push_back(other);
  }

  // The names and tensors of a run, which may be anything.
  struct Feeds {
    std::vector<const char*> names;
    std::vector<const heddle_tensor*> tensors;
    bool with_names;
  };
  Feeds OddFeeds() {
    Feeds feeds;
    for (size_t n = Now(2) ? 1 : Below(4); n > 0; --n) {
      feeds.names.push_back(Now(3) ? OddText() : "x");
      feeds.tensors.push_back(Now(9) ? nullptr : ATensor());
    }
    feeds.with_names = Now(2);
    feeds.names.push_back(nullptr);
    feeds.tensors.push_back(nullptr);
    return feeds;
  }
  // Image in, probabilities out.
  static bool IsAnswer(const heddle_tensor* out) {
    const auto* p = static_cast<const float*>(heddle_tensor_const_data(out));
    if (heddle_tensor_dtype(out) != HEDDLE_FLOAT32 || heddle_tensor_rank(out) != 2) return false;
    for (int64_t row = 0; row < heddle_tensor_dims(out)[0]; ++row) {
      float sum = 0;
      for (int i = 0; i < 10; ++i) sum += *p++;
      if (!(std::fabs(sum - 1) < 1e-4f)) return false;
    }
    return true;
  }
  void Check() {
    const int64_t dims[] = {2, 1, 8, 8};
    heddle_tensor *image = nullptr, *out = nullptr;
    ASSERT_EQ(heddle_tensor_new(HEDDLE_FLOAT32, 4, dims, &image), nullptr);
    std::memset(heddle_tensor_data(image), 0, heddle_tensor_bytes(image));
    heddle_error* error = heddle_model_run(shared_.model, nullptr, nullptr, &image, 1, &out, 1);
    ASSERT_EQ(error, nullptr) << turn_ << " " << heddle_error_text(error);
    EXPECT_TRUE(IsAnswer(out));
    heddle_tensor_free(out);
    heddle_tensor_free(image);
  }
  heddle_run_options OddRunOptions() {
    heddle_run_options options{};
    options.size = sizeof options;
    if (Now(3)) options.deadline_ms = OddTime();
    if (Now(6)) options.stop = shared_.stop;
    if (Now(4)) options.check_nan_inf = OddInt();
    if (Now(4)) options.wait_after_each = OddInt();
    return options;
  }
  void Run() {
    const Feeds feeds = OddFeeds();
    const heddle_run_options options = OddRunOptions();
    bool bad = false;
    const auto sized = Resized(options, &bad);
    heddle_model* const model = AModel();
    const size_t room = Now(6) ? OddSize() : heddle_model_num_outputs(model);
    std::vector<heddle_tensor*> outputs(heddle_model_num_outputs(model) + 1);
    heddle_error* error = heddle_model_run(
        model, Now(3) ? nullptr : sized.get(), feeds.with_names ? feeds.names.data() : nullptr,
        Now(20) ? nullptr : feeds.tensors.data(), feeds.tensors.size() - 1,
        Now(20) ? nullptr : outputs.data(), room);
    const bool made = Judge(error, "heddle_model_run");
    EXPECT_EQ(outputs.back(), nullptr);
    for (heddle_tensor* out : outputs) {
      if (out == nullptr) continue;
      EXPECT_TRUE(made);
      tensors_.push_back(out);
    }
  }
  static void Done(void* argument) { ++static_cast<Shared*>(argument)->called; }
  void Start() {
    const Feeds feeds = OddFeeds();
    const heddle_run_options options = OddRunOptions();
    bool bad = false;
    const auto sized = Resized(options, &bad);
    heddle_run* run = nullptr;
    const bool calls = Now(2);
    heddle_error* error = heddle_model_start(
        AModel(), Now(3) ? nullptr : sized.get(), feeds.with_names ? feeds.names.data() : nullptr,
        feeds.tensors.data(), feeds.tensors.size() - 1, calls ? &Done : nullptr, &shared_,
        Now(20) ? nullptr : &run);
    if (!Judge(error, "heddle_model_start")) return;
    shared_.started += calls;
    runs_.push_back(run);
  }
  void UseRun() {
    if (runs_.empty()) return;
    heddle_run* const run = runs_[Below(runs_.size())];
    switch (Below(3)) {
      case 0:
        return heddle_run_cancel(run);
      case 1: {
        int done = 7;
        const double time = Of({0.0, 1.0, -1.0, double(NAN), double(INFINITY)});
        EXPECT_TRUE(!JUDGE(heddle_run_wait(run, time, &done)) || done == 1 ||
                    (done == 0 && time >= 0 && time <= 1));
        return;
      }
      default: {
        (void)heddle_run_done(run);
        heddle_tensor* outs[3] = {};
        // A run that wants other room keeps its outputs.
        if (Now(3)) return REFUSE(heddle_run_outputs(run, outs, 3));
        if (Now(3)) return REFUSE(heddle_run_outputs(run, nullptr, 1));
        if (!JUDGE(heddle_run_outputs(run, outs, 1))) return;
        tensors_.push_back(outs[0]);
        REFUSE(heddle_run_outputs(run, outs, 1));  // once
      }
    }
  }
  void FreeRun() {
    if (runs_.empty()) return;
    const size_t at = Below(runs_.size());
    heddle_run_free(runs_[at]);
    runs_.erase(runs_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  void Plan() {
    const Feeds feeds = OddFeeds();
    const char* const* names = feeds.with_names ? feeds.names.data() : nullptr;
    heddle_model* const model = AModel();
    JUDGE(heddle_model_prepare(model, names, feeds.tensors.data(), feeds.tensors.size() - 1));
    heddle_text* text = nullptr;
    JUDGE(heddle_model_plan(model, names, feeds.tensors.data(), feeds.tensors.size() - 1, &text));
    EXPECT_EQ(std::strlen(heddle_text_data(text)), heddle_text_size(text));
    heddle_text_free(text);
  }

  void Queue() {
    const Feeds feeds = OddFeeds();
    int pushed = 7;
    // Never for as long as it takes: nobody reads.
    const double time = Of({0.0, 1.0, double(NAN), 1e-300});
    JUDGE(heddle_queue_push(shared_.queue, feeds.tensors.data(), feeds.tensors.size() - 1, time,
                            Now(20) ? nullptr : &pushed));
    EXPECT_TRUE(pushed == 0 || pushed == 1 || pushed == -1 || pushed == 7) << pushed;
    if (Now(4)) heddle_queue_close(shared_.queue);
    if (Now(3)) heddle_queue_reset(shared_.queue);
    const char* const name = OddText();
    JUDGE(heddle_model_set_queue(AModel(), name == nullptr || *name == 'x' ? "queue" : name,
                                 Now(9) ? nullptr : shared_.queue));
    heddle_queue* made = nullptr;
    if (JUDGE(heddle_queue_new(OddSize(), &made))) heddle_queue_free(made);
  }
  void Ranks() {
    int ranks[4];
    for (int& rank : ranks) rank = Now(2) ? static_cast<int>(Below(3)) : OddInt();
    heddle_ring rings[2];
    for (heddle_ring& ring : rings) ring = {OddInt(), Now(6) ? nullptr : ranks, Below(5)};
    heddle_ranks* made = nullptr;
    if (!JUDGE(heddle_ranks_new(OddInt(), Now(6) ? nullptr : rings, Below(3), &made))) return;
    heddle_executor_options options{};
    options.size = sizeof options;
    options.threads = 1;
    options.ranks = made;
    options.rank = OddInt();
    heddle_executor* executor = nullptr;
    if (JUDGE(heddle_executor_new(&options, &executor))) {
      heddle_executor* again = nullptr;
      REFUSE(heddle_executor_new(&options, &again));  // another executor's
    }
    if (Now(2)) heddle_ranks_free(std::exchange(made, nullptr));
    heddle_executor_free(executor);
    heddle_ranks_free(made);
  }
  void Parameters() {
    // None may be replaced while a run is under way.
    if (!alone_) return;
    for (heddle_run* run : runs_) EXPECT_TRUE(JUDGE(heddle_run_wait(run, -1, nullptr)));
    heddle_model* const model = models_.empty() ? nullptr : models_[Below(models_.size())];
    const heddle_info info = heddle_model_parameter_info(model, OddSize());
    const char* const name = info.name != nullptr && !Now(4) ? info.name : OddText();
    heddle_tensor* found = nullptr;
    if (JUDGE(heddle_model_parameter(model, name, &found))) {
      EXPECT_TRUE(JUDGE(heddle_model_set_parameter(model, name, found)));
      heddle_tensor_free(found);
    }
    JUDGE(heddle_model_set_parameter(model, name, ATensor()));
    JUDGE(heddle_model_save_parameters(
        model, Of<const char*>({nullptr, "", "/", "/dev/full", "/nowhere/x", "\xff/"})));
  }
  void Ask() {
    const heddle_model* const model = Now(4) ? nullptr : AModel();
    const size_t at = OddSize();
    const bool there = at < heddle_model_num_inputs(model);
    EXPECT_EQ(heddle_model_input(model, at).name != nullptr, there);
    EXPECT_EQ(heddle_model_output(model, at).name != nullptr, at < heddle_model_num_outputs(model));
    EXPECT_NE(heddle_model_input_type(model, at), nullptr);
    EXPECT_NE(heddle_model_output_type(model, at), nullptr);
    EXPECT_EQ(heddle_model_parameter_info(model, at).name != nullptr,
              at < heddle_model_num_parameters(model));
    EXPECT_NE(heddle_dtype_name(OddDType()), nullptr);
    EXPECT_LE(heddle_dtype_size(OddDType()), 16u);
  }
  void Memory() {
    heddle_place_memory memory{};
    memory.size = sizeof memory;
    bool bad = false;
    const auto sized = Resized(memory, &bad);
    heddle_executor* const executor = AnExecutor();
    JUDGE(heddle_executor_memory(executor, Now(2) ? 0 : OddSize(), sized.get()));
    if (Now(4)) heddle_executor_trim(executor);
    if (Now(4)) heddle_executor_reset_memory_peaks(executor);
  }

  // A callback that uses the library; all but waiting and freeing is allowed there.
  struct Again {
    Caller* caller;
    heddle_model* model;
    heddle_tensor* image;
    heddle_run* run = nullptr;
    std::atomic<int> state{0};
  };
  static void CallBack(void* argument) {
    auto* again = static_cast<Again*>(argument);
    heddle_run_cancel(nullptr);
    heddle_error_free(heddle_model_start(again->model, nullptr, nullptr, &again->image, 1, nullptr,
                                         nullptr, &again->run));
    heddle_tensor* out = nullptr;
    heddle_error* error =
        heddle_model_run(again->model, nullptr, nullptr, &again->image, 1, &out, 1);
    again->state = error == nullptr && IsAnswer(out) ? 1 : 2;
    heddle_error_free(error);
    heddle_tensor_free(out);
  }
  void CallFromItself() {
    const int64_t dims[] = {1, 1, 8, 8};
    Again again{this, shared_.model, nullptr};
    ASSERT_EQ(heddle_tensor_new(HEDDLE_FLOAT32, 4, dims, &again.image), nullptr);
    std::memset(heddle_tensor_data(again.image), 0, heddle_tensor_bytes(again.image));
    heddle_run* run = nullptr;
    ASSERT_EQ(heddle_model_start(shared_.model, nullptr, nullptr, &again.image, 1, &CallBack,
                                 &again, &run),
              nullptr);
    heddle_tensor* out = nullptr;
    EXPECT_TRUE(!JUDGE(heddle_run_outputs(run, &out, 1)) || IsAnswer(out));
    heddle_tensor_free(out);
    while (again.state == 0) std::this_thread::yield();
    EXPECT_EQ(again.state, 1);
    ASSERT_NE(again.run, nullptr);
    if (JUDGE(heddle_run_outputs(again.run, &out, 1))) heddle_tensor_free(out);
    heddle_run_free(again.run);
    heddle_run_free(run);
    heddle_tensor_free(again.image);
  }

  // NULL for each handle and each place of a result.
  void PassNull() {
    heddle_executor* executor = shared_.executor;
    heddle_model* model = AModel();
    heddle_model* made = nullptr;
    heddle_tensor* tensor = nullptr;
    heddle_run* run = nullptr;
    heddle_text* text = nullptr;
    heddle_place_memory memory{};
    memory.size = sizeof memory;
    int pushed = 0;
    const std::function<heddle_error*()> calls[] = {
        [&] { return heddle_executor_new(nullptr, nullptr); },
        [&] { return heddle_executor_memory(nullptr, 0, &memory); },
        [&] { return heddle_executor_memory(executor, 0, nullptr); },
        [&] { return heddle_model_load(nullptr, "x", nullptr, nullptr, &made); },
        [&] { return heddle_model_load(executor, nullptr, nullptr, nullptr, &made); },
        [&] { return heddle_model_load(executor, "x", nullptr, nullptr, nullptr); },
        [&] { return heddle_model_parse(executor, nullptr, 5, nullptr, nullptr, &made); },
        [&] { return heddle_model_parse_all(executor, "", 0, nullptr, 5, nullptr, &made); },
        [&] { return heddle_model_compile(nullptr, nullptr, &made); },
        [&] { return heddle_model_compile(model, nullptr, nullptr); },
        [&] { return heddle_model_run(nullptr, nullptr, nullptr, nullptr, 0, nullptr, 0); },
        [&] {
          return heddle_model_start(nullptr, nullptr, nullptr, nullptr, 0, nullptr, nullptr, &run);
        },
        [&] {
          return heddle_model_start(model, nullptr, nullptr, nullptr, 1, nullptr, nullptr, &run);
        },
        [&] { return heddle_run_wait(nullptr, 0, nullptr); },
        [&] { return heddle_run_outputs(nullptr, &tensor, 1); },
        [&] { return heddle_model_prepare(nullptr, nullptr, nullptr, 0); },
        [&] { return heddle_model_plan(model, nullptr, nullptr, 0, nullptr); },
        [&] { return heddle_model_plan(nullptr, nullptr, nullptr, 0, &text); },
        [&] { return heddle_model_parameter(model, nullptr, &tensor); },
        [&] { return heddle_model_set_parameter(model, "w", nullptr); },
        [&] { return heddle_model_set_queue(model, nullptr, shared_.queue); },
        [&] { return heddle_tensor_new(HEDDLE_FLOAT32, 1, nullptr, &tensor); },
        [&] { return heddle_tensor_share(nullptr, &tensor); },
        [&] { return heddle_queue_push(nullptr, nullptr, 0, 0, &pushed); },
        [&] { return heddle_stop_new(nullptr); },
    };
    const size_t at = Below(std::size(calls) + 1);
    if (at < std::size(calls))
      return Refuse(calls[at](), ("NULL, call " + std::to_string(at)).c_str());
    heddle_error_free(nullptr);
    heddle_tensor_free(nullptr);
    heddle_executor_free(nullptr);
    heddle_model_free(nullptr);
    heddle_run_free(nullptr);
    heddle_run_cancel(nullptr);
    heddle_stop_free(nullptr);
    heddle_stop_request(nullptr);
    heddle_text_free(nullptr);
    heddle_queue_free(nullptr);
    heddle_queue_close(nullptr);
    heddle_queue_reset(nullptr);
    heddle_ranks_free(nullptr);
    heddle_executor_trim(nullptr);
    heddle_executor_reset_memory_peaks(nullptr);
    heddle_model_options_init(nullptr);
    EXPECT_EQ(heddle_error_code(nullptr), HEDDLE_OK);
    EXPECT_EQ(heddle_executor_threads(nullptr) + heddle_run_done(nullptr), 0);
    EXPECT_EQ(heddle_queue_size(nullptr) + heddle_text_size(nullptr), 0u);
  }

  Shared& shared_;
  const bool alone_;  // nobody else uses the model
  std::vector<heddle_executor*> executors_;
  std::vector<heddle_model*> models_;
  std::vector<heddle_tensor*> tensors_;
  std::vector<heddle_run*> runs_;
  const char* names_[2] = {};
  int64_t dims_[16] = {};
  heddle_max_shape most_{};
};

TEST(CApiMisuse, OneCallerIsToldOrAnswered) {
  Shared shared;
  Caller caller(shared, 1, true);
  caller.Make(Turns());
  EXPECT_GT(caller.answered(), Turns() / 10);
  EXPECT_GT(caller.refused(), Turns() / 10);
}

TEST(CApiMisuse, EightCallersShareAModel) {
  Shared shared;
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 8; ++seed)
    threads.emplace_back([&shared, seed] { Caller(shared, 100 + seed, false).Make(Turns() / 8); });
  for (std::thread& t : threads) t.join();
}

}  // namespace
