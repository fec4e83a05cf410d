"""account.py: looks at the memory of its own process by ctypes, without a module to be compiled.

    slabyard run -- python3 account.py

With Slabyard for Python's malloc, the functions of Slabyard's headers are in the process, and ctypes
finds them. The program checks its results: the exit status is 0 only if all of them are right.
"""

import ctypes
import sys

NAME_MAX = 31  # SY_CACHE_NAME_MAX


class CacheStats(ctypes.Structure):
    """The first fields of sy_cache_stats (slabyard/stats.h). A later version only adds fields behind."""

    _fields_ = [("name", ctypes.c_char * (NAME_MAX + 1))] + [
        (field, ctypes.c_size_t) for field in ("object_size", "slot_size", "align", "slab_bytes", "slots_per_slab")
    ] + [("colours", ctypes.c_uint), ("magazine_items", ctypes.c_uint)] + [
        (field, ctypes.c_size_t) for field in ("slots", "in_use", "in_depot", "in_loaded")
    ]


class CacheAccount(ctypes.Structure):
    _fields_ = [("cache", ctypes.c_void_p), ("kind", ctypes.c_int), ("stats", CacheStats)]


class Stats(ctypes.Structure):
    """sy_stats. The library fills as many bytes as it is told."""

    _fields_ = [
        (field, ctypes.c_size_t)
        for field in ("caches", "chunks", "mapped", "slabs", "spans", "units_free", "units_clean")
        + ("chunk_headers", "magazines", "side", "memory_limit")
    ] + [("cpus", ctypes.c_uint), ("limits_hit", ctypes.c_uint64)]


Visit = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(CacheAccount))


class Slabyard:
    def __init__(self):
        self.library = ctypes.CDLL(None)  # all that is in the process
        if not hasattr(self.library, "sy_get_stats_sized"):
            sys.exit("account.py: Slabyard is not in this process: slabyard run -- python3 account.py")

    def stats(self):
        stats = Stats()
        size = ctypes.c_size_t(ctypes.sizeof(stats))
        if self.library.sy_get_stats_sized(ctypes.byref(stats), size) != 0:
            raise OSError("sy_get_stats_sized")
        return stats

    def caches(self):
        """(name, bytes of a slot, objects in use) of each cache and size class."""
        found = []

        def visit(_, account):
            stats = account.contents.stats
            found.append((stats.name.decode(), stats.slot_size, stats.in_use))
            return 0

        if self.library.sy_cache_each(Visit(visit), None) != 0:
            raise MemoryError
        return found

    def in_use(self, size):
        return sum(objects for _, slot, objects in self.caches() if slot == size)

    def print(self):
        if self.library.sy_print_stats(sys.stderr.fileno()) != 0:
            raise OSError("sy_print_stats")


def main():
    slabyard = Slabyard()
    before = slabyard.in_use(4096)
    # Python takes objects of up to 512 bytes from its own pools, and larger ones from malloc.
    blocks = [bytes(4000) for _ in range(1000)]
    during = slabyard.in_use(4096)
    stats = slabyard.stats()
    print(f"{stats.caches} caches, {stats.slabs >> 10} KiB of slabs; {during - before} more objects of 4,096 bytes")
    if not 900 <= during - before <= 1100 or stats.slabs < 1000 * 4096:
        sys.exit("account.py: the blocks are not in Slabyard's heap")

    blocks.clear()
    largest = sorted(slabyard.caches(), key=lambda cache: cache[1] * cache[2], reverse=True)[:3]
    for name, slot, objects in largest:
        print(f"{name}: {objects} objects of {slot} bytes")
    slabyard.print()


if __name__ == "__main__":
    main()
