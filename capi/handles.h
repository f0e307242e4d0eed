// The objects behind the handles of heddle.h, and the border that exceptions stop at.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "heddle.h"
#include "heddle/async_run.h"
#include "heddle/executor.h"
#include "heddle/operators/own_operator.h"
#include "heddle/program.h"
#include "heddle/ranks.h"
#include "heddle/reader_queue.h"
#include "heddle/status.h"
#include "heddle/tensor.h"

struct heddle_error {
  heddle::Status status;
  std::string text;
};

struct heddle_tensor {
  heddle::Tensor tensor;
  bool is_const = false;  // beside what the memory itself says: a share of a model's parameter
};

struct heddle_executor {
  std::shared_ptr<heddle::Executor> executor;
};

struct heddle_model {
  std::shared_ptr<heddle::Executor> executor;  // before `compiled`, which must not outlive it
  heddle::Model model;
  heddle::CompiledProgram compiled;
  std::vector<heddle::TensorInfo> parameters;
  std::vector<std::string> input_types, output_types;  // of what `compiled` takes and gives
};

struct heddle_run {
  std::shared_ptr<heddle::Executor> executor;  // before `run`, whose memory is the executor's
  std::vector<heddle::TensorInfo> outputs;
  heddle::AsyncRun run;
};

struct heddle_stop {
  std::stop_source source;
};

struct heddle_text {
  std::string text;
};

struct heddle_ranks {
  std::mutex mutex;                                          // guards what executors take
  std::vector<std::shared_ptr<heddle::Communicator>> ranks;  // null: taken
};

struct heddle_queue {
  std::shared_ptr<heddle::ReaderQueue> queue;
};

namespace heddle::capi {

KernelCreator ToKernelCreator(const heddle_kernel_creator& creator);

// An option structure of a caller that may know fewer fields than this library.
template <typename Options>
Status ReadOptions(const Options* given, Options& known) {
  if (given == nullptr) return Status::Ok();
  // Each version of a structure ends where a pointer could: other sizes would cut a field.
  if (given->size < sizeof(size_t) || given->size > 4096 || given->size % alignof(Options) != 0)
    return Status(StatusCode::kInvalidArgument, "options: size is " + std::to_string(given->size) +
                                                    ", not that of the structure");
  std::copy_n(reinterpret_cast<const std::byte*>(given), std::min(given->size, sizeof(Options)),
              reinterpret_cast<std::byte*>(&known));
  return Status::Ok();
}

// Never NULL: when there is no memory for an error, a constant one says so.
heddle_error* MakeError(const Status& status) noexcept;
// For a std::exception other than bad_alloc.
heddle_error* Unexpected(const char* what) noexcept;

// `body` returns a Status; whatever it throws becomes an error as well.
template <typename Body>
heddle_error* Guard(Body body) noexcept {
  try {
    const Status status = body();
    return status.ok() ? nullptr : MakeError(status);
  } catch (const std::bad_alloc&) {
    return MakeError(Status(StatusCode::kResourceExhausted, "out of memory"));
  } catch (const std::system_error& e) {  // no more threads
    return MakeError(Status(StatusCode::kResourceExhausted, e.what()));
  } catch (const std::exception& e) {
    return Unexpected(e.what());
  } catch (...) {
    return Unexpected("unknown exception");
  }
}

inline Status Invalid(const std::string& what) {
  return Status(StatusCode::kInvalidArgument, what);
}

// Not OK for more elements than an array can have: a negative number, or one that is not set.
inline Status CheckCount(const std::string& what, size_t count, size_t element_bytes) {
  if (count <= static_cast<size_t>(PTRDIFF_MAX) / element_bytes) return Status::Ok();
  return Invalid(what + " is " + std::to_string(count) + ", more than there are addresses");
}

inline std::chrono::steady_clock::time_point After(double ms) {
  constexpr double kLongest = 1e12;  // thirty years; what the clock can count
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(
             std::chrono::duration<double, std::milli>(std::min(ms, kLongest)));
}

inline constexpr heddle_info kNoInfo = {nullptr, HEDDLE_UNKNOWN, -1, nullptr};

// Points into `infos`.
inline heddle_info InfoOf(const std::vector<TensorInfo>& infos, size_t index) {
  if (index >= infos.size()) return kNoInfo;
  const TensorInfo& info = infos[index];
  return {info.name.c_str(), static_cast<heddle_dtype>(info.dtype), info.shape.rank(),
          info.shape.begin()};
}

}  // namespace heddle::capi
