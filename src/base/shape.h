/*
 * shape.h: describes the library's structures to programs that read the memory of a process from
 * outside, such as `slabyard account`, also without symbols and debug information.
 *
 *     note in the executable or shared library --> sy_shape_1 --> a part for each source
 *                                                                    names, offsets, sizes, values
 *                                                                    addresses of variables
 *
 * Each source describes those structures and variables of its own that such a program reads.
 * parts.c has the list of all parts, and the note. The names are those of the C sources. So a field
 * can move, and tools still find it. A field or variable whose meaning changes gets another name:
 * tools that look for the old one then say that they do not know this version.
 *
 * Nothing in the process itself reads this. `slabyard trim` writes one of the variables.
 *
 * Below: nothing. Above: every layer.
 */
#ifndef SY_BASE_SHAPE_H
#define SY_BASE_SHAPE_H

#include <slabyard/base.h>
#include <stddef.h>
#include <stdint.h>

/* A field, the size of a type, a constant, or a variable. */
typedef struct sy_shape_row {
    char name[40];
    uint32_t value; /* of a field: bytes from the start of its structure; of a constant: itself */
    uint32_t bytes; /* of a field or a type; of a constant: 0; SY_SHAPE_IS_VARIABLE */
} sy_shape_row;

#define SY_SHAPE_IS_VARIABLE UINT32_MAX

/* The names stand apart from the addresses: a page with addresses is changed when the library is
 * loaded, and then each process has its own. */
typedef struct sy_shape_part {
    const sy_shape_row *rows;
    const void *const *addresses; /* of the variables, in the order of their rows */
    uint32_t row_count, address_count;
} sy_shape_part;

enum { SY_SHAPE_VERSION = 1 }; /* of the structures in this file */

typedef struct sy_shape {
    char magic[16]; /* "slabyard shapes" */
    uint32_t version, part_count;
    const sy_shape_part *const *parts;
} sy_shape;

extern SY_HIDDEN const sy_shape sy_shape_1;

/* The parts, each defined in the source that it describes. */
extern SY_HIDDEN const sy_shape_part sy_stack_shape, sy_guard_shape, sy_profile_shape;
extern SY_HIDDEN const sy_shape_part sy_thread_shape, sy_roster_shape, sy_store_shape,
    sy_depot_shape;
extern SY_HIDDEN const sy_shape_part sy_vmem_shape;
extern SY_HIDDEN const sy_shape_part sy_map_shape, sy_memory_shape, sy_headers_shape, sy_side_shape;
extern SY_HIDDEN const sy_shape_part sy_cache_shape, sy_mixed_shape, sy_directory_shape;
extern SY_HIDDEN const sy_shape_part sy_maintenance_shape;

/* Rows of a part. `as`: the name of the structure or variable for the tools. */
#define SY_SHAPE_FIELD(as, type, field) \
    { #as "." #field, (uint32_t)offsetof(type, field), (uint32_t)sizeof(((type *)0)->field) }
#define SY_SHAPE_TYPE(as, type) \
    { #as, 0, (uint32_t)sizeof(type) }
#define SY_SHAPE_CONSTANT(name) \
    { #name, (uint32_t)(name), 0 }

/* For the list of a part's variables, `#define X_VARIABLES(row) row(as, variable) ...`: their rows,
 * and their addresses. */
#define SY_SHAPE_VARIABLE(as, variable) {#as, 0, SY_SHAPE_IS_VARIABLE},
#define SY_SHAPE_ADDRESS(as, variable)  &(variable),

#define SY_SHAPE_PART(rows, addresses)                              \
    {                                                               \
        rows, addresses, (uint32_t)(sizeof(rows) / sizeof *(rows)), \
            (uint32_t)(sizeof(addresses) / sizeof *(addresses))     \
    }

#endif
