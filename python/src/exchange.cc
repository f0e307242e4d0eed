#include "python/src/exchange.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <map>
#include <optional>
#include <vector>

#include "python/src/arrays.h"
#include "python/src/gil.h"
#include "python/src/with_writes.h"

namespace heddle::python {
namespace {

std::vector<Rank> NewRanksFor(int size, const std::map<int64_t, std::vector<int>>& rings) {
  std::vector<RankRing> all;
  for (const auto& [ring, ranks] : rings) all.push_back({ring, ranks});
  auto made = NewRanks(size, all);
  if (!made.ok()) throw nb::value_error(std::string(made.status().message()).c_str());
  std::vector<Rank> ranks;
  for (auto& communicator : *made) ranks.push_back({std::move(communicator)});
  return ranks;
}

// Waits while the queue is full; Ctrl-C ends the wait. False: the queue was closed.
bool Push(ReaderQueue& queue, const nb::list& arrays) {
  ReaderQueue::Batch batch;
  // A copy: methods of an array may change the list.
  for (nb::handle array : nb::tuple(arrays))
    batch.push_back(ToOwnTensor(array, DType::kUnknown, "tensor " + std::to_string(batch.size())));
  for (;;) {
    std::optional<bool> pushed;
    {
      const ReleasedGil released;
      pushed =
          queue.PushUntil(batch, std::chrono::steady_clock::now() + std::chrono::milliseconds(100));
    }
    if (pushed) return *pushed;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

}  // namespace

void BindExchange(nb::module_& module) {
  nb::class_<Rank>(module, "Rank", "A rank of a group; an executor takes it.");
  module.def("new_ranks", &NewRanksFor, nb::arg("size"), nb::arg("rings") = nb::dict(),
             "The ranks of a new group within this process. `rings`: by ring_id, the ranks that "
             "operators of that ring are for, in their order there; others are for all.");
  nb::class_<ReaderQueue>(module, "ReaderQueue",
                          "Batches that programs read for themselves, pushed while runs go on.")
      .def(nb::init<size_t>(), nb::arg("capacity"))
      .def(
          "push", &Push, nb::arg("arrays"),
          "Adds a batch: one array for each variable. Waits while the queue is full; False when it "
          "was closed.")
      .def("close", &ReaderQueue::Close, "No further batch comes.")
      .def("reset", &ReaderQueue::Reset, "Drops what is queued and begins anew.")
      .def(
          "put_into",
          [](const std::shared_ptr<ReaderQueue>& queue, Scope& scope, const std::string& name) {
            WithWrites(scope, [&] { scope.Set(name, ReaderValue(queue)); });
          },
          nb::arg("scope"), nb::arg("name"),
          "Puts the queue into a variable that a program reads from.")
      .def_prop_ro("capacity", &ReaderQueue::capacity)
      .def_prop_ro("closed", &ReaderQueue::closed)
      .def("__len__", &ReaderQueue::size);
}

}  // namespace heddle::python
