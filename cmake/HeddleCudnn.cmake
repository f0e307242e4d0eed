# The headers of cuDNN 9, which is used where they are (docs/gpu.md). The library itself is loaded
# when a card is opened.

find_path(HEDDLE_CUDNN_INCLUDE cudnn_graph.h
          HINTS "${CUDAToolkit_INCLUDE_DIRS}" ENV CUDA_PATH ENV CUDA_HOME
          PATHS /usr/local/cuda/include /usr/include/x86_64-linux-gnu
          PATH_SUFFIXES include
          DOC "where cudnn_graph.h is")
# They include the CUDA runtime's.
find_path(HEDDLE_CUDNN_RUNTIME cuda_runtime_api.h
          HINTS "${CUDAToolkit_INCLUDE_DIRS}" "${HEDDLE_CUDNN_INCLUDE}" ENV CUDA_PATH ENV CUDA_HOME
          PATHS /usr/local/cuda/include
          PATH_SUFFIXES include
          DOC "where cuda_runtime_api.h is")
mark_as_advanced(HEDDLE_CUDNN_INCLUDE HEDDLE_CUDNN_RUNTIME)
option(HEDDLE_CUDNN "use cuDNN where its headers are found" ON)

# Sets `result` to whether `target` is built with cuDNN, whose sources are in device/cuda/dnn/.
function(heddle_use_cudnn target result)
  set(${result} OFF PARENT_SCOPE)
  if(NOT HEDDLE_CUDNN OR NOT HEDDLE_CUDNN_INCLUDE OR NOT HEDDLE_CUDNN_RUNTIME)
    return()
  endif()
  target_include_directories(${target} SYSTEM PUBLIC "${HEDDLE_CUDNN_INCLUDE}"
                             "${HEDDLE_CUDNN_RUNTIME}")
  target_compile_definitions(${target} PUBLIC HEDDLE_CUDNN=1)
  set(${result} ON PARENT_SCOPE)
endfunction()
