# Defines the target slabyard_house: the compiler and linker flags of the project's own code
# (warnings, sanitizers, hidden symbols, SY_DEBUG). Programs that use the library do not get these
# flags.
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/warnings.txt SLABYARD_WARNINGS)
if(SLABYARD_WERROR)
    list(APPEND SLABYARD_WARNINGS -Werror)
endif()

set(SLABYARD_SANITIZE_FLAGS "")
if(SLABYARD_SANITIZE)
    set(SLABYARD_SANITIZE_FLAGS -fsanitize=${SLABYARD_SANITIZE} -fno-sanitize-recover=all
        -fno-omit-frame-pointer)
    # With gcc, a check for null reads the flags of the addition that makes the address of a
    # thread-local variable. The linker replaces this addition by an instruction without flags.
    if(CMAKE_C_COMPILER_ID STREQUAL GNU AND SLABYARD_SANITIZE MATCHES undefined)
        list(APPEND SLABYARD_SANITIZE_FLAGS -fno-sanitize=null)
    endif()
endif()

# The library records stacks by frame pointers if it can follow them to the program's functions
# (src/debug/stack.c). CMakeLists.txt names the folders that are compiled with these flags. src/heap
# and src/vmem are not: their fast paths are functions, which would be slower with some compilers.
include(CheckCCompilerFlag)
check_c_compiler_flag(-momit-leaf-frame-pointer SLABYARD_CAN_OMIT_LEAVES)
set(SLABYARD_FRAME_FLAGS -fno-omit-frame-pointer)
if(SLABYARD_CAN_OMIT_LEAVES)
    list(APPEND SLABYARD_FRAME_FLAGS -momit-leaf-frame-pointer)
endif()

# What a small program has of the shared libraries in memory (cmake/first.ld).
#
# -ffunction-sections, -fdata-sections: each function and variable has a section, which first.ld
# names.
#
# SLABYARD_SHARED_FLAGS: empty with a linker that cannot add to its script. The order of the
# remaining sections, by alignment, leaves small variables together.
set(SLABYARD_SHARED_FLAGS -Wl,-T,${CMAKE_CURRENT_LIST_DIR}/first.ld -Wl,-z,max-page-size=65536
    -Wl,--sort-section=alignment)
include(CheckLinkerFlag)
check_linker_flag(C "${SLABYARD_SHARED_FLAGS}" SLABYARD_CAN_ORDER)
if(NOT SLABYARD_CAN_ORDER)
    set(SLABYARD_SHARED_FLAGS "")
endif()

# Packed, the addresses that the loader has to adjust take 0.5 KiB of a library and not 15. A loader
# that does not know this form (glibc before 2.36) would refuse the library, or not adjust it. So a
# program has to run that needs it. What is compiled for another system does without.
if(SLABYARD_CAN_ORDER AND NOT CMAKE_CROSSCOMPILING)
    include(CheckCSourceRuns)
    set(CMAKE_REQUIRED_LINK_OPTIONS -pie -Wl,-z,pack-relative-relocs)
    set(CMAKE_REQUIRED_FLAGS -fPIE)
    check_c_source_runs("static int a;
        int *volatile pointer = &a;
        int main(void) { return pointer != &a; }" SLABYARD_CAN_PACK)
    unset(CMAKE_REQUIRED_LINK_OPTIONS)
    unset(CMAKE_REQUIRED_FLAGS)
    if(SLABYARD_CAN_PACK)
        list(APPEND SLABYARD_SHARED_FLAGS -Wl,-z,pack-relative-relocs)
    endif()
endif()

# The drop-in malloc contains an unwinder, so that C programs need not load libgcc_s
# (shim/shared/unwinder.c).
if(SLABYARD_MALLOC)
    set(SLABYARD_UNWIND_FLAGS -static-libgcc -Wl,--wrap=_Unwind_Resume)
    check_linker_flag(C "${SLABYARD_UNWIND_FLAGS}" SLABYARD_CAN_UNWIND)
endif()

# The first call of a function of another library would run the loader: 3 KiB of stack with AVX-512,
# in a thread or a handler that may have 16 KiB or less. So the addresses are found at the start: in
# the shared libraries by -z now, in a program that contains the static library by -fno-plt.
set(SLABYARD_BOUND_FLAGS "")
if(NOT WIN32)
    check_c_compiler_flag(-fno-plt SLABYARD_CAN_BIND)
endif()
if(SLABYARD_CAN_BIND)
    set(SLABYARD_BOUND_FLAGS -fno-plt)
endif()

# On Windows a C program has no unwinder unless it is linked with one. (With gcc, libgcc is one.)
set(SLABYARD_UNWINDER "")
if(WIN32)
    include(CheckCSourceCompiles)
    set(CMAKE_REQUIRED_FLAGS -fexceptions)
    check_c_source_compiles("static void clean(int *value) { *value = 0; }
        static void call(void) {}
        void (*volatile pointer)(void) = call;
        int main(void) {
            int value __attribute__((cleanup(clean))) = 0;
            pointer();
            return value;
        }" SLABYARD_HAS_UNWINDER)
    unset(CMAKE_REQUIRED_FLAGS)
    if(NOT SLABYARD_HAS_UNWINDER)
        set(SLABYARD_UNWINDER unwind)
    endif()
endif()

add_library(slabyard_house INTERFACE)
target_compile_features(slabyard_house INTERFACE c_std_11)
target_compile_options(slabyard_house INTERFACE
    $<$<COMPILE_LANGUAGE:C>:${SLABYARD_WARNINGS}>
    $<$<BOOL:$<TARGET_PROPERTY:SLABYARD_NARROWS>>:-Wno-conversion> -fvisibility=hidden -fexceptions -ffunction-sections
    -fdata-sections ${SLABYARD_BOUND_FLAGS} ${SLABYARD_SANITIZE_FLAGS})
target_link_options(slabyard_house INTERFACE ${SLABYARD_SANITIZE_FLAGS})
if(SLABYARD_PORTABLE)
    target_compile_definitions(slabyard_house INTERFACE SY_PORTABLE)
endif()
if(SLABYARD_POSIX)
    target_compile_definitions(slabyard_house INTERFACE SY_POSIX)
endif()
if(SLABYARD_DEBUG)
    target_compile_definitions(slabyard_house INTERFACE SY_DEBUG=1)
endif()
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS ON)
