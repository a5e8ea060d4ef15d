# g++ 14.2 loses a store where it splits structs into their members (docs/decisions/0018-a-compiler-that-loses-a-store.md).
# A compiler that shows it on lost_store.cc is told to leave that step out; so is a newer one whose programs do not run here.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND NOT DEFINED TUTTI_LOSES_STORES)
  set(TUTTI_LOSES_STORES ON CACHE INTERNAL "The compiler loses stores unless told -fno-tree-sra")
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
    set_property(CACHE TUTTI_LOSES_STORES PROPERTY VALUE OFF)
  elseif(NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR)
    try_run(ended compiled ${PROJECT_BINARY_DIR}/CMakeFiles/lost_store ${PROJECT_SOURCE_DIR}/cmake/lost_store.cc
      COMPILE_DEFINITIONS -O2)
    if(compiled AND ended EQUAL 0)
      set_property(CACHE TUTTI_LOSES_STORES PROPERTY VALUE OFF)
    endif()
  endif()
endif()
if(TUTTI_LOSES_STORES)
  message(STATUS "g++ ${CMAKE_CXX_COMPILER_VERSION} loses stores: it is told -fno-tree-sra")
  add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-fno-tree-sra>")
endif()
