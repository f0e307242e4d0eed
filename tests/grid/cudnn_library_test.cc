// The installed libcudnn, without a card: it makes descriptors, and with the properties of a card
// it also says which of its engines it would take there. Skipped where it is not installed, or is
// older than 9.8.
#ifdef HEDDLE_CUDNN

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/error.h"
#include "device/cuda/dnn/cudnn.h"

namespace heddle::testing {
namespace {

using grid_on_host::CudnnApi;
using grid_on_host::DnnConv;
using ::testing::IsEmpty;

// A H100, in the form in which cuDNN writes down a card's properties.
constexpr std::string_view kCard =
    R"({"deviceName":"NVIDIA H100 80GB HBM3","cudaDeviceId":0,"deviceVer":900,"driverVer":13000,)"
    R"("maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"regsPerBlock":65536,)"
    R"("multiProcessorCount":132,"warpSize":32,"maxSharedMemoryPerBlock":49152,)"
    R"("maxSharedMemoryPerBlockOptin":232448,"reservedSharedMemoryPerBlock":1024,)"
    R"("maxRegistersPerSM":65536,"maxCtasPerSM":32,"maxThreadsPerBlock":1024,)"
    R"("maxThreadsPerSM":2048,"pciDeviceId":0,"isTccDriver":0,"supportCoopLaunch":1,)"
    R"("smClockRateKHz":1980000,"memClockRateKHz":2619000,"l2CacheSize":52428800,)"
    R"("totalGlobalMem":85017493504})";

// The library's functions with a described card where there would be a handle.
struct Library {
  CudnnApi api;
  cudnnBackendDescriptor_t card = nullptr;
  std::map<cudnnBackendDescriptor_t, cudnnBackendDescriptorType_t> types;
  std::vector<std::string> refused;  // but for plans, which engines may refuse

  static Library& Get() {
    static Library library;
    return library;
  }
  cudnnStatus_t Note(const char* what, int64_t which, cudnnStatus_t status) {
    if (status != CUDNN_STATUS_SUCCESS)
      refused.push_back(StrCat(what, " ", which, ": ", api.error(status)));
    return status;
  }
};

cudnnStatus_t NoHandle(cudnnHandle_t* handle) {
  *handle = nullptr;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t NothingToDestroy(cudnnHandle_t) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t Create(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* to) {
  Library& l = Library::Get();
  const cudnnStatus_t status = l.Note("descriptor", type, l.api.create_descriptor(type, to));
  l.types[*to] = type;
  if (type != CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR) return status;
  return l.Note(
      "card of", type,
      l.api.set(*to, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &l.card));
}
cudnnStatus_t Set(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                  cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  Library& l = Library::Get();
  if (name == CUDNN_ATTR_OPERATIONGRAPH_HANDLE) return CUDNN_STATUS_SUCCESS;
  if (name == CUDNN_ATTR_EXECUTION_PLAN_HANDLE)
    return l.Note("card of", name,
                  l.api.set(descriptor, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP,
                            CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &l.card));
  return l.Note("attribute", name, l.api.set(descriptor, name, type, count, values));
}
cudnnStatus_t Finalize(cudnnBackendDescriptor_t descriptor) {
  Library& l = Library::Get();
  const cudnnStatus_t status = l.api.finalize(descriptor);
  const cudnnBackendDescriptorType_t type = l.types[descriptor];
  if (type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) (void)l.Note("descriptor", type, status);
  return status;
}

// Describes the card to the library; false: it knows of no such thing.
bool DescribeCard(Library* l) {
  return l->api.create_descriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &l->card) ==
             CUDNN_STATUS_SUCCESS &&
         l->api.set(l->card, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                    static_cast<int64_t>(kCard.size()), kCard.data()) == CUDNN_STATUS_SUCCESS &&
         l->api.finalize(l->card) == CUDNN_STATUS_SUCCESS;
}

// Convolutions of ResNet-50 and others: channels, size, filter, stride, padding, dilation, groups.
DnnConv Layer(int64_t in, int64_t out, int32_t size, int32_t kernel, int32_t stride, int32_t pad,
              int32_t dilation = 1, int64_t groups = 1) {
  DnnConv conv;
  conv.shape.batch = 8, conv.shape.in_c = in, conv.shape.out_c = out, conv.shape.groups = groups;
  const int32_t result = (size + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1;
  conv.shape.h = conv.shape.w = {size, result, kernel, stride, pad, dilation};
  return conv;
}

TEST(CudnnLibrary, HasPlansForConvolutions) {
  const auto loaded = grid_on_host::LoadCudnn();
  if (!loaded.ok()) GTEST_SKIP() << loaded.status().ToString();
  Library& l = Library::Get();
  l.api = *loaded;
  if (!DescribeCard(&l))
    GTEST_SKIP() << "cuDNN " << l.api.version() << " takes no card's properties";
  CudnnApi api = *loaded;
  api.create = NoHandle;
  api.destroy = NothingToDestroy;
  api.create_descriptor = Create;
  api.set = Set;
  api.finalize = Finalize;
  const std::vector<DnnConv> layers = {
      Layer(3, 64, 224, 7, 2, 3),       Layer(64, 64, 56, 3, 1, 1),   Layer(256, 64, 56, 1, 1, 0),
      Layer(128, 128, 56, 3, 2, 1),     Layer(256, 512, 56, 1, 2, 0), Layer(64, 64, 28, 3, 1, 2, 2),
      Layer(64, 64, 28, 3, 1, 1, 1, 8), Layer(5, 7, 9, 3, 1, 1)};
  for (const bool tf32 : {false, true}) {
    auto dnn = grid_on_host::NewCudnn(api, tf32);
    ASSERT_TRUE(dnn.ok()) << dnn.status().ToString();
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16})
      for (DnnConv conv : layers) {
        SCOPED_TRACE(StrCat(Name(dtype), ", ", conv.shape.in_c, " to ", conv.shape.out_c,
                            " channels, filter ", conv.shape.h.kernel, tf32 ? ", TF32" : ""));
        conv.dtype = dtype;
        for (const bool last : {false, true}) {
          conv.shape.channels_last = last;
          for (const auto kind :
               {DnnConv::Kind::kForward, DnnConv::Kind::kInputGrad, DnnConv::Kind::kFilterGrad})
            for (const bool add : {false, true}) {
              conv.kind = kind, conv.add = add;
              EXPECT_NE((*dnn)->Plan(conv), nullptr)
                  << "kind " << static_cast<int>(kind) << (add ? ", added" : "")
                  << (last ? ", channels last" : "");
            }
        }
        // With all that follows.
        conv.shape.channels_last = false;
        conv.kind = DnnConv::Kind::kForward;
        conv.add = false;
        conv.bias = true;
        for (const bool residual : {false, true})
          for (const bool relu : {false, true}) {
            conv.residual = residual, conv.relu = relu;
            EXPECT_NE((*dnn)->Plan(conv), nullptr)
                << "bias" << (residual ? ", residual" : "") << (relu ? ", relu" : "");
          }
      }
  }
  EXPECT_THAT(l.refused, IsEmpty());
  (void)l.api.destroy_descriptor(l.card);
}

}  // namespace
}  // namespace heddle::testing

#endif
