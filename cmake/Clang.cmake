# The toolchain of the preset `fuzz`: libFuzzer comes with clang, of the version that Debian has.
find_program(CAIS_CLANG NAMES clang-19 clang-14 clang REQUIRED)
find_program(CAIS_CLANGXX NAMES clang++-19 clang++-14 clang++ REQUIRED)
set(CMAKE_C_COMPILER "${CAIS_CLANG}")
set(CMAKE_CXX_COMPILER "${CAIS_CLANGXX}")
