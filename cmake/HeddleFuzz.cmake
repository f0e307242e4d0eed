# tests/fuzz/<name>_fuzz.cc -> fuzz/<name> (target heddle_fuzz_<name>), with clang's libFuzzer, for
# the readers formats/<name>. The sources of the reader and of formats/lowering are instrumented;
# the rest of the library is the one of this build.

find_program(HEDDLE_CLANG NAMES clang++-14 clang++ REQUIRED)
set(_includes "-I${PROJECT_SOURCE_DIR}" "-I${PROJECT_SOURCE_DIR}/include"
    "-isystem${HEDDLE_GENERATED_DIR}")
set(_libraries $<TARGET_FILE:heddle> $<TARGET_FILE:TBB::tbb>
    $<TARGET_FILE:protobuf::libprotobuf-lite>)
if(HEDDLE_WITH_ONEDNN)
  list(APPEND _libraries "-Wl,-rpath,${HEDDLE_ONEDNN_LIB_DIR}")
endif()
file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/fuzz")
# Target, the reader whose sources are instrumented, and the header with what it calls.
function(heddle_fuzz name reader header)
  file(GLOB _instrumented CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/formats/lowering/*.cc"
       "${PROJECT_SOURCE_DIR}/formats/${reader}/*.cc"
       "${PROJECT_SOURCE_DIR}/formats/${reader}/*/*.cc")
  set(_objects "")
  foreach(_source "${PROJECT_SOURCE_DIR}/tests/fuzz/${name}_fuzz.cc" ${_instrumented})
    get_filename_component(_stem "${_source}" NAME_WE)
    set(_object "${PROJECT_BINARY_DIR}/fuzz/${name}_${_stem}.o")
    add_custom_command(OUTPUT "${_object}" VERBATIM
      COMMAND "${HEDDLE_CLANG}" -std=c++20 -O1 -g -fsanitize=fuzzer,address -DXXH_INLINE_ALL=1
              ${_includes} -c "${_source}" -o "${_object}"
      DEPENDS heddle "${_source}" "${PROJECT_SOURCE_DIR}/tests/fuzz/${header}")
    list(APPEND _objects "${_object}")
  endforeach()
  add_custom_command(OUTPUT "${PROJECT_BINARY_DIR}/fuzz/${name}" VERBATIM
    COMMAND "${HEDDLE_CLANG}" -fsanitize=fuzzer,address ${_objects} ${_libraries} -pthread -ldl
            -o "${PROJECT_BINARY_DIR}/fuzz/${name}"
    DEPENDS ${_objects})
  add_custom_target(heddle_fuzz_${name} DEPENDS "${PROJECT_BINARY_DIR}/fuzz/${name}")
endfunction()

heddle_fuzz(pir pir pir_target.h)
heddle_fuzz(onnx onnx onnx_target.h)
heddle_fuzz(graph tensorflow tensorflow_target.h)
heddle_fuzz(text tensorflow tensorflow_target.h)
heddle_fuzz(bundle tensorflow tensorflow_target.h)
