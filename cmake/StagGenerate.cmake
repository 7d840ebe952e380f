# C++ from XDR specifications, here and in projects that found the installed package.
#
#   stag_generate(TARGET FILES a.x b.x [NAMESPACE my::protocol] [OUTPUT_DIR dir] [INCLUDE_PREFIX prefix])
#
# Makes dir/prefix/a.h and dir/prefix/a.cc from a.x whenever it, or a file that it includes, changes. When TARGET is a target, the sources become part
# of it and dir one of its include folders: #include "prefix/a.h". Otherwise TARGET is a variable that receives the list
# of sources. OUTPUT_DIR is ${CMAKE_CURRENT_BINARY_DIR}/gen unless given. Without NAMESPACE each specification names its
# own, in a line
#   %// namespace: my::protocol
# STAG_XDRGEN names an xdrgen built elsewhere: of the machine that compiles, when that for another one is built, or of another tree.
cmake_policy(PUSH)
cmake_policy(VERSION 3.20)  # How the names in a DEPFILE are read, whatever the project wants elsewhere.
function(stag_generate target)
  cmake_parse_arguments(arg "" "NAMESPACE;OUTPUT_DIR;INCLUDE_PREFIX" "FILES" ${ARGN})
  if(NOT arg_OUTPUT_DIR)
    set(arg_OUTPUT_DIR ${CMAKE_CURRENT_BINARY_DIR}/gen)
  endif()
  set(folder ${arg_OUTPUT_DIR})
  set(prefix "")
  if(arg_INCLUDE_PREFIX)
    set(folder ${arg_OUTPUT_DIR}/${arg_INCLUDE_PREFIX})
    set(prefix "${arg_INCLUDE_PREFIX}/")
  endif()
  set(options)
  if(arg_NAMESPACE)
    set(options --namespace ${arg_NAMESPACE})
  endif()
  # Set by the installed package, whose headers live in <stag/...>.
  if(STAG_RUNTIME_INCLUDE)
    list(APPEND options --runtime ${STAG_RUNTIME_INCLUDE})
  endif()

  set(xdrgen stag::xdrgen)
  if(STAG_XDRGEN)
    set(xdrgen ${STAG_XDRGEN})
  endif()

  set(sources)
  foreach(file ${arg_FILES})
    file(MAKE_DIRECTORY ${folder})
    cmake_path(ABSOLUTE_PATH file OUTPUT_VARIABLE input)
    cmake_path(GET file STEM name)
    add_custom_command(
      OUTPUT ${folder}/${name}.h ${folder}/${name}.cc
      COMMAND ${xdrgen} ${options} --include ${prefix}${name}.h
              --header ${folder}/${name}.h --source ${folder}/${name}.cc --depfile ${folder}/${name}.d ${input}
      DEPENDS ${input} ${xdrgen}
      DEPFILE ${folder}/${name}.d
      COMMENT "xdrgen ${name}.x"
      VERBATIM)
    list(APPEND sources ${folder}/${name}.cc)
  endforeach()

  if(TARGET ${target})
    target_sources(${target} PRIVATE ${sources})
    target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${arg_OUTPUT_DIR}>)
  else()
    set(${target} ${sources} PARENT_SCOPE)
  endif()
endfunction()
cmake_policy(POP)
