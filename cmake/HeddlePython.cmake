# The Python package: python/src/*.cc -> heddle/_heddle, beside the modules of python/heddle.
#
# ${PROJECT_BINARY_DIR}/python is a folder for PYTHONPATH; `pip install .` takes the component
# "python". The extension holds the library whole and shows nothing of it but its entry point. What
# it loads besides (oneDNN) gets names of its own, since other packages bring libraries of the same
# name.

set(_python "${HEDDLE_DEPS_DIR}/python/bin/python")
if(NOT DEFINED Python_EXECUTABLE AND NOT SKBUILD AND EXISTS "${_python}")
  set(Python_EXECUTABLE "${_python}")
endif()
set(_required "")
if(HEDDLE_PYTHON STREQUAL "ON")
  set(_required REQUIRED)
endif()
find_package(Python 3.10 COMPONENTS Interpreter Development.Module ${_required} QUIET)
if(Python_FOUND AND NOT nanobind_DIR)
  execute_process(COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir
                  OUTPUT_VARIABLE nanobind_DIR OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(Python_FOUND)
  find_package(nanobind CONFIG QUIET ${_required})
endif()
if(NOT nanobind_FOUND)
  message(STATUS "Python package: OFF (no nanobind: scripts/setup.sh brings it)")
  return()
endif()
find_package(nlohmann_json REQUIRED CONFIG)
message(STATUS "Python package: for ${Python_EXECUTABLE}")
# For scripts/release.sh, whose wheel is for this one.
set(HEDDLE_PYTHON_EXECUTABLE "${Python_EXECUTABLE}" CACHE INTERNAL "the Python of the package")

set(_package "${PROJECT_BINARY_DIR}/python/heddle")
set(_libraries "${_package}/lib")
file(MAKE_DIRECTORY "${_libraries}")

file(GLOB _sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/python/src/*.cc")
nanobind_add_module(_heddle NB_STATIC NB_DOMAIN heddle NOMINSIZE NB_SUPPRESS_WARNINGS ${_sources})
target_include_directories(_heddle PRIVATE "${PROJECT_SOURCE_DIR}")
target_compile_definitions(_heddle PRIVATE HEDDLE_VERSION="${PROJECT_VERSION}")
if(NOT "onnx" IN_LIST HEDDLE_FORMATS_LEFT_OUT)
  target_compile_definitions(_heddle PRIVATE HEDDLE_WITH_ONNX=1)
endif()
target_link_libraries(_heddle PRIVATE heddle heddle_training)
target_link_options(_heddle PRIVATE -Wl,--exclude-libs,ALL)
set_target_properties(_heddle PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${_package}"
                      BUILD_RPATH "$ORIGIN/lib" INSTALL_RPATH "$ORIGIN/lib")
heddle_warnings(_heddle)

# The modules, as links: an edit needs no build.
file(GLOB _modules CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/python/heddle"
     "${PROJECT_SOURCE_DIR}/python/heddle/*.py*" "${PROJECT_SOURCE_DIR}/python/heddle/onnx/*.py"
     "${PROJECT_SOURCE_DIR}/python/heddle/py.typed")
file(MAKE_DIRECTORY "${_package}/onnx")
foreach(_module IN LISTS _modules)
  file(CREATE_LINK "${PROJECT_SOURCE_DIR}/python/heddle/${_module}" "${_package}/${_module}"
       SYMBOLIC)
endforeach()

find_program(HEDDLE_PATCHELF patchelf)
if(HEDDLE_WITH_ONEDNN)
  if(NOT HEDDLE_PATCHELF)
    message(FATAL_ERROR "the Python package with oneDNN needs patchelf: run scripts/setup.sh")
  endif()
  foreach(_pair "libimf.so:libheddle_imf.so" "libintlc.so.5:libheddle_intlc.so"
                "libdnnl.so.3:libheddle_dnnl.so")
    string(REPLACE ":" ";" _pair "${_pair}")
    list(GET _pair 0 _from)
    list(GET _pair 1 _to)
    file(COPY_FILE "${HEDDLE_ONEDNN_LIB_DIR}/${_from}" "${_libraries}/${_to}")
    execute_process(COMMAND "${HEDDLE_PATCHELF}" --set-soname "${_to}"
                            --replace-needed libimf.so libheddle_imf.so
                            --replace-needed libintlc.so.5 libheddle_intlc.so
                            --set-rpath "\$ORIGIN" "${_libraries}/${_to}"
                    COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
endif()

install(TARGETS _heddle LIBRARY DESTINATION heddle COMPONENT python EXCLUDE_FROM_ALL)
install(DIRECTORY "${_libraries}" DESTINATION heddle COMPONENT python EXCLUDE_FROM_ALL)
if(HEDDLE_WITH_ONEDNN)
  install(DIRECTORY "${HEDDLE_DEPS_DIR}/onednn/licenses/" DESTINATION heddle/licenses/onednn
          COMPONENT python EXCLUDE_FROM_ALL)
endif()
if(SKBUILD)
  if(NOT HEDDLE_PATCHELF)
    message(FATAL_ERROR "a wheel needs patchelf: run scripts/setup.sh")
  endif()
  # Libraries of this system that another one may lack.
  foreach(_target TBB::tbb protobuf::libprotobuf-lite)
    install(CODE "
      file(REAL_PATH \"$<TARGET_FILE:${_target}>\" _file)
      execute_process(COMMAND \"${HEDDLE_PATCHELF}\" --print-soname \"\${_file}\"
                      OUTPUT_VARIABLE _soname OUTPUT_STRIP_TRAILING_WHITESPACE
                      COMMAND_ERROR_IS_FATAL ANY)
      file(INSTALL \"\${_file}\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/heddle/lib\"
           RENAME \"\${_soname}\")" COMPONENT python EXCLUDE_FROM_ALL)
  endforeach()
endif()
