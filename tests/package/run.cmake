# Installs BUILD_DIR into a fresh prefix, then configures, builds and runs the project of SOURCE_DIR
# against it.

set(work "${BUILD_DIR}/package_test")
file(REMOVE_RECURSE "${work}")

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "failed (${status}): ${ARGN}")
  endif()
endfunction()

run("${CMAKE_COMMAND}" --install "${BUILD_DIR}" --prefix "${work}/prefix")
# Moved, so that nothing relies on where it was installed.
file(RENAME "${work}/prefix" "${work}/moved")
run("${CMAKE_COMMAND}" -S "${SOURCE_DIR}" -B "${work}/build" -G "${GENERATOR}"
    "-DCMAKE_PREFIX_PATH=${work}/moved" "-DCMAKE_CXX_COMPILER=${CXX}"
    "-DCMAKE_BUILD_TYPE=${BUILD_TYPE}")
run("${CMAKE_COMMAND}" --build "${work}/build")
run("${work}/build/consumer" "${SOURCE_DIR}/../../examples/digits")
file(GLOB tool "${work}/moved/bin/heddle")
if(tool)
  run("${tool}" --help)
endif()
