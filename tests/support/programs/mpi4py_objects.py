# SPDX-License-Identifier: Apache-2.0
"""A plain mpi4py program: objects of Python between all ranks, and large buffers.

It ends with 0 if all has arrived as it was sent.
"""

from mpi4py import MPI

world = MPI.COMM_WORLD
me, count = world.Get_rank(), world.Get_size()


def thing(rank):
    return {"rank": rank, "words": [str(i) for i in range(rank * 1000)], "nested": (rank, {rank})}


after, before = (me + 1) % count, (me - 1) % count
assert world.sendrecv(thing(me), dest=after, source=before) == thing(before)
assert world.allgather(thing(me)) == [thing(rank) for rank in range(count)]
assert world.bcast(thing(7) if me == count - 1 else None, root=count - 1) == thing(7)
expected = [(rank, me) for rank in range(count)]
assert world.alltoall([(me, rank) for rank in range(count)]) == expected
assert world.allreduce(me, op=MPI.MAX) == count - 1

out, come = bytearray([me % 256]) * 3_000_000, bytearray(3_000_000)
request = world.Irecv(come, source=before, tag=5)
world.Send(out, dest=after, tag=5)
request.Wait()
assert come == bytearray([before % 256]) * 3_000_000

half = world.Split(me % 2, me)
assert half.allgather(me) == list(range(me % 2, count, 2))
half.Free()
