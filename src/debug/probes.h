/*
 * probes.h: OpenTelemetry's probes of allocations, for profilers outside of the process.
 *
 *     provider otel_memory:  alloc(object, size, weight)   a sampled object of `size` bytes, which
 *                                                          stands for `weight` allocated bytes
 *                            free(object)                  the object is about to be freed
 *
 * A probe is one instruction that does nothing, and a note in the file that says where it is and
 * where its arguments are (SystemTap's "UserSpaceProbeImplementation", version 3). A profiler puts
 * a breakpoint there (uprobes). Nothing is linked, and nothing is called.
 *
 * The design of these probes may change; their names are in this file alone. Elsewhere than in ELF
 * files for x86-64 and 64-bit Arm the macros do nothing. Used by profile.c alone.
 */
#ifndef SY_DEBUG_PROBES_H
#define SY_DEBUG_PROBES_H

#if defined(__ELF__) && (defined(__x86_64__) || defined(__aarch64__)) && defined(__LP64__)

#    define SY_PROBE_NOTE(name, arguments)                                \
        "990: nop\n"                                                      \
        ".pushsection .note.stapsdt, \"\", %%note\n"                      \
        ".balign 4\n"                                                     \
        ".4byte 992f - 991f, 994f - 993f, 3\n"                            \
        "991: .asciz \"stapsdt\"\n"                                       \
        "992: .balign 4\n"                                                \
        "993: .8byte 990b, 0, 0\n" /* the probe, no base, no semaphore */ \
        ".asciz \"otel_memory\"\n"                                        \
        ".asciz \"" name "\"\n"                                           \
        ".asciz \"" arguments "\"\n"                                      \
        "994: .balign 4\n"                                                \
        ".popsection\n"

/* Each argument is an unsigned word of 8 bytes, in a register. */
#    define SY_PROBE_ALLOC(object, size, weight)                  \
        __asm__ volatile(SY_PROBE_NOTE("alloc", "8@%0 8@%1 8@%2") \
                         :                                        \
                         : "r"(object), "r"((uint64_t)(size)), "r"((uint64_t)(weight)))
#    define SY_PROBE_FREE(object) __asm__ volatile(SY_PROBE_NOTE("free", "8@%0") : : "r"(object))

#else
#    define SY_PROBE_ALLOC(object, size, weight) ((void)(object), (void)(size), (void)(weight))
#    define SY_PROBE_FREE(object)                ((void)(object))
#endif

#endif
