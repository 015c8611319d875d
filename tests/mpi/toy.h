/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toy.h - what toy.c has of MPI, with the handles and the wait point of MPICH. A real
 * MPI of a thousand ranks needs minutes and many GiB to start on a small machine; these
 * ranks are as real to the preloaded library, and cost a fork each.
 */
#ifndef TOY_H
#define TOY_H

#define MPI_COMM_WORLD 0x44000000
#define MPI_INT 0x4c000405

/* Returns in each of @ranks new processes; the caller waits for them and exits with 1 where
 * one failed. */
void toy_launch(int ranks);

int MPI_Init(int *argc, char ***argv);
int MPI_Finalize(void);
int MPI_Comm_rank(int comm, int *rank);
int MPI_Comm_size(int comm, int *size);
/* One int. */
int MPI_Send(const void *buf, int count, int type, int dest, int tag, int comm);
int MPI_Recv(void *buf, int count, int type, int source, int tag, int comm, void *status);
int MPI_Barrier(int comm);

#endif
