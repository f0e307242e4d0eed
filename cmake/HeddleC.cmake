# The C API: capi/*.cc -> libheddle_c.so, which exports the functions of heddle.h and nothing else.

file(GLOB _capi_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/capi/*.cc")
add_library(heddle_c SHARED ${_capi_sources})
add_library(heddle::heddle_c ALIAS heddle_c)
file(STRINGS "${PROJECT_SOURCE_DIR}/include/heddle.h" _abi
     REGEX "#define HEDDLE_ABI_VERSION [0-9]+")
string(REGEX MATCH "[0-9]+" _abi "${_abi}")
set(_exports "${PROJECT_SOURCE_DIR}/cmake/heddle_c.map")
set_target_properties(heddle_c PROPERTIES
  VERSION ${_abi}.${PROJECT_VERSION} SOVERSION ${_abi}
  CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON LINK_DEPENDS "${_exports}")
target_include_directories(heddle_c
  PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
         "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>"
  PRIVATE "${PROJECT_SOURCE_DIR}")
target_compile_definitions(heddle_c PRIVATE HEDDLE_VERSION="${PROJECT_VERSION}")
target_link_libraries(heddle_c PRIVATE heddle)
target_link_options(heddle_c PRIVATE "LINKER:--version-script=${_exports}")
heddle_warnings(heddle_c)
