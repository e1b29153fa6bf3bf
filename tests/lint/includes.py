# SPDX-License-Identifier: Apache-2.0
"""The rule of what precompiled headers and sources that are compiled together would hide."""

import re

import tree
from tree import COMMENT_OR_LITERAL, files, short, text

# What a header of the standard library gives; a name that several give stands with each.
GIVES = {
    "algorithm": """adjacent_find all_of any_of binary_search clamp copy copy_backward copy_if
        copy_n count count_if equal equal_range fill fill_n find find_if find_if_not for_each
        generate generate_n is_sorted lexicographical_compare lower_bound max max_element merge min
        min_element minmax minmax_element mismatch none_of nth_element partition partition_point
        pop_heap push_heap remove_copy remove_if replace replace_if reverse rotate search
        set_difference shuffle sort stable_partition stable_sort swap_ranges transform unique
        upper_bound""",
    "any": "any any_cast",
    "array": "array to_array tuple_size_v",
    "atomic": """atomic atomic_flag atomic_ref atomic_signal_fence atomic_thread_fence
        memory_order memory_order_acq_rel memory_order_acquire memory_order_relaxed
        memory_order_release memory_order_seq_cst""",
    "barrier": "barrier",
    "bit": """bit_cast bit_ceil bit_floor bit_width countl_one countl_zero countr_one countr_zero
        endian has_single_bit popcount rotl rotr""",
    "bitset": "bitset",
    "charconv": "from_chars to_chars",
    "chrono": "chrono chrono_literals",
    "cmath": "ceil cos exp fabs floor isfinite isnan ldexp log lround pow round sin sqrt",
    "compare": "partial_ordering strong_ordering weak_ordering",
    "complex": "complex",
    "concepts": """constructible_from convertible_to derived_from floating_point integral invocable
        predicate same_as signed_integral unsigned_integral""",
    "condition_variable": "condition_variable",
    "coroutine": "coroutine_handle suspend_always suspend_never",
    "csignal": "sig_atomic_t signal",
    "cstdarg": "va_list",
    "cstddef": "byte max_align_t to_integer",
    "cstdint": """int16_t int32_t int64_t int8_t intptr_t uint16_t uint32_t uint64_t uint8_t
        uintptr_t""",
    "cstdio": """fclose fflush fgetc fgets fopen fprintf fputs fread freopen fwrite perror printf
        setvbuf snprintf sscanf tmpfile""",
    "cstdlib": """abort atexit atoi calloc exit free getenv malloc quick_exit strtod strtol strtoul
        strtoull system""",
    "cstring": """memchr memcmp memcpy memmove memset strchr strcmp strcpy strerror strlen strncmp
        strncpy strrchr strspn strstr""",
    "deque": "deque",
    "exception": """current_exception exception exception_ptr rethrow_exception terminate
        uncaught_exceptions""",
    "filesystem": "filesystem",
    "fstream": "ifstream ofstream",
    "functional": "bit_and bit_or function greater greater_equal invoke plus ref",
    "future": "async future future_status launch promise",
    "initializer_list": "initializer_list",
    "iostream": "cerr cin cout",
    "iterator": "back_inserter istream_iterator istreambuf_iterator",
    "limits": "numeric_limits",
    "list": "list",
    "map": "map multimap",
    "memory": """addressof allocator construct_at destroy_at enable_shared_from_this make_shared
        make_unique make_unique_for_overwrite shared_ptr static_pointer_cast uninitialized_copy
        uninitialized_fill_n uninitialized_value_construct_n unique_ptr weak_ptr""",
    "mutex": "call_once lock_guard mutex once_flag recursive_mutex scoped_lock unique_lock",
    "new": "align_val_t bad_alloc launder nothrow",
    "numbers": "numbers",
    "numeric": "accumulate gcd inner_product iota reduce",
    "optional": "nullopt optional",
    "queue": "priority_queue queue",
    "random": """mt19937 mt19937_64 minstd_rand random_device uniform_int_distribution
        uniform_real_distribution""",
    "regex": "cmatch regex regex_match regex_replace regex_search smatch sregex_iterator",
    "set": "multiset set",
    "span": "as_bytes as_writable_bytes dynamic_extent span",
    "sstream": "istringstream ostringstream stringstream",
    "stdexcept": """domain_error invalid_argument length_error logic_error out_of_range
        overflow_error range_error runtime_error""",
    "string": "getline stoi stol stoll stoul stoull string to_string",
    "string_view": "string_view string_view_literals",
    "system_error": "errc error_category error_code generic_category system_category system_error",
    "thread": "jthread this_thread thread",
    "tuple": "apply forward_as_tuple ignore make_tuple tie tuple tuple_element_t",
    "type_traits": """common_type_t conditional_t decay_t enable_if_t invoke_result_t
        is_convertible_v is_enum_v is_floating_point_v is_integral_v is_invocable_r_v
        is_invocable_v is_pointer_v is_same_v is_signed_v is_trivially_copyable_v is_unsigned_v
        is_void_v remove_cvref_t remove_pointer_t remove_reference_t underlying_type_t""",
    "typeinfo": "type_info",
    "unordered_map": "unordered_map",
    "unordered_set": "unordered_set",
    "utility": """as_const cmp_equal cmp_greater cmp_less declval exchange forward in_place
        index_sequence make_index_sequence make_pair move pair""",
    "variant": "get_if holds_alternative monostate variant visit",
    "vector": "vector",
}
# A header that has to have the other's names, by its own declarations.
ALSO = {
    "algorithm": ["utility"],
    "array": ["initializer_list"],
    "deque": ["initializer_list"],
    "future": ["chrono", "thread"],
    "iostream": ["string"],
    "fstream": ["string"],
    "filesystem": ["string", "string_view", "chrono", "system_error"],
    "map": ["utility", "initializer_list"],
    "charconv": ["system_error"],
    "condition_variable": ["mutex", "chrono"],
    "memory": ["utility"],
    "mutex": ["chrono"],
    "optional": ["utility"],
    "set": ["utility"],
    "span": ["array", "cstddef"],
    "sstream": ["string"],
    "string": ["string_view", "initializer_list"],
    "stdexcept": ["string", "exception"],
    "system_error": ["stdexcept", "string"],
    "thread": ["chrono"],
    "tuple": ["utility"],
    "unordered_map": ["utility"],
    "vector": ["initializer_list"],
    "regex": ["string"],
}
OWN_INCLUDE = re.compile(r'^#include ["<]([\w./-]+\.hp*)[">]', re.MULTILINE)
SYSTEM_INCLUDE = re.compile(r"^#include <(\w+)>", re.MULTILINE)
STANDARD_NAME = re.compile(r"\bstd::(?:ranges::)?(\w+)")

KIND = r"\b(?:class|struct|enum(?: class)?|union|concept|using|typename)\s+"
NAMED = rf"{KIND}(?:\[\[\w+\]\]\s+)?(?:alignas\([^)]*\)\s+)?(?:RMEM_API\s+)?([A-Z]\w+)\b"
# What begins a line, and is not only declared, belongs to a namespace.
OWN_TYPE = re.compile(rf"^(?:template\s*<[^;{{]*>\s*)?{NAMED}(?!\s*;)", re.MULTILINE)
OWN_CONSTANT = re.compile(r"^(?:inline\s+)?constexpr\s[\w:<>\s]*?\b(k[A-Z]\w*)", re.MULTILINE)
CONSTANT = re.compile(r"\b(k[A-Z]\w*)(?: =|\{|\[)|^\s*using [\w:]+::(k[A-Z]\w*);", re.MULTILINE)
ENUMERATORS = re.compile(r"\benum\b[^{;]*\{([^}]*)\}")
ANY_TYPE = re.compile(rf"{NAMED}|[(<,]\s*[\w:]+\s+([A-Z]\w+)\s*[,)>]")  # or a parameter
USED_TYPE = re.compile(r"(?<![\w.>:])(?P<space>(?:\w+::)*)(?P<name>k?[A-Z]\w*[a-z]\w*)\b")
NOT_OURS = ("std::", "CLI::")
NO_PRODUCT = ("tests/", "fuzz/", "bench/", "examples/")


def givers():
    found = {}
    for header, names in GIVES.items():
        for name in names.split():
            found.setdefault(name, set()).add(header)
    for header, others in ALSO.items():
        for other in others:
            for name in GIVES[other].split():
                found.setdefault(name, set()).add(header)
    return found


class Tree:
    """The files of the tree and what they include, each read once."""

    def __init__(self):
        self._codes, self._included = {}, {}
        self._roots = [tree.ROOT, tree.ROOT / "ports", *tree.ROOT.glob("cards/*/")]

    def code(self, file):
        """It, with blanks for comments and texts."""
        if file not in self._codes:
            blanks = COMMENT_OR_LITERAL.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text(file))
            self._codes[file] = blanks
        return self._codes[file]

    def included(self, file):
        """The headers of the tree that it includes itself."""
        if file not in self._included:
            wanted = [self.places(file, name) for name in OWN_INCLUDE.findall(text(file))]
            found = [next((p for p in places if p.exists()), None) for places in wanted]
            self._included[file] = [header.resolve() for header in found if header]
        return self._included[file]

    def places(self, file, name):
        return [folder / name for folder in (file.parent, *self._roots)]

    def reached(self, file):
        """The file, and all headers of the tree that it includes, or that they do."""
        found, open_ends = {file}, [file]
        while open_ends:
            new = [header for header in self.included(open_ends.pop()) if header not in found]
            found.update(new)
            open_ends += new
        return found


def complaint(file, code, match, name, needed):
    return f"{short(file)}:{code.count(chr(10), 0, match.start()) + 1}: {name} needs {needed}"


def standard_names_are_included():
    """What precompiled headers or other sources stand before includes what it uses."""
    given_by, of_tree = givers(), Tree()
    for file in files(".cpp", ".hpp"):
        reached = set()
        for header in of_tree.reached(file):
            reached.update(SYSTEM_INCLUDE.findall(text(header)))
        code, told = of_tree.code(file), set()
        for match in STANDARD_NAME.finditer(code):
            headers = given_by.get(match[1], reached)
            if match[1] not in told and not headers & reached:
                told.add(match[1])
                named = "> or <".join(sorted(h for h in headers if match[1] in GIVES[h].split()))
                yield complaint(file, code, match, f"std::{match[1]}", f"#include <{named}>")


def own_types_are_included():
    """The same for types and constants of this tree, as far as one header alone has the name."""
    of_tree, headers_with = Tree(), {}
    product = [f for f in files(".cpp", ".hpp", ".h") if not short(f).startswith(NO_PRODUCT)]
    for header in product:
        if header.suffix != ".cpp":
            code = of_tree.code(header)
            for name in OWN_TYPE.findall(code) + OWN_CONSTANT.findall(code):
                headers_with.setdefault(name, set()).add(header)
    named_in = {}
    for file in product:
        code = of_tree.code(file)
        named_in[file] = {name for names in ANY_TYPE.findall(code) for name in names}
        named_in[file].update(name for names in CONSTANT.findall(code) for name in names)
        for enumerators in ENUMERATORS.findall(code):
            named_in[file].update(re.findall(r"\bk[A-Z]\w*", enumerators))
    for file in product:
        if file.suffix == ".h":  # a card's or a port's, in C
            continue
        told = set().union(*(named_in.get(f, ()) for f in of_tree.reached(file)))
        code = of_tree.code(file)
        for match in USED_TYPE.finditer(code):
            name = match["name"]
            if name in told or len(headers_with.get(name, ())) != 1:
                continue
            if match["space"].startswith(NOT_OURS):
                continue
            told.add(name)
            (header,) = headers_with[name]
            yield complaint(file, code, match, name, f'#include "{short(header)}"')
