# The CUDA device: device/cuda/, the only folder that knows CUDA.

if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80 90 CACHE STRING "cards to build for")
endif()
enable_language(CUDA)
set(CMAKE_CUDA_STANDARD 20)
find_package(CUDAToolkit REQUIRED)
file(GLOB _cuda_sources CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}"
     device/cuda/*.cc device/cuda/*.cu)
list(APPEND HEDDLE_PLAIN_SOURCES ${_cuda_sources})

function(heddle_link_cuda target)
  target_link_libraries(${target} PRIVATE CUDA::cudart CUDA::cublas)
endfunction()
