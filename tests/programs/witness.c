/*
 * witness.c: a library that tests/programs/run preloads before the drop-in malloc. Each program
 * that runs with it appends a line to the file $WITNESS: the program's path, and the file whose
 * malloc it uses.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor)) static void write_line(void) {
    static char program[PATH_MAX], line[2 * PATH_MAX + 2];
    const char *path = getenv("WITNESS");
    Dl_info found;
    const ElfW(Sym) *symbol = NULL;
    void *function = dlsym(RTLD_DEFAULT, "malloc");
    if (!path || !function || !dladdr1(function, &found, (void **)&symbol, RTLD_DL_SYMENT)) return;
    /* In a program with a fixed address that takes the address of malloc, the address is that of an
     * entry in the program, which calls the next malloc. */
    if (symbol && symbol->st_shndx == SHN_UNDEF) {
        function = dlsym(RTLD_NEXT, "malloc");
        if (!function || !dladdr(function, &found)) return;
    }
    if (readlink("/proc/self/exe", program, sizeof program - 1) < 0) return;
    int file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (file < 0) return;
    int length = snprintf(line, sizeof line, "%s %s\n", program, found.dli_fname);
    if (write(file, line, (size_t)length) != length) abort();
    close(file);
}
