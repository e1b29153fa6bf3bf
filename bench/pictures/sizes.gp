# SPDX-License-Identifier: Apache-2.0
# One-way latency against size. `data` and the terminal come from bench/pictures/run.
set encoding utf8
set title "One way from process to process on one host, against the size of the message"
set xlabel "bytes of the message"
set ylabel "microseconds one way"
set logscale xy
set xrange [6:1500000]
set xtics ("8" 8, "64" 64, "256" 256, "1 KiB" 1024, "4 KiB" 4096, "16 KiB" 16384, "64 KiB" 65536, \
           "256 KiB" 262144, "1 MiB" 1048576)
set format y "%g"
set grid lc rgb "#dddddd"
set key top left
set datafile missing "?"
plot data using 1:($2/1000) with linespoints lw 2 pt 7 lc rgb "#2f6db3" title "rmem, inline (default)", \
     '' using 1:($3/1000) with linespoints lw 2 pt 5 dt 2 lc rgb "#5aa9e6" title "rmem, paper", \
     '' using 1:($4/1000) with linespoints lw 2 pt 9 lc rgb "#c0392b" title "Open MPI", \
     '' using 1:($5/1000) with linespoints lw 2 pt 11 lc rgb "#e0a030" title "MPICH"
