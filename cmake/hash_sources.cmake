# Writes to OUTPUT a constant NAME that changes with the contents of the files listed in the file
# LIST.
file(STRINGS "${LIST}" sources)
set(all "")
foreach(source IN LISTS sources)
  file(SHA256 "${source}" hash)
  string(APPEND all "${hash}")
endforeach()
string(SHA256 hash "${all}")
string(SUBSTRING "${hash}" 0 16 hash)
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT "constexpr uint64_t ${NAME} = 0x${hash};\n")
