/* SPDX-License-Identifier: Apache-2.0 */
/*
 * boundary.c - the MPI calls: where a rank enters and leaves the library.
 *
 * Each line of calls.def becomes a C wrapper (MPI_Recv) and two Fortran ones
 * (mpi_recv_, mpi_recv_f08_). A wrapper notes what the outermost call may wait for,
 * calls the next definition, and on the way out rings the peers that the call may
 * have sent something to. All arguments of MPI functions are integers or
 * pointers, which the C ABIs of x86-64 and AArch64 pass as whole words: the
 * wrapper hands the words through and never needs an MPI's own types.
 *
 * A Fortran wrapper gets pointers. Two words more than the call has are passed on, for
 * the lengths of character arguments, which compilers append.
 */
#include "shim.h"

static inline struct cos_thread *call_begin(struct cos_call call)
{
	struct cos_thread *self = &cos_self;

	if (!self->depth++) {
		self->call = call;
		self->call_frame = __builtin_frame_address(0);
		if (cos_shim.active)
			wait_begin_call();
	}
	return self;
}

static inline void call_end(struct cos_thread *self, int failed)
{
	if (!--self->depth && likely(cos_shim.active))
		wait_end_call(failed);
}

/* The words of each arity: W(i) joined by commas. */
#define WORDS_1(W)  W(0)
#define WORDS_2(W)  WORDS_1(W), W(1)
#define WORDS_3(W)  WORDS_2(W), W(2)
#define WORDS_4(W)  WORDS_3(W), W(3)
#define WORDS_5(W)  WORDS_4(W), W(4)
#define WORDS_6(W)  WORDS_5(W), W(5)
#define WORDS_7(W)  WORDS_6(W), W(6)
#define WORDS_8(W)  WORDS_7(W), W(7)
#define WORDS_9(W)  WORDS_8(W), W(8)
#define WORDS_10(W) WORDS_9(W), W(9)
#define WORDS_11(W) WORDS_10(W), W(10)
#define WORDS_12(W) WORDS_11(W), W(11)
#define WORDS_13(W) WORDS_12(W), W(12)
#define WORDS_14(W) WORDS_13(W), W(13)
#define WORDS_15(W) WORDS_14(W), W(14)
#define WORDS_16(W) WORDS_15(W), W(15)

/* Fortran: one more for ierror, two for hidden lengths. */
#define FORTRAN_1 WORDS_4
#define FORTRAN_2 WORDS_5
#define FORTRAN_3 WORDS_6
#define FORTRAN_4 WORDS_7
#define FORTRAN_5 WORDS_8
#define FORTRAN_6 WORDS_9
#define FORTRAN_7 WORDS_10
#define FORTRAN_8 WORDS_11
#define FORTRAN_9 WORDS_12
#define FORTRAN_10 WORDS_13
#define FORTRAN_11 WORDS_14
#define FORTRAN_12 WORDS_15
#define FORTRAN_13 WORDS_16

#define WORD(i) long a##i
#define PASS(i) a##i

/* The word at a constant index of the call's own, or @if_none. */
#define AT(index, if_none) ((index) < 0 ? (if_none) : word[(index) < 0 ? 0 : (index)])
#define AT_INT(index) ((index) < 0 ? NONE : *(int *)word[(index) < 0 ? 0 : (index)])

/* What a Sendrecv sends: its arguments 1 and 2. */
#define SENDRECV(tags) (((tags) & (BLOCK | SEND | RECV)) == (BLOCK | SEND | RECV))

/* Open MPI's C handles are pointers: its Fortran ones must be translated. */
static long c_handle(long handle, void *(**to_c)(int), const char *name)
{
	if (!cos_shim.active || !cos_shim.open_mpi)
		return handle;
	if (!*to_c)
		*to_c = (void *(*)(int))next_symbol(name);
	return *to_c ? (long)(*to_c)((int)handle) : 0;
}

static long comm_of_fortran(long handle)
{
	static void *(*to_c)(int);

	return c_handle(handle, &to_c, "PMPI_Comm_f2c");
}

static long type_of_fortran(long handle)
{
	static void *(*to_c)(int);

	return c_handle(handle, &to_c, "PMPI_Type_f2c");
}

#define C_WRAPPER(symbol, nr, tags_, peer_, peer2_, comm_) \
COS_EXPORT int symbol(WORDS_##nr(WORD)) \
{ \
	static int (*next)(WORDS_##nr(WORD)); \
	const long word[] = { WORDS_##nr(PASS) }; \
	struct cos_thread *self; \
	int rc; \
	if (unlikely(!next)) \
		next = (__typeof__(next))next_symbol(#symbol); \
	self = call_begin((struct cos_call){ (tags_), (int)AT(peer_, NONE), \
					     (int)AT(peer2_, NONE), AT(comm_, 0), \
					     SENDRECV(tags_) ? (int)AT(1, 0) : 0, \
					     SENDRECV(tags_) ? AT(2, 0) : 0 }); \
	rc = next(WORDS_##nr(PASS)); \
	call_end(self, rc); \
	return rc; \
}

#define FORTRAN_WRAPPER(symbol, nr, tags_, peer_, peer2_, comm_) \
COS_EXPORT void symbol(FORTRAN_##nr(WORD)) \
{ \
	static void (*next)(FORTRAN_##nr(WORD)); \
	const long word[] = { FORTRAN_##nr(PASS) }; \
	struct cos_thread *self; \
	if (unlikely(!next)) \
		next = (__typeof__(next))next_symbol(#symbol); \
	self = call_begin((struct cos_call){ (tags_), AT_INT(peer_), AT_INT(peer2_), \
			(comm_) < 0 ? 0 : comm_of_fortran(AT_INT(comm_)), \
			SENDRECV(tags_) ? AT_INT(1) : 0, \
			SENDRECV(tags_) ? type_of_fortran(AT_INT(2)) : 0 }); \
	next(FORTRAN_##nr(PASS)); \
	call_end(self, word[nr] ? *(int *)word[nr] : 0); \
}

#define CALL(Name, name, nr, tags, peer, peer2, comm) \
	C_WRAPPER(MPI_##Name, nr, tags, peer, peer2, comm) \
	FORTRAN_WRAPPER(mpi_##name##_, nr, tags, peer, peer2, comm) \
	FORTRAN_WRAPPER(mpi_##name##_f08_, nr, tags, peer, peer2, comm)
#include "calls.def"
#undef CALL
