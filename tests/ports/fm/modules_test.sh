#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Handlers of FM 1.0 named by pointer, between processes that were started apart: of one binary, of
# two, and in shared libraries.
# shellcheck source=tests/support/shell.sh
source "$RMEM_SOURCE_DIR/tests/support/shell.sh"

at_end() { rm -f /dev/shm/rmem*.modules-$$-*; }
cd "$work"
ports=$RMEM_BUILD_DIR/ports
libraries=$RMEM_BUILD_DIR/billboard:$RMEM_BUILD_DIR/rmem

cat >node.c <<'PROGRAM'
/* A node: greets the other, sends to a handler in the program and to one in a library, and says
   what came of it. */
#include <fm/fm1.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void in_library(int a, int b, int c, int d);
extern int came_to_library;
int variant(void);
static int greeted, came_to_program;

static void greeting(int a, int b, int c, int d) {
    greeted += a + b + c + d;
}
static void in_program(int a, int b, int c, int d) {
    came_to_program += a + b + c + d;
}
static int send_to(const char *where, FM_handler4 handler) {
    errno = 0;
    FM_send_4((int)(1 - FM_nodeid), handler, 1, 0, 0, 0);
    printf("%s: %s\n", where, errno == 0 ? "sent" : errno == ENOEXEC ? "ENOEXEC" : strerror(errno));
    return errno == 0;
}

int variant(void) {
    return VARIANT;
}

int main(int argc, char **argv) {
    FM_handler4 late = NULL;
    void *library;
    int to_program, to_library;
    alarm(60);
    FM_initialize();
    if (FM_numnodes != 2) return 1;
    printf("program at %p, library at %p\n", (void *)in_program, (void *)in_library);
    FM_send_4((int)(1 - FM_nodeid), greeting, 1, 0, 0, 0);
    while (greeted == 0 && FM_count(FM_nodeid, FM_FOREIGN_BINARIES) == 0) FM_extract();
    to_program = send_to("program", in_program);
    to_library = send_to("library", in_library);
    if (argc > 1) {
        library = dlopen(argv[1], RTLD_NOW);
        if (library != NULL) *(void **)&late = dlsym(library, "in_late_library");
        if (late == NULL) return 1;
        send_to("late library", late);
    }
    /* The other sees what this one sees, so as much comes as was sent. */
    while (came_to_program < to_program || came_to_library < to_library) FM_extract();
    FM_finalize();
    printf("came: %d to the program, %d to the library\n", came_to_program, came_to_library);
    return 0;
}
PROGRAM
cat >library.c <<'LIBRARY'
int came_to_library;
void in_library(int a, int b, int c, int d);
void in_library(int a, int b, int c, int d) {
    came_to_library += a + b + c + d;
}
int library_variant(void);
int library_variant(void) {
    return VARIANT;
}
LIBRARY
cat >late.c <<'LIBRARY'
void in_late_library(int a, int b, int c, int d);
void in_late_library(int a, int b, int c, int d) {
    (void)(a + b + c + d);
}
LIBRARY

# build <folder> <variant of the program> <variant of the library> <option>
build() {
    mkdir "$1"
    local flags=(-std=c11 -Wall -Wextra -Werror -O1 "$4")
    "${CC:-cc}" "${flags[@]}" -fPIC -shared -DVARIANT="$3" -o "$1/libhandlers.so" library.c
    "${CC:-cc}" "${flags[@]}" -fPIC -shared -o "$1/liblate.so" late.c
    # The library is found by where it is when the program starts.
    "${CC:-cc}" "${flags[@]}" -fPIE -pie -DVARIANT="$2" -I"$RMEM_SOURCE_DIR" \
        -I"$RMEM_SOURCE_DIR/ports" \
        -o "$1/node" node.c -Lone -L"$1" -lhandlers -L"$ports/fm" -lfm -ldl \
        -Wl,-rpath,"$ports/fm:$libraries" -Wl,-rpath-link,"$libraries"
}
build one 1 1 -Wl,--build-id
build other 2 1 -Wl,--build-id
build without 1 1 -Wl,--build-id=none
build otherwise 2 1 -Wl,--build-id=none

preload=("" "")  # of each node
# pair <name> <program 0> <libraries 0> <program 1> <libraries 1> [argument]: runs both apart; what
# each says is in <name>.<rank>
pair() {
    local name=$1 rank failed=0
    local -a programs=("$2" "$4") paths=("$3" "$5") pids=()
    shift 5
    for rank in 0 1; do
        env RMEM_RING="modules-$$-$name" RMEM_RANKS=2 RMEM_RANK=$rank RMEM_JOIN_TIMEOUT=20s \
            LD_LIBRARY_PATH="${paths[rank]}" LD_PRELOAD="${preload[rank]}" \
            timeout -k 5 90 "./${programs[rank]}/node" "$@" \
            >"$name.$rank" 2>"$name.$rank.err" &
        pids+=($!)
    done
    for rank in 0 1; do wait "${pids[rank]}" || failed=1; done
    if ((failed)); then
        echo "$name: a node has failed"
        head -20 "$name".*
        exit 1
    fi
}
# says <file> <line>...: each node says that line
says() {
    local name=$1 line rank
    shift
    for line in "$@"; do
        for rank in 0 1; do
            if ! grep -q "$line" "$name.$rank"; then
                echo "$name: node $rank does not say '$line'"
                head -20 "$name".*
                exit 1
            fi
        done
    done
}
differ() {
    # Where it is 0, the system lays all images out alike.
    [[ $(cat /proc/sys/kernel/randomize_va_space) != 0 ]] || return 0
    if [[ $(head -1 "$1.0") == "$(head -1 "$1.1")" ]]; then
        echo "$1: both nodes lie at the same addresses"
        head -20 "$1".*
        exit 1
    fi
}

echo "--- one binary"
pair same one one one one one/liblate.so
differ same
says same "^program: sent$" "^library: sent$" "^came: 1 to the program, 1 to the library$" \
    "^late library: Invalid argument$"

echo "--- one binary without a build id: its code is compared"
pair bare without without without without
differ bare
says bare "^program: sent$" "^library: sent$" "^came: 1 to the program, 1 to the library$"

echo "--- another binary at one node"
pair foreign one one other one
says foreign "^program: ENOEXEC$" "^library: ENOEXEC$" "^came: 0 to the program, 0 to the library$"
# says_so <name> <rank>: the other tells of that rank
says_so() {
    grep -q "^FM: node $2 runs another binary" "$1.$((1 - $2)).err"
}
says_so foreign 0
says_so foreign 1
pair unlike without without otherwise without
says unlike "^program: ENOEXEC$" "^library: ENOEXEC$"

echo "--- one binary, another library at one node"
mkdir replaced
"${CC:-cc}" -fPIC -shared -Wl,--build-id -DVARIANT=3 -o replaced/libhandlers.so library.c
pair library one one one replaced
says library "^program: sent$" "^library: ENOEXEC$" "^came: 1 to the program, 0 to the library$"

echo "--- one binary, one more library at one node"
cat >more.c <<'LIBRARY'
int more(void);
int more(void) {
    return 0;
}
LIBRARY
"${CC:-cc}" -fPIC -shared -o libmore.so more.c
preload[1]=./libmore.so
pair more one one one one
says more "^program: sent$" "^library: ENOEXEC$" "^came: 1 to the program, 0 to the library$"
