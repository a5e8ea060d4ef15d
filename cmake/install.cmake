# Headers, library, CMake package and pkg-config file: filled in below src/ targets.
include(GNUInstallDirs)
