#include "runtime/placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "io/clock.hpp"
#include "io/shm/host_identity.hpp"

namespace cais::runtime {
namespace {

struct Place {
  char transport;  // Settings::transport, as a digit
  io::HostIdentity host;
};

std::string key_of(const GroupConfig& config, std::size_t rank) {
  return "cais/place/" + config.name + "/" + std::to_string(rank);
}

std::string text_of(const Place& place) {
  return place.transport + place.host.key + " " + place.host.name;
}

Result<Place> parse_place(const std::string& text, std::size_t rank) {
  const std::size_t space = text.find(' ');
  if (text.empty() || space == std::string::npos) {
    return Error{ErrorCode::malformed,
                 fmt::format("rank {} left no place that can be read in the rendezvous: \"{}\"",
                             rank, text)};
  }
  return Place{text[0], {text.substr(1, space - 1), text.substr(space + 1)}};
}

/// The places of all ranks; timed_out names all that are missing, not just the first.
Result<std::vector<Place>> gather_places(const GroupConfig& config, Rendezvous& rendezvous) {
  const Instant deadline = io::now() + config.timeout;
  std::vector<Place> places(config.ranks);
  std::string missing;
  for (std::size_t rank = 0; rank < config.ranks; ++rank) {
    const Duration left = std::max<Duration>(deadline - io::now(), std::chrono::milliseconds(1));
    auto text = rendezvous.get(key_of(config, rank), left);
    if (!text && text.error().code != ErrorCode::timed_out) return text.error();
    if (!text) {
      missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
      continue;
    }
    auto place = parse_place(*text, rank);
    if (!place) return place.error();
    places[rank] = *place;
  }
  if (missing.empty()) return places;
  return Error{
      ErrorCode::timed_out,
      fmt::format("group \"{}\": rank(s) {} of {} did not come within {} s", config.name, missing,
                  config.ranks,
                  std::chrono::duration_cast<std::chrono::seconds>(config.timeout).count())};
}

}  // namespace

Result<Hosts> find_hosts(const Settings& settings, const GroupConfig& config,
                         Rendezvous& rendezvous) {
  auto host = io::host_identity();
  if (!host) return host.error();
  const Place own{static_cast<char>('0' + static_cast<int>(settings.transport)), *host};
  if (auto set = rendezvous.set(key_of(config, config.rank), text_of(own)); !set) {
    return set.error();
  }
  auto places = gather_places(config, rendezvous);
  if (!places) return places.error();

  std::vector<std::string> host_of_rank;
  const Place& first = places->front();
  for (std::size_t rank = 0; rank < places->size(); ++rank) {
    const Place& place = (*places)[rank];
    if (place.transport != first.transport) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("CAIS_TRANSPORT is not the same at ranks 0 and {}", rank)};
    }
    if (place.host.key != first.host.key && settings.transport == TransportChoice::shm) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("CAIS_TRANSPORT=shm, but ranks 0 and {} share no memory (hosts {} "
                               "and {}, or other network namespaces); unset it",
                               rank, first.host.name, place.host.name)};
    }
    host_of_rank.push_back(place.host.key);
  }
  return group_by_host(host_of_rank);
}

}  // namespace cais::runtime
