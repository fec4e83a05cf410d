/*
 * whose.h: decides by name and source whether a function of a stack belongs to the program, to
 * Slabyard, or to a language's library. So a report can begin with the program's function that
 * called Slabyard, and end with the program's first function.
 *
 * Below: nothing. Used by symbols.c and dwarf.c.
 */
#ifndef SY_REPORT_WHOSE_H
#define SY_REPORT_WHOSE_H

#include <stdbool.h>

typedef enum sy_whose {
    SY_WHOSE_PROGRAM = 'p',  /* the program's, or unknown */
    SY_WHOSE_OWN = 'o',      /* Slabyard's: the C core, slabyard.hpp, the Rust crate */
    SY_WHOSE_LANGUAGE = 'l', /* the C++ or Rust library's: containers, operator new, Box */
    SY_WHOSE_RUNTIME = 'r',  /* Rust's runtime or crate, for what it keeps until the process ends */
    SY_WHOSE_START = 's',    /* Rust's runtime, around main or a thread's function */
} sy_whose;

/* `name`: as in the language, with its namespaces if they are known. `path`: of its source; NULL:
 * unknown. `rust`: the name was mangled in Rust's way. */
sy_whose sy_whose_function(const char *name, const char *path, bool rust);

/* Whether a loaded file with this path is Slabyard's shared library. */
bool sy_whose_library(const char *file);

#endif
