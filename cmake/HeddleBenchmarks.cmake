# Each benchmarks/<name>.cc is a Google Benchmark program, heddle_bench_<name>; scheduling/ is one,
# too.

find_package(benchmark QUIET CONFIG)
find_package(nlohmann_json REQUIRED CONFIG)
if(benchmark_FOUND)
  file(GLOB _benchmarks CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/benchmarks/*.cc")
  foreach(_source IN LISTS _benchmarks)
    get_filename_component(_name "${_source}" NAME_WE)
    add_executable(heddle_bench_${_name} "${_source}")
    target_compile_definitions(heddle_bench_${_name} PRIVATE
      HEDDLE_SOURCE_DIR="${PROJECT_SOURCE_DIR}" HEDDLE_SHARED_DIR="${HEDDLE_SHARED_DIR}")
    target_link_libraries(heddle_bench_${_name} PRIVATE heddle_internal benchmark::benchmark_main
                          benchmark::benchmark)
    heddle_warnings(heddle_bench_${_name})
  endforeach()
  # The same graphs as the comparison with other schedulers.
  target_sources(heddle_bench_lanes_bench PRIVATE
                 "${PROJECT_SOURCE_DIR}/benchmarks/scheduling/graph.cc")
  target_sources(heddle_bench_device_bench PRIVATE
                 "${PROJECT_SOURCE_DIR}/tests/support/program_builder.cc"
                 "${PROJECT_SOURCE_DIR}/tests/support/test_ops.cc")
  if(EXISTS "${PROJECT_SOURCE_DIR}/benchmarks/scheduling/CMakeLists.txt")
    add_subdirectory("${PROJECT_SOURCE_DIR}/benchmarks/scheduling")
  endif()
else()
  message(STATUS "Google Benchmark not found: no benchmarks")
endif()

# heddle's side of benchmarks/training.py.
add_executable(heddle_bench_training "${PROJECT_SOURCE_DIR}/benchmarks/training/heddle_worker.cc")
target_link_libraries(heddle_bench_training PRIVATE heddle_values nlohmann_json::nlohmann_json)
heddle_warnings(heddle_bench_training)

# Equal layers, inlined and as functions.
add_executable(heddle_bench_layers "${PROJECT_SOURCE_DIR}/benchmarks/layers/equal_layers.cc"
               "${PROJECT_SOURCE_DIR}/tests/support/layered_program.cc"
               "${PROJECT_SOURCE_DIR}/tests/support/program_builder.cc")
target_link_libraries(heddle_bench_layers PRIVATE heddle_internal)
heddle_warnings(heddle_bench_layers)

# The random programs of benchmarks/levels.py.
add_executable(heddle_bench_levels "${PROJECT_SOURCE_DIR}/benchmarks/levels/random_levels.cc"
               "${PROJECT_SOURCE_DIR}/tests/support/mixed_program.cc"
               "${PROJECT_SOURCE_DIR}/tests/support/program_builder.cc"
               "${PROJECT_SOURCE_DIR}/tests/support/test_ops.cc")
target_link_libraries(heddle_bench_levels PRIVATE heddle_internal)
heddle_warnings(heddle_bench_levels)

# The gain of two threads if a loop's body has independent parts.
add_executable(heddle_bench_loop_lanes "${PROJECT_SOURCE_DIR}/benchmarks/loops/two_branches.cc"
               "${PROJECT_SOURCE_DIR}/tests/support/program_builder.cc"
               "${PROJECT_SOURCE_DIR}/tests/support/test_ops.cc")
target_link_libraries(heddle_bench_loop_lanes PRIVATE heddle_internal)
heddle_warnings(heddle_bench_loop_lanes)

# Whether what --tune chooses is the fastest.
add_executable(heddle_bench_tuning "${PROJECT_SOURCE_DIR}/benchmarks/tuning/remeasure.cc")
target_link_libraries(heddle_bench_tuning PRIVATE heddle_internal)
heddle_warnings(heddle_bench_tuning)

# A model alone and with an engine, for benchmarks/engines.py.
add_executable(heddle_bench_engines "${PROJECT_SOURCE_DIR}/benchmarks/engines/turns.cc")
target_link_libraries(heddle_bench_engines PRIVATE heddle_offload heddle_values
                      nlohmann_json::nlohmann_json)
heddle_warnings(heddle_bench_engines)
