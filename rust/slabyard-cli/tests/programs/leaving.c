/* Starts threads one after the other. The destructor of a key frees each thread's objects; it
 * runs after the recorder's destructor, whose key is older. Prints how many buffers the recorder
 * has then. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 200, OBJECTS = 1000 };

struct object {
    struct object *next;
    char rest[40];
};

static pthread_key_t key;

static void free_all(void *first) {
    for (struct object *object = first; object != NULL;) {
        struct object *next = object->next;
        free(object);
        object = next;
    }
}

static void *work(void *unused) {
    struct object *first = NULL;
    for (int number = 0; number < OBJECTS; number++) {
        struct object *object = malloc(sizeof *object);
        object->next = first;
        first = object;
    }
    pthread_setspecific(key, first);
    return unused;
}

static int count_buffers(void) {
    char line[4096];
    int count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps) != NULL) count += strstr(line, ".buffers") != NULL;
    fclose(maps);
    return count;
}

int main(void) {
    pthread_key_create(&key, free_all);
    for (int number = 0; number < THREADS; number++) {
        pthread_t thread;
        pthread_create(&thread, NULL, work, NULL);
        pthread_join(thread, NULL);
    }
    printf("%d\n", count_buffers());
    return 0;
}
