# Warnings, sanitizers and the one code-generation flag that coroutines need, as an interface target: stag_options.
add_library(stag_options INTERFACE)
# No path of the machine that builds is in what is built.
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
target_compile_options(stag_options INTERFACE -Wall -Wextra -Wpedantic -Wnon-virtual-dtor)
if(STAG_WERROR)
  target_compile_options(stag_options INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Symmetric transfer of coroutines is a tail call only with this flag (GCC bug 100897).
  target_compile_options(stag_options INTERFACE -foptimize-sibling-calls -Wshadow=local)
  # Position-independent as the archive is, calls within a translation unit stay direct and inlinable.
  target_compile_options(stag_options INTERFACE -fno-semantic-interposition)
  # False positives of GCC 12 on std::string and inlined containers.
  target_compile_options(stag_options INTERFACE -Wno-restrict -Wno-maybe-uninitialized -Wno-array-bounds -Wno-stringop-overflow)
  if(STAG_UNITY)
    # What is anonymous in one of the sources that are compiled together is not in the file the compiler was given.
    target_compile_options(stag_options INTERFACE -Wno-subobject-linkage)
  endif()
else()
  target_compile_options(stag_options INTERFACE -Wno-shadow)
endif()
if(STAG_SANITIZE)
  # clang 14 cannot emit -fsanitize=function's data for the split parts of a coroutine.
  target_compile_options(stag_options INTERFACE -fsanitize=${STAG_SANITIZE} -fno-sanitize=function -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_compile_definitions(stag_options INTERFACE STAG_SANITIZED)
  target_link_options(stag_options INTERFACE -fsanitize=${STAG_SANITIZE})
endif()
# What is fuzzed tells the fuzzer where it went. The tests, which are half of a tree, need not, nor does what no fuzz target has in it.
set(STAG_NOT_FUZZED stag_cli stag_conform stag_bench)
function(stag_fuzzed target)
  if(STAG_FUZZ AND NOT target IN_LIST STAG_NOT_FUZZED)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

find_program(STAG_CCACHE ccache)
if(STAG_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${STAG_CCACHE})
endif()
