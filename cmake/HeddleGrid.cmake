# The CUDA device's kernels, built for the host: device/cuda/grid/* with HEDDLE_GRID_ON_HOST, and
# the tool with a device "cuda" that executes them there. For tests; needs no CUDA.

file(GLOB _grid_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/device/cuda/grid/*.cc"
     "${PROJECT_SOURCE_DIR}/device/cuda/grid/*.cu")
set(_grid_on_host "${PROJECT_SOURCE_DIR}/tests/grid/queue_on_host.cc")
foreach(_source IN LISTS _grid_sources)
  # A source file of its own for each: the property that says how to compile it belongs to a file,
  # and the CUDA build has other wishes.
  get_filename_component(_name "${_source}" NAME)
  set(_copy "${HEDDLE_GENERATED_DIR}/grid_on_host/${_name}.cc")
  file(CONFIGURE OUTPUT "${_copy}" CONTENT "#include \"device/cuda/grid/${_name}\"\n")
  list(APPEND _grid_on_host "${_copy}")
endforeach()

add_library(heddle_grid_on_host STATIC ${_grid_on_host})
target_link_libraries(heddle_grid_on_host PUBLIC heddle_internal Threads::Threads)
target_compile_definitions(heddle_grid_on_host PUBLIC HEDDLE_GRID_ON_HOST=1)
heddle_warnings(heddle_grid_on_host)

if(TARGET heddle_cli)
  get_target_property(_tool heddle_cli SOURCES)
  add_executable(heddle_grid_cli EXCLUDE_FROM_ALL ${_tool}
                 "${PROJECT_SOURCE_DIR}/tests/grid/open_grid.cc")
  target_link_libraries(heddle_grid_cli PRIVATE heddle_grid_on_host
                        $<TARGET_PROPERTY:heddle_cli,LINK_LIBRARIES>)
  target_compile_definitions(heddle_grid_cli PRIVATE
                             $<TARGET_PROPERTY:heddle_cli,COMPILE_DEFINITIONS>)
endif()
