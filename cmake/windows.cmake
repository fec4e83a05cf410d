# Toolchain file: builds for Windows with 64 bits. SLABYARD_ZIG is the program zig, whose C and C++
# compilers are clang with the headers and libraries of mingw-w64. Without it the compiler is clang
# with those of Debian's package gcc-mingw-w64-x86-64-posix, for C alone. (The gcc of this package
# calls a function at each access of a thread-local variable.) SLABYARD_WINE is what runs Windows
# programs, for the tests. tests/install/windows.sh provides them.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES SLABYARD_ZIG SLABYARD_WINE)
if(SLABYARD_ZIG)
    set(CMAKE_C_COMPILER ${SLABYARD_ZIG} cc -target x86_64-windows-gnu)
    set(CMAKE_CXX_COMPILER ${SLABYARD_ZIG} c++ -target x86_64-windows-gnu)
    # zig has ar and ranlib as commands, and CMake expects programs.
    foreach(tool ar ranlib)
        set(program ${CMAKE_BINARY_DIR}/zig-${tool})
        file(CONFIGURE OUTPUT ${program} CONTENT "#!/bin/sh\nexec '${SLABYARD_ZIG}' ${tool} \"$@\"\n")
        file(CHMOD ${program} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
        string(TOUPPER ${tool} variable)
        set(CMAKE_${variable} ${program})
    endforeach()
    set(CMAKE_RC_COMPILER ${SLABYARD_ZIG}) # there are no resources
else()
    file(GLOB of_gcc /usr/lib/gcc/x86_64-w64-mingw32/*-posix)
    set(CMAKE_C_COMPILER clang)
    set(CMAKE_C_COMPILER_TARGET x86_64-w64-mingw32)
    set(CMAKE_C_FLAGS_INIT --sysroot=/usr/x86_64-w64-mingw32)
    set(CMAKE_CXX_COMPILER clang++)
    set(CMAKE_CXX_COMPILER_TARGET x86_64-w64-mingw32)
    set(CMAKE_CXX_COMPILER_WORKS ON) # it has no library, and compiles nothing
    set(CMAKE_AR x86_64-w64-mingw32-ar)
    set(CMAKE_RANLIB x86_64-w64-mingw32-ranlib)
    # Linked statically, because a program would have to find the DLLs of gcc.
    foreach(kind EXE SHARED)
        set(CMAKE_${kind}_LINKER_FLAGS_INIT
            "-static -fuse-ld=/usr/bin/x86_64-w64-mingw32-ld -L${of_gcc}")
    endforeach()
endif()
set(CMAKE_CROSSCOMPILING_EMULATOR ${SLABYARD_WINE})
