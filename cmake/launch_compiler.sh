#!/bin/sh
# launch_compiler.sh CCACHE COMPILER ARGUMENT…: compiles through ccache, except for precompiled
# headers.
#
# Those go straight to the compiler. ccache preprocesses first, the preprocessor would read the
# previous header in place of the sources, and ccache would give that one back. Beside a header lies
# its checksum, which ccache takes instead of reading some 100 MB for every source.
case " $* " in
  *" c++-header "*)
    shift
    "$@" || exit
    for argument; do
      case $argument in *.gch) sha1sum "$argument" >"$argument.sum" ;; esac
    done
    exit
    ;;
esac
# Without the sloppiness ccache does not cache sources that read a precompiled header.
export CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_PCH_EXTSUM=1
exec "$@"
