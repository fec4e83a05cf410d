/*
 * glibc-2.31.h: what the drop-in malloc and the recorder take from the headers of gcc 11 and glibc
 * 2.33, for a build with Debian 11's compiler (packaging/python/build). It is included first, and
 * includes nothing: _GNU_SOURCE is not defined yet.
 */
#if defined(__x86_64__)
#    define __rdtsc __builtin_ia32_rdtsc
#endif

/* As in <malloc.h> since glibc 2.33. */
struct mallinfo2 {
    __SIZE_TYPE__ arena;
    __SIZE_TYPE__ ordblks;
    __SIZE_TYPE__ smblks;
    __SIZE_TYPE__ hblks;
    __SIZE_TYPE__ hblkhd;
    __SIZE_TYPE__ usmblks;
    __SIZE_TYPE__ fsmblks;
    __SIZE_TYPE__ uordblks;
    __SIZE_TYPE__ fordblks;
    __SIZE_TYPE__ keepcost;
};
