/*
 * espresso: minimises functions of two-level logic, as the program of that name from Berkeley does
 * (Brayton and others, "Logic minimization algorithms for VLSI synthesis", 1984), with which
 * Grunwald, Zorn and Henderson measured allocators in 1993.
 *
 * A cube is a product of literals: a block with 2 bits for each variable. A cover is a sum of
 * cubes, a list that grows by realloc. The algorithms are recursive. Each step makes smaller covers
 * with cubes of their own, which live until it returns. SIZE is the number of functions. Each has 8
 * to 20 variables, so cubes of different functions have different sizes.
 *
 * Each result is checked: it covers the function, and nothing of the function's complement.
 */
#include "program.h"

/* A variable's bits: 01 it must be false, 10 true, 11 either; 00 makes the cube empty. */
enum { EITHER = 3, FIELDS = 4 /* in a byte */ };

static size_t variables;

typedef unsigned char cube;

static size_t cube_bytes(void) { return (variables + FIELDS - 1) / FIELDS; }

static cube *new_cube(void) {
    cube *all = malloc(cube_bytes());
    must(all != NULL, "there is memory");
    memset(all, 0xFF, cube_bytes());
    return all;
}

static cube *copy(const cube *from) {
    cube *to = malloc(cube_bytes());
    must(to != NULL, "there is memory");
    memcpy(to, from, cube_bytes());
    return to;
}

static unsigned field(const cube *c, size_t at) {
    return c[at / FIELDS] >> (at % FIELDS * 2) & EITHER;
}

static void set_field(cube *c, size_t at, unsigned value) {
    unsigned shift = at % FIELDS * 2;
    c[at / FIELDS] = (cube)((c[at / FIELDS] & ~((unsigned)EITHER << shift)) | value << shift);
}

/* Whether the first cube contains the second. */
static bool contains(const cube *c, const cube *other) {
    for (size_t i = 0; i < cube_bytes(); i++) {
        if (other[i] & ~c[i]) return false;
    }
    return true;
}

static bool meet(const cube *one, const cube *other) {
    for (size_t i = 0; i < cube_bytes(); i++) {
        unsigned both = one[i] & other[i];
        if (((both | both >> 1) & 0x55) != 0x55) return false;
    }
    return true;
}

static bool is_everything(const cube *c) {
    for (size_t i = 0; i < cube_bytes(); i++) {
        if (c[i] != 0xFF) return false;
    }
    return true;
}

struct cover {
    cube **cubes;
    size_t count, room;
};

/* The list grows by half of its length: in many sizes. */
static void append(struct cover *cover, cube *c) {
    if (cover->count == cover->room) {
        cover->room += cover->room / 2 + 2;
        cover->cubes = realloc(cover->cubes, cover->room * sizeof *cover->cubes);
        must(cover->cubes != NULL, "there is memory");
    }
    cover->cubes[cover->count++] = c;
}

static void drop(struct cover *cover) {
    for (size_t i = 0; i < cover->count; i++) free(cover->cubes[i]);
    free(cover->cubes);
    *cover = (struct cover){NULL, 0, 0};
}

/* Removes cubes that another cube of the cover contains. */
static void absorb(struct cover *cover) {
    for (size_t i = 0; i < cover->count; i++) {
        for (size_t j = 0; j < cover->count; j++) {
            if (i == j || !contains(cover->cubes[j], cover->cubes[i])) continue;
            free(cover->cubes[i]);
            cover->cubes[i--] = cover->cubes[--cover->count];
            break;
        }
    }
}

/* The cover within the cube: the cubes that meet it, with its literals left out. */
static struct cover cofactor(const struct cover *cover, const cube *within) {
    struct cover part = {NULL, 0, 0};
    for (size_t i = 0; i < cover->count; i++) {
        if (!meet(cover->cubes[i], within)) continue;
        cube *c = copy(cover->cubes[i]);
        for (size_t n = 0; n < cube_bytes(); n++) c[n] |= (cube)~within[n];
        append(&part, c);
    }
    return part;
}

static struct cover half(const struct cover *cover, size_t variable, unsigned value) {
    cube *literal = new_cube();
    set_field(literal, variable, value);
    struct cover part = cofactor(cover, literal);
    free(literal);
    return part;
}

/* The variable that most cubes have a literal of; `variables` if no cube has one. */
static size_t busiest(const struct cover *cover) {
    size_t best = variables, most = 0;
    for (size_t v = 0; v < variables; v++) {
        size_t literals = 0;
        for (size_t i = 0; i < cover->count; i++) literals += field(cover->cubes[i], v) != EITHER;
        if (literals > most) {
            most = literals;
            best = v;
        }
    }
    return best;
}

static bool has_everything(const struct cover *cover) {
    for (size_t i = 0; i < cover->count; i++) {
        if (is_everything(cover->cubes[i])) return true;
    }
    return false;
}

/* Whether the cover is true for all values of the variables. */
static bool is_tautology(const struct cover *cover) {
    if (cover->count == 0) return false;
    if (has_everything(cover)) return true;
    size_t variable = busiest(cover);
    bool all = variable < variables;
    for (unsigned value = 1; value <= 2 && all; value++) {
        struct cover part = half(cover, variable, value);
        all = is_tautology(&part);
        drop(&part);
    }
    return all;
}

/* The complement of one cube: a cube for each of its literals. */
static struct cover complement_of_cube(const cube *c) {
    struct cover result = {NULL, 0, 0};
    for (size_t v = 0; v < variables; v++) {
        if (field(c, v) == EITHER) continue;
        cube *other = new_cube();
        set_field(other, v, EITHER ^ field(c, v));
        append(&result, other);
    }
    return result;
}

/* Moves the cubes of one half of a complement into the whole. A cube that both halves have is put
   there once, without the literal. */
static void merge(struct cover *whole, struct cover *part, size_t variable, unsigned value) {
    for (size_t i = 0; i < part->count; i++) {
        cube *c = part->cubes[i];
        size_t j = 0;
        for (; j < whole->count; j++) {
            set_field(c, variable, field(whole->cubes[j], variable));
            if (memcmp(c, whole->cubes[j], cube_bytes()) == 0) break;
        }
        if (j < whole->count) {
            set_field(whole->cubes[j], variable, field(whole->cubes[j], variable) | value);
            free(c);
        } else {
            set_field(c, variable, value);
            append(whole, c);
        }
    }
    part->count = 0;
    drop(part);
}

static struct cover complement(const struct cover *cover) {
    struct cover result = {NULL, 0, 0};
    if (cover->count == 0) {
        append(&result, new_cube());
        return result;
    }
    if (has_everything(cover)) return result;
    if (cover->count == 1) return complement_of_cube(cover->cubes[0]);
    size_t variable = busiest(cover);
    for (unsigned value = 1; value <= 2; value++) {
        struct cover part = half(cover, variable, value), other = complement(&part);
        drop(&part);
        merge(&result, &other, variable, value);
    }
    absorb(&result);
    return result;
}

static bool meets_any(const cube *c, const struct cover *cover) {
    for (size_t i = 0; i < cover->count; i++) {
        if (meet(c, cover->cubes[i])) return true;
    }
    return false;
}

/* Leaves out each literal without which the cube still does not meet the complement. */
static void expand(struct cover *cover, const struct cover *off) {
    for (size_t i = 0; i < cover->count; i++) {
        cube *larger = copy(cover->cubes[i]);
        for (size_t v = 0; v < variables; v++) {
            unsigned literal = field(larger, v);
            set_field(larger, v, EITHER);
            if (meets_any(larger, off)) set_field(larger, v, literal);
        }
        free(cover->cubes[i]);
        cover->cubes[i] = larger;
    }
    absorb(cover);
}

static bool covers(const struct cover *cover, const cube *c) {
    struct cover part = cofactor(cover, c);
    bool all = is_tautology(&part);
    drop(&part);
    return all;
}

/* Removes cubes that the others cover together. */
static void make_irredundant(struct cover *cover) {
    for (size_t i = 0; i < cover->count;) {
        cube *one = cover->cubes[i];
        cover->cubes[i] = cover->cubes[--cover->count];
        if (covers(cover, one)) {
            free(one);
        } else {
            cover->cubes[cover->count++] = cover->cubes[i];
            cover->cubes[i++] = one;
        }
    }
}

static struct cover random_function(struct random *random) {
    struct cover cover = {NULL, 0, 0};
    size_t count = 20 + below(random, 30);
    for (size_t i = 0; i < count; i++) {
        cube *c = new_cube();
        for (size_t n = 0; n < 5; n++) {
            set_field(c, below(random, variables), 1 + (unsigned)below(random, 2));
        }
        append(&cover, c);
    }
    return cover;
}

/* Returns the number of cubes that are left. */
static size_t minimise(struct random *random) {
    struct cover on = random_function(random), off = complement(&on), best = {NULL, 0, 0};
    for (size_t i = 0; i < on.count; i++) append(&best, copy(on.cubes[i]));
    expand(&best, &off);
    make_irredundant(&best);
    size_t count = best.count;
    for (size_t i = 0; i < on.count; i++) must(covers(&best, on.cubes[i]), "all is covered");
    for (size_t i = 0; i < count; i++) must(!meets_any(best.cubes[i], &off), "no more is covered");
    drop(&on);
    drop(&off);
    drop(&best);
    return count;
}

int main(int count, char **arguments) {
    uint64_t size = size_of_work(count, arguments), sum = 0;
    struct random random = random_from(3);
    for (uint64_t i = 0; i < size; i++) {
        variables = 8 + i % 13;
        sum += minimise(&random);
    }
    return finish(count, arguments, sum);
}
