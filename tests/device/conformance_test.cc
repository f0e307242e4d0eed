// What every device must do, whatever its kind.
#include <gtest/gtest.h>

#include <numeric>

#include "core/op_registry.h"
#include "device/caching_allocator.h"
#include "device/device.h"
#include "device/kinds.h"

namespace heddle {
namespace {

struct Kind {
  std::string name;
  std::function<std::shared_ptr<Device>()> open;
};

std::vector<Kind> Kinds() {
  std::vector<Kind> kinds = {
      {"emulated", [] { return NewEmulatedDevice(); }},
      {"emulatedSlow",
       [] {
         return NewEmulatedDevice(
             {.kernel_delay_ns = 100000, .copy_delay_ns = 50000, .jitter_ns = 200000, .seed = 7});
       }},
      {"emulatedLazy", [] { return NewEmulatedDevice({.lazy = true}); }},
  };
  for (const DeviceKind& kind : DeviceKinds()) {
    if (kind.name == "emulated") continue;
    if (auto opened = kind.open(0, {}); opened.ok())
      kinds.push_back({std::string(kind.name), [device = *opened] { return device; }});
  }
  return kinds;
}

class DeviceConformance : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override { device_ = GetParam().open(); }

  std::unique_ptr<Stream> NewStream() {
    auto stream = device_->NewStream(0);
    EXPECT_TRUE(stream.ok()) << stream.status().ToString();
    return *std::move(stream);
  }
  std::unique_ptr<Event> NewEvent() {
    auto event = device_->NewEvent(false);
    EXPECT_TRUE(event.ok()) << event.status().ToString();
    return *std::move(event);
  }
  void* Allocate(size_t bytes) {
    auto memory = device_->Allocate(bytes);
    EXPECT_TRUE(memory.ok()) << memory.status().ToString();
    return *memory;
  }

  std::shared_ptr<Device> device_;
};

std::vector<int> Numbers(int count, int from) {
  std::vector<int> v(static_cast<size_t>(count));
  std::iota(v.begin(), v.end(), from);
  return v;
}

TEST_P(DeviceConformance, CopiesThereAndBack) {
  auto stream = NewStream();
  const std::vector<int> sent = Numbers(5000, 17);
  std::vector<int> back(sent.size(), -1);
  const size_t bytes = sent.size() * sizeof(int);
  void *a = Allocate(bytes), *b = Allocate(bytes);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a) % 256, 0u);
  EXPECT_NE(a, b);
  ASSERT_TRUE(stream->CopyToDevice(a, sent.data(), bytes, 0).ok());
  ASSERT_TRUE(stream->CopyOnDevice(b, a, bytes, 0).ok());
  ASSERT_TRUE(stream->CopyToHost(back.data(), b, bytes, 0).ok());
  ASSERT_TRUE(stream->Synchronize().ok());
  EXPECT_EQ(back, sent);
  ASSERT_TRUE(stream->Fill(b, 0, bytes, 0).ok());
  ASSERT_TRUE(stream->CopyToHost(back.data(), b, bytes, 0).ok());
  ASSERT_TRUE(stream->Synchronize().ok());
  EXPECT_EQ(back, std::vector<int>(sent.size(), 0));
  device_->Free(a);
  device_->Free(b);
}

TEST_P(DeviceConformance, AStreamKeepsItsOrder) {
  auto stream = NewStream();
  void* memory = Allocate(sizeof(int));
  const std::vector<int> numbers = Numbers(200, 0);
  std::vector<int> back(numbers.size(), -1);
  for (size_t k = 0; k < numbers.size(); ++k) {
    ASSERT_TRUE(stream->CopyToDevice(memory, &numbers[k], sizeof(int), 0).ok());
    ASSERT_TRUE(stream->CopyToHost(&back[k], memory, sizeof(int), 0).ok());
  }
  ASSERT_TRUE(stream->Synchronize().ok());
  EXPECT_EQ(back, numbers);
  device_->Free(memory);
}

TEST_P(DeviceConformance, EventsOrderStreams) {
  auto first = NewStream(), second = NewStream();
  auto written = NewEvent(), read = NewEvent();
  void* memory = Allocate(sizeof(int));
  const std::vector<int> numbers = Numbers(50, 100);
  std::vector<int> back(numbers.size(), -1);
  EXPECT_TRUE(written->Reached());  // nothing is recorded yet
  for (size_t k = 0; k < numbers.size(); ++k) {
    ASSERT_TRUE(first->WaitFor(*read).ok());  // the first time there is nothing to wait for
    ASSERT_TRUE(first->CopyToDevice(memory, &numbers[k], sizeof(int), 0).ok());
    ASSERT_TRUE(first->Record(*written).ok());
    ASSERT_TRUE(second->WaitFor(*written).ok());
    ASSERT_TRUE(second->CopyToHost(&back[k], memory, sizeof(int), 0).ok());
    ASSERT_TRUE(second->Record(*read).ok());
  }
  ASSERT_TRUE(read->Wait().ok());
  EXPECT_TRUE(read->Reached());
  EXPECT_TRUE(written->Reached());
  EXPECT_EQ(back, numbers);
  device_->Free(memory);
}

// A wait is for the newest record at the time of the wait, not for later ones.
TEST_P(DeviceConformance, EventsMayBeRecordedAgain) {
  auto first = NewStream(), second = NewStream();
  auto event = NewEvent();
  void* memory = Allocate(2 * sizeof(int));
  const int numbers[] = {1, 2};
  int back = 0;
  ASSERT_TRUE(first->CopyToDevice(memory, &numbers[0], sizeof(int), 0).ok());
  ASSERT_TRUE(first->Record(*event).ok());
  ASSERT_TRUE(second->WaitFor(*event).ok());
  ASSERT_TRUE(second->CopyToHost(&back, memory, sizeof(int), 0).ok());
  ASSERT_TRUE(second->Record(*event).ok());
  ASSERT_TRUE(first->WaitFor(*event).ok());
  ASSERT_TRUE(first->CopyToDevice(memory, &numbers[1], sizeof(int), 0).ok());
  ASSERT_TRUE(first->Synchronize().ok());
  EXPECT_EQ(back, 1);
  device_->Free(memory);
}

TEST_P(DeviceConformance, MemoryRunsOutAndComesBack) {
  const size_t half = device_->memory_bytes() / 2 / 256 * 256;
  void* a = Allocate(half);
  auto refused = device_->Allocate(device_->memory_bytes());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  device_->Free(a);
  device_->Free(Allocate(half));
}

TEST_P(DeviceConformance, RunsKernels) {
  const OpDef* relu = FindOp("relu");
  ASSERT_NE(relu, nullptr);
  auto stream = NewStream();
  const std::vector<float> x = {-1, 0, 2, -3.5f};
  std::vector<float> y(x.size(), -9);
  void *in = Allocate(16), *out = Allocate(16);
  BoundOp op;
  op.def = relu;
  std::vector<AttrValue> attrs;
  for (const AttrDef& a : relu->attrs()) attrs.push_back(a.default_value);
  op.attrs = attrs.data();
  op.in_begin = {0, 1};
  op.out_begin = {0, 1};
  op.in = {0};
  op.out = {1};
  Value x_meta{Tensor()}, y_meta{Tensor()};
  x_meta.tensor().SetMeta(DType::kF32, Shape({4}));
  y_meta.tensor().SetMeta(DType::kF32, Shape({4}));
  Value* const frame[] = {&x_meta, &y_meta};
  ASSERT_TRUE(device_->HasKernel(CallView(op, frame, true))) << "the least that a device can do";
  BoundOp loop;
  loop.def = FindOp("while");
  EXPECT_FALSE(device_->HasKernel(CallView(loop, frame, false)));
  Services services;
  KernelCall call;
  call.op = &op;
  call.services = &services;
  call.host_kernel = relu->kernel(DType::kF32);
  for (void* memory : {in, out})
    call.operands.emplace_back(Tensor::Wrap(memory, DType::kF32, Shape({4})));
  ASSERT_TRUE(stream->CopyToDevice(in, x.data(), 16, 0).ok());
  ASSERT_TRUE(stream->Launch(std::move(call), 0).ok());
  ASSERT_TRUE(stream->CopyToHost(y.data(), out, 16, 0).ok());
  const Status status = stream->Synchronize();
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(y, (std::vector<float>{0, 0, 2, 0}));
  device_->Free(in);
  device_->Free(out);
}

TEST_P(DeviceConformance, EventsTellTime) {
  auto stream = NewStream();
  auto first = device_->NewEvent(true), second = device_->NewEvent(true);
  auto untimed = NewEvent();
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_FALSE((*second)->NanosecondsSince(**first).ok());  // never recorded
  void* memory = Allocate(1 << 20);
  ASSERT_TRUE(stream->Record(**first).ok());
  ASSERT_TRUE(stream->Fill(memory, 1, 1 << 20, 0).ok());
  ASSERT_TRUE(stream->Record(**second).ok());
  ASSERT_TRUE(stream->Record(*untimed).ok());
  ASSERT_TRUE(stream->Synchronize().ok());
  auto took = (*second)->NanosecondsSince(**first);
  ASSERT_TRUE(took.ok()) << took.status().ToString();
  EXPECT_GT(*took, 0);
  EXPECT_EQ(*(*first)->NanosecondsSince(**second), -*took);
  EXPECT_FALSE(untimed->NanosecondsSince(**first).ok());
  device_->Free(memory);
}

TEST_P(DeviceConformance, StreamsMayHavePriorities) {
  for (int priority : {0, -1}) {
    auto stream = device_->NewStream(priority);
    ASSERT_TRUE(stream.ok()) << stream.status().ToString();
    void* memory = Allocate(64);
    EXPECT_TRUE((*stream)->Fill(memory, 1, 64, 0).ok());
    EXPECT_TRUE((*stream)->Synchronize().ok());
    device_->Free(memory);
  }
}

// One number travels from `a` to `b` on one stream and, behind an event, from there to `c` on
// another.
TEST_P(DeviceConformance, WhatIsCapturedIsDoneWhenReplayed) {
  auto first = NewStream(), second = NewStream(), third = NewStream();
  auto fork = NewEvent(), join = NewEvent();
  void *a = Allocate(sizeof(int)), *b = Allocate(sizeof(int)), *c = Allocate(sizeof(int));
  int zero = 0, back = -1;
  for (void* memory : {a, b, c})
    ASSERT_TRUE(first->CopyToDevice(memory, &zero, sizeof(int), 0).ok());
  ASSERT_TRUE(first->Synchronize().ok());
  const Status begun = first->BeginCapture();
  if (begun.code() == StatusCode::kUnimplemented) GTEST_SKIP() << "captures nothing";
  ASSERT_TRUE(begun.ok()) << begun.ToString();
  ASSERT_TRUE(first->CopyOnDevice(b, a, sizeof(int), 0).ok());
  ASSERT_TRUE(first->Record(*fork).ok());
  ASSERT_TRUE(second->WaitFor(*fork).ok());
  ASSERT_TRUE(second->CopyOnDevice(c, b, sizeof(int), 0).ok());
  ASSERT_TRUE(second->Record(*join).ok());
  ASSERT_TRUE(first->WaitFor(*join).ok());
  auto graph = first->EndCapture();
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  std::vector<int> seen;
  for (int k = 5; k < 8; ++k) {
    ASSERT_TRUE(third->CopyToDevice(a, &k, sizeof(int), 0).ok());
    ASSERT_TRUE(third->CopyToHost(&back, c, sizeof(int), 0).ok());
    ASSERT_TRUE(third->Synchronize().ok());
    seen.push_back(back);
    ASSERT_TRUE(third->Replay(**graph).ok());
    ASSERT_TRUE(third->CopyToHost(&back, c, sizeof(int), 0).ok());
    ASSERT_TRUE(third->Synchronize().ok());
    seen.push_back(back);
  }
  EXPECT_EQ(seen, (std::vector<int>{0, 5, 5, 6, 6, 7}));
  // The streams are as before.
  const int nine = 9;
  ASSERT_TRUE(second->CopyToDevice(c, &nine, sizeof(int), 0).ok());
  ASSERT_TRUE(second->CopyToHost(&back, c, sizeof(int), 0).ok());
  ASSERT_TRUE(second->Synchronize().ok());
  EXPECT_EQ(back, 9);
  for (void* memory : {a, b, c}) device_->Free(memory);
}

TEST_P(DeviceConformance, CapturesAreRefusedWithLooseEnds) {
  auto first = NewStream(), second = NewStream();
  auto fork = NewEvent();
  void* memory = Allocate(64);
  const Status begun = first->BeginCapture();
  if (begun.code() == StatusCode::kUnimplemented) GTEST_SKIP() << "captures nothing";
  ASSERT_TRUE(begun.ok());
  ASSERT_TRUE(first->Fill(memory, 1, 64, 0).ok());
  ASSERT_TRUE(first->Record(*fork).ok());
  ASSERT_TRUE(second->WaitFor(*fork).ok());
  ASSERT_TRUE(second->Fill(memory, 2, 64, 0).ok());  // nobody waits for it
  EXPECT_FALSE(first->EndCapture().ok());
  EXPECT_TRUE(first->Fill(memory, 3, 64, 0).ok());
  EXPECT_TRUE(first->Synchronize().ok());
  EXPECT_TRUE(second->Synchronize().ok());
  EXPECT_FALSE(first->EndCapture().ok());  // there is none
  device_->Free(memory);
}

TEST_P(DeviceConformance, CachedMemoryServesItsStreamAtOnce) {
  auto stream = NewStream(), other = NewStream();
  CachingAllocator memory(device_);
  auto first = memory.Allocate(1000, stream.get());
  ASSERT_TRUE(first.ok());
  void* const data = (*first)->data();
  EXPECT_GE(memory.bytes_in_use(), 1000u);
  first->reset();
  EXPECT_EQ(memory.bytes_in_use(), 0u);
  EXPECT_GE(memory.bytes_cached(), 1000u);
  auto elsewhere = memory.Allocate(1000, other.get());
  auto again = memory.Allocate(1000, stream.get());
  ASSERT_TRUE(elsewhere.ok() && again.ok());
  EXPECT_NE((*elsewhere)->data(), data);
  EXPECT_EQ((*again)->data(), data);
  elsewhere->reset();
  again->reset();
  memory.Trim();
  EXPECT_EQ(memory.bytes_cached(), 0u);
}

// Memory that another stream still reads is not given out again before that has happened.
TEST_P(DeviceConformance, CachedMemoryWaitsForOtherStreams) {
  auto writer = NewStream(), reader = NewStream();
  CachingAllocator memory(device_);
  auto written = NewEvent();
  const std::vector<int> numbers = Numbers(1000, 5), others(1000, -7);
  const size_t bytes = numbers.size() * sizeof(int);
  for (int round = 0; round < 20; ++round) {
    std::vector<int> back(numbers.size(), -1);
    auto buffer = memory.Allocate(bytes, writer.get());
    ASSERT_TRUE(buffer.ok());
    ASSERT_TRUE(writer->CopyToDevice((*buffer)->data(), numbers.data(), bytes, 0).ok());
    ASSERT_TRUE(writer->Record(*written).ok());
    ASSERT_TRUE(reader->WaitFor(*written).ok());
    CachingAllocator::Use(*buffer->get(), *reader);
    ASSERT_TRUE(reader->CopyToHost(back.data(), (*buffer)->data(), bytes, 0).ok());
    buffer->reset();
    auto next = memory.Allocate(bytes, writer.get());
    ASSERT_TRUE(next.ok());
    ASSERT_TRUE(writer->CopyToDevice((*next)->data(), others.data(), bytes, 0).ok());
    ASSERT_TRUE(writer->Synchronize().ok());
    ASSERT_TRUE(reader->Synchronize().ok());
    EXPECT_EQ(back, numbers);
  }
}

// A buffer that a third stream gets is written there when its owner and its reader are done.
TEST_P(DeviceConformance, MemoryThatIsPassedOnWaitsForItsUsers) {
  auto writer = NewStream(), reader = NewStream(), next = NewStream();
  CachingAllocator memory(device_);
  auto written = NewEvent();
  const std::vector<int> numbers = Numbers(1000, 5), others(1000, -7);
  const size_t bytes = numbers.size() * sizeof(int);
  for (int round = 0; round < 20; ++round) {
    std::vector<int> back(numbers.size(), -1), last = back;
    auto buffer = memory.Allocate(bytes, writer.get());
    ASSERT_TRUE(buffer.ok());
    ASSERT_TRUE(writer->CopyToDevice((*buffer)->data(), numbers.data(), bytes, 0).ok());
    ASSERT_TRUE(writer->Record(*written).ok());
    ASSERT_TRUE(reader->WaitFor(*written).ok());
    CachingAllocator::Use(*buffer->get(), *reader);
    ASSERT_TRUE(reader->CopyToHost(back.data(), (*buffer)->data(), bytes, 0).ok());
    ASSERT_TRUE(CachingAllocator::PassOn(*buffer->get(), *next).ok());
    ASSERT_TRUE(next->CopyToDevice((*buffer)->data(), others.data(), bytes, 0).ok());
    ASSERT_TRUE(next->CopyToHost(last.data(), (*buffer)->data(), bytes, 0).ok());
    ASSERT_TRUE(next->Synchronize().ok());
    ASSERT_TRUE(reader->Synchronize().ok());
    ASSERT_TRUE(writer->Synchronize().ok());
    EXPECT_EQ(back, numbers);
    EXPECT_EQ(last, others);
    // It is the new owner's: free for it at once.
    void* const data = (*buffer)->data();
    buffer->reset();
    auto again = memory.Allocate(bytes, next.get());
    ASSERT_TRUE(again.ok());
    EXPECT_EQ((*again)->data(), data);
  }
}

INSTANTIATE_TEST_SUITE_P(All, DeviceConformance, ::testing::ValuesIn(Kinds()),
                         [](const auto& info) { return info.param.name; });

// --- of the emulated device alone ---

TEST(EmulatedDevice, ItsMemoryIsNotTheHosts) {
  auto device = NewEmulatedDevice();
  auto memory = device->Allocate(64);
  ASSERT_TRUE(memory.ok());
  auto* const address = static_cast<volatile int*>(*memory);
  EXPECT_DEATH({ [[maybe_unused]] int x = *address; }, "");
  EXPECT_DEATH({ *address = 1; }, "");
  device->Free(*memory);
}

TEST(EmulatedDevice, RefusesForeignMemory) {
  auto device = NewEmulatedDevice();
  auto stream = *device->NewStream(0);
  int host = 1, back = 2;
  ASSERT_TRUE(stream->CopyToHost(&back, &host, sizeof(int), 5).ok());
  EXPECT_FALSE(stream->Synchronize().ok());
  auto error = stream->TakeError();
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->tag, 5u);
  EXPECT_EQ(back, 2);
  // Taken: the stream works again.
  EXPECT_TRUE(stream->Synchronize().ok());
  void* freed = *device->Allocate(64);
  device->Free(freed);
  ASSERT_TRUE(stream->Fill(freed, 0, 64, 0).ok());
  EXPECT_FALSE(stream->Synchronize().ok());
}

TEST(EmulatedDevice, AFailureTravelsWithEventsAndSkipsWhatFollows) {
  auto device = NewEmulatedDevice();
  auto first = *device->NewStream(0), second = *device->NewStream(0);
  auto event = *device->NewEvent(false);
  void* memory = *device->Allocate(64);
  int host = 3, back = 4;
  ASSERT_TRUE(first->CopyToDevice(memory, &host, sizeof(int), 1).ok());
  ASSERT_TRUE(first->CopyToHost(&back, &host, sizeof(int), 2).ok());  // fails
  ASSERT_TRUE(first->Record(*event).ok());
  ASSERT_TRUE(second->WaitFor(*event).ok());
  ASSERT_TRUE(second->CopyToHost(&back, memory, sizeof(int), 3).ok());
  EXPECT_FALSE(event->Wait().ok());
  EXPECT_FALSE(second->Synchronize().ok());
  EXPECT_EQ(back, 4);
  const auto a = first->TakeError(), b = second->TakeError();
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->tag, 2u);
  EXPECT_EQ(b->tag, 2u);
  EXPECT_EQ(a->order, b->order);
  device->Free(memory);
}

TEST(EmulatedDevice, LostForGood) {
  auto device = NewEmulatedDevice({.fail_call = 4, .lost = true});
  auto stream = *device->NewStream(0);
  void* memory = *device->Allocate(64);
  ASSERT_TRUE(stream->Fill(memory, 1, 64, 0).ok());
  EXPECT_FALSE(stream->Fill(memory, 2, 64, 0).ok());
  EXPECT_TRUE(device->lost());
  EXPECT_FALSE(device->NewStream(0).ok());
  EXPECT_FALSE(stream->Synchronize().ok());
  device->Free(memory);
  stream.reset();
  EXPECT_EQ(CountsOf(*device).allocations, 0);
  EXPECT_EQ(CountsOf(*device).streams, 0);
}

TEST(EmulatedDevice, TheHostMayNotWaitOrAllocateUnderACapture) {
  auto device = NewEmulatedDevice();
  auto stream = *device->NewStream(0), other = *device->NewStream(0);
  auto event = *device->NewEvent(false), outside = *device->NewEvent(false);
  ASSERT_TRUE(other->Record(*outside).ok());
  const std::function<bool()> misuses[] = {
      [&] { return stream->Synchronize().ok(); },
      [&] { return stream->Record(*event).ok() && event->Wait().ok(); },
      [&] { return stream->WaitFor(*outside).ok(); },
      [&] { return stream->BeginCapture().ok(); },
  };
  for (const auto& misuse : misuses) {
    ASSERT_TRUE(stream->BeginCapture().ok());
    EXPECT_FALSE(misuse());
    EXPECT_FALSE(stream->EndCapture().ok());
  }
  ASSERT_TRUE(stream->BeginCapture().ok());
  EXPECT_FALSE(device->Allocate(64).ok());
  EXPECT_TRUE(stream->EndCapture().ok());
  void* memory = *device->Allocate(64);
  device->Free(memory);
  EXPECT_EQ(CountsOf(*device).graphs, 0);
}

// A failure inside a graph has the tag of its work.
TEST(EmulatedDevice, AGraphsFailureNamesItsWork) {
  auto device = NewEmulatedDevice();
  auto stream = *device->NewStream(0);
  void* memory = *device->Allocate(64);
  ASSERT_TRUE(stream->BeginCapture().ok());
  ASSERT_TRUE(stream->Fill(memory, 1, 64, 3).ok());
  ASSERT_TRUE(stream->Fill(memory, 1, 512, 4).ok());  // beyond its end
  auto graph = stream->EndCapture();
  ASSERT_TRUE(graph.ok());
  EXPECT_EQ(CountsOf(*device).copies, 0);
  for (int k = 1; k <= 2; ++k) {
    ASSERT_TRUE((*stream).Replay(**graph).ok());
    EXPECT_FALSE(stream->Synchronize().ok());
    const auto error = stream->TakeError();
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->tag, 4u);
    EXPECT_EQ(CountsOf(*device).replays, k);
    EXPECT_EQ(CountsOf(*device).copies, 2 * k);
  }
  device->Free(memory);
}

TEST(EmulatedDevice, CountsCopiesOfPageableMemory) {
  auto device = NewEmulatedDevice();
  auto stream = *device->NewStream(0);
  void *memory = *device->Allocate(64), *pinned = *device->AllocateHost(64);
  int pageable[16] = {};
  const auto copy = [&](const void* host) {
    ASSERT_TRUE(stream->CopyToDevice(memory, host, 64, 0).ok());
    ASSERT_TRUE(stream->Synchronize().ok());
  };
  copy(pinned);
  EXPECT_EQ(CountsOf(*device).pageable_copies, 0);
  copy(pageable);
  EXPECT_EQ(CountsOf(*device).pageable_copies, 1);
  device->FreeHost(pinned);
  device->Free(memory);
  EXPECT_EQ(CountsOf(*device).copies, 2);
}

// Nothing is executed before somebody needs it.
TEST(EmulatedDevice, LazyDoesNothingUnasked) {
  auto device = NewEmulatedDevice({.lazy = true});
  auto a = *device->NewStream(0), b = *device->NewStream(0);
  void* memory = *device->Allocate(sizeof(int));
  int one = 1, back = 0;
  ASSERT_TRUE(a->CopyToDevice(memory, &one, sizeof(int), 0).ok());
  ASSERT_TRUE(b->CopyToHost(&back, memory, sizeof(int), 0).ok());  // no event: too early
  ASSERT_TRUE(b->Synchronize().ok());
  EXPECT_NE(back, 1);
  ASSERT_TRUE(a->Synchronize().ok());
  ASSERT_TRUE(b->CopyToHost(&back, memory, sizeof(int), 0).ok());
  ASSERT_TRUE(b->Synchronize().ok());
  EXPECT_EQ(back, 1);
  device->Free(memory);
}

}  // namespace
}  // namespace heddle
