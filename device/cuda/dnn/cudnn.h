// Convolutions of cuDNN 9, by its graph interface: the functions cudnnBackend*, which it maintains
// (cudnnConvolutionForward and its like are deprecated). They are few and take no C++, so that they
// can be looked up in a library that is there or not; the header-only cudnn-frontend, which wraps
// them, would be one more thing to install and wants its own JSON library.
#pragma once

#include <cudnn_graph.h>

#include <memory>
#include <string>

#include "device/cuda/grid/dnn.h"

namespace heddle::HEDDLE_GRID {

// The functions of libcudnn. Tests give others.
struct CudnnApi {
  decltype(&cudnnGetVersion) version = nullptr;
  decltype(&cudnnGetErrorString) error = nullptr;
  decltype(&cudnnCreate) create = nullptr;
  decltype(&cudnnDestroy) destroy = nullptr;
  decltype(&cudnnSetStream) set_stream = nullptr;
  decltype(&cudnnBackendCreateDescriptor) create_descriptor = nullptr;
  decltype(&cudnnBackendDestroyDescriptor) destroy_descriptor = nullptr;
  decltype(&cudnnBackendSetAttribute) set = nullptr;
  decltype(&cudnnBackendGetAttribute) get = nullptr;
  decltype(&cudnnBackendFinalize) finalize = nullptr;
  decltype(&cudnnBackendExecute) execute = nullptr;
};

// `tf32`: convolutions of float32 may take their factors in TF32.
Result<std::unique_ptr<Dnn>> NewCudnn(const CudnnApi& api, bool tf32);

// The library libcudnn.so.9, if it can be loaded; it stays loaded. An error says what is missing.
Result<CudnnApi> LoadCudnn();

}  // namespace heddle::HEDDLE_GRID
