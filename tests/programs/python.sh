commands="python3"
packages="python3 libpython3-testsuite libpython3.$(python3 -c 'import sys; print(sys.version_info[1])' 2>/dev/null)-testsuite"
installed() { python3 -c "import test.test_json, test.test_threading"; }
version="python3 --version"
checks="its own tests, 90 modules with threads and processes, PYTHONMALLOC=malloc"
seconds=900
processes="python3\.[0-9]*"

modules="test_array test_ast test_asyncio.test_tasks test_base64 test_bigmem test_binascii test_bisect test_buffer
test_builtin test_bytes test_bz2 test_calendar test_class test_cmath test_code test_codecs test_collections
test_complex test_concurrent_futures test_configparser test_contextlib test_copy test_csv test_ctypes
test_dataclasses test_datetime test_decimal test_deque test_descr test_dict test_difflib test_enum test_exceptions
test_fileio test_float test_fork1 test_format test_fractions test_functools test_gc test_generators test_hashlib
test_heapq test_html test_int test_io test_iter test_itertools test_json test_list test_long test_lzma test_marshal
test_math test_memoryview test_mmap test_multiprocessing_fork test_multiprocessing_spawn test_operator
test_ordered_dict test_os test_pickle test_queue test_random test_re test_richcmp test_set test_shelve test_slice
test_sort test_statistics test_string test_struct test_subprocess test_tempfile test_thread
test_threading test_threading_local test_traceback test_tuple test_unicode test_unicode_file test_unicodedata test_userdict
test_userlist test_weakref test_xml_etree test_xml_etree_c test_zipfile test_zlib"

program() {
    use_library
    # C.UTF-8: some tests name files with letters of other languages.
    TMPDIR=$work LC_ALL=C.UTF-8 TZ= PYTHONHASHSEED=random python3 -m test -j2 --timeout=600 $modules
}
