#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: check
# What a user can meet stands in the manual: every command, option, variable, error and function;
# and what the manual has of these exists. Each is found by its own name.
# shellcheck source=tests/support/shell.sh
source "$RMEM_SOURCE_DIR/tests/support/shell.sh"
cd "$RMEM_SOURCE_DIR"

missing=0
misses() {
    echo "FAILED: $1"
    missing=1
}
# says <file> <word> <what it is>: fails unless the file has the word.
says() { grep -qwF -e "$2" "$1" || misses "$1 says nothing of $3 $2"; }
# found <least> <what> <words>: there are as many at least, or they are looked for wrongly.
found() { [[ $(wc -w <<<"$3") -ge $1 ]] || fail "found no $2"; }

# names_of <page>: those of its NAME section.
names_of() {
    sed -n '/^\.Sh NAME/,/^\.Nd/s/^\.Nm \([^ ]*\)\( ,\)\?$/\1/p' "$1"
}

errors=$(sed -n 's/.*return "\([a-z-]*\)";.*/\1/p' rmem/error.cpp | grep -v '^unknown$')
found 17 "error names in rmem/error.cpp" "$errors"
for name in $errors; do
    says docs/man/rmem-errors.7 ".It Li $name" "the error"
done
codes=$(grep -o '\bRMEM_E[A-Z]* *= *-' rmem/codes.h | grep -o '_E[A-Z]*')
found 11 "codes in rmem/codes.h" "$codes"
for code in $codes; do
    says docs/man/rmem-errors.7 ".It Dv RMEM$code , BBP$code" "the code"
    says docs/man/rmem_strerror.3 "RMEM$code" "the code"
    says docs/man/bbp_strerror.3 "BBP$code" "the code"
    says billboard/bbp.h "BBP$code" "the code"
done

# A program reads it, or a launcher does. Left out is what parts of rmem tell each other, and what
# tests of this tree set (RMEM_AT_MARK).
variables=$({
    grep -rhoE '"RMEM_[A-Z0-9_]*[A-Z]"' --include=*.[ch] --include=*.[ch]pp \
        rmem billboard cards ports mpi_channel tools | tr -d '"'
    grep -hoE '\$\{?RMEM_[A-Z_]+' mpi_channel/mpirun-bbp* rmem/instrumented/rmem-cc.in |
        grep -oE 'RMEM_[A-Z_]+'
} | grep -vxE 'RMEM_(AT_MARK|REACH|ON_HOST)' | sort -u)
found 35 "variables in the sources" "$variables"
for variable in $variables; do
    says docs/man/rmem.7 ".It Ev $variable" "the variable"
done
documented=$(sed -n 's/^\.It Ev \(RMEM_[A-Z0-9_]*\).*/\1/p' docs/man/*.[137] | sort -u)
for variable in $documented; do
    grep -qxF "$variable" <<<"$variables" ||
        misses "docs/man has the variable $variable, which nothing reads"
done

# What is read is known to the check for misspelt variables.
for variable in $(grep -rhoE '"RMEM_[A-Z0-9_]*[A-Z]"' --include='*.?pp' \
    rmem billboard cards ports mpi_channel tools | tr -d '"' | sort -u); do
    says rmem/base/environment_variable.cpp "\"$variable\"" "the variable"
done

functions=$({
    grep -hoE '\bbbp_[a-z_]+\(' billboard/bbp.h
    grep -hoE '^RMEM_API [^(]*' rmem/rmem.h maps/maps.h | grep -oE 'rmem_[a-z_]+$'
    sed -nE 's/^RMEM_VARIABLE\(([a-z0-9]+),.*/rmem_find_\1/p' maps/maps.h
    sed '/^#/d' ports/*/*.h | tr '\n' ' ' | sed -E 's,/\*([^*]|\*[^/])*\*/,,g' |
        grep -oE '\b((FM|GAMMA|DP|MU)_API|static inline) [^;({]*\(' | grep -oE '[A-Za-z0-9_]+ *\($'
    python3 -B tests/support/card_calls.py --names
} | tr -d '( ' | sed 's/^FM[12]_/FM_/' | sort -u)
found 110 "functions in the headers" "$functions"
# functions_of <page>: its names, but those of a library and of a class.
functions_of() {
    names_of "$1" | { grep -vxE "rmem_node|rmem::Node|$(basename "$1" .7)" || true; }
}
names=$(for page in docs/man/*.[37]; do functions_of "$page"; done | sort -u)
for function in $(comm -23 <(echo "$functions") <(echo "$names")); do
    misses "no page in docs/man has the function $function in its NAME section"
done
for name in $(comm -13 <(echo "$functions") <(echo "$names")); do
    misses "docs/man has the function $name, which no header has"
done
for page in docs/man/*.[37]; do
    for name in $(functions_of "$page" | grep _); do
        grep -qE "\b(Fn|Fo) $name\b" "$page" ||
            misses "$page has $name in its NAME section, and says nothing of it"
    done
done

python3 -B tests/support/card_calls.py || missing=1

# Of the class rmem::Node: what is declared between `public:` and `private:` and begins a line.
members=$(sed -n '/^class RMEM_API Node/,/^private:/p' rmem/node.hpp |
    sed -nE 's/^    [A-Za-z].* \*?([a-z_]+)\(.*/\1/p' | sort -u)
found 25 "members of Node in rmem/node.hpp" "$members"
for member in $members; do
    says docs/man/rmem_node.3 ".Fn $member" "the member"
done

# The names of a page are found: each has a page, or a link that cmake/RmemInstall.cmake makes of
# it.
for page in docs/man/*.[137]; do
    own=${page##*/}
    section=${own##*.}
    for name in $(names_of "$page"); do
        [[ $name != "${own%.*}" ]] || continue
        link=$RMEM_BUILD_DIR/man/$name.${section/7/3}
        [[ -e $link && $(<"$link") == ".so man$section/$own" ]] ||
            misses "$name is in the NAME section of $page, and has no link to it: $link"
    done
    # As groff renders them, which `man` is: cells that are wrapped go below the wrong column.
    if grep -q '^\.Bl -column' "$page"; then
        misses "$page has a table of columns, which are not wrapped; make it a list of tags"
    fi
done

rmem=$RMEM_BUILD_DIR/tools/rmem
if [[ -x $rmem ]]; then
    commands=$("$rmem" --help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
    found 9 "commands in rmem --help" "$commands"
    for command in $commands; do
        grep -qxE "\.Nm rmem-$command( ,)?|.*\.Nm rmem $command" docs/man/*.1 ||
            misses "no page in docs/man has rmem-$command in its NAME section"
        # bench has many options, which its --help explains.
        [[ $command == bench || $command == demo ]] && continue
        for option in $("$rmem" "$command" --help | grep -oE '^  (-[a-z],)?--[a-z0-9-]+' |
            grep -oE -- '--[a-z0-9-]+'); do
            case $option in
                --help | --label) ;; # rmem(1) has the one, the other is --no-label
                *)
                    grep -qE "Fl -${option#--}( |\$)" docs/man/rmem-*.1 ||
                        misses "no page has the option $option of rmem $command"
                    ;;
            esac
        done
    done
fi
exit $missing
