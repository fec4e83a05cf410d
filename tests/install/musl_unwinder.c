/*
 * musl_unwinder.c: defines _dl_find_object for programs that musl-gcc links. The unwinder of a gcc
 * that was built for glibc calls this function of glibc to find the library that contains an
 * address, and its table of frames. musl does not have the function. This one searches the list of
 * libraries. A gcc that was built for musl does not need it.
 */
#define _GNU_SOURCE
#include <link.h>
#include <stddef.h>

/* The structure in dlfcn.h of glibc 2.35 on x86-64. */
struct dl_find_object {
    unsigned long long flags;
    void *begin, *end;
    struct link_map *map;
    void *frames;
};

typedef struct question {
    ElfW(Addr) address;
    struct dl_find_object *answer;
} question;

static int look_at(struct dl_phdr_info *library, size_t bytes, void *asked_) {
    (void)bytes;
    question *asked = asked_;
    const ElfW(Phdr) *frames = NULL, *covers = NULL;
    for (int i = 0; i < library->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &library->dlpi_phdr[i];
        ElfW(Addr) begin = library->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_GNU_EH_FRAME) frames = part;
        if (part->p_type == PT_LOAD && asked->address - begin < part->p_memsz) covers = part;
    }
    if (!frames || !covers) return 0;
    char *base = (char *)library->dlpi_addr;
    *asked->answer = (struct dl_find_object){
        .begin = base + covers->p_vaddr,
        .end = base + covers->p_vaddr + covers->p_memsz,
        .frames = base + frames->p_vaddr,
    };
    return 1;
}

int _dl_find_object(void *address, struct dl_find_object *answer);
int _dl_find_object(void *address, struct dl_find_object *answer) {
    question asked = {(ElfW(Addr))address, answer};
    return dl_iterate_phdr(look_at, &asked) ? 0 : -1;
}
