# tests/fuzz/<name>_fuzz.cc -> fuzz/<name> (target heddle_fuzz_<name>), with clang's libFuzzer, for
# the readers formats/<name>. The reader's sources are instrumented; the rest of the library is the
# one of this build.

find_program(HEDDLE_CLANG NAMES clang++-14 clang++ REQUIRED)
set(_includes "-I${PROJECT_SOURCE_DIR}" "-I${PROJECT_SOURCE_DIR}/include"
    "-isystem${HEDDLE_GENERATED_DIR}")
set(_libraries $<TARGET_FILE:heddle> $<TARGET_FILE:TBB::tbb>
    $<TARGET_FILE:protobuf::libprotobuf-lite>)
if(HEDDLE_WITH_ONEDNN)
  list(APPEND _libraries "${HEDDLE_ONEDNN_LIB_DIR}/libdnnl.so.3"
       "-Wl,-rpath,${HEDDLE_ONEDNN_LIB_DIR}")
endif()
file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/fuzz")
foreach(_name pir onnx)
  file(GLOB _instrumented CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/formats/${_name}/*.cc")
  set(_objects "")
  foreach(_source "${PROJECT_SOURCE_DIR}/tests/fuzz/${_name}_fuzz.cc" ${_instrumented})
    get_filename_component(_stem "${_source}" NAME_WE)
    set(_object "${PROJECT_BINARY_DIR}/fuzz/${_name}_${_stem}.o")
    add_custom_command(OUTPUT "${_object}" VERBATIM
      COMMAND "${HEDDLE_CLANG}" -std=c++20 -O1 -g -fsanitize=fuzzer,address -DXXH_INLINE_ALL=1
              ${_includes} -c "${_source}" -o "${_object}"
      DEPENDS heddle "${_source}" "${PROJECT_SOURCE_DIR}/tests/fuzz/${_name}_target.h")
    list(APPEND _objects "${_object}")
  endforeach()
  add_custom_command(OUTPUT "${PROJECT_BINARY_DIR}/fuzz/${_name}" VERBATIM
    COMMAND "${HEDDLE_CLANG}" -fsanitize=fuzzer,address ${_objects} ${_libraries} -pthread -ldl
            -o "${PROJECT_BINARY_DIR}/fuzz/${_name}"
    DEPENDS ${_objects})
  add_custom_target(heddle_fuzz_${_name} DEPENDS "${PROJECT_BINARY_DIR}/fuzz/${_name}")
endforeach()
