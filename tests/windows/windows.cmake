# Builds the tests for Windows and declares them to ctest. A test that needs what Windows lacks is
# skipped (posix.h). Where a source needs a header that has no stand-in here, its program is left
# out: it is a test of another system. SLABYARD_CMOCKA is a folder with the sources of cmocka;
# without it there are no unit tests.
set(SLABYARD_CMOCKA "" CACHE PATH "Sources of cmocka")

# ---- what the programs are linked with ----

set(here ${CMAKE_CURRENT_LIST_DIR})
set_source_files_properties(${here}/posix.c PROPERTIES COMPILE_OPTIONS -w)
add_library(test_posix OBJECT ${here}/posix.c)
target_link_libraries(test_posix PRIVATE slabyard_house)
add_library(test_posix_stress OBJECT ${here}/posix.c)
target_compile_definitions(test_posix_stress PRIVATE WITH_IMAGINED_CHILDREN)
target_link_libraries(test_posix_stress PRIVATE slabyard_house)

if(SLABYARD_CMOCKA)
    add_library(cmocka STATIC ${SLABYARD_CMOCKA}/src/cmocka.c)
    target_include_directories(cmocka PUBLIC ${SLABYARD_CMOCKA}/include)
    target_compile_definitions(cmocka PRIVATE HAVE_INTTYPES_H HAVE_IO_H HAVE_MALLOC_H HAVE_SIGNAL_H
        HAVE_SNPRINTF HAVE_STDINT_H HAVE_STDLIB_H HAVE_STRING_H HAVE_VSNPRINTF)
    add_library(test_posix_cmocka OBJECT ${here}/posix.c)
    target_compile_definitions(test_posix_cmocka PRIVATE WITH_CMOCKA)
    target_link_libraries(test_posix_cmocka PRIVATE slabyard_house cmocka)
endif()

# The linker has no --wrap for this system. So the fake OS stands between objects that were compiled
# to call __wrap_NAME in place of NAME, and the platform's own.
set(faked ${SLABYARD_SOURCES})
list(FILTER faked EXCLUDE REGEX "/src/os/(absent|[a-z]+/[a-z]+)\\.c$")
set(unfaked ${SLABYARD_SOURCES})
list(FILTER unfaked INCLUDE REGEX "/src/os/(absent|[a-z]+/[a-z]+)\\.c$")
string(REGEX MATCHALL "__wrap_sy_os_[a-z_]+" names "${text}")
list(REMOVE_DUPLICATES names)
list(TRANSFORM names REPLACE "__wrap_(.*)" "\\1=__wrap_\\1" OUTPUT_VARIABLE to_fake)
list(TRANSFORM names REPLACE "__wrap_(.*)" "__real_\\1=\\1" OUTPUT_VARIABLE to_real)
add_library(test_faked STATIC ${faked} ${unfaked} ${fake})
target_include_directories(test_faked PUBLIC ${root}/src ${root}/include)
target_link_libraries(test_faked PRIVATE slabyard_house)
target_link_libraries(test_faked PUBLIC Threads::Threads ${SLABYARD_UNWINDER})
set_property(SOURCE ${faked} APPEND PROPERTY COMPILE_DEFINITIONS ${to_fake})
set_property(SOURCE ${fake} APPEND PROPERTY COMPILE_DEFINITIONS ${to_real})

# ---- programs ----

# Headers, helpers and functions of other systems.
set(foreign "#include[^\n]*(sys/(epoll|prctl|ptrace|socket|stat|syscall|uio|un)|arpa/|netinet/|linux/")
string(APPEND foreign "|ucontext|dlfcn|link\\.h|<unwind|os/linux/|support/(resident|bank|steps|small_pages|traps)\\.h)")
string(APPEND foreign "|(fopencookie|malloc_trim|mallopt|mlockall|msync) *\\(|alignas\\(1 << 22\\)")

# Programs of what Windows lacks: their child processes run all tests (maintenance, trim_some); they
# search for objects that no pointer leads to, in a copy of the process (leaks); they make copies
# (process); the C library passes no arguments to constructors (start_hooks). Also programs that do
# nothing but fork, one about a thread's magazines that other threads reach into, and one that reads
# /proc.
set(unfit compat_magazine-slab_vmem stress_fork stress_sleepers test_leaks test_maintenance test_process test_start_hooks test_trim_some)

# windows_program(NAME SOURCE...): builds one program, or none if its source is of another system. The
# first source decides what it is linked with.
function(windows_program name source)
    file(STRINGS ${source} other REGEX "${foreign}")
    file(STRINGS ${source} uses_fake REGEX "#include.*os/fake\\.h")
    file(STRINGS ${source} uses_cmocka REGEX "#include.*cmocka\\.h")
    if(other OR name IN_LIST unfit OR (uses_cmocka AND NOT SLABYARD_CMOCKA))
        return()
    endif()
    add_executable(${name} ${source} ${ARGN})
    target_include_directories(${name} PRIVATE ${here} ${root}/src ${root}/include ${root}/tests)
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:C>:-include${here}/posix.h> -w)
    if(uses_cmocka)
        target_link_libraries(${name} PRIVATE cmocka)
        target_sources(${name} PRIVATE $<TARGET_OBJECTS:test_posix_cmocka>)
    elseif(name MATCHES "^stress_")
        target_sources(${name} PRIVATE $<TARGET_OBJECTS:test_posix_stress>)
    else()
        target_sources(${name} PRIVATE $<TARGET_OBJECTS:test_posix>)
    endif()
    if(uses_fake)
        target_compile_definitions(${name} PRIVATE ${to_fake})
        target_link_libraries(${name} PRIVATE slabyard_house test_faked)
    else()
        target_link_libraries(${name} PRIVATE slabyard_house slabyard_static)
    endif()
endfunction()

# windows_test(NAME LABEL TIMEOUT PROGRAM ARGUMENTS...): a ctest entry, if there is the program.
function(windows_test name label timeout program)
    if(TARGET ${program})
        sy_test(${name} ${label} ${timeout} 1 $<TARGET_FILE:${program}> ${ARGN})
        set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
    endif()
endfunction()

file(GLOB sources CONFIGURE_DEPENDS unit/test_*.c windows/test_*.c)
foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    if(name MATCHES "_narrow$|_frames$") # the same sources, compiled in another way
        continue()
    endif()
    windows_program(${name} ${source} ${CMAKE_CURRENT_SOURCE_DIR}/unit/still.c)
    windows_test(unit.${name} unit 300 ${name})
endforeach()

# Threads are not cancelled; and the C library runs the destructors of keys before the library is
# told of a thread's end, so none runs after it.
foreach(skipped "facts=*cancellation*" "cache_threads=*after_its_end*")
    string(REPLACE = ";" skipped ${skipped})
    list(GET skipped 0 name)
    list(GET skipped 1 pattern)
    if(TEST unit.test_${name})
        set_property(TEST unit.test_${name} APPEND PROPERTY ENVIRONMENT SLABYARD_TEST_SKIPS=${pattern})
    endif()
endforeach()

# Reads the flags of mappings in /proc, as no emulator lists them.
if(TEST unit.test_secrets)
    set_property(TEST unit.test_secrets APPEND PROPERTY ENVIRONMENT SLABYARD_TEST_EMULATED=1)
endif()

file(GLOB sources CONFIGURE_DEPENDS fuzz/fuzz_*.c)
foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    if(name MATCHES "_narrow$")
        continue()
    endif()
    windows_program(${name} ${source} ${fuzz_driver})
    windows_test(fuzz.${name} fuzz 300 ${name} ${SLABYARD_FUZZ_RUNS})
    set(corpus ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus/${name}.hex)
    if(EXISTS ${corpus})
        windows_test(fuzz.${name}.corpus fuzz 300 ${name} ${corpus})
    endif()
endforeach()

file(GLOB sources CONFIGURE_DEPENDS stress/stress_*.c)
foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    windows_program(${name} ${source})
    windows_test(stress.${name} stress 300 ${name} ${SLABYARD_STRESS_SECONDS})
endforeach()

file(GLOB sources CONFIGURE_DEPENDS ${root}/examples/*.c ${root}/examples/*.cpp)
foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    windows_program(example_${name} ${source})
    windows_test(examples.${name} examples 120 example_${name})
endforeach()

file(GLOB sources CONFIGURE_DEPENDS cpp/cpp_*.cpp)
foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    windows_program(${name} ${source})
    windows_test(cpp.${name} cpp 120 ${name})
endforeach()

# Programs for the APIs of earlier systems.
file(GLOB sources RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS compat/*/*.c)
list(FILTER sources EXCLUDE REGEX "^compat/together/")
foreach(source ${sources})
    get_filename_component(system ${source} DIRECTORY)
    get_filename_component(system ${system} NAME)
    get_filename_component(name ${source} NAME_WE)
    set(name ${system}_${name})
    windows_program(compat_${name} ${CMAKE_CURRENT_SOURCE_DIR}/${source})
    if(TARGET compat_${name})
        target_include_directories(compat_${name} PRIVATE ${root}/compat/${system})
        target_compile_definitions(compat_${name} PRIVATE COMPAT="${root}/compat/${system}/")
    endif()
    windows_test(compat.${name} compat 120 compat_${name})
    if(name MATCHES "_answers$") # with checks and without
        windows_test(compat.${name}_with_checks compat 120 compat_${name})
        set_property(TEST compat.${name}_with_checks APPEND PROPERTY ENVIRONMENT
            SLABYARD=tools=off,check)
    elseif(name MATCHES "_checked$")
        set_property(TEST compat.${name} APPEND PROPERTY ENVIRONMENT
            SLABYARD=tools=off,check,redzone)
    endif()
endforeach()
