# Toolchain file: builds for Windows with 64 bits. SLABYARD_ZIG is the program zig, whose C compiler
# is clang with the headers and import libraries of mingw-w64; without it, mingw-w64's gcc is the
# compiler. SLABYARD_WINE is what runs Windows programs, for the tests. tests/install/windows.sh
# provides both.
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
    set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc)
    set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++)
endif()
set(CMAKE_CROSSCOMPILING_EMULATOR ${SLABYARD_WINE})
