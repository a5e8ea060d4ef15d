// Names of kernels, from the symbol table of the module that holds them: the dynamic symbols lack what is hidden.
#include <cxxabi.h>
#include <elf.h>
#include <link.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <span>
#include <vector>

#include "emulation/device/grid.h"

namespace tutti::emulation {
namespace {

struct Module {
  uintptr_t address;   // that is looked for
  uintptr_t base = 0;  // of the module that holds it
  std::string path;
};

int holds(dl_phdr_info* info, size_t, void* data) {
  auto* module = static_cast<Module*>(data);
  for (const auto& segment : std::span(info->dlpi_phdr, info->dlpi_phnum)) {
    const uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    if (segment.p_type != PT_LOAD || module->address < begin || module->address >= begin + segment.p_memsz) continue;
    module->base = info->dlpi_addr;
    module->path = *info->dlpi_name ? info->dlpi_name : "/proc/self/exe";
    return 1;
  }
  return 0;
}

// The file is this process's own module: the loader has checked it.
std::string symbolAt(const std::vector<char>& file, uintptr_t value) {
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(file.data());
  const std::span sections(reinterpret_cast<const Elf64_Shdr*>(file.data() + header->e_shoff), header->e_shnum);
  for (const auto& section : sections) {
    if (section.sh_type != SHT_SYMTAB) continue;
    const char* names = file.data() + sections[section.sh_link].sh_offset;
    const auto* symbols = reinterpret_cast<const Elf64_Sym*>(file.data() + section.sh_offset);
    for (const auto& symbol : std::span(symbols, section.sh_size / sizeof(Elf64_Sym)))
      if (symbol.st_value == value && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC) return names + symbol.st_name;
  }
  return "";
}

std::string demangled(const std::string& name) {
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, nullptr),
                                                         &std::free);
  return text ? text.get() : name;
}

}  // namespace

std::string kernelName(const void* kernel) {
  Module module{reinterpret_cast<uintptr_t>(kernel), 0, {}};
  if (dl_iterate_phdr(holds, &module) != 0) {
    std::ifstream stream(module.path, std::ios::binary | std::ios::ate);
    std::vector<char> file(stream ? static_cast<size_t>(stream.tellg()) : 0);
    stream.seekg(0).read(file.data(), static_cast<std::streamsize>(file.size()));
    const auto name = file.size() > sizeof(Elf64_Ehdr) ? symbolAt(file, module.address - module.base) : std::string();
    if (!name.empty()) return demangled(name);
  }
  char text[32];
  std::snprintf(text, sizeof text, "at %p", kernel);
  return text;
}

}  // namespace tutti::emulation
