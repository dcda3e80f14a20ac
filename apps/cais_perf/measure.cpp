#include "measure.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "workload.hpp"

namespace cais::perf {
namespace {

using Clock = std::chrono::steady_clock;

double microseconds_since(Clock::time_point begun) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begun).count();
}

void all_reduce(cais_comm* comm, double* values, std::size_t count, cais_reduce_op op) {
  require(cais_all_reduce(comm, values, values, count, CAIS_FLOAT64, op), "cais_all_reduce");
}

// As MPI benchmarks do: the ranks begin together, and agree on the slowest each time.
void time_together(cais_comm* comm, Workload& work, std::vector<double>* times) {
  for (double& time : *times) {
    require(cais_barrier(comm), "cais_barrier");
    const Clock::time_point begun = Clock::now();
    work.run(Place::out_of_place);
    time = microseconds_since(begun);
    all_reduce(comm, &time, 1, CAIS_MAX);
  }
}

// As nccl-tests does: one after the other, as a program would call them.
void time_back_to_back(cais_comm* comm, Workload& work, Place place, std::vector<double>* times) {
  require(cais_barrier(comm), "cais_barrier");
  Clock::time_point begun = Clock::now();
  for (double& time : *times) {
    work.run(place);
    const Clock::time_point ended = Clock::now();
    time = std::chrono::duration<double, std::micro>(ended - begun).count();
    begun = ended;
  }
  all_reduce(comm, times->data(), times->size(), CAIS_MAX);
}

// Of this rank. The last timed result is checked where it shows anything: in place, an iteration
// works on what the one before left. Then once more with other numbers, in which a result that is
// made of old ones shows.
std::size_t count_wrong(Workload& work, Place place) {
  std::size_t wrong = place == Place::out_of_place ? work.wrong(place) : 0;
  work.prepare(place, 1);
  work.run(place);
  wrong += work.wrong(place);
  return wrong;
}

std::size_t sum_of(cais_comm* comm, std::size_t value) {
  auto sum = static_cast<double>(value);
  all_reduce(comm, &sum, 1, CAIS_SUM);
  return static_cast<std::size_t>(sum);
}

Timing time(cais_comm* comm, Workload& work, Place place, const Options& options) {
  work.prepare(place, 0);
  std::vector<double> times(static_cast<std::size_t>(options.warmup));
  const auto run = [&] {
    if (options.lines) {
      time_together(comm, work, &times);
    } else if (!times.empty()) {
      time_back_to_back(comm, work, place, &times);
    }
  };
  run();
  times.resize(static_cast<std::size_t>(options.iterations));
  run();
  const std::size_t wrong = options.check ? sum_of(comm, count_wrong(work, place)) : 0;
  const double mean = std::reduce(times.begin(), times.end()) / static_cast<double>(times.size());
  std::sort(times.begin(), times.end());
  return {mean, std::move(times), wrong};
}

}  // namespace

double Timing::percentile_us(double p) const {
  const auto rank = static_cast<std::size_t>(std::ceil(p * static_cast<double>(sorted_us.size())));
  return sorted_us[std::clamp(rank, std::size_t{1}, sorted_us.size()) - 1];
}

std::vector<Measurement> measure(cais_comm* comm, const Options& options,
                                 const std::function<void(const Measurement&)>& each) {
  Workload work(comm, options);
  std::vector<Measurement> results;
  for (std::size_t bytes = options.bytes_min; bytes <= options.bytes_max;
       bytes = options.step_bytes > 0 ? bytes + options.step_bytes : bytes * options.step_factor) {
    work.resize(bytes);
    if (work.count() == 0 && options.op != OpKind::barrier) continue;  // less than an element each
    Measurement result{
        bytes, work.bytes(), work.count(), time(comm, work, Place::out_of_place, options), {}};
    if (!options.lines && work.in_place_exists()) {
      result.in_place = time(comm, work, Place::in_place, options);
    }
    each(result);
    results.push_back(std::move(result));
    if (options.op == OpKind::barrier) break;
  }
  return results;
}

}  // namespace cais::perf
