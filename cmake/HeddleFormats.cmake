# Formats that are left out: their sources, and HEDDLE_WITHOUT_<NAME> for the list of formats.
# Paddle's own, whose parameter files others share, is always there.

file(GLOB _formats CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/formats"
     "${PROJECT_SOURCE_DIR}/formats/*/format.cc")
list(TRANSFORM _formats REPLACE "/format.cc$" "")
list(REMOVE_ITEM _formats paddle)
foreach(_format IN LISTS HEDDLE_FORMATS)
  if(NOT _format IN_LIST _formats AND NOT _format MATCHES "^(ALL|paddle)$")
    message(FATAL_ERROR "HEDDLE_FORMATS: there is no format '${_format}'; there is ${_formats}")
  endif()
endforeach()
set(HEDDLE_FORMATS_LEFT_OUT "")
if(NOT "ALL" IN_LIST HEDDLE_FORMATS)
  foreach(_format IN LISTS _formats)
    if(_format IN_LIST HEDDLE_FORMATS)
      continue()
    endif()
    list(APPEND HEDDLE_FORMATS_LEFT_OUT "${_format}")
    list(FILTER HEDDLE_PLAIN_SOURCES EXCLUDE REGEX "^formats/${_format}/")
    string(TOUPPER "HEDDLE_WITHOUT_${_format}" _definition)
    set_property(SOURCE formats/registry.cc formats/other_kinds.cc APPEND
                 PROPERTY COMPILE_DEFINITIONS "${_definition}")
  endforeach()
endif()
