/*
 * shared_region.c: an arena over memory that is known by offset: a region that two processes have
 * mapped at different addresses, or that a device sees.
 *
 *     cc -DSY_STATIC shared_region.c $(pkg-config --cflags --libs slabyard-static) && ./a.out
 *
 *     the region, 64 MiB                                      the arena "region", in the parent
 *     | buffer |    | buffer | span of "queue 0" |     |  <-  boundary tags: offsets and sizes
 *      ^ read and written by parent, child, device
 *
 * The parent allocates buffers and sends their offsets to the child. The arena keeps nothing in the
 * region, so a process or device that writes there cannot damage the arena. Only the process that
 * owns the arena allocates. Another process that needs memory must ask it.
 *
 * The program checks its results: the exit status is 0 only if all of them are right. Linux only
 * (memfd_create).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <slabyard/vmem.h>

enum {
    KIB = 1 << 10,
    MIB = 1 << 20,

    REGION = 64 * MIB,
    LINE = 64, /* bytes of a cache line: data that two sides write must not share one */

    /* The device's limits. */
    PAGE = 4 * KIB,           /* its buffers begin at multiples of this */
    LONGEST = 64 * KIB,       /* a transfer does not cross a multiple of this */
    FRAME = 40 * KIB,         /* a frame; two of these in a row would cross a multiple of LONGEST */
    LOW_WINDOW = 16 * MIB,    /* the device sees only the first 16 MiB of the region */
    QUEUE_SPAN = 1 * MIB,     /* a queue imports so much memory at a time */
    DESCRIPTOR = 128,         /* bytes of a descriptor, an entry in a queue */
    DESCRIPTORS_MANY = 10000, /* descriptors: more than one span holds */

    BUFFERS = 48, /* buffers in use at a time */
    ROUNDS = 20,
    PATTERN = 0x5a,
};

/* A message about a buffer, as it goes through the pipes. */
typedef struct message {
    uintptr_t offset;
    size_t size;
    unsigned char content; /* of every byte */
} message;

static void expect(int so, const char *what) {
    if (so) return;
    fprintf(stderr, "not so: %s\n", what);
    exit(1);
}

static unsigned char *map_region(int file) {
    void *region = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    expect(region != MAP_FAILED, "the region is mapped");
    return region;
}

static int all_are(const unsigned char *bytes, size_t size, unsigned char content) {
    return bytes[0] == content && memcmp(bytes, bytes + 1, size - 1) == 0;
}

/* ---- a map of an arena ---- */

static int print_part(void *arg, unsigned what, uintptr_t start, size_t size) {
    const char *kind = what == SY_VMEM_SPANS ? "span" : what == SY_VMEM_FREE ? "free" : "allocated";
    (void)arg;
    printf("    %s%07jx..%07jx  %s%8zu %s\n", what == SY_VMEM_SPANS ? "" : "  ", (uintmax_t)start,
           (uintmax_t)(start + size), what == SY_VMEM_SPANS ? "  " : "", size, kind);
    return 0;
}

static void print_map(sy_vmem *arena, unsigned what, const char *title) {
    printf("  %s\n", title);
    expect(sy_vmem_each(arena, what, print_part, NULL) == 0, "the arena is walked");
}

/* ---- nothing lies in the region ---- */

static size_t mixed_size(unsigned i) {
    static const size_t sizes[] = {64, 1500, PAGE, 9000, FRAME, LONGEST};
    return sizes[i % (sizeof sizes / sizeof *sizes)];
}

static void show_untouched(sy_vmem *arena, unsigned char *region) {
    enum { SEGMENTS = 2000 };
    static uintptr_t offsets[SEGMENTS];
    memset(region, PATTERN, REGION);
    for (unsigned i = 0; i < SEGMENTS; i++)
        expect(sy_vmem_alloc(arena, mixed_size(i), SY_VMEM_BEST, &offsets[i]) == 0,
               "there is room");
    for (unsigned i = 0; i < SEGMENTS; i += 2) sy_vmem_free(arena, offsets[i], mixed_size(i));
    for (unsigned i = 1; i < SEGMENTS; i += 2) sy_vmem_free(arena, offsets[i], mixed_size(i));
    expect(all_are(region, REGION, PATTERN), "no byte of the region was written");
    printf("%d segments allocated and freed, no byte of the region was written\n", SEGMENTS);
}

/* ---- buffers that two processes share ---- */

/* The device's conditions for a buffer. */
static const sy_vmem_constraints for_device = {
    .align = PAGE, .nocross = LONGEST, .max = LOW_WINDOW};

static void expect_fit_for_device(const message *buffer) {
    uintptr_t last = buffer->offset + buffer->size - 1;
    expect(buffer->offset % PAGE == 0, "a buffer begins at a page");
    expect(buffer->offset / LONGEST == last / LONGEST, "a buffer is one transfer");
    expect(last < LOW_WINDOW, "a buffer lies where the device can see it");
}

static message take_buffer(sy_vmem *arena, unsigned char *region, unsigned number) {
    message buffer = {.size = mixed_size(number), .content = (unsigned char)number};
    expect(sy_vmem_xalloc(arena, buffer.size, &for_device, SY_VMEM_INSTANT, &buffer.offset) == 0,
           "there is a buffer");
    expect_fit_for_device(&buffer);
    memset(region + buffer.offset, buffer.content, buffer.size);
    return buffer;
}

static void give_buffer(sy_vmem *arena, const message *buffer) {
    expect(sy_vmem_xfree(arena, buffer->offset, buffer->size) == 0, "a buffer is given back");
}

static void tell(int pipe, const message *buffer) {
    expect(write(pipe, buffer, sizeof *buffer) == sizeof *buffer, "the pipe takes a message");
}

/* Reads a message. Returns 0 at the end of the messages. */
static int hear(int pipe, message *buffer) {
    ssize_t got = read(pipe, buffer, sizeof *buffer);
    expect(got == 0 || got == sizeof *buffer, "messages come whole");
    return got != 0;
}

/* Runs in the other process. It maps the region at any address and answers in place. */
static void answer(int file, int requests, int answers) {
    unsigned char *region = map_region(file);
    message buffer;
    while (hear(requests, &buffer)) {
        unsigned char *bytes = region + buffer.offset;
        expect(all_are(bytes, buffer.size, buffer.content), "the child reads what was written");
        buffer.content = (unsigned char)~buffer.content;
        memset(bytes, buffer.content, buffer.size);
        tell(answers, &buffer);
    }
}

static void exchange_round(sy_vmem *arena, unsigned char *region, int requests, int answers) {
    message buffer;
    for (unsigned i = 0; i < BUFFERS; i++) {
        buffer = take_buffer(arena, region, i);
        tell(requests, &buffer);
    }
    for (unsigned i = 0; i < BUFFERS; i++) {
        expect(hear(answers, &buffer), "there is an answer to each message");
        expect(buffer.content == (unsigned char)~i, "answers come in order");
        expect(all_are(region + buffer.offset, buffer.size, buffer.content),
               "the parent reads what was answered");
        give_buffer(arena, &buffer);
    }
}

static void show_exchange(sy_vmem *arena, unsigned char *region, int file) {
    int requests[2], answers[2], status;
    expect(pipe(requests) == 0 && pipe(answers) == 0, "there are pipes");
    fflush(stdout);
    pid_t child = fork();
    expect(child >= 0, "there is another process");
    if (child == 0) {
        close(requests[1]);
        answer(file, requests[0], answers[1]);
        _exit(0);
    }
    close(requests[0]);
    close(answers[1]);
    for (unsigned i = 0; i < ROUNDS; i++) exchange_round(arena, region, requests[1], answers[0]);
    close(requests[1]);
    close(answers[0]);
    expect(waitpid(child, &status, 0) == child && status == 0, "the child saw all as it should");
    printf("%d buffers went to another process and came back\n", ROUNDS * BUFFERS);
}

static void show_constraints(sy_vmem *arena, unsigned char *region) {
    message buffers[6];
    for (unsigned i = 0; i < 6; i++) buffers[i] = take_buffer(arena, region, i);
    printf("buffers for a device: at pages, within 64 KiB, below 16 MiB\n");
    print_map(arena, SY_VMEM_SPANS | SY_VMEM_ALLOCATED | SY_VMEM_FREE, "region");

    uintptr_t offset;
    expect(sy_vmem_xalloc(arena, LONGEST + 1, &for_device, SY_VMEM_INSTANT, &offset) == -1 &&
               errno == EINVAL,
           "what no offset can satisfy is refused as such");
    for (unsigned i = 0; i < 6; i++) give_buffer(arena, &buffers[i]);
}

static void show_window(sy_vmem *arena) {
    static uintptr_t offsets[LOW_WINDOW / LONGEST + 1];
    unsigned count = 0;
    while (sy_vmem_xalloc(arena, FRAME, &for_device, SY_VMEM_INSTANT, &offsets[count]) == 0)
        expect(++count <= LOW_WINDOW / LONGEST, "two of 40 KiB are not within 64 KiB");
    int error = errno;
    printf("%u of 40 KiB fill the low window; %zu MiB above are free\n", count,
           sy_vmem_size(arena, SY_VMEM_FREE) / MIB);
    expect(count == LOW_WINDOW / LONGEST && error == ENOMEM, "the window is used to its end");
    while (count > 0) sy_vmem_xfree(arena, offsets[--count], FRAME);
}

/* ---- an arena that imports from the arena "region" ---- */

/* The queue's arena has a source and no import function, so it imports by sy_vmem_alloc. */
static sy_vmem *make_queue(sy_vmem *region) {
    sy_vmem *queue = sy_vmem_create(&(sy_vmem_config){.name = "queue 0",
                                                      .quantum = LINE,
                                                      .cached_max = DESCRIPTOR,
                                                      .source = region,
                                                      .import_min = QUEUE_SPAN});
    expect(queue != NULL, "an arena is made");
    return queue;
}

static void show_queue(sy_vmem *region) {
    static uintptr_t descriptors[DESCRIPTORS_MANY];
    sy_vmem *queue = make_queue(region);
    for (unsigned i = 0; i < DESCRIPTORS_MANY; i++)
        expect(sy_vmem_alloc(queue, DESCRIPTOR, SY_VMEM_INSTANT, &descriptors[i]) == 0,
               "there is room for a descriptor");
    sy_vmem_stats stats;
    sy_vmem_get_stats(queue, &stats);
    printf("%d descriptors of a queue lie in %zu spans imported from the region\n",
           DESCRIPTORS_MANY, stats.imported_spans);
    print_map(region, SY_VMEM_ALLOCATED | SY_VMEM_FREE, "region");
    print_map(queue, SY_VMEM_SPANS, "queue 0");
    expect(stats.imported_spans >= 2, "they need more than one");
    expect(stats.imported == stats.imported_spans * QUEUE_SPAN, "a span is of the size asked for");
    expect(sy_vmem_size(region, SY_VMEM_ALLOCATED) == stats.imported,
           "what the queue has is what the region gave");

    for (unsigned i = 0; i < DESCRIPTORS_MANY; i++) sy_vmem_free(queue, descriptors[i], DESCRIPTOR);
    sy_vmem_get_stats(queue, &stats);
    printf("after they are freed the quantum cache holds %zu back, and so %zu KiB of the region\n",
           stats.cached / DESCRIPTOR, stats.imported / KIB);
    expect(sy_vmem_destroy(queue) == 0, "nothing is allocated");
    expect(sy_vmem_size(region, SY_VMEM_FREE) == REGION, "the region has everything back");
    printf("after the queue is destroyed all of the region is free\n");
}

int main(void) {
    int file = memfd_create("region", MFD_CLOEXEC);
    expect(file >= 0 && ftruncate(file, REGION) == 0, "there is a region");
    unsigned char *bytes = map_region(file);
    sy_vmem *region =
        sy_vmem_create(&(sy_vmem_config){.name = "region", .size = REGION, .quantum = LINE});
    expect(region != NULL, "an arena is made");

    show_untouched(region, bytes);
    show_exchange(region, bytes, file);
    show_constraints(region, bytes);
    show_window(region);
    show_queue(region);
    expect(sy_vmem_destroy(region) == 0, "nothing is allocated");
    munmap(bytes, REGION);
    close(file);
    return 0;
}
