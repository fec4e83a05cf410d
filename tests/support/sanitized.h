/*
 * sanitized.h: whether this build has a sanitizer whose own memory shows in a test's measurements.
 */
#ifndef SLABYARD_TESTS_SANITIZED_H
#define SLABYARD_TESTS_SANITIZED_H

#include <stdbool.h>

#if defined(__has_feature)
#    if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#        define SANITIZED_HERE 1
#    endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#    define SANITIZED_HERE 1
#endif

#if defined(SANITIZED_HERE)
static const bool SANITIZED = true;
#else
static const bool SANITIZED = false;
#endif

/* ThreadSanitizer has its own locks, which may be held by another thread at a fork. */
#if defined(__has_feature)
#    if __has_feature(thread_sanitizer)
#        define THREAD_SANITIZED_HERE 1
#    endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(THREAD_SANITIZED_HERE)
static const bool THREAD_SANITIZED = true;
#else
static const bool THREAD_SANITIZED = false;
#endif

#endif
