/* SPDX-License-Identifier: Apache-2.0 */
/* What librankscope_mpi_openmpi.so and librankscope_mpi_mpich.so offer. The program links no MPI: it opens the one that
 * belongs to the mpirun that started it. Plain C, so that one library serves every build of the program that knows this
 * version of the interface. All calls come from one thread. While a call waits, its processor is free: MPI's own
 * waiting spins. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { RANKSCOPE_MPI_INTERFACE = 1 };

struct rankscope_mpi {
    int32_t interface_version; /* RANKSCOPE_MPI_INTERFACE */
    const char* name;          /* "Open MPI 4.1.4", as the library it was built against calls itself */
    /* Joins the other processes; 0 or an error of MPI's. */
    int (*start)(int* rank, int* size);
    /* Exactly `bytes`, from one process to one other. 0 or an error of MPI's. */
    int (*send)(int to, const void* data, uint64_t bytes);
    int (*receive)(int from, void* data, uint64_t bytes);
    /* 1: receive() from this process would find something. */
    int (*is_waiting)(int from);
    /* From process 0 to all; each calls it. */
    int (*broadcast)(void* data, uint64_t bytes);
    /* Leaves the others, who do the same. */
    void (*end)(void);
    /* Ends all processes at once. Does not return. */
    void (*abort)(int status);
    /* Writes the text of an error. */
    void (*explain)(int error, char* text, uint64_t bytes);
};

/* The one symbol of the library. */
const struct rankscope_mpi* rankscope_mpi_interface(void);

#ifdef __cplusplus
}
#endif
