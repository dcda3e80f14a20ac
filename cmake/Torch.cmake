# The PyTorch to build torch_cais for: CAIS_TORCH_DIR (site-packages/torch), and what of its build ours
# must share.
set(CAIS_TORCH_DIR "" CACHE PATH "The folder of the Python package torch to build torch_cais for")
if(NOT EXISTS "${CAIS_TORCH_DIR}/lib/libtorch_cpu.so")
  message(FATAL_ERROR "CAIS_TORCH_DIR='${CAIS_TORCH_DIR}' holds no libtorch; set it to the folder of "
                      "an installed torch package, or build with `pip install .`")
endif()

file(STRINGS "${CAIS_TORCH_DIR}/version.py" CAIS_TORCH_VERSION REGEX "^__version__")
string(REGEX REPLACE ".*'(.*)'.*" "\\1" CAIS_TORCH_VERSION "${CAIS_TORCH_VERSION}")

# Which of libstdc++'s two strings this torch was built with: its exported symbols tell. Strings pass
# between torch_cais and the rooms, so that all of it is built with the same.
file(STRINGS "${CAIS_TORCH_DIR}/lib/libc10.so" new_strings LIMIT_COUNT 1
     REGEX "_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx1112basic_string")
if(NOT new_strings)
  add_compile_definitions(_GLIBCXX_USE_CXX11_ABI=0)
endif()

# Under which name pybind11 keeps the Python types that modules share. Before its version 3 the name
# holds the version of the compiler, which is not ours.
file(STRINGS "${CAIS_TORCH_DIR}/lib/libtorch_python.so" pybind11_name LIMIT_COUNT 1
     REGEX "^__pybind11_internals_v[0-9]+_gcc_libstdcpp_cxxabi[0-9]+__$")
string(REGEX MATCH "_cxxabi[0-9]+" CAIS_TORCH_PYBIND11_ABI "${pybind11_name}")
message(STATUS "torch_cais is built for torch ${CAIS_TORCH_VERSION} in ${CAIS_TORCH_DIR}")
