/* Allocates at known places: the first argument says in which circumstances. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))

void *kept[1000];

APART void keep(int count) {
    for (int i = 0; i < count; i++) kept[i] = malloc(1000);
}

APART void drop(int count) {
    for (int i = 0; i < count; i++) free(kept[i]);
}

APART void use_at_once(int count) {
    for (int i = 0; i < count; i++) {
        void *volatile object = malloc(300);
        free(object);
    }
}

static inline __attribute__((always_inline)) void *in_line(size_t size) { return malloc(size); }

APART void call_in_line(void) { kept[999] = in_line(5000); }

APART void go_down(int depth) {
    char room[100];
    memset(room, depth, sizeof room);
    if (depth == 0)
        keep(10);
    else
        go_down(depth - 1);
    __asm__ volatile("" ::"r"(room) : "memory");
}

struct node {
    struct node *next;
    char rest[64];
};

/* Lists of nodes, each freed before the next begins. One node in `every` stays for ever. */
APART void make_lists(int lists, int nodes, int every) {
    static struct node *staying;
    for (int i = 0; i < lists; i++) {
        struct node *list = NULL;
        for (int j = 0; j < nodes; j++) {
            struct node *made = malloc(sizeof *made);
            struct node **to = every != 0 && j % every == 0 ? &staying : &list;
            made->next = *to;
            *to = made;
        }
        while (list != NULL) {
            struct node *next = list->next;
            free(list);
            list = next;
        }
    }
}

/* Connections get nodes in turn, and are closed one after the other. */
APART void serve(int connections, int nodes) {
    struct node *lists[100] = {NULL};
    for (int i = 0; i < connections * nodes; i++) {
        struct node *made = malloc(sizeof *made), **to = &lists[i % connections];
        made->next = *to;
        *to = made;
    }
    for (int i = 0; i < connections; i++) {
        for (struct node *next, *node = lists[i]; node != NULL; node = next) {
            next = node->next;
            free(node);
        }
        usleep(20000);
        free(malloc(sizeof(struct node)));
    }
}

static void in_handler(int signal) {
    (void)signal;
    keep(20);
}

static void on_signal_stack(void) {
    static char stack[64 << 10];
    stack_t mine = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = in_handler, .sa_flags = SA_ONSTACK};
    sigaltstack(&mine, NULL);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
}

static void *in_thread(void *unused) {
    keep(50);
    return unused;
}

static void with_small_stack(void) {
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN);
    pthread_create(&thread, &attributes, in_thread, NULL);
    pthread_join(thread, NULL);
}

static void in_child(void) {
    keep(5);
    if (fork() == 0) {
        keep(70);
        exit(0);
    }
    wait(NULL);
}

/* Two libraries with different functions, one after the other, probably at the same address. */
static void with_libraries(char **paths) {
    for (int i = 0; i < 2; i++) {
        void *library = dlopen(paths[i], RTLD_NOW);
        void (*call)(void **, int) =
            library != NULL ? dlsym(library, i == 0 ? "one" : "other") : NULL;
        if (call == NULL) exit(7);
        call(kept, 30);
        dlclose(library);
    }
}

int main(int count, char **arguments) {
    const char *how = count > 1 ? arguments[1] : "";
    if (strcmp(how, "plain") == 0) {
        keep(100);
        use_at_once(40);
        call_in_line();
        drop(90);
    } else if (strcmp(how, "deep") == 0) {
        go_down(atoi(arguments[2]));
    } else if (strcmp(how, "signal") == 0) {
        on_signal_stack();
    } else if (strcmp(how, "thread") == 0) {
        with_small_stack();
    } else if (strcmp(how, "fork") == 0) {
        in_child();
    } else if (strcmp(how, "killed") == 0) {
        keep(60);
        raise(SIGKILL);
    } else if (strcmp(how, "lists") == 0) {
        make_lists(atoi(arguments[2]), atoi(arguments[3]), atoi(arguments[4]));
    } else if (strcmp(how, "connections") == 0) {
        serve(atoi(arguments[2]), atoi(arguments[3]));
    } else if (strcmp(how, "libraries") == 0) {
        with_libraries(arguments + 2);
    } else {
        return 2;
    }
    return 0;
}
