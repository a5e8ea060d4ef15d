# shellcheck shell=bash
# What the commands in tools/ share: finding the repository, telling what is going on, and installing what is missing.
# Sourced, not run.

# shellcheck disable=SC2034  # for those who source this
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
jobs=${JOBS:-$(nproc)}

say() { printf '\n==> %s\n' "$*"; }
# timed NAME COMMAND...: runs it between two lines that tell what it is and how long it took; .ci/run collects them.
timed() {
  local name=$1 started=$SECONDS status=0
  shift
  say "$name"
  "$@" || status=$?
  printf '\n-- %s: %d s\n' "$name" $((SECONDS - started))
  return $status
}
# in_background LOG COMMAND...: runs it in the time that others leave over; $! is its process. It ends with this one.
in_background() {
  local log=$1
  shift
  set -m  # so that it has a process group, which can be ended as a whole
  { renice -n 19 $BASHPID >/dev/null && "$@"; } </dev/null >"$log" 2>&1 &
  set +m
  trap "kill -- -$! 2>/dev/null || true" EXIT
}
fail() {
  printf '\n%s\n' "$*" >&2
  exit 1
}

# One line each: the Debian package, and the command, header or module of Debian's Python that shows it is there. First what it takes to build the
# library and the measuring programs, then what the tests and the checks need beyond that.
commands_to_build="
cmake cmake
ninja-build ninja
g++ g++
pkg-config pkg-config
ccache ccache
"
headers_to_build="
libhwloc-dev hwloc.h
libhwy-dev hwy/highway.h
libspdlog-dev spdlog/spdlog.h
libfmt-dev fmt/format.h
libcli11-dev CLI/CLI.hpp
nlohmann-json3-dev nlohmann/json.hpp
libsodium-dev sodium.h
libpugixml-dev pugixml.hpp
libibverbs-dev infiniband/verbs.h
"
commands_to_check="
python3 python3
clang-format clang-format
iproute2 ip
valgrind valgrind
"
headers_to_check="
libgtest-dev gtest/gtest.h
libbenchmark-dev benchmark/benchmark.h
libboost-context-dev boost/context/fiber.hpp
zlib1g-dev zlib.h
"
modules_to_check="
python3-dissononce dissononce
"

# What tutti is compared with (bench/compare/run).
commands_of_openmpi="
openmpi-bin mpirun.openmpi
libopenmpi-dev mpicxx.openmpi
"
commands_of_mpich="
mpich mpirun.mpich
libmpich-dev mpicxx.mpich
"
headers_of_gloo="
libgloo-dev gloo/allreduce.h
"

# Prints the packages of the list whose header the compiler does not find; all of them when there is no compiler.
missing_headers() {
  local package header
  while read -r package header; do
    [ -z "$package" ] || printf '#if !__has_include(<%s>)\nmissing %s\n#endif\n' "$header" "$package"
  done <<<"$1" |
    if command -v g++ >/dev/null; then g++ -std=c++20 -E -P -x c++ -; else cat; fi |
    sed -n 's/^missing //p' | tr -d ' '
}

missing_commands() {
  local package program
  while read -r package program; do
    [ -z "$package" ] || PATH="$PATH:/usr/sbin:/sbin" command -v "$program" >/dev/null || echo "$package"
  done <<<"$1"
}

missing_modules() {
  local package module
  while read -r package module; do
    [ -z "$package" ] || /usr/bin/python3 -c "import $module" 2>/dev/null || echo "$package"
  done <<<"$1"
}

install_packages() {
  local as_root=()
  command -v apt-get >/dev/null ||
    fail "Please install these (names are Debian's; your distribution's may differ), then run this again:" "$@"
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "Please run as root, then run this again: apt-get install" "$@"
    as_root=(sudo)
  fi
  say "Installing $*"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@"
}

require_cmake() {
  local version
  version=$(cmake --version | sed -n 's/^cmake version \([0-9.]*\).*/\1/p')
  printf '3.25\n%s\n' "$version" | sort -C -V ||
    fail "CMake 3.25 or newer is needed, and $version is what is here. Its makers have newer ones: https://cmake.org/download"
}

# setup build|check: installs what is missing for that, or says what to install and stops.
setup() {
  local missing programs=$commands_to_build headers=$headers_to_build modules=
  if [ "$1" = check ]; then
    programs+=$commands_to_check headers+=$headers_to_check modules+=$modules_to_check
  fi
  mapfile -t missing < <(missing_commands "$programs" && missing_headers "$headers" && missing_modules "$modules")
  [ ${#missing[@]} -eq 0 ] || install_packages "${missing[@]}"
  require_cmake
}

# setup_peers openmpi|mpich|gloo...: installs what of them can be had; says what cannot.
setup_peers() {
  local peer package missing
  for peer in "$@"; do
    local commands=commands_of_$peer headers=headers_of_$peer
    mapfile -t missing < <(missing_commands "${!commands-}" && missing_headers "${!headers-}")
    for package in "${missing[@]}"; do
      (install_packages "$package") || say "$package cannot be installed here."
    done
  done
}

# configure PRESET [-DOPTION...]
configure() {
  say "Configuring build/$1"
  cmake --preset "$@"
}

# build PRESET [TARGET...]: everything, or only these targets.
build() {
  local preset=$1
  shift
  timed "build/$preset: compile" cmake --build --preset "$preset" -j "$jobs" ${1+--target "$@"}
}
