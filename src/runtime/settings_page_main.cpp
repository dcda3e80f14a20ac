// runtime/settings_page_main.cpp — prints the page docs/settings.md.
#include <cstdio>

#include "runtime/settings.hpp"

int main() { return std::fputs(cais::runtime::settings_page().c_str(), stdout) < 0 ? 1 : 0; }
