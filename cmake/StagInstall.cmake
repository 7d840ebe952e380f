# `cmake --install`: one library, its headers under include/stag/, the XDR compiler, a CMake package and a pkg-config
# file. Everything is in the component `devel`.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# What the library's objects need, by pkg-config name.
set(STAG_REQUIRES "libisal sqlite3 krb5-gssapi krb5")

# One archive of every module's objects; the programs (cli), what only they use (fuse), what measures (bench), what asks servers (conform) and the stub of RDMA devices stay out.
get_property(modules GLOBAL PROPERTY STAG_MODULES)
list(REMOVE_ITEM modules cli fuse bench conform fabric/verbs/stub)
set(objects)
foreach(module ${modules})
  stag_module_name(name ${module})
  get_target_property(type stag_${name} TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    list(APPEND objects $<TARGET_OBJECTS:stag_${name}>)
  endif()
endforeach()
add_library(stag_library STATIC ${objects})
set_target_properties(stag_library PROPERTIES OUTPUT_NAME stag LINKER_LANGUAGE CXX)

install(TARGETS stag_library ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT devel)
install(TARGETS xdrgen RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT devel)
install(CODE "
  set(source ${PROJECT_SOURCE_DIR}/src)
  set(generated ${PROJECT_BINARY_DIR}/gen)
  set(list ${PROJECT_SOURCE_DIR}/cmake/public_headers.txt)
  set(include \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}/stag\")
  include(${PROJECT_SOURCE_DIR}/cmake/install_headers.cmake)" COMPONENT devel)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/stag)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/stagConfig.cmake.in ${PROJECT_BINARY_DIR}/stagConfig.cmake
  INSTALL_DESTINATION ${package} PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/stagConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/stagConfig.cmake ${PROJECT_BINARY_DIR}/stagConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/cmake/StagGenerate.cmake DESTINATION ${package} COMPONENT devel)

file(RELATIVE_PATH STAG_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${PROJECT_SOURCE_DIR}/cmake/stag.pc.in ${PROJECT_BINARY_DIR}/stag.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/stag.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT devel)
