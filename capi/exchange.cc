// Ranks and readers of the C API.
#include <algorithm>
#include <cmath>
#include <utility>

#include "capi/handles.h"
#include "heddle/params.h"

using heddle::Status;
using heddle::StatusCode;
using heddle::capi::CheckCount;
using heddle::capi::Guard;
using heddle::capi::Invalid;

heddle_error* heddle_ranks_new(int size, const heddle_ring* rings, size_t num_rings,
                               heddle_ranks** ranks) {
  return Guard([&]() -> Status {
    if (ranks == nullptr) return Invalid("heddle_ranks_new: ranks is NULL");
    if (rings == nullptr && num_rings > 0) return Invalid("heddle_ranks_new: rings is NULL");
    HEDDLE_RETURN_IF_ERROR(
        CheckCount("heddle_ranks_new: num_rings", num_rings, sizeof(heddle_ring)));
    std::vector<heddle::RankRing> all;
    for (size_t i = 0; i < num_rings; ++i) {
      const std::string ring = "heddle_ranks_new: rings[" + std::to_string(i) + "]";
      if (rings[i].ranks == nullptr && rings[i].num_ranks > 0)
        return Invalid(ring + ".ranks is NULL");
      if (rings[i].num_ranks > static_cast<size_t>(std::max(size, 0)))
        return Invalid(ring + ".num_ranks is " + std::to_string(rings[i].num_ranks) +
                       ", the group has " + std::to_string(size));
      all.push_back({rings[i].ring, {rings[i].ranks, rings[i].ranks + rings[i].num_ranks}});
    }
    HEDDLE_ASSIGN_OR_RETURN(auto made, heddle::NewRanks(size, all));
    auto group = std::make_unique<heddle_ranks>();
    group->ranks = std::move(made);
    *ranks = group.release();
    return Status::Ok();
  });
}

int heddle_ranks_size(const heddle_ranks* ranks) {
  return ranks == nullptr ? 0 : static_cast<int>(ranks->ranks.size());
}

void heddle_ranks_free(heddle_ranks* ranks) { delete ranks; }

heddle_error* heddle_queue_new(size_t capacity, heddle_queue** queue) {
  return Guard([&]() -> Status {
    if (queue == nullptr) return Invalid("heddle_queue_new: queue is NULL");
    if (capacity == 0) return Invalid("heddle_queue_new: capacity is 0; at least 1 is needed");
    *queue = new heddle_queue{std::make_shared<heddle::ReaderQueue>(capacity)};
    return Status::Ok();
  });
}

heddle_error* heddle_queue_push(heddle_queue* queue, const heddle_tensor* const* tensors,
                                size_t count, double timeout_ms, int* pushed) {
  return Guard([&]() -> Status {
    if (queue == nullptr || pushed == nullptr)
      return Invalid("heddle_queue_push: queue or pushed is NULL");
    if (tensors == nullptr && count > 0) return Invalid("heddle_queue_push: tensors is NULL");
    HEDDLE_RETURN_IF_ERROR(CheckCount("heddle_queue_push: count", count, sizeof(*tensors)));
    heddle::ReaderQueue::Batch batch;
    for (size_t i = 0; i < count; ++i) {
      if (tensors[i] == nullptr)
        return Invalid("heddle_queue_push: tensors[" + std::to_string(i) + "] is NULL");
      batch.push_back(tensors[i]->tensor);
    }
    if (std::isnan(timeout_ms)) return Invalid("heddle_queue_push: timeout_ms is not a number");
    if (timeout_ms >= 0) {
      const auto in = queue->queue->PushUntil(std::move(batch), heddle::capi::After(timeout_ms));
      *pushed = in ? static_cast<int>(*in) : -1;
    } else {
      *pushed = queue->queue->Push(std::move(batch)) ? 1 : 0;
    }
    return Status::Ok();
  });
}

void heddle_queue_close(heddle_queue* queue) {
  if (queue != nullptr) queue->queue->Close();
}

void heddle_queue_reset(heddle_queue* queue) {
  if (queue != nullptr) queue->queue->Reset();
}

size_t heddle_queue_size(const heddle_queue* queue) {
  return queue == nullptr ? 0 : queue->queue->size();
}

void heddle_queue_free(heddle_queue* queue) { delete queue; }

int heddle_error_is_end_of_data(const heddle_error* error) {
  return error != nullptr && heddle::IsEndOfData(error->status) ? 1 : 0;
}

heddle_error* heddle_model_set_queue(heddle_model* model, const char* name, heddle_queue* queue) {
  return Guard([&]() -> Status {
    if (model == nullptr || name == nullptr || queue == nullptr)
      return Invalid("heddle_model_set_queue: model, name or queue is NULL");
    HEDDLE_ASSIGN_OR_RETURN(const auto writes, heddle::HoldWrites(*model->model.scope));
    model->model.scope->Set(name, heddle::ReaderValue(queue->queue));
    return Status::Ok();
  });
}
