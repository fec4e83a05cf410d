/*
 * pool: eight threads take files from a list, cut them into small objects, print these into a
 * buffer, and leave the buffer to the main thread.
 *
 * After https://github.com/bram209/leptosfmt/pull/191, where a formatter of source files with a
 * pool of threads, linked statically with musl, took 90 times as long as with glibc, because the
 * threads waited for musl's lock; and https://github.com/rustic-rs/rustic/issues/1820, where a
 * backup of 801 files, 227 MB, in several threads took 137 MB with musl's malloc and 450 MB with a
 * faster one, and was killed in a container of 384 MB. Here there are 800 files of 4 KiB to 512
 * KiB.
 */
#include "readings.h"

enum { WORKERS = 8, FILES = 800, LEAST = 4 << 10, MOST = 512 << 10, WAITING_MAX = 64 };

/* A word of a file, in a list. */
struct word {
    struct head head;
    struct word *next;
    size_t length;
    char text[];
};

/* A file that is printed, and waits for the main thread. */
struct printed {
    char *text;
    size_t length;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t is_printed = PTHREAD_COND_INITIALIZER, is_room = PTHREAD_COND_INITIALIZER;
static struct printed waiting[WAITING_MAX];
static size_t waiting_count, taken, file_count;

static bool take_file(size_t *file) {
    pthread_mutex_lock(&lock);
    bool is_left = taken < file_count;
    if (is_left) *file = taken++;
    pthread_mutex_unlock(&lock);
    return is_left;
}

static void pass_on(struct printed printed) {
    pthread_mutex_lock(&lock);
    while (waiting_count == WAITING_MAX) pthread_cond_wait(&is_room, &lock);
    waiting[waiting_count++] = printed;
    pthread_cond_signal(&is_printed);
    pthread_mutex_unlock(&lock);
}

static struct printed receive(void) {
    pthread_mutex_lock(&lock);
    while (waiting_count == 0) pthread_cond_wait(&is_printed, &lock);
    struct printed printed = waiting[--waiting_count];
    pthread_cond_signal(&is_room);
    pthread_mutex_unlock(&lock);
    return printed;
}

/* A buffer that grows twofold. */
static void append(struct printed *to, size_t *room, const char *text, size_t length) {
    while (to->length + length > *room) {
        *room = *room ? 2 * *room : 1024;
        to->text = realloc(to->text, *room);
        must(to->text != NULL, "there is memory");
    }
    memcpy(to->text + to->length, text, length);
    to->length += length;
}

/* Reads a file, piece by piece, as from a disk. */
static struct printed read_file(struct random *random, size_t length) {
    struct printed file = {NULL, 0};
    size_t room = 0;
    char piece[4096];
    while (file.length < length) {
        for (size_t i = 0; i < sizeof piece; i++) {
            piece[i] = (char)(i % 8 == 7 && chance(random, 60) ? ' ' : 'a' + i % 23);
        }
        size_t left = length - file.length;
        append(&file, &room, piece, left < sizeof piece ? left : sizeof piece);
    }
    return file;
}

static struct word *cut(const struct printed *file) {
    struct word *first = NULL, **last = &first;
    for (size_t begin = 0; begin < file->length;) {
        const char *end = memchr(file->text + begin, ' ', file->length - begin);
        size_t length = end ? (size_t)(end - file->text) - begin : file->length - begin;
        struct word *word = take(sizeof *word + length + 1, begin);
        word->next = NULL;
        word->length = length;
        memcpy(word->text, file->text + begin, length);
        *last = word;
        last = &word->next;
        begin += length + 1;
    }
    return first;
}

static struct printed print(struct word *words) {
    struct printed printed = {NULL, 0};
    size_t room = 0;
    for (struct word *word = words; word; word = word->next) {
        append(&printed, &room, word->text, word->length);
        append(&printed, &room, "\n", 1);
    }
    return printed;
}

static void end_words(struct word *words) {
    while (words) {
        struct word *next = words->next;
        give(words);
        words = next;
    }
}

static void *work(void *argument) {
    for (size_t number; take_file(&number);) {
        struct random random = random_from(number + 1);
        struct printed file = read_file(&random, LEAST + below(&random, MOST - LEAST));
        struct word *words = cut(&file);
        free(file.text);
        struct printed printed = print(words);
        end_words(words);
        pass_on(printed);
    }
    return argument;
}

static uint64_t add_up(const struct printed *printed) {
    uint64_t sum = printed->length;
    for (size_t i = 0; i < printed->length; i += 64) sum += (unsigned char)printed->text[i];
    return sum;
}

int main(int count, char **arguments) {
    struct request request = read_request(count, arguments);
    pthread_t threads[WORKERS];
    uint64_t sum = 0, peak = 0, begin = clock_ms(CLOCK_MONOTONIC);
    file_count = request.quick ? FILES / 10 : FILES;
    for (size_t i = 0; i < WORKERS; i++) threads[i] = start(work, NULL);
    for (size_t i = 0; i < file_count; i++) {
        struct printed printed = receive();
        sum += add_up(&printed);
        free(printed.text);
        if (i % 8 == 0) {
            uint64_t now = resident_kib();
            if (now > peak) peak = now;
        }
    }
    for (size_t i = 0; i < WORKERS; i++) must(pthread_join(threads[i], NULL) == 0, "it ends");
    tell("wall", clock_ms(CLOCK_MONOTONIC) - begin);
    tell("peak", peak);
    tell("live", 0);
    tell_waits(&request, sleep_ms);
    tell("sum", sum);
    return 0;
}
