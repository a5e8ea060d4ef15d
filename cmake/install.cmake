# What `cmake --install` gives: headers, the library, the CMake package tutti (target tutti::tutti), tutti.pc, the programs.
# The tree may be moved as a whole: nothing in it knows where it is.
include(CMakePackageConfigHelpers)

# The header says its version to programs that are compiled; this project's must be the same.
foreach(part MAJOR MINOR PATCH)
  file(STRINGS ${PROJECT_SOURCE_DIR}/include/tutti/tutti.h line REGEX "^#define TUTTI_${part} ")
  if(NOT line STREQUAL "#define TUTTI_${part} ${PROJECT_VERSION_${part}}")
    message(FATAL_ERROR "include/tutti/tutti.h says \"${line}\", CMakeLists.txt says version ${PROJECT_VERSION}")
  endif()
endforeach()

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/tutti DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(TARGETS tutti EXPORT tutti LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})

# The programs are the benchmarks of bench/ and the tools; what else these folders build stays here. Those that are not
# built are left out, so that tools/demo, which builds one, is enough to install the library.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY ${CMAKE_INSTALL_FULL_BINDIR} OUTPUT_VARIABLE bin_to_lib)
set(program_folders tools)
if(TUTTI_BUILD_BENCH)
  list(APPEND program_folders bench)
endif()
foreach(folder IN LISTS program_folders)
  get_property(targets DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    if(type STREQUAL EXECUTABLE AND target MATCHES "_perf$|^tutti-")
      set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN/${bin_to_lib}")
      install(TARGETS ${target} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} OPTIONAL)
    endif()
  endforeach()
endforeach()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tutti)
install(EXPORT tutti FILE tuttiConfig.cmake NAMESPACE tutti:: DESTINATION ${package_dir})
write_basic_package_version_file(tuttiConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tuttiConfigVersion.cmake DESTINATION ${package_dir})

cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig OUTPUT_VARIABLE pc_to_prefix)
configure_file(${PROJECT_SOURCE_DIR}/cmake/tutti.pc.in tutti.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tutti.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
