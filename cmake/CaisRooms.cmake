# How a room, a test and a program are declared; the flags that all of them share.
#
#   cais_room(NAME SOURCES a.cpp ... [DEPENDS cais_base ...] [PRIVATE_DEPENDS lib ...])
#   cais_test(NAME SOURCES a_test.cpp ... DEPENDS cais_base ... [TIMEOUT seconds])
#   cais_program(NAME SOURCES main.cpp ... DEPENDS cais_runtime ...)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")

find_program(CAIS_CCACHE ccache)
if(CAIS_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER "${CAIS_CCACHE}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CAIS_CCACHE}")
endif()

add_library(cais_flags INTERFACE)
# -Wrestrict is wrong about std::string in GCC 12 (bug 105651).
target_compile_options(cais_flags INTERFACE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
                                            $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict> -Werror
                                            -fno-omit-frame-pointer)
if(CAIS_CHECKS)
  target_compile_definitions(cais_flags INTERFACE CAIS_CHECKS=1)
endif()
if(CAIS_SANITIZE)
  add_compile_options(-fsanitize=${CAIS_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${CAIS_SANITIZE})
endif()

function(cais_room name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(${name} PUBLIC ${ARG_DEPENDS} PRIVATE cais_flags ${ARG_PRIVATE_DEPENDS})
endfunction()

function(cais_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPENDS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} GTest::gtest GTest::gmock GTest::gtest_main cais_flags)
  gtest_discover_tests(${name} TEST_PREFIX "${name}." DISCOVERY_TIMEOUT 60 NO_PRETTY_VALUES
                       PROPERTIES TIMEOUT ${ARG_TIMEOUT})
endfunction()

function(cais_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} cais_flags)
endfunction()
