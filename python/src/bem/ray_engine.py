"""Units of work on a Ray cluster: what `bem pipeline run --engine ray` talks to over standard input and output.

A frame is the unit's number, the number of its machine, the length and the bytes, all numbers little-endian and 32 bits wide.
Every machine, a specialist or a volume of the main machine, has an actor, which is placed away from the others and takes no core.
It hands its units, which lie in the object store with the snapshots that they go on from, out as tasks. Actors and tasks whose
node is lost are started again elsewhere. A task gives its core back when it ends: where fewer cores are left than before,
units wait for each other and not for ever, as they would for an actor that keeps its core. Ray writes what it has to say to
standard output, so that frames go to a copy of it. Answers are written as they are ready: the caller takes them in the order of
their numbers. The same bytes give the same answer on every machine, so that a node that is lost costs time and nothing
else. When standard input ends, so does the engine, and leaves what is under way.

Standard error says when Ray is ready and when it is left, and for every unit on which node it ran and how often it, or the actor
that handed it out, was begun again; one line each, which starts with ``ray:``. A terminal, where a progress bar stands, is spared.
"""

from __future__ import annotations

import argparse
import os
import struct
import sys
from typing import BinaryIO

FRAME = struct.Struct("<III")
FRAME_BYTES_MAX = 1 << 29


def read_frame(source: BinaryIO) -> tuple[int, int, bytes] | None:
    """The next frame; none at the end."""
    head = source.read(FRAME.size)
    if not head:
        return None
    if len(head) < FRAME.size:
        raise EOFError("a frame that is cut off")
    number, machine, length = FRAME.unpack(head)
    if length > FRAME_BYTES_MAX:
        raise ValueError(f"a message of {length} bytes, more than {FRAME_BYTES_MAX}")
    data = source.read(length)
    if len(data) < length:
        raise EOFError("a frame that is cut off")
    return number, machine, data


def write_frame(target: BinaryIO, number: int, machine: int, data: bytes) -> None:
    target.write(FRAME.pack(number, machine, len(data)) + data)
    target.flush()


def say(words: str) -> None:
    """One line on standard error, where that is no terminal."""
    if not sys.stderr.isatty():
        print(f"ray: {words}", file=sys.stderr, flush=True)


def serve(source: BinaryIO, target: BinaryIO, address: str | None, at_once: int) -> None:
    """Hands out every unit and writes every answer, until the caller closes its end."""
    import threading

    import ray

    waiting: list[tuple[int, int, bytes]] = []
    arrived = threading.Condition()
    over = threading.Event()

    def listen() -> None:
        try:
            while (frame := read_frame(source)) is not None:
                with arrived:
                    waiting.append(frame)
                    arrived.notify()
        finally:
            over.set()
            with arrived:
                arrived.notify()

    # Whoever writes is not kept waiting while Ray starts.
    threading.Thread(target=listen, daemon=True).start()
    ray.init(address=address, log_to_driver=False, include_dashboard=False, logging_level="error")
    say("ready")

    def begun_again() -> int:
        """How often the task that calls this was begun again; nothing where this version of Ray does not say it."""
        core = ray.get_runtime_context().worker.core_worker
        attempt = getattr(core, "get_current_task_attempt_number", None)
        return attempt() if attempt is not None else 0

    @ray.remote(num_cpus=1, max_retries=-1)
    def work(order: bytes) -> tuple[str, int, bytes]:
        from bem._bem import work_unit

        return ray.get_runtime_context().get_node_id(), begun_again(), work_unit(order)

    @ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1, scheduling_strategy="SPREAD")
    class Machine:
        async def work(self, boxed: list) -> tuple[str, int, bytes]:
            # What is boxed comes as a reference and stays where it is until a task needs it.
            again = begun_again()
            node, more, answer = await work.options(scheduling_strategy="SPREAD").remote(boxed[0])
            return node, again + more, answer

    under_way: dict = {}
    actors: dict = {}
    while True:
        with arrived:
            while not waiting and not under_way and not over.is_set():
                arrived.wait()
            if over.is_set():
                say("left")
                return
            while waiting and len(under_way) < at_once:
                number, machine, order = waiting.pop(0)
                if machine not in actors:
                    actors[machine] = Machine.remote()
                under_way[actors[machine].work.remote([ray.put(order)])] = number, machine
        ready, _ = ray.wait(list(under_way), timeout=0.2)
        for reference in ready:
            number, machine = under_way.pop(reference)
            node, again, answer = ray.get(reference)
            say(f"unit {number} of machine {machine} on node {node}" + (f", begun again {again} times" if again else ""))
            write_frame(target, number, machine, answer)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--address", help="of a running cluster; without one, a cluster is started on this machine")
    parser.add_argument("--at-once", type=int, default=1, help="how many units are worked on at once")
    arguments = parser.parse_args()
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    serve(sys.stdin.buffer, answers, arguments.address, arguments.at_once)


if __name__ == "__main__":
    main()
