#include "device/emulated_graph.h"

#include <algorithm>
#include <unordered_map>

namespace heddle {
namespace {

// Visits the entries of a capture in an order in which the first stream reaches its end and every
// entry comes as late as possible.
class LazyOrder {
 public:
  explicit LazyOrder(const std::vector<EmulatedCapture::Entry>& entries) : entries_(entries) {
    for (uint32_t i = 0; i < entries.size(); ++i) {
      const auto& [stream, task] = entries[i];
      if (stream >= of_stream_.size()) of_stream_.resize(stream + 1);
      of_stream_[stream].push_back(i);
      if (task.signal) signal_[task.signal.get()] = i;
    }
    next_.resize(of_stream_.size());
  }

  std::vector<uint32_t> Run() {
    if (!of_stream_.empty() && !of_stream_[0].empty()) Visit(0, of_stream_[0].back());
    return std::move(order_);
  }
  bool AllWorkVisited() const {
    for (size_t stream = 0; stream < of_stream_.size(); ++stream)
      for (size_t k = next_[stream]; k < of_stream_[stream].size(); ++k)
        if (entries_[of_stream_[stream][k]].task.work) return false;
    return true;
  }

 private:
  // Visits a stream up to the entry `last`.
  void Visit(uint32_t stream, uint32_t last) {
    while (next_[stream] < of_stream_[stream].size() && of_stream_[stream][next_[stream]] <= last) {
      const uint32_t i = of_stream_[stream][next_[stream]++];
      if (const auto& wait = entries_[i].task.wait) {
        const uint32_t signal = signal_.at(wait.get());
        Visit(entries_[signal].stream, signal);
      }
      order_.push_back(i);
    }
  }

  const std::vector<EmulatedCapture::Entry>& entries_;
  std::vector<std::vector<uint32_t>> of_stream_;
  std::vector<size_t> next_;
  std::unordered_map<const void*, uint32_t> signal_;
  std::vector<uint32_t> order_;
};

}  // namespace

uint32_t EmulatedCapture::IndexOf(EmulatedStream* stream) {
  const auto at = std::find(streams.begin(), streams.end(), stream);
  const auto index = static_cast<uint32_t>(at - streams.begin());
  if (at == streams.end()) streams.push_back(stream);
  return index;
}

Status EmulatedCapture::Misuse(const char* what) {
  Status status = Internal(what, " under a capture");
  if (misuse.ok()) misuse = status;
  return status;
}

EmulatedGraph::EmulatedGraph(EmulatedDevice& device, EmulatedCapture& capture)
    : device_(device),
      kernels_(capture.kernels),
      copies_(capture.copies),
      pageable_copies_(capture.pageable_copies) {
  std::vector<int64_t> done(capture.streams.size(), 0);  // per stream
  std::unordered_map<const void*, int64_t> reached;
  for (const auto& [stream, task] : capture.entries) {
    if (task.wait) done[stream] = std::max(done[stream], reached.at(task.wait.get()));
    done[stream] += task.delay_ns;
    if (task.signal) reached[task.signal.get()] = done[stream];
  }
  delay_ns_ = done[0];
  LazyOrder order(capture.entries);
  for (uint32_t i : order.Run())
    if (Task& task = capture.entries[i].task; task.work) work_.push_back(std::move(task));
  loose_ends_ = !order.AllWorkVisited();
  ++device_.counts_.graphs;
}

EmulatedGraph::~EmulatedGraph() {
  MutexLock lock(device_.mutex_);
  --device_.counts_.graphs;
}

std::pair<Status, uint64_t> EmulatedGraph::Execute() const {
  for (const Task& task : work_)
    if (Status s = task.work(); !s.ok()) return {std::move(s), task.tag};
  return {Status::Ok(), 0};
}

}  // namespace heddle
