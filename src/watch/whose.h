/*
 * whose.h: whose a function of a stack is, by its name and its source: so that a report can begin
 * with the program's function that made the call, and end with the first one of the program.
 *
 * Nothing below. Used by symbols.c and dwarf.c.
 */
#ifndef SY_WATCH_WHOSE_H
#define SY_WATCH_WHOSE_H

#include <stdbool.h>

typedef enum sy_whose {
    SY_WHOSE_PROGRAM = 'p',  /* the program's, or not known */
    SY_WHOSE_OWN = 'o',      /* Slabyard's: the C core, slabyard.hpp, the Rust crate */
    SY_WHOSE_LANGUAGE = 'l', /* of the library of C++ or Rust: containers, operator new, Box */
    SY_WHOSE_RUNTIME = 'r',  /* of Rust's runtime, for what it keeps until the process ends */
    SY_WHOSE_START = 's',    /* of Rust's runtime, around main or a thread's function */
} sy_whose;

/* `name`: as in the language, with its namespaces where they are known. `path`: of its source, NULL
 * where that is not known. `rust`: the name was mangled as Rust does it. */
sy_whose sy_whose_function(const char *name, const char *path, bool rust);

/* Whether a file that is loaded, of this path, is Slabyard's shared library. */
bool sy_whose_library(const char *file);

#endif
