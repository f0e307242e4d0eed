# The command line tool: tools/*.cc -> heddle.

file(GLOB _tool_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tools/*.cc")
if(_tool_sources)
  find_package(CLI11 REQUIRED CONFIG)
  find_package(nlohmann_json REQUIRED CONFIG)
  find_package(glog REQUIRED CONFIG)
  add_executable(heddle_cli ${_tool_sources})
  set_target_properties(heddle_cli PROPERTIES OUTPUT_NAME heddle)
  target_link_libraries(heddle_cli PRIVATE heddle_internal CLI11::CLI11
                        nlohmann_json::nlohmann_json glog::glog)
  target_compile_definitions(heddle_cli PRIVATE HEDDLE_VERSION="${PROJECT_VERSION}")
  # For compressed .npz files.
  find_package(ZLIB QUIET)
  if(ZLIB_FOUND)
    target_compile_definitions(heddle_cli PRIVATE HEDDLE_WITH_ZLIB=1)
    target_link_libraries(heddle_cli PRIVATE ZLIB::ZLIB)
  endif()
  heddle_warnings(heddle_cli)
endif()
