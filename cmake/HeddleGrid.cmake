# The CUDA device's kernels, built for the host: device/cuda/grid/* and kernels/*/*.cu with
# HEDDLE_GRID_ON_HOST, and the tool with a device "cuda" that executes them there. For tests; needs
# no CUDA.

file(GLOB _grid_sources CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}"
     "${PROJECT_SOURCE_DIR}/device/cuda/grid/*.cc" "${PROJECT_SOURCE_DIR}/device/cuda/grid/*.cu"
     "${PROJECT_SOURCE_DIR}/kernels/*/*.cu")
set(_grid_on_host "${PROJECT_SOURCE_DIR}/tests/grid/queue_on_host.cc")
foreach(_source IN LISTS _grid_sources)
  # A source file of its own for each: the property that says how to compile it belongs to a file,
  # and the CUDA build has other wishes.
  set(_copy "${HEDDLE_GENERATED_DIR}/grid_on_host/${_source}.cc")
  file(CONFIGURE OUTPUT "${_copy}" CONTENT "#include \"${_source}\"\n")
  list(APPEND _grid_on_host "${_copy}")
endforeach()

add_library(heddle_grid_on_host STATIC ${_grid_on_host}
            "${HEDDLE_GENERATED_DIR}/kernels/all_cuda_kernels.inc.stamp")
target_link_libraries(heddle_grid_on_host PUBLIC heddle_internal Threads::Threads)
target_compile_definitions(heddle_grid_on_host PUBLIC HEDDLE_GRID_ON_HOST=1)
heddle_warnings(heddle_grid_on_host)
# Calls of cuDNN are tested if its headers are there, with a stand-in for the library.
include(HeddleCudnn)
heddle_use_cudnn(heddle_grid_on_host _with_cudnn)
if(_with_cudnn)
  foreach(_source cudnn load_cudnn)
    set(_copy "${HEDDLE_GENERATED_DIR}/grid_on_host/device/cuda/dnn/${_source}.cc")
    file(CONFIGURE OUTPUT "${_copy}" CONTENT "#include \"device/cuda/dnn/${_source}.cc\"\n")
    target_sources(heddle_grid_on_host PRIVATE "${_copy}")
  endforeach()
  target_link_libraries(heddle_grid_on_host PUBLIC ${CMAKE_DL_LIBS})
endif()

if(TARGET heddle_cli)
  get_target_property(_tool heddle_cli SOURCES)
  add_executable(heddle_grid_cli EXCLUDE_FROM_ALL ${_tool}
                 "${PROJECT_SOURCE_DIR}/tests/grid/open_grid.cc")
  target_link_libraries(heddle_grid_cli PRIVATE heddle_grid_on_host
                        $<TARGET_PROPERTY:heddle_cli,LINK_LIBRARIES>)
  target_compile_definitions(heddle_grid_cli PRIVATE
                             $<TARGET_PROPERTY:heddle_cli,COMPILE_DEFINITIONS>)
endif()
