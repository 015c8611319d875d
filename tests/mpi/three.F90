! SPDX-License-Identifier: Apache-2.0
! three - Fortran's three interfaces to MPI from one source: MPIF_H, USE_MPI and
! USE_MPI_F08 say which. A ring, a message that is 300 ms late, strings (whose
! lengths compilers pass behind the arguments) and a reduction.
program three
#if defined(USE_MPI_F08)
	use mpi_f08
#elif defined(USE_MPI)
	use mpi
#endif
	use iso_c_binding, only: c_int
	implicit none
#if defined(MPIF_H)
	include 'mpif.h'
#endif
	integer :: rank, ranks, ierr, i, token, right, left
	double precision :: mine, total
	character(len=12) :: name
#if defined(USE_MPI_F08)
	type(MPI_Status) :: status
	type(MPI_Request) :: request
#else
	integer :: status(MPI_STATUS_SIZE), request
#endif
	interface
		integer(c_int) function usleep(us) bind(c)
			import :: c_int
			integer(c_int), value :: us
		end function usleep
	end interface

	call MPI_Init(ierr)
	call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
	call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
	right = mod(rank + 1, ranks)
	left = mod(rank + ranks - 1, ranks)

	do i = 1, 100
		call MPI_Sendrecv(rank + i, 1, MPI_INTEGER, right, 0, token, 1, MPI_INTEGER, &
				  left, 0, MPI_COMM_WORLD, status, ierr)
		if (token /= left + i) call MPI_Abort(MPI_COMM_WORLD, 9, ierr)
	end do

	name = 'nobody'
	if (rank == ranks - 1) then
		i = usleep(300000_c_int)
		name = 'the last one'
	end if
	call MPI_Bcast(name, 12, MPI_CHARACTER, ranks - 1, MPI_COMM_WORLD, ierr)
	if (name /= 'the last one') call MPI_Abort(MPI_COMM_WORLD, 9, ierr)

	call MPI_Irecv(token, 1, MPI_INTEGER, left, 1, MPI_COMM_WORLD, request, ierr)
	call MPI_Send(rank, 1, MPI_INTEGER, right, 1, MPI_COMM_WORLD, ierr)
	call MPI_Wait(request, status, ierr)
	if (token /= left) call MPI_Abort(MPI_COMM_WORLD, 9, ierr)

	mine = 1d0 / (rank + 1)
	call MPI_Allreduce(mine, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
	if (rank == 0) print '(a, f20.16)', 'total ', total
	call MPI_Finalize(ierr)
end program three
