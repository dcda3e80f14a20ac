// torch_cais/csrc/errors.hpp — our errors as PyTorch's DistBackendError.
#pragma once

#include <exception>
#include <string>

#include "base/result.hpp"

namespace cais::pytorch {

/// Throws c10::DistBackendError: "CAIS: <group>, rank R: <op>: <message>".
[[noreturn]] void throw_error(const std::string& where, const Error& error);

/// The same, to be thrown later.
std::exception_ptr exception_from(const std::string& where, const Error& error);

}  // namespace cais::pytorch
