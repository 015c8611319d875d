# SPDX-License-Identifier: Apache-2.0
"""mpi4py, which loads the MPI library privately (RTLD_LOCAL): buffers, pickled objects
and collectives, and a peer that is 300 ms late."""

import time
from array import array

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, ranks = world.rank, world.size
right, left = (rank + 1) % ranks, (rank - 1) % ranks

inbox = array("d", [0.0] * 1000)
for i in range(50):
    world.Sendrecv(array("d", [rank + i] * 1000), right, recvbuf=inbox, source=left)
    assert inbox[0] == inbox[-1] == left + i

if rank == ranks - 1:
    time.sleep(0.3)
    world.send({"from": rank, "list": list(range(100))}, dest=0, tag=1)
if rank == 0:
    got = world.recv(source=MPI.ANY_SOURCE, tag=1)
    assert got == {"from": ranks - 1, "list": list(range(100))}

request = world.irecv(source=left, tag=2)
world.send(("tuple", rank), dest=right, tag=2)
assert request.wait() == ("tuple", left)

total = world.allreduce(1.0 / (rank + 1))
gathered = world.gather({rank: str(rank)}, root=0)
if rank == 0:
    print("total", repr(total), "gathered", gathered)
