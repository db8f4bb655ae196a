/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled once with the headers of each MPI that is there (MPI 3.0 and newer). */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "collector/team/mpi/mpi_interface.h"

/* MPI counts in int. */
static const uint64_t kMostBytesAtOnce = UINT64_C(1) << 30;

/* Between two looks: an eighth of what has been waited, from 20 us, so that an answer is not kept waiting, up to 4 ms.
 * Each look costs some 15 us of the processor on a virtual machine. */
static const long kShortestNapNs = 20000, kLongestNapNs = 4000000, kNapsOfAWait = 8;

static int wait_for(MPI_Request* request) {
    long waited_ns = 0;
    for (;;) {
        int done = 0;
        const int error = MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (error != MPI_SUCCESS || done) return error;
        long nap_ns = waited_ns / kNapsOfAWait;
        if (nap_ns < kShortestNapNs) nap_ns = kShortestNapNs;
        if (nap_ns > kLongestNapNs) nap_ns = kLongestNapNs;
        const struct timespec nap = {0, nap_ns};
        nanosleep(&nap, NULL);
        if (waited_ns < kNapsOfAWait * kLongestNapNs) waited_ns += nap_ns;
    }
}

static int start(int* rank, int* size) {
    int level = 0, error = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
    if (error == MPI_SUCCESS) error = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (error == MPI_SUCCESS) error = MPI_Comm_rank(MPI_COMM_WORLD, rank);
    if (error == MPI_SUCCESS) error = MPI_Comm_size(MPI_COMM_WORLD, size);
    return error;
}

static int send_bytes(int to, const void* data, uint64_t bytes) {
    const char* at = data;
    do {
        const uint64_t part = bytes < kMostBytesAtOnce ? bytes : kMostBytesAtOnce;
        MPI_Request request;
        int error = MPI_Isend(at, (int)part, MPI_BYTE, to, 0, MPI_COMM_WORLD, &request);
        if (error == MPI_SUCCESS) error = wait_for(&request);
        if (error != MPI_SUCCESS) return error;
        at += part;
        bytes -= part;
    } while (bytes > 0);
    return MPI_SUCCESS;
}

static int receive_bytes(int from, void* data, uint64_t bytes) {
    char* at = data;
    do {
        const uint64_t part = bytes < kMostBytesAtOnce ? bytes : kMostBytesAtOnce;
        MPI_Request request;
        int error = MPI_Irecv(at, (int)part, MPI_BYTE, from, 0, MPI_COMM_WORLD, &request);
        if (error == MPI_SUCCESS) error = wait_for(&request);
        if (error != MPI_SUCCESS) return error;
        at += part;
        bytes -= part;
    } while (bytes > 0);
    return MPI_SUCCESS;
}

static int is_waiting(int from) {
    int found = 0;
    return MPI_Iprobe(from, 0, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE) == MPI_SUCCESS && found;
}

static int broadcast_bytes(void* data, uint64_t bytes) {
    char* at = data;
    while (bytes > 0) {
        const uint64_t part = bytes < kMostBytesAtOnce ? bytes : kMostBytesAtOnce;
        MPI_Request request;
        int error = MPI_Ibcast(at, (int)part, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
        if (error == MPI_SUCCESS) error = wait_for(&request);
        if (error != MPI_SUCCESS) return error;
        at += part;
        bytes -= part;
    }
    return MPI_SUCCESS;
}

static void end(void) {
    MPI_Finalize();
}

static void abort_all(int status) {
    MPI_Abort(MPI_COMM_WORLD, status);
}

static void explain(int error, char* text, uint64_t bytes) {
    char whole[MPI_MAX_ERROR_STRING + 1] = "";
    int length = 0;
    if (MPI_Error_string(error, whole, &length) != MPI_SUCCESS) snprintf(whole, sizeof whole, "error %d", error);
    snprintf(text, bytes, "%s", whole);
}

#define TEXT_OF(value) #value
#define VERSION_OF(value) TEXT_OF(value)
#ifdef OPEN_MPI
#define MPI_NAME \
    "Open MPI " VERSION_OF(OMPI_MAJOR_VERSION) "." VERSION_OF(OMPI_MINOR_VERSION) "." VERSION_OF(OMPI_RELEASE_VERSION)
#elif defined(MPICH_VERSION)
#define MPI_NAME "MPICH " MPICH_VERSION
#else
#define MPI_NAME "MPI"
#endif

__attribute__((visibility("default"))) const struct rankscope_mpi* rankscope_mpi_interface(void) {
    static const struct rankscope_mpi interface = {
        RANKSCOPE_MPI_INTERFACE, MPI_NAME, start,     send_bytes, receive_bytes, is_waiting,
        broadcast_bytes,         end,      abort_all, explain};
    return &interface;
}
