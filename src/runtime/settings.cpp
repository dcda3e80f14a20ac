// runtime/settings.cpp — the table of settings. Reading, checking and the page docs/settings.md all
// come from it.
#include "runtime/settings.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <numeric>
#include <optional>
#include <string_view>
#include <type_traits>
#include <variant>

#include "core/switching/limits.hpp"
#include "io/interfaces.hpp"
#include "telemetry/log.hpp"

namespace cais::runtime {
namespace {

using Complaint = std::optional<std::string>;  // what is allowed, when a value is not

/// One of some words; the enumerators count them from 0.
template <typename Enum>
struct Choice {
  Enum Settings::*member;
  std::span<const std::string_view> words;
};
struct Flag {
  bool Settings::*member;
};
struct Text {
  std::string Settings::*member;
  std::string_view allowed;
  Complaint (*check)(const std::string& value);
};
template <typename Integer>
struct Number {
  Integer Settings::*member;
  Integer min;
  Integer max;
  std::string_view unit;
  Integer multiple_of = 1;
  bool power_of_two = false;
  bool zero_too = false;  // 0 has a meaning of its own, outside [min, max]
};
using Value = std::variant<Choice<TransportChoice>, Choice<wire::Tags>, Flag, Text,
                           Number<std::uint32_t>, Number<std::uint64_t>>;

struct Row {
  std::string_view name;
  Value value;
  std::string_view meaning;
  std::string_view alias = {};
};

constexpr std::array<std::string_view, 3> transport_names{"auto", "shm", "udp"};
constexpr std::array<std::string_view, 2> tags_names{"keyed", "checksum"};

Complaint any_text(const std::string&) { return std::nullopt; }

Complaint check_ifname(const std::string& value) {
  const auto pattern = io::parse_interface_pattern(value);
  return pattern.ok() ? Complaint() : pattern.error().message;
}
Complaint check_debug(const std::string& value) {
  const auto config = telemetry::parse_log_config(value, {}, {});
  return config.ok() ? Complaint() : config.error().message;
}
Complaint check_debug_subsys(const std::string& value) {
  const auto config = telemetry::parse_log_config({}, value, {});
  return config.ok() ? Complaint() : config.error().message;
}

using U32 = Number<std::uint32_t>;
using U64 = Number<std::uint64_t>;

const std::array rows{
    Row{"CAIS_TRANSPORT", Choice<TransportChoice>{&Settings::transport, transport_names},
        "What carries collectives. `auto`: shared memory between ranks of one machine, UDP "
        "between machines."},
    Row{"CAIS_SOCKET_IFNAME", Text{&Settings::socket_ifname, "names as in NCCL", check_ifname},
        "Network interface, in the syntax of NCCL: `eth,ens` (begins so), `=eth0` (exactly), "
        "`^docker` (not these). Empty: the first that is not `lo` or `docker*`.",
        "CAIS_NIC_IFACE"},
    Row{"CAIS_SWITCH_IP", Text{&Settings::switch_ip, "ADDRESS or ADDRESS:PORT", any_text},
        "A `cais-switch` where all lanes meet. Empty: every host embeds a switch for its share of "
        "the lanes."},
    Row{"CAIS_CHUNK_BYTES", U32{&Settings::chunk_bytes, 65'536, 1'048'576, "bytes", 1'024},
        "Chunk: the unit of scheduling, tracing and audit."},
    Row{"CAIS_WINDOW",
        U32{&Settings::window_fragments, 2, switching::window_fragments_max, "fragments", 1, true},
        "Fragments of a lane that may be under way at once; a switch keeps twice as many slots."},
    Row{"CAIS_PACKET_TAGS", Choice<wire::Tags>{&Settings::packet_tags, tags_names},
        "What proves that a packet between machines is genuine. `keyed`: its tag, which nobody "
        "makes without the session's keys. `checksum`: nothing but that it was not damaged by "
        "accident; for links that nobody else can send on."},
    Row{"CAIS_MTU", U32{&Settings::mtu_bytes, 576, 65'535, "bytes", 1, false, true},
        "Largest IP packet sent. 0: what the interface and the path say."},
    Row{"CAIS_UDP_GSO", Flag{&Settings::udp_gso},
        "Send trains of packets in one call (UDP segmentation offload) where the kernel can."},
    Row{"CAIS_SHM_STAGING_BYTES",
        U32{&Settings::shm_staging_bytes, 4'096, 67'108'864, "bytes", 4'096},
        "Size of a staging buffer of the shared-memory transport; each rank has two, for tensors "
        "that its peers cannot map."},
    Row{"CAIS_SPIN_US", U32{&Settings::spin_us, 0, 1'000'000, "µs"},
        "How long a wait spins before it sleeps, where ranks do not outnumber cores. A wait for "
        "the "
        "network spins four times as long, and lets others have the core meanwhile."},
    Row{"CAIS_ALLOCATOR", Flag{&Settings::allocator},
        "`torch_cais` takes large CPU tensors of the whole process from memory that ranks on one "
        "machine add in place, with no copy."},
    Row{"CAIS_ALLOCATOR_MIN_BYTES",
        U64{&Settings::allocator_bytes_min, 4'096, std::uint64_t{1} << 40, "bytes"},
        "Tensors from this size on are taken from that memory."},
    Row{"CAIS_ARENA_MAX_BYTES",
        U64{&Settings::arena_bytes_max, 1'048'576, std::uint64_t{1} << 46, "bytes", 1, false, true},
        "Address space of that memory in each process. 0: twice the machine's memory."},
    Row{"CAIS_DEBUG", Text{&Settings::debug, "NONE, VERSION, WARN, INFO or TRACE", check_debug},
        "What is logged; each level shows those before it too."},
    Row{"CAIS_DEBUG_SUBSYS",
        Text{&Settings::debug_subsys, "names of subsystems, or ^ and names", check_debug_subsys},
        "Which subsystems speak at INFO and TRACE: `INIT,SHM`, or `^UDP` for all but these. "
        "Empty: all."},
    Row{"CAIS_DEBUG_FILE", Text{&Settings::debug_file, "a path", any_text},
        "File that lines are appended to; `%h` is the host, `%p` the process. Empty: standard "
        "error."},
};

// ---- what a row allows, in words ------------------------------------------------------------

template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;  // clang 14 does not deduce it

std::string allowed(const Value& value) {
  return std::visit(
      Overloaded{[](const Flag&) { return std::string("0 or 1"); },
                 [](const Text& text) { return std::string(text.allowed); },
                 []<typename Enum>(const Choice<Enum>& choice) {
                   const auto but_last = choice.words.first(choice.words.size() - 1);
                   return fmt::format("{} or {}", fmt::join(but_last, ", "), choice.words.back());
                 },
                 []<typename Integer>(const Number<Integer>& number) {
                   return fmt::format("{}{} to {}{}{}", number.zero_too ? "0, or " : "", number.min,
                                      number.max, number.power_of_two ? ", a power of two" : "",
                                      number.multiple_of > 1
                                          ? fmt::format(", a multiple of {}", number.multiple_of)
                                          : "");
                 }},
      value);
}

std::string_view unit(const Value& value) {
  return std::visit(Overloaded{[](const U32& number) { return number.unit; },
                               [](const U64& number) { return number.unit; },
                               [](const auto&) { return std::string_view(); }},
                    value);
}

std::string shown(const Settings& settings, const Value& value) {
  return std::visit(
      Overloaded{[&]<typename Enum>(const Choice<Enum>& choice) {
                   return std::string(
                       choice.words[static_cast<std::size_t>(settings.*choice.member)]);
                 },
                 [&](const Flag& flag) { return std::string(settings.*flag.member ? "1" : "0"); },
                 [&](const Text& text) { return settings.*text.member; },
                 [&]<typename Integer>(const Number<Integer>& number) {
                   return fmt::format("{}", settings.*number.member);
                 }},
      value);
}

// ---- reading --------------------------------------------------------------------------------

// Decimal digits; with bytes also K, M, G (powers of 1024).
std::optional<std::uint64_t> integer_from(std::string_view text, bool bytes) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, number);
  if (failure != std::errc() || rest == text.data()) return std::nullopt;
  if (rest == end) return number;
  constexpr std::string_view suffixes = "KMG";
  const std::size_t suffix = suffixes.find(*rest);
  if (!bytes || suffix == suffixes.npos || rest + 1 != end) return std::nullopt;
  const std::size_t shift = 10 * (suffix + 1);
  if (number > (~std::uint64_t{0} >> shift)) return std::nullopt;
  return number << shift;
}

template <typename Integer>
Complaint read(const Number<Integer>& row, const std::string& text, Settings* settings) {
  const std::optional<std::uint64_t> number = integer_from(text, row.unit == "bytes");
  if (!number) return "";
  const bool special = row.zero_too && *number == 0;
  if (!special && (*number < row.min || *number > row.max || *number % row.multiple_of != 0 ||
                   (row.power_of_two && !std::has_single_bit(*number)))) {
    return "";
  }
  settings->*row.member = static_cast<Integer>(*number);
  return std::nullopt;
}

template <typename Enum>
Complaint read(const Choice<Enum>& row, const std::string& text, Settings* settings) {
  const auto at = std::find(row.words.begin(), row.words.end(), text);
  if (at == row.words.end()) return "";
  settings->*row.member = static_cast<Enum>(at - row.words.begin());
  return std::nullopt;
}

Complaint read(const Flag& row, const std::string& text, Settings* settings) {
  if (text != "0" && text != "1") return "";
  settings->*row.member = text == "1";
  return std::nullopt;
}

Complaint read(const Text& row, const std::string& text, Settings* settings) {
  if (Complaint complaint = row.check(text)) return complaint;
  settings->*row.member = text;
  return std::nullopt;
}

// ---- unknown names --------------------------------------------------------------------------

// Levenshtein's distance: insertions, deletions and replacements that make `b` of `a`.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

std::string_view nearest_name(std::string_view unknown) {
  std::string_view nearest;
  std::size_t least = ~std::size_t{0};
  for (const Row& row : rows) {
    for (const std::string_view name : {row.name, row.alias}) {
      if (name.empty()) continue;
      const std::size_t distance = edit_distance(unknown, name);
      if (distance < least) {
        least = distance;
        nearest = name;
      }
    }
  }
  return nearest;
}

const Row* row_named(std::string_view name) {
  const auto* at = std::find_if(rows.begin(), rows.end(), [&](const Row& row) {
    return row.name == name || row.alias == name;
  });
  return at == rows.end() ? nullptr : at;
}

}  // namespace

Result<Settings> settings_from(std::span<const std::pair<std::string, std::string>> variables,
                               std::vector<std::string>* warnings) {
  std::vector<std::string> unheard;
  if (warnings == nullptr) warnings = &unheard;
  Settings settings;
  std::array<const std::string*, rows.size()> given{};
  for (const auto& [name, text] : variables) {
    if (!name.starts_with("CAIS_")) continue;
    const Row* row = row_named(name);
    if (row == nullptr) {
      warnings->push_back(
          fmt::format("{} is no setting of CAIS and has no effect; the nearest is "
                      "{} (docs/settings.md lists them all)",
                      name, nearest_name(name)));
      continue;
    }
    // The name goes before its alias, in whichever order they come.
    const std::string*& value = given[static_cast<std::size_t>(row - rows.data())];
    if (value != nullptr && *value != text) {
      warnings->push_back(
          fmt::format("{} and its alias {} differ; {} counts", row->name, row->alias, row->name));
    }
    if (value != nullptr && name == row->alias) continue;
    value = &text;
    const Complaint complaint = std::visit(
        [&, &text = text](const auto& typed) { return read(typed, text, &settings); }, row->value);
    if (complaint) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("{}={} is not allowed: {}", name, text,
                               complaint->empty() ? allowed(row->value) : *complaint)};
    }
  }
  return settings;
}

Result<Settings> settings_from_environment(std::vector<std::string>* warnings) {
  std::vector<std::pair<std::string, std::string>> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals == text.npos) continue;
    variables.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return settings_from(variables, warnings);
}

std::string settings_page() {
  std::string page =
      "# Settings\n\n"
      "<!-- Generated from src/runtime/settings.cpp: build the target `settings_page` after a "
      "change there. -->\n\n"
      "CAIS reads its settings from the environment when a process makes its first group. All "
      "ranks of a group should have the same. Sizes in bytes may end in K, M or G (powers of "
      "1024). A value that is not allowed is an error that says what is; a `CAIS_` variable that "
      "is no setting is a warning with the nearest right name.\n\n"
      "| variable | default | unit | allowed | meaning |\n|---|---|---|---|---|\n";
  const Settings defaults;
  for (const Row& row : rows) {
    const std::string initial = shown(defaults, row.value);
    const std::string alias = row.alias.empty() ? "" : fmt::format(" Alias: `{}`.", row.alias);
    page += fmt::format("| `{}` | {} | {} | {} | {}{} |\n", row.name,
                        initial.empty() ? "(empty)" : fmt::format("`{}`", initial), unit(row.value),
                        allowed(row.value), row.meaning, alias);
  }
  return page;
}

}  // namespace cais::runtime
