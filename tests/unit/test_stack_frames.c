/*
 * test_stack_frames.c: test_stack.c in a program that keeps frame pointers.
 */
#define _GNU_SOURCE

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "os/fake.h"

#define WITH_FRAMES 1
#include "unit/test_stack.c"
