# Runs the tests again with pages of 16 and 64 KiB, which tests/pages/pages.c emulates. These are
# left out: test_leaks, because leaks are found through /proc/self/pagemap, which is not emulated;
# stress_soak, because it checks resident memory; test_fork_steps, because the page size makes no
# difference.
add_library(test_pages MODULE ${CMAKE_CURRENT_LIST_DIR}/pages.c)

# pages_tests(entry label processors preload program arguments...): adds a ctest entry for each page
# size.
#   label    quick: `make test` runs the entry for 64 KiB, and `make check-all` runs both
#            long: there is an entry for 64 KiB only, which only `make check-all` runs
#   preload  empty, or a colon and a library to preload
function(pages_tests entry label processors preload program)
    foreach(size 16384 65536)
        if(label STREQUAL "long" AND size EQUAL 16384)
            continue()
        endif()
        set(name pages.${size}.${entry})
        sy_test(${name} pages 600 ${processors} $<TARGET_FILE:${program}> ${ARGN})
        sy_label(${name} pages test_pages)
        set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT
            SLABYARD_TEST_PAGES=${size} LD_PRELOAD=$<TARGET_FILE:test_pages>${preload})
        if(label STREQUAL "long" OR size EQUAL 16384)
            set_property(TEST ${name} APPEND PROPERTY LABELS long)
        endif()
    endforeach()
endfunction()

file(GLOB sources unit/test_*.c fuzz/fuzz_*.c stress/stress_*.c)
foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    if(name MATCHES "^test_(leaks|fork_steps)$|^stress_soak$")
        continue()
    elseif(name MATCHES "^fuzz_")
        pages_tests(${name} quick 1 "" ${name} 100)
    elseif(name MATCHES "^stress_")
        pages_tests(${name} long 2 "" ${name} 1)
    elseif(name MATCHES "failures$")
        pages_tests(${name} long 1 "" ${name})
    else()
        pages_tests(${name} quick 1 "" ${name})
    endif()
endforeach()
if(TARGET slabyard_malloc)
    foreach(name names life operators replaced)
        pages_tests(malloc_${name} quick 1 :$<TARGET_FILE:slabyard_malloc> malloc_${name}_preloaded)
    endforeach()
endif()
