// cache.go: a cache of many small values outside of Go's heap, by cgo. Go's garbage collector never
// looks at them: with a million entries in Go's heap, each collection would walk over all of them. The
// map holds addresses as numbers, so it has no pointers to follow either.
//
//	CGO_CFLAGS="$(pkg-config --cflags slabyard)" CGO_LDFLAGS="$(pkg-config --libs slabyard)" go run cache.go
//
// The program checks its results: the exit status is 0 only if all of them are right.
package main

/*
#include <string.h>

#include <slabyard/heap.h>
#include <slabyard/stats.h>

// An entry is its length, and that many bytes.
typedef struct entry { size_t length; char bytes[]; } entry;

static entry *entry_new(const char *bytes, size_t length) {
    entry *made = sy_malloc(sizeof *made + length);
    if (made) {
        made->length = length;
        memcpy(made->bytes, bytes, length);
    }
    return made;
}

static int add(void *sum, const sy_cache_account *account) {
    *(size_t *)sum += account->stats.in_use * account->stats.slot_size;
    return 0;
}

// The bytes of all objects that are not free, large ones left out.
static size_t bytes_live(void) {
    size_t sum = 0;
    sy_cache_each(add, &sum);
    return sum;
}
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"
)

// Cache maps keys to bytes outside of Go's heap. It is for one goroutine, or behind a mutex.
type Cache struct {
	entries map[uint64]uintptr
}

func NewCache() *Cache { return &Cache{entries: make(map[uint64]uintptr)} }

// entryAt is the pointer for an address that entry_new returned. Go's collector does not move C's memory.
func entryAt(address uintptr) *C.entry {
	return (*C.entry)(*(*unsafe.Pointer)(unsafe.Pointer(&address)))
}

// Put copies value into the cache.
func (cache *Cache) Put(key uint64, value []byte) error {
	made := C.entry_new((*C.char)(unsafe.Pointer(unsafe.SliceData(value))), C.size_t(len(value)))
	if made == nil {
		return errors.New("no memory")
	}
	cache.Delete(key)
	cache.entries[key] = uintptr(unsafe.Pointer(made))
	return nil
}

// Get returns a copy of the value, which stays valid when the entry is deleted.
func (cache *Cache) Get(key uint64) ([]byte, bool) {
	address, found := cache.entries[key]
	if !found {
		return nil, false
	}
	entry := entryAt(address)
	start := unsafe.Add(unsafe.Pointer(entry), C.sizeof_entry)
	return C.GoBytes(start, C.int(entry.length)), true
}

// Delete frees the value, if there is one.
func (cache *Cache) Delete(key uint64) {
	if address, found := cache.entries[key]; found {
		C.sy_free(unsafe.Pointer(entryAt(address)))
		delete(cache.entries, key)
	}
}

func must(holds bool, what string) {
	if !holds {
		fmt.Fprintln(os.Stderr, "cache.go: wrong:", what)
		os.Exit(1)
	}
}

func main() {
	const entries = 100_000
	cache := NewCache()
	for key := uint64(0); key < entries; key++ {
		must(cache.Put(key, fmt.Appendf(nil, "value %d", key)) == nil, "an entry is stored")
	}
	runtime.GC()
	for key := uint64(0); key < entries; key++ {
		value, found := cache.Get(key)
		must(found && string(value) == fmt.Sprintf("value %d", key), "a value is what was stored")
	}
	live := C.bytes_live()
	must(live > entries*8, "the values are in Slabyard's heap")
	for key := uint64(0); key < entries; key++ {
		cache.Delete(key)
	}
	_, found := cache.Get(7)
	must(!found && C.bytes_live() < live/10, "deleted values are freed")
	fmt.Printf("%d values took %d KiB outside of Go's heap\n", entries, live>>10)
}
