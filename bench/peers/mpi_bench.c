// Times one collective of an MPI library on float32, data checked.
//
//   mpi_bench OP MIN MAX FACTOR ROUNDS      OP: all_reduce, all_gather, reduce_scatter, barrier
//
// `bytes` is the whole tensor: of an all-gather the gathered one, of a reduce-scatter the input.
// Prints a line of JSON per size: median, minimum and high percentiles over the rounds of the
// slowest rank's time.
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { warm_up_rounds = 3, spot_checks = 16 };
typedef enum { all_reduce, all_gather, reduce_scatter, barrier, ops } Op;

static const char* const names[] = {"all_reduce", "all_gather", "reduce_scatter", "barrier"};

static int by_value(const void* a, const void* b) {
  const double left = *(const double*)a, right = *(const double*)b;
  return (left > right) - (left < right);
}

static float element(size_t i, int rank) {
  return (float)((i * 7 + (size_t)rank * 13) % 97) / 97.0f;
}

static void fail(const char* message) {
  fprintf(stderr, "mpi_bench: %s\n", message);
  MPI_Abort(MPI_COMM_WORLD, 2);
}

static void run(Op op, const float* in, float* out, int count, int part) {
  switch (op) {
    case all_reduce:
      MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      break;
    case all_gather:
      MPI_Allgather(in, part, MPI_FLOAT, out, part, MPI_FLOAT, MPI_COMM_WORLD);
      break;
    case reduce_scatter:
      MPI_Reduce_scatter_block(in, out, part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      break;
    default:
      MPI_Barrier(MPI_COMM_WORLD);
  }
}

// The time that the share `p` of the rounds did not exceed; `sorted` holds the least first.
static double percentile(const double* sorted, int rounds, double p) {
  const int place = (int)ceil(p * rounds);
  return sorted[place < 1 ? 0 : place - 1];
}

static int is_wrong(Op op, const float* out, size_t count, size_t part, int rank, int ranks) {
  if (op == barrier) return 0;
  const size_t span = op == reduce_scatter ? part : op == all_gather ? part * (size_t)ranks : count;
  for (size_t j = 0; j < spot_checks; ++j) {
    const size_t i = j * (span - 1) / (spot_checks - 1);
    float want = 0;
    if (op == all_gather) {
      want = element(i % part, (int)(i / part));
    } else {
      const size_t first = op == reduce_scatter ? part * (size_t)rank : 0;
      for (int r = 0; r < ranks; ++r) want += element(first + i, r);
    }
    if (!(fabsf(out[i] - want) < 1e-4f)) return 1;
  }
  return 0;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks, wrong = 0, op = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 6) fail("usage: mpi_bench OP MIN MAX FACTOR ROUNDS");
  while (op < ops && strcmp(argv[1], names[op]) != 0) ++op;
  if (op == ops) fail("OP is all_reduce, all_gather, reduce_scatter or barrier");
  const size_t min = strtoull(argv[2], 0, 0), max = strtoull(argv[3], 0, 0);
  const size_t factor = strtoull(argv[4], 0, 0);
  const int rounds = atoi(argv[5]);
  float *in, *out;
  if (posix_memalign((void**)&in, 4096, max) || posix_memalign((void**)&out, 4096, max)) {
    fail("out of memory");
  }
  double* times = malloc((size_t)rounds * sizeof *times);
  for (size_t i = 0; i < max / sizeof *in; ++i) in[i] = element(i, rank);
  for (size_t bytes = min; bytes <= max; bytes *= factor) {
    const size_t count = bytes / sizeof *in, part = count / (size_t)ranks;
    if ((op == all_gather || op == reduce_scatter) && part == 0) continue;
    for (int k = -warm_up_rounds; k < rounds; ++k) {
      double mine, slowest;
      MPI_Barrier(MPI_COMM_WORLD);
      const double start = MPI_Wtime();
      run((Op)op, in, out, (int)count, (int)part);
      mine = MPI_Wtime() - start;
      MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      if (k >= 0) times[k] = slowest;
    }
    const int bad = is_wrong((Op)op, out, count, part, rank, ranks);
    MPI_Allreduce(&bad, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    qsort(times, (size_t)rounds, sizeof *times, by_value);
    if (rank == 0) {
      printf(
          "{\"op\": \"%s\", \"ranks\": %d, \"bytes\": %zu, \"us\": %.2f, \"us_min\": %.2f, "
          "\"p99_us\": %.2f, \"p999_us\": %.2f, \"wrong\": %d}\n",
          names[op], ranks, bytes, times[rounds / 2] * 1e6, times[0] * 1e6,
          percentile(times, rounds, 0.99) * 1e6, percentile(times, rounds, 0.999) * 1e6, wrong);
      fflush(stdout);
    }
  }
  MPI_Finalize();
  return wrong;
}
