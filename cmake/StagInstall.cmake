# `cmake --install`: the library, its headers under include/stag/, the XDR compiler, a CMake package and a pkg-config file.
# What programs need to run (libstag.so.0) is in the component `library`, what compiles them in `devel`.
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

# The same objects as a shared library, which exports what the public headers declare (exports.py). Its number changes when
# packaging/abi/libstag.symbols loses a line, or packaging/abi/libstag.layouts has another one (tests install_abi and install_layout
# tell); before 1.0 with every release that does so.
set(STAG_SOVERSION 0)
if(NOT STAG_SANITIZE)
  set(map ${PROJECT_BINARY_DIR}/libstag.map)
  set(list ${PROJECT_SOURCE_DIR}/cmake/public_headers.txt)
  add_custom_command(OUTPUT ${map}
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/cmake/exports.py ${CMAKE_NM} $<TARGET_FILE:stag_library>
            ${PROJECT_SOURCE_DIR}/src ${PROJECT_BINARY_DIR}/gen < ${list} > ${map}
    DEPENDS stag_library ${list} ${PROJECT_SOURCE_DIR}/cmake/exports.py
    COMMENT "libstag.map: what libstag.so exports"
    VERBATIM)
  add_custom_target(stag_map DEPENDS ${map})
  add_library(stag_shared SHARED ${objects})
  add_dependencies(stag_shared stag_map)
  target_link_libraries(stag_shared PRIVATE PkgConfig::ISAL PkgConfig::KRB5 SQLite::SQLite3 Threads::Threads ${CMAKE_DL_LIBS})
  # Calls inside the library are not replaced from outside.
  target_link_options(stag_shared PRIVATE -Wl,--version-script=${map} -Wl,-z,defs -Wl,-Bsymbolic-functions)
  set_target_properties(stag_shared PROPERTIES OUTPUT_NAME stag LINKER_LANGUAGE CXX
    VERSION ${PROJECT_VERSION} SOVERSION ${STAG_SOVERSION} LINK_DEPENDS ${map})
  install(TARGETS stag_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT devel)
endif()
install(TARGETS xdrgen RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT devel)
install(CODE "
  set(xdrgen $<TARGET_FILE:xdrgen>)
  set(version ${PROJECT_VERSION})
  set(date ${STAG_DATE})
  set(to \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_MANDIR}/man1/xdrgen.1\")
  include(${PROJECT_SOURCE_DIR}/cmake/xdrgen_manual.cmake)" COMPONENT devel)
install(CODE "
  set(source ${PROJECT_SOURCE_DIR}/src)
  set(generated ${PROJECT_BINARY_DIR}/gen)
  set(list ${PROJECT_SOURCE_DIR}/cmake/public_headers.txt)
  set(include \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}/stag\")
  include(${PROJECT_SOURCE_DIR}/cmake/install_headers.cmake)" COMPONENT devel)

# The C API.
install(FILES ${PROJECT_SOURCE_DIR}/src/c/stag.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT devel)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/stag)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/stagConfig.cmake.in ${PROJECT_BINARY_DIR}/stagConfig.cmake
  INSTALL_DESTINATION ${package} PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/stagConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/stagConfig.cmake ${PROJECT_BINARY_DIR}/stagConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/cmake/StagGenerate.cmake DESTINATION ${package} COMPONENT devel)

file(RELATIVE_PATH STAG_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${PROJECT_SOURCE_DIR}/cmake/stag.pc.in ${PROJECT_BINARY_DIR}/stag.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/stag.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT devel)
