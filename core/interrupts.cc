#include "core/interrupts.h"

#include "core/error.h"

namespace heddle {

Status Interrupts::LookClosely() const {
  const uint32_t why = bits_.load(std::memory_order_relaxed);
  if (why & kCancel) return Status(StatusCode::kCancelled, "the run was cancelled");
  if (why & kDeadline)
    return Status(StatusCode::kDeadlineExceeded, "the run was not finished at its deadline");
  return (why & kAsk) ? Ask() : Status::Ok();
}

void Interrupts::Leave() const {
  if (Status status = LookClosely(); !status.ok()) throw Interrupted{std::move(status)};
}

void HostCalls::Request() {
  asked_.store(true, std::memory_order_release);
  std::lock_guard lock(mutex_);
  if (interrupts_ != nullptr) interrupts_->Raise(Interrupts::kAsk);
}

void HostLine::Begin(HostCalls* host, std::thread::id owner, Interrupts* interrupts) {
  host_ = host;
  interrupts_ = interrupts;
  owner_ = owner;
  if (host == nullptr || interrupts == nullptr) return;
  std::lock_guard lock(host->mutex_);
  host->interrupts_ = interrupts;
  if (host->asked_.load(std::memory_order_relaxed) || host->failed_.load(std::memory_order_relaxed))
    interrupts->Raise(Interrupts::kAsk);
}

void HostLine::End() {
  if (host_ != nullptr && interrupts_ != nullptr) {
    std::lock_guard lock(host_->mutex_);
    host_->interrupts_ = nullptr;
  }
  host_ = nullptr;
}

Status HostLine::Serve() {
  if (host_ == nullptr) return Status::Ok();
  if (host_->failed_.load(std::memory_order_acquire)) return host_->why_;
  if (std::this_thread::get_id() != owner_ || inside_) return Status::Ok();
  // Lowered before the request is read, so that a request made in between raises it again.
  if (interrupts_ != nullptr) interrupts_->Lower(Interrupts::kAsk);
  if (!host_->asked_.exchange(false, std::memory_order_acquire)) return Status::Ok();
  inside_ = true;
  Status status = [&] {
    // Work that the host starts inside the call is not part of this work: its limits do not apply.
    const Interrupts::Scope none(nullptr);
    return host_->call_();
  }();
  inside_ = false;
  if (status.ok()) return status;
  host_->why_ = status;
  host_->failed_.store(true, std::memory_order_release);
  // Under the mutex, since the work may be ending on another thread.
  std::lock_guard lock(host_->mutex_);
  if (host_->interrupts_ != nullptr) host_->interrupts_->Raise(Interrupts::kAsk);
  return status;
}

Status HostLine::Failure() const {
  const bool failed = host_ != nullptr && host_->failed_.load(std::memory_order_acquire);
  return failed ? host_->why_ : Status::Ok();
}

LimitLooks::LimitLooks(const std::optional<std::chrono::steady_clock::time_point>& deadline,
                       const std::stop_token& stop, HostCalls* host, const char* what)
    : deadline_(deadline), stop_(stop), what_(what) {
  if (host != nullptr) HostLine::Forgive(*host);
  line_.Begin(host, std::this_thread::get_id(), nullptr);
  Raise(kAsk);
}

Status LimitLooks::Ask() const {
  if (stop_.stop_requested())
    return Status(StatusCode::kCancelled, StrCat(what_, " was cancelled"));
  if (deadline_ && std::chrono::steady_clock::now() >= *deadline_)
    return Status(StatusCode::kDeadlineExceeded,
                  StrCat(what_, " was not finished at its deadline"));
  return line_.Serve();
}

struct LimitScope::Impl {
  explicit Impl(const Limits& given)
      : limits(given),
        looks(limits.deadline, limits.stop, limits.host, "the work"),
        scope(&looks) {}
  const Limits limits;
  LimitLooks looks;
  Interrupts::Scope scope;
};

LimitScope::LimitScope(const Limits& limits) : impl_(std::make_unique<Impl>(limits)) {}
LimitScope::~LimitScope() = default;

}  // namespace heddle
