#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a user can meet stands in the manual: every command, option, variable, error and function.
set -euo pipefail
cd "$RMEM_SOURCE_DIR"

missing=0
# says <file> <word> <what it is>: fails unless the file has the word.
says() {
    if ! grep -qwF -e "$2" "$1"; then
        echo "FAILED: $1 says nothing of $3 $2"
        missing=1
    fi
}

errors=$(sed -n 's/.*return "\([a-z-]*\)";.*/\1/p' rmem/error.cpp | grep -v '^unknown$')
[[ $(wc -w <<<"$errors") -ge 17 ]] || { echo "FAILED: found no error names in rmem/error.cpp"; exit 1; }
for name in $errors; do
    says docs/errors.md "| \`$name\` |" "the error"
done
codes=$(grep -o '\bBBP_E[A-Z]* *= *-' billboard/bbp.h | grep -o 'BBP_E[A-Z]*')
[[ $(wc -w <<<"$codes") -ge 11 ]] || { echo "FAILED: found no codes in billboard/bbp.h"; exit 1; }
for code in $codes; do
    says docs/errors.md "| \`$code\` |" "the code"
    says docs/man/bbp_strerror.3 "$code" "the code"
done

# RMEM_KILL_AT and the like are for tests of this tree, which define RMEM_MARKS.
variables=$(grep -hoE '"RMEM_[A-Z_]+"' rmem/config.cpp rmem/waiting.cpp billboard/environment.cpp |
    tr -d '"' | sort -u)
[[ $(wc -w <<<"$variables") -ge 12 ]] || { echo "FAILED: found no variables in rmem/config.cpp"; exit 1; }
for variable in $variables $(grep -hoE '\bRMEM_[A-Z_]+\b' rmem/config.hpp | grep -v RMEM_API | sort -u); do
    says docs/man/rmem.7 ".It Ev $variable" "the variable"
done

# What is read is known to the check for misspelt variables.
for variable in $(grep -rhoE '"RMEM_[A-Z_]*[A-Z]"' --include='*.?pp' rmem billboard ports mpi_channel tools |
    tr -d '"' | sort -u); do
    says rmem/environment_variable.cpp "\"$variable\"" "the variable"
done

for function in $(grep -oE '\bbbp_[a-z_]+\(' billboard/bbp.h | grep -v last_error | tr -d '(' | sort -u) bbp_last_error; do
    if ! grep -qxE -- "\.Nm $function( ,)?" docs/man/*.3; then
        echo "FAILED: no page in docs/man has the function $function in its NAME section"
        missing=1
    fi
done

rmem=$RMEM_BUILD_DIR/tools/rmem
if [[ -x $rmem ]]; then
    commands=$("$rmem" --help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
    [[ $(wc -w <<<"$commands") -ge 9 ]] || { echo "FAILED: found no commands in rmem --help"; exit 1; }
    for command in $commands; do
        if ! grep -qxE "\.Nm rmem-$command( ,)?" docs/man/*.1 &&
            ! grep -qE "\.Nm rmem $command\$" docs/man/*.1; then
            echo "FAILED: no page in docs/man has rmem-$command in its NAME section"
            missing=1
        fi
        # bench has many options, which its --help explains.
        [[ $command == bench || $command == demo ]] && continue
        for option in $("$rmem" "$command" --help | grep -oE '^  (-[a-z],)?--[a-z-]+' | grep -oE -- '--[a-z-]+'); do
            case $option in
                --help | --label) ;; # rmem(1) has the one, the other is --no-label
                *)
                    if ! grep -qE "Fl -${option#--}( |\$)" docs/man/rmem-*.1; then
                        echo "FAILED: no page has the option $option of rmem $command"
                        missing=1
                    fi
                    ;;
            esac
        done
    done
fi
exit $missing
