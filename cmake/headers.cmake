# The target check_headers compiles each header alone: every header brings what it needs. The public ones in plain C too,
# apart from the C++ face.
file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
  ${PROJECT_SOURCE_DIR}/include/*.h ${PROJECT_SOURCE_DIR}/include/*.hpp ${PROJECT_SOURCE_DIR}/src/*.h
  ${PROJECT_SOURCE_DIR}/transports/*.h ${PROJECT_SOURCE_DIR}/kernels/host/*.h
  ${PROJECT_SOURCE_DIR}/tools/*.h)
if(TUTTI_HAS_CUDA)
  file(GLOB cuda_headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/kernels/cuda/*.h)
  list(APPEND headers ${cuda_headers})
endif()
# Headers by this name are parts of another file, compiled several times over.
list(FILTER headers EXCLUDE REGEX "-inl\\.h$")

set(units "")
foreach(header IN LISTS headers)
  set(languages cc)
  if(header MATCHES "^include/.*\\.h$")
    list(APPEND languages c)
  endif()
  foreach(language IN LISTS languages)
    set(unit ${CMAKE_CURRENT_BINARY_DIR}/headers/${header}.${language})
    file(CONFIGURE OUTPUT ${unit} CONTENT "#include \"${PROJECT_SOURCE_DIR}/${header}\"\n" @ONLY)
    list(APPEND units ${unit})
  endforeach()
endforeach()

add_library(check_headers OBJECT EXCLUDE_FROM_ALL ${units})
target_include_directories(check_headers PRIVATE
  $<TARGET_PROPERTY:tutti_objects,INTERFACE_INCLUDE_DIRECTORIES>)
target_include_directories(check_headers PRIVATE ${PROJECT_SOURCE_DIR}/tools)
if(TUTTI_HAS_CUDA)
  target_include_directories(check_headers SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
endif()
target_compile_definitions(check_headers PRIVATE $<TARGET_PROPERTY:tutti_objects,INTERFACE_COMPILE_DEFINITIONS>)
target_compile_options(check_headers PRIVATE -O0 -g0)
