# Compilers, linkers, warnings and the flags of the kernels.

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
  message(FATAL_ERROR "heddle needs g++ 12 or newer, found ${CMAKE_CXX_COMPILER_VERSION}")
endif()

find_program(HEDDLE_CCACHE ccache)
if(HEDDLE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER "${CMAKE_CURRENT_LIST_DIR}/launch_compiler.sh" "${HEDDLE_CCACHE}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_C_COMPILER_LAUNCHER}")
endif()

# What g++ compiles is linked by its own linker. g++ writes empty entries of .eh_frame for parts of
# functions that optimize to nothing, and lld keeps the first of the entries of one address: the
# part that follows at the same address then cannot be unwound, and an exception ends the process.
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  find_program(HEDDLE_MOLD mold)
  find_program(HEDDLE_LLD NAMES ld.lld)
  if(HEDDLE_MOLD)
    add_link_options(-fuse-ld=mold)
  elseif(HEDDLE_LLD)
    add_link_options(-fuse-ld=lld)
  endif()
endif()

if(HEDDLE_SANITIZE)
  add_compile_options(-fsanitize=${HEDDLE_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${HEDDLE_SANITIZE})
  if(HEDDLE_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
endif()

# Warnings that the optimizer raises from inlined library templates: shown, not fatal, in kernels
# (Eigen) and in sanitized builds, where their false positives abound.
set(HEDDLE_SOFT_WARNINGS "")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(HEDDLE_SOFT_WARNINGS -Wno-error=maybe-uninitialized -Wno-error=uninitialized
      -Wno-error=array-bounds -Wno-error=stringop-overflow -Wno-error=stringop-overread
      -Wno-error=restrict -Wno-error=free-nonheap-object)
endif()

function(heddle_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra)
  if(HEDDLE_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
    if(HEDDLE_SANITIZE)
      target_compile_options(${target} PRIVATE ${HEDDLE_SOFT_WARNINGS})
    endif()
  endif()
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_options(${target} PRIVATE -Wthread-safety)
  endif()
endfunction()

# Kernels are built for AVX2/FMA machines, everything else for the base architecture. A Debug build
# leaves them alone; a sanitized one keeps the instruction set (the same rounding) but not -O3.
# avx512*.cc of kernels/simd and kernels/simd/integers are for machines with AVX-512: what they
# define is called only there.
function(heddle_kernel_flags target)
  target_compile_options(${target} PRIVATE ${HEDDLE_SOFT_WARNINGS})
  if(CMAKE_BUILD_TYPE STREQUAL "Debug")
    # Vectors that registers do not hold have no fixed way to be passed; they stay in that source.
    set_source_files_properties(kernels/simd/portable.cc PROPERTIES COMPILE_OPTIONS -Wno-psabi)
    return()
  endif()
  if(NOT HEDDLE_SANITIZE)
    target_compile_options(${target} PRIVATE -O3)
  endif()
  target_compile_options(${target} PRIVATE -fno-math-errno -fno-trapping-math)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
    target_compile_options(${target} PRIVATE -march=x86-64-v3)
    get_target_property(newer ${target} SOURCES)
    list(FILTER newer INCLUDE REGEX "^kernels/simd/(integers/)?avx512[a-z_0-9]*\\.cc$")
    set_source_files_properties(${newer} PROPERTIES
      COMPILE_OPTIONS "-march=x86-64-v4;-mprefer-vector-width=512" SKIP_PRECOMPILE_HEADERS ON)
    foreach(_set bf16 vbmi vnni)
      set(special ${newer})
      list(FILTER special INCLUDE REGEX "_${_set}\\.cc$")
      set_property(SOURCE ${special} APPEND PROPERTY COMPILE_OPTIONS -mavx512${_set})
    endforeach()
    # What is made of integers has the bits of operators one after another: a product, then a sum.
    set(separate kernels/integers/integer_result.cc kernels/simd/integers/byte_steps.cc
        kernels/simd/integers/avx512_byte_steps.cc)
    set_property(SOURCE ${separate} APPEND PROPERTY COMPILE_OPTIONS -ffp-contract=off)
    set_property(SOURCE ${separate} PROPERTY SKIP_PRECOMPILE_HEADERS ON)
  endif()
endfunction()

# What most sources of a target begin with is read once. A source still includes all that it uses:
# it compiles with HEDDLE_PRECOMPILE=OFF, too.
function(heddle_precompile target header)
  if(HEDDLE_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE "<${header}>")
    heddle_let_ccache_precompile(${target})
  endif()
endfunction()

# `target` reads the header that was precompiled for `other`, a target with the same flags.
function(heddle_precompile_like target other)
  if(HEDDLE_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM ${other})
    heddle_let_ccache_precompile(${target})
  endif()
endfunction()

# ccache wants the precompiled header named in what is preprocessed. A source with an option of its
# own would stay out of the groups of HEDDLE_UNITY.
function(heddle_let_ccache_precompile target)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    return()
  endif()
  if(HEDDLE_UNITY)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
  else()
    get_target_property(sources ${target} SOURCES)
    list(FILTER sources INCLUDE REGEX "\\.cc$")
    set_property(SOURCE ${sources} APPEND PROPERTY COMPILE_OPTIONS -fpch-preprocess)
  endif()
endfunction()
