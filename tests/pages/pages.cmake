# The tests once more with pages of 16 and 64 KiB, which tests/pages/pages.c emulates. Left out: leaks,
# which are found through /proc/self/pagemap; the soak, which bounds resident memory; forks at single
# instructions, which are the same with each page size.
add_library(test_pages MODULE ${CMAKE_CURRENT_LIST_DIR}/pages.c)

# pages_tests(entry label processors preload program arguments...): an entry for each page size. "label"
# is quick, or long: then there is one for 64 KiB only, and make test leaves it out.
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
