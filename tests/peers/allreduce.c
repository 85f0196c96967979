/* allreduce: sums an array over the processes of an MPI job.
 *
 *   mpicc -O2 allreduce.c -o allreduce
 *   mpirun -n 2 allreduce FLOATS
 *
 * `bench kvstore` starts it and writes orders to the standard input of rank 0, as allreduce.py has
 * them: (0, n) makes n allreduces and answers the nanoseconds of each; (1, 0) makes one, compares
 * its sum with what it should be and answers one number. It ends when its input does. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { TRIPS = 0, CHECK = 1, END = 2 };

static uint64_t now_ns(void) { return (uint64_t)(MPI_Wtime() * 1e9); }

static int readAll(void* to, size_t size) {
  size_t have = 0;
  while (have < size) {
    ssize_t n = read(0, (char*)to + have, size - have);
    if (n <= 0) return 0;
    have += (size_t)n;
  }
  return 1;
}

static void writeAll(const void* from, size_t size) {
  size_t done = 0;
  while (done < size) {
    ssize_t n = write(1, (const char*)from + done, size - done);
    if (n <= 0) MPI_Abort(MPI_COMM_WORLD, 1);
    done += (size_t)n;
  }
}

/* Sends rank 0's order to all. Who waits sleeps: MPI itself would fill a core while others are
 * measured. */
static void shareOrder(uint64_t order[2]) {
  MPI_Request request;
  MPI_Ibcast(order, 2, MPI_UINT64_T, 0, MPI_COMM_WORLD, &request);
  for (;;) {
    int done;
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done) return;
    struct timespec pause = {0, 1000000};
    nanosleep(&pause, NULL);
  }
}

/* Sums of small whole numbers, which are exact. */
static void check(float* values, float* sums, int count, int rank, int world) {
  for (int i = 0; i < count; ++i) values[i] = (float)(i % 1021 + rank);
  MPI_Allreduce(values, sums, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < count; ++i) {
    if (sums[i] != (float)(i % 1021 * world + world * (world - 1) / 2)) {
      fprintf(stderr, "allreduce: a wrong sum came out\n");
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
}

int main(int argc, char* argv[]) {
  MPI_Init(&argc, &argv);
  int rank, world, count = argc > 1 ? atoi(argv[1]) : 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world);
  float* values = calloc((size_t)count, sizeof(float));
  float* sums = calloc((size_t)count, sizeof(float));
  uint64_t order[2];
  for (;;) {
    if (rank == 0 && !readAll(order, sizeof(order))) order[0] = END;
    shareOrder(order);
    if (order[0] == END) break;
    uint64_t trips = order[0] == CHECK ? 1 : order[1];
    uint64_t* times = calloc(trips, sizeof(uint64_t));
    if (order[0] == CHECK) check(values, sums, count, rank, world);
    MPI_Barrier(MPI_COMM_WORLD);
    for (uint64_t i = 0; order[0] == TRIPS && i < trips; ++i) {
      uint64_t begin = now_ns();
      MPI_Allreduce(values, sums, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      times[i] = now_ns() - begin;
    }
    if (rank == 0) writeAll(times, trips * sizeof(uint64_t));
    free(times);
  }
  free(values);
  free(sums);
  MPI_Finalize();
  return 0;
}
