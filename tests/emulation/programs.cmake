# bin/emulated/all_reduce_perf and its siblings: the measuring programs on the emulated GPU. They are one program under nine
# names, which goes by the one that it was started with: each would have to carry the whole library, as the emulation has
# to be there once for both.
set(folder ${CMAKE_CURRENT_BINARY_DIR}/emulated_programs)
set(sources ${folder}/main.cc)
set(declarations "")
set(rows "")
foreach(program ${TUTTI_PERF_PROGRAMS})
  string(APPEND declarations "int main_of_${program}(int, char**);\n")
  string(APPEND rows "  {\"${program}\", main_of_${program}},\n")
  file(CONFIGURE OUTPUT ${folder}/${program}.cc @ONLY CONTENT
    "#define main main_of_${program}\nint main(int, char**);\n#include \"perf/${program}.cc\"\n")
  list(APPEND sources ${folder}/${program}.cc)
endforeach()
file(CONFIGURE OUTPUT ${folder}/main.cc @ONLY CONTENT "#include <cstdio>
#include <cstring>
${declarations}
struct Program {
  const char* name;
  int (*run)(int, char**);
};
constexpr Program kPrograms[] = {
${rows}};

int main(int argc, char** argv) {
  const char* slash = std::strrchr(argv[0], '/');
  const char* name = slash ? slash + 1 : argv[0];
  const size_t length = std::strcspn(name, \":\");  // a rank is called \"all_reduce_perf: rank 3\"
  for (const Program& program : kPrograms)
    if (std::strlen(program.name) == length && std::strncmp(program.name, name, length) == 0) return program.run(argc, argv);
  std::fprintf(stderr, \"%s is none of the measuring programs\\n\", name);
  return 2;
}
")

add_executable(tutti_emulated_programs ${sources})
set_target_properties(tutti_emulated_programs PROPERTIES
  RUNTIME_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/emulated UNITY_BUILD OFF)  # each file has a whole program's names
target_include_directories(tutti_emulated_programs PRIVATE ${PROJECT_SOURCE_DIR}/bench)
target_link_libraries(tutti_emulated_programs PRIVATE
  tutti_perf_core tutti_perf_device_emulated tutti_objects tutti_device_emulated)
foreach(program ${TUTTI_PERF_PROGRAMS})
  add_custom_command(TARGET tutti_emulated_programs POST_BUILD VERBATIM COMMAND
    ${CMAKE_COMMAND} -E create_symlink tutti_emulated_programs ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/emulated/${program})
endforeach()
