/*
 * cfrac: factors numbers by continued fractions, as the program of that name by Dave Barrett does,
 * which Zorn and Grunwald used to measure allocators. The method is that of Morrison and Brillhart,
 * "A method of factoring and the factorization of F7" (1975).
 *
 * Its integers have any length. Each is a block of its own, of 6 to 30 bytes here. Each operation
 * allocates a new one, and most live for some operations only. SIZE is the number of integers of 24
 * decimal digits that are factored, each a product of two primes.
 *
 * The continued fraction of sqrt(n) yields pairs with a^2 = (-1)^i * q (mod n), where q is small.
 * A pair whose q has small prime factors only is a relation. If a product of relations has only
 * even exponents, it is x^2 = y^2 (mod n), and gcd(x - y, n) is often a factor.
 */
#include "program.h"

/* ---- integers, not negative, little digit first ---- */

struct big {
    uint32_t count;
    uint16_t digits[];
};

static struct big *new_big(size_t count) {
    struct big *big = malloc(sizeof *big + (count + 1) * sizeof *big->digits);
    must(big != NULL, "there is memory");
    big->count = (uint32_t)count;
    return big;
}

static struct big *trim(struct big *big) {
    while (big->count > 0 && big->digits[big->count - 1] == 0) big->count--;
    return big;
}

static void drop(struct big *big) { free(big); }

/* Puts an integer in the place of another, which is dropped. */
static void set(struct big **place, struct big *big) {
    drop(*place);
    *place = big;
}

static struct big *big_of(uint64_t value) {
    struct big *big = new_big(4);
    for (size_t i = 0; i < 4; i++) big->digits[i] = (uint16_t)(value >> (16 * i));
    return trim(big);
}

static struct big *copy(const struct big *a) {
    struct big *big = new_big(a->count);
    memcpy(big->digits, a->digits, a->count * sizeof *a->digits);
    return big;
}

static uint32_t digit(const struct big *a, size_t at) { return at < a->count ? a->digits[at] : 0; }

static int compare(const struct big *a, const struct big *b) {
    if (a->count != b->count) return a->count < b->count ? -1 : 1;
    for (size_t i = a->count; i > 0; i--) {
        if (a->digits[i - 1] != b->digits[i - 1]) {
            return a->digits[i - 1] < b->digits[i - 1] ? -1 : 1;
        }
    }
    return 0;
}

static struct big *add(const struct big *a, const struct big *b) {
    size_t count = (a->count > b->count ? a->count : b->count) + 1;
    struct big *sum = new_big(count);
    uint32_t carry = 0;
    for (size_t i = 0; i < count; i++) {
        carry += digit(a, i) + digit(b, i);
        sum->digits[i] = (uint16_t)carry;
        carry >>= 16;
    }
    return trim(sum);
}

/* a - b, where a is not smaller. */
static struct big *subtract(const struct big *a, const struct big *b) {
    struct big *rest = new_big(a->count);
    uint32_t borrow = 0;
    for (size_t i = 0; i < a->count; i++) {
        uint32_t one = digit(a, i) - digit(b, i) - borrow;
        rest->digits[i] = (uint16_t)one;
        borrow = one >> 31;
    }
    return trim(rest);
}

static struct big *multiply(const struct big *a, const struct big *b) {
    struct big *product = new_big((size_t)a->count + b->count);
    memset(product->digits, 0, product->count * sizeof *product->digits);
    for (size_t i = 0; i < a->count; i++) {
        uint32_t carry = 0;
        for (size_t j = 0; j < b->count; j++) {
            carry += (uint32_t)a->digits[i] * b->digits[j] + product->digits[i + j];
            product->digits[i + j] = (uint16_t)carry;
            carry >>= 16;
        }
        product->digits[i + b->count] = (uint16_t)carry;
    }
    return trim(product);
}

/* Divides by a number of 16 bits. The remainder goes to *rest. */
static struct big *divide_small(const struct big *a, uint32_t by, uint32_t *rest) {
    struct big *quotient = new_big(a->count);
    uint32_t left = 0;
    for (size_t i = a->count; i > 0; i--) {
        left = left << 16 | a->digits[i - 1];
        quotient->digits[i - 1] = (uint16_t)(left / by);
        left %= by;
    }
    *rest = left;
    return trim(quotient);
}

static uint32_t modulo_small(const struct big *a, uint32_t by) {
    uint32_t left = 0;
    for (size_t i = a->count; i > 0; i--) left = (left << 16 | a->digits[i - 1]) % by;
    return left;
}

/* Shifts left by less than 16 bits. The result has one digit more, which may be 0. */
static struct big *shifted(const struct big *a, unsigned bits) {
    struct big *big = new_big(a->count + 1);
    uint32_t carry = 0;
    for (size_t i = 0; i <= a->count; i++) {
        carry |= digit(a, i) << bits;
        big->digits[i] = (uint16_t)carry;
        carry >>= 16;
    }
    return big;
}

/* Subtracts by * factor from the digits of `from` that begin at `at`. Whether that was too much. */
static bool take_away(struct big *from, size_t at, const struct big *by, uint32_t factor) {
    uint32_t carry = 0, borrow = 0;
    for (size_t i = 0; i <= by->count; i++) {
        carry += digit(by, i) * factor;
        uint32_t one = (uint32_t)from->digits[at + i] - (carry & 0xFFFF) - borrow;
        from->digits[at + i] = (uint16_t)one;
        borrow = one >> 31;
        carry >>= 16;
    }
    return borrow != 0;
}

static void give_back(struct big *to, size_t at, const struct big *by) {
    uint32_t carry = 0;
    for (size_t i = 0; i <= by->count; i++) {
        carry += (uint32_t)to->digits[at + i] + digit(by, i);
        to->digits[at + i] = (uint16_t)carry;
        carry >>= 16;
    }
}

/* Long division (Knuth, volume 2, algorithm D). The remainder goes to *rest, if not NULL. */
static struct big *divide(const struct big *a, const struct big *b, struct big **rest) {
    must(b->count > 0, "nothing is divided by 0");
    if (b->count == 1) {
        uint32_t left;
        struct big *quotient = divide_small(a, b->digits[0], &left);
        if (rest) *rest = big_of(left);
        return quotient;
    }
    if (compare(a, b) < 0) {
        if (rest) *rest = copy(a);
        return big_of(0);
    }
    unsigned bits = (unsigned)__builtin_clz(b->digits[b->count - 1]) - 16;
    struct big *left = shifted(a, bits), *by = trim(shifted(b, bits));
    struct big *quotient = new_big(a->count - b->count + 1);
    uint32_t top = by->digits[by->count - 1], second = by->digits[by->count - 2];
    for (size_t i = quotient->count; i > 0; i--) {
        const uint16_t *high = &left->digits[i - 1 + by->count];
        uint32_t two = (uint32_t)high[0] << 16 | high[-1], guess = two / top;
        if (guess > 0xFFFF) guess = 0xFFFF;
        while ((uint64_t)guess * second > ((uint64_t)(two - guess * top) << 16 | high[-2])) {
            guess--;
            if (two - guess * top > 0xFFFF) break;
        }
        if (take_away(left, i - 1, by, guess)) {
            guess--;
            give_back(left, i - 1, by);
        }
        quotient->digits[i - 1] = (uint16_t)guess;
    }
    if (rest) {
        trim(left);
        uint32_t none;
        *rest = divide_small(left, 1u << bits, &none);
    }
    drop(left);
    drop(by);
    return trim(quotient);
}

static struct big *modulo(const struct big *a, const struct big *by) {
    struct big *rest;
    drop(divide(a, by, &rest));
    return rest;
}

static struct big *multiply_modulo(const struct big *a, const struct big *b, const struct big *n) {
    struct big *product = multiply(a, b), *rest = modulo(product, n);
    drop(product);
    return rest;
}

/* The largest integer whose square is not larger, by Newton's method from above. */
static struct big *root(const struct big *a) {
    struct big *guess = new_big(a->count / 2 + 2);
    memset(guess->digits, 0, guess->count * sizeof *guess->digits);
    guess->digits[guess->count - 1] = 1;
    for (;;) {
        uint32_t none;
        struct big *quotient = divide(a, guess, NULL), *sum = add(guess, quotient);
        struct big *next_guess = divide_small(sum, 2, &none);
        drop(quotient);
        drop(sum);
        if (compare(next_guess, guess) >= 0) {
            drop(next_guess);
            return guess;
        }
        set(&guess, next_guess);
    }
}

static struct big *greatest_divisor(const struct big *a, const struct big *b) {
    struct big *one = copy(a), *other = copy(b);
    while (other->count > 0) {
        struct big *rest = modulo(one, other);
        set(&one, other);
        other = rest;
    }
    drop(other);
    return one;
}

/* ---- the method ---- */

enum { PRIMES = 80, SPARE = 12, RELATIONS = PRIMES + SPARE };

/* Bits: 0 to 127 the exponents of -1 and of the primes, 128 and on the relations of a product. */
typedef uint64_t row[4];

struct relation {
    struct big *a, *q;
    row bits;
};

static void flip(row bits, size_t at) { bits[at / 64] ^= UINT64_C(1) << (at % 64); }
static bool has(const row bits, size_t at) { return bits[at / 64] >> (at % 64) & 1; }

static uint32_t power_modulo(uint32_t base, uint32_t exponent, uint32_t by) {
    uint64_t result = 1, factor = base % by;
    for (; exponent > 0; exponent >>= 1) {
        if (exponent & 1) result = result * factor % by;
        factor = factor * factor % by;
    }
    return (uint32_t)result;
}

static bool is_prime_small(uint32_t n) {
    for (uint32_t by = 2; by * by <= n; by++) {
        if (n % by == 0) return false;
    }
    return n > 1;
}

/* The primes that can divide a q: n is a square modulo each of them. */
static void choose_primes(const struct big *n, uint32_t *primes) {
    size_t count = 0;
    for (uint32_t prime = 2; count < PRIMES; prime++) {
        if (!is_prime_small(prime)) continue;
        uint32_t rest = modulo_small(n, prime);
        if (prime == 2 || rest == 0 || power_modulo(rest, (prime - 1) / 2, prime) == 1) {
            primes[count++] = prime;
        }
    }
}

/* Divides q by the primes. Whether nothing else divides it; counts[i] is the exponent then. */
static bool split(const struct big *q, const uint32_t *primes, uint32_t *counts) {
    struct big *left = copy(q);
    for (size_t i = 0; i < PRIMES; i++) {
        counts[i] = 0;
        while (left->count > 0 && modulo_small(left, primes[i]) == 0) {
            uint32_t none;
            set(&left, divide_small(left, primes[i], &none));
            counts[i]++;
        }
    }
    bool whole = left->count == 1 && left->digits[0] == 1;
    drop(left);
    return whole;
}

/* The state of the continued fraction: a q with its a, and what the next step needs. */
struct fraction {
    const struct big *n;
    struct big *root, *p, *q, *last_q, *a, *last_a;
    bool odd;
};

static struct fraction begin(const struct big *n) {
    struct fraction f = {.n = n, .root = root(n), .odd = true};
    struct big *square = multiply(f.root, f.root);
    f.p = copy(f.root);
    f.q = subtract(n, square);
    f.last_q = big_of(1);
    f.a = copy(f.root);
    f.last_a = big_of(1);
    drop(square);
    return f;
}

static void step(struct fraction *f) {
    struct big *sum = add(f->root, f->p), *rest;
    struct big *part = divide(sum, f->q, &rest);
    struct big *next_p = subtract(f->root, rest);
    bool grows = compare(next_p, f->p) >= 0; /* next q = last q + part * (p - next p) */
    struct big *change = grows ? subtract(next_p, f->p) : subtract(f->p, next_p);
    struct big *product = multiply(part, change);
    struct big *next_q = grows ? subtract(f->last_q, product) : add(f->last_q, product);
    struct big *multiple = multiply(part, f->a), *next_a = add(multiple, f->last_a);
    set(&f->last_q, f->q);
    set(&f->p, next_p);
    f->q = next_q;
    set(&f->last_a, f->a);
    f->a = modulo(next_a, f->n);
    f->odd = !f->odd;
    drop(sum);
    drop(rest);
    drop(part);
    drop(change);
    drop(product);
    drop(multiple);
    drop(next_a);
}

static void end(struct fraction *f) {
    struct big *all[] = {f->root, f->p, f->q, f->last_q, f->a, f->last_a};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) drop(all[i]);
}

static void find_relations(const struct big *n, const uint32_t *primes, struct relation *found) {
    struct fraction f = begin(n);
    uint32_t counts[PRIMES];
    for (size_t count = 0; count < RELATIONS; step(&f)) {
        if (!split(f.q, primes, counts)) continue;
        struct relation *one = &found[count];
        *one = (struct relation){.a = copy(f.a), .q = copy(f.q)};
        if (f.odd) flip(one->bits, 0);
        for (size_t i = 0; i < PRIMES; i++) {
            if (counts[i] % 2 == 1) flip(one->bits, i + 1);
        }
        flip(one->bits, 128 + count++);
    }
    end(&f);
}

/* Gaussian elimination modulo 2. Afterwards the last SPARE - 1 rows or more have no exponents. */
static void eliminate(struct relation *found) {
    size_t done = 0;
    for (size_t bit = 0; bit <= PRIMES; bit++) {
        size_t pivot = done;
        while (pivot < RELATIONS && !has(found[pivot].bits, bit)) pivot++;
        if (pivot == RELATIONS) continue;
        struct relation swap = found[pivot];
        found[pivot] = found[done];
        found[done] = swap;
        for (size_t i = done + 1; i < RELATIONS; i++) {
            if (!has(found[i].bits, bit)) continue;
            for (size_t word = 0; word < 4; word++) found[i].bits[word] ^= found[done].bits[word];
        }
        done++;
    }
}

/* A divisor of n from the product of the relations that `bits` names. It may be 1 or n. */
static struct big *divisor_of(const struct big *n, const uint32_t *primes,
                              const struct relation *all, const row bits) {
    struct big *x = big_of(1), *y = big_of(1);
    uint32_t sums[PRIMES] = {0}, counts[PRIMES];
    for (size_t i = 0; i < RELATIONS; i++) {
        if (!has(bits, 128 + i)) continue;
        set(&x, multiply_modulo(x, all[i].a, n));
        must(split(all[i].q, primes, counts), "a relation stays one");
        for (size_t p = 0; p < PRIMES; p++) sums[p] += counts[p];
    }
    for (size_t p = 0; p < PRIMES; p++) {
        must(sums[p] % 2 == 0, "the exponents are even");
        struct big *prime = big_of(primes[p]);
        for (uint32_t i = 0; i < sums[p] / 2; i++) set(&y, multiply_modulo(y, prime, n));
        drop(prime);
    }
    struct big *difference = compare(x, y) >= 0 ? subtract(x, y) : subtract(y, x);
    struct big *divisor = greatest_divisor(difference, n);
    drop(x);
    drop(y);
    drop(difference);
    return divisor;
}

/* Whether a divisor of n was found that is neither 1 nor n. */
static bool factor(const struct big *n) {
    uint32_t primes[PRIMES];
    struct relation found[RELATIONS], sorted[RELATIONS];
    choose_primes(n, primes);
    find_relations(n, primes, found);
    memcpy(sorted, found, sizeof found);
    eliminate(sorted);
    bool split_up = false;
    for (size_t i = PRIMES + 1; i < RELATIONS && !split_up; i++) {
        struct big *divisor = divisor_of(n, primes, found, sorted[i].bits);
        struct big *rest = modulo(n, divisor);
        must(rest->count == 0, "a divisor divides");
        bool is_one = divisor->count == 1 && divisor->digits[0] == 1;
        split_up = !is_one && compare(divisor, n) < 0;
        drop(divisor);
        drop(rest);
    }
    for (size_t i = 0; i < RELATIONS; i++) {
        drop(found[i].a);
        drop(found[i].q);
    }
    return split_up;
}

/* A random prime of 40 bits, which Fermat's test for four bases recognises. */
static uint64_t random_prime(struct random *random) {
    static const unsigned bases[] = {2, 3, 5, 7};
    for (;;) {
        uint64_t n = (next(random) >> 24) | UINT64_C(1) << 39 | 1;
        size_t passed = 0;
        for (; passed < 4; passed++) {
            unsigned __int128 result = 1, power = bases[passed];
            for (uint64_t e = n - 1; e > 0; e >>= 1) {
                if (e & 1) result = result * power % n;
                power = power * power % n;
            }
            if (result != 1) break;
        }
        if (passed == 4) return n;
    }
}

int main(int count, char **arguments) {
    uint64_t size = size_of_work(count, arguments), sum = 0;
    struct random random = random_from(7);
    for (uint64_t i = 0; i < size; i++) {
        struct big *p = big_of(random_prime(&random)), *q = big_of(random_prime(&random));
        struct big *n = multiply(p, q);
        sum += factor(n);
        drop(p);
        drop(q);
        drop(n);
    }
    return finish(count, arguments, sum);
}
