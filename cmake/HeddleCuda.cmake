# The CUDA device: device/cuda/ and the kernels that stand beside their operators, kernels/*/*.cu.

if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80 90 CACHE STRING "cards to build for")
endif()
enable_language(CUDA)
# Older versions of CMake know no flag of nvcc for C++20.
foreach(_kind STANDARD EXTENSION)
  if(NOT CMAKE_CUDA20_${_kind}_COMPILE_OPTION)
    set(CMAKE_CUDA20_${_kind}_COMPILE_OPTION "-std=c++20")
  endif()
endforeach()
find_package(CUDAToolkit REQUIRED)
file(GLOB _cuda_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/device/cuda/*.cc"
     "${PROJECT_SOURCE_DIR}/device/cuda/grid/*.cc" "${PROJECT_SOURCE_DIR}/device/cuda/grid/*.cu"
     "${PROJECT_SOURCE_DIR}/kernels/*/*.cu")

# Apart from the library's other sources, since nvcc has options of its own.
add_library(heddle_cuda OBJECT ${_cuda_sources}
            "${HEDDLE_GENERATED_DIR}/kernels/all_cuda_kernels.inc.stamp")
target_include_directories(heddle_cuda PRIVATE "${PROJECT_SOURCE_DIR}"
                           "${PROJECT_SOURCE_DIR}/include" "${HEDDLE_GENERATED_DIR}")
target_link_libraries(heddle_cuda PRIVATE CUDA::cudart CUDA::cublas CUDA::cublasLt)
target_compile_options(heddle_cuda PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wall>
                       $<$<COMPILE_LANGUAGE:CXX>:-Wextra>)

include(HeddleCudnn)
heddle_use_cudnn(heddle_cuda _with_cudnn)
if(_with_cudnn)
  target_sources(heddle_cuda PRIVATE "${PROJECT_SOURCE_DIR}/device/cuda/dnn/cudnn.cc"
                 "${PROJECT_SOURCE_DIR}/device/cuda/dnn/load_cudnn.cc")
endif()

function(heddle_link_cuda target)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:heddle_cuda>)
  target_link_libraries(${target} PRIVATE CUDA::cudart ${CMAKE_DL_LIBS} CUDA::cublas CUDA::cublasLt)
endfunction()
