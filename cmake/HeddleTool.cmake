# The command line tool: tools/**/*.cc -> heddle.

file(GLOB_RECURSE _tool_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tools/*.cc")
# Those of heddle_values.
list(FILTER _tool_sources EXCLUDE REGEX "/tools/values/")
if(_tool_sources)
  find_package(CLI11 REQUIRED CONFIG)
  find_package(nlohmann_json REQUIRED CONFIG)
  find_package(glog REQUIRED CONFIG)
  add_executable(heddle_cli ${_tool_sources} tools/values/npz.cc)
  set_target_properties(heddle_cli PROPERTIES OUTPUT_NAME heddle)
  # Functions of libraries are bound when the tool starts, in one go, which takes no longer than one
  # by one; the tables of addresses are read-only then.
  target_link_options(heddle_cli PRIVATE "LINKER:-z,relro,-z,now")
  target_link_libraries(heddle_cli PRIVATE heddle_internal heddle_partition heddle_offload
                        heddle_training
                        CLI11::CLI11
                        nlohmann_json::nlohmann_json glog::glog)
  target_compile_definitions(heddle_cli PRIVATE HEDDLE_VERSION="${PROJECT_VERSION}")
  # For compressed .npz files.
  find_package(ZLIB QUIET)
  if(ZLIB_FOUND)
    target_compile_definitions(heddle_cli PRIVATE HEDDLE_WITH_ZLIB=1)
    target_link_libraries(heddle_cli PRIVATE ZLIB::ZLIB)
  endif()
  # The report's page as a string literal, cut into pieces (compilers bound their length).
  add_custom_command(
    OUTPUT "${HEDDLE_GENERATED_DIR}/tools/report_page.inc"
    COMMAND "${CMAKE_COMMAND}" "-DFROM=${PROJECT_SOURCE_DIR}/tools/report_page.html"
            "-DTO=${HEDDLE_GENERATED_DIR}/tools/report_page.inc"
            -P "${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake"
    DEPENDS "${PROJECT_SOURCE_DIR}/tools/report_page.html"
            "${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake"
    VERBATIM)
  target_sources(heddle_cli PRIVATE "${HEDDLE_GENERATED_DIR}/tools/report_page.inc")
  heddle_warnings(heddle_cli)
  heddle_precompile(heddle_cli tools/precompiled.h)
  heddle_unity(heddle_cli)
endif()
