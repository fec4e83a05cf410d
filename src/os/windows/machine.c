/*
 * machine.c: the part of os.h for processors, limits, time and random numbers on Windows. Limits
 * are those of the job object that the process is in, as containers use them.
 */
#include "base/random.h"
#include "os/os.h"
#include "os/windows/system.h"

#if SY_PLATFORM_WINDOWS

static const uint64_t NS_PER_SECOND = 1000000000;
static const uint64_t NS_PER_TICK = 100; /* of a FILETIME */

/* ---- processors ---- */

unsigned sy_os_cpu(void) { return GetCurrentProcessorNumber(); }

/* A process in several groups of processors has no mask. */
unsigned sy_os_affinity_count(void) {
    DWORD_PTR mine = 0, all = 0;
    if (!GetProcessAffinityMask(GetCurrentProcess(), &mine, &all) || mine == 0) {
        DWORD count = GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
        return count ? count : 1;
    }
    return (unsigned)__builtin_popcountll(mine);
}

/* A job's rate of processor time counts all processors of the system, in units of 1/10000. */
unsigned sy_os_cpu_count(void) {
    enum { WHOLE = 10000 };
    unsigned affinity = sy_os_affinity_count();
    JOBOBJECT_CPU_RATE_CONTROL_INFORMATION rate;
    const DWORD hard = JOB_OBJECT_CPU_RATE_CONTROL_ENABLE | JOB_OBJECT_CPU_RATE_CONTROL_HARD_CAP;
    if (!QueryInformationJobObject(NULL, JobObjectCpuRateControlInformation, &rate, sizeof rate,
                                   NULL) ||
        (rate.ControlFlags & hard) != hard)
        return affinity;
    uint64_t parts = (uint64_t)rate.CpuRate * GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
    uint64_t quota = (parts + WHOLE - 1) / WHOLE;
    return quota != 0 && quota < affinity ? (unsigned)quota : affinity;
}

/* ---- memory ---- */

size_t sy_os_memory_limit(void) {
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION job;
    size_t least = SIZE_MAX;
    if (!QueryInformationJobObject(NULL, JobObjectExtendedLimitInformation, &job, sizeof job, NULL))
        return least;
    DWORD flags = job.BasicLimitInformation.LimitFlags;
    if (flags & JOB_OBJECT_LIMIT_PROCESS_MEMORY) least = job.ProcessMemoryLimit;
    if (flags & JOB_OBJECT_LIMIT_JOB_MEMORY && job.JobMemoryLimit < least)
        least = job.JobMemoryLimit;
    return least;
}

/* A limit of a job is one. */
bool sy_os_space_is_limited(void) { return sy_os_memory_limit() != SIZE_MAX; }

/* The private part is committed, and perhaps not in RAM; the working set is in RAM, and partly
 * shared. The lesser of the two is the better estimate. */
size_t sy_os_resident(void) {
    PROCESS_MEMORY_COUNTERS_EX counts = {.cb = sizeof counts};
    if (!K32GetProcessMemoryInfo(GetCurrentProcess(), (PROCESS_MEMORY_COUNTERS *)&counts,
                                 sizeof counts))
        return 0;
    bool told = counts.PrivateUsage != 0 && counts.PrivateUsage < counts.WorkingSetSize;
    return told ? counts.PrivateUsage : counts.WorkingSetSize;
}

/* ---- time, random numbers ---- */

uint64_t sy_os_now(void) {
    static _Atomic uint64_t known;
    LARGE_INTEGER now;
    uint64_t rate = atomic_load_explicit(&known, memory_order_relaxed);
    if (rate == 0) {
        QueryPerformanceFrequency(&now);
        rate = (uint64_t)now.QuadPart;
        atomic_store_explicit(&known, rate, memory_order_relaxed);
    }
    QueryPerformanceCounter(&now);
    uint64_t ticks = (uint64_t)now.QuadPart;
    return ticks / rate * NS_PER_SECOND + ticks % rate * NS_PER_SECOND / rate;
}

static uint64_t ns_of(FILETIME time) {
    return ((uint64_t)time.dwHighDateTime << 32 | time.dwLowDateTime) * NS_PER_TICK;
}

uint64_t sy_os_thread_time(void) {
    FILETIME made, ended, kernel, user;
    GetThreadTimes(GetCurrentThread(), &made, &ended, &kernel, &user);
    return ns_of(kernel) + ns_of(user);
}

/* The system's name of RtlGenRandom, which has no other. */
extern BOOLEAN NTAPI SystemFunction036(void *into, ULONG bytes);

/* The clock, a stack address and a count of calls differ a little between calls and processes. */
static uint64_t weak_bits(void) {
    static _Atomic uint64_t calls;
    uint64_t call = atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed) + 1;
    return sy_random_mix(sy_os_now() ^ (uintptr_t)&call ^ (call * SY_RANDOM_STEP));
}

uint64_t sy_os_random(void) {
    uint64_t bits;
    DWORD last = GetLastError();
    if (!SystemFunction036(&bits, sizeof bits)) bits = weak_bits();
    SetLastError(last);
    return bits;
}

#endif
