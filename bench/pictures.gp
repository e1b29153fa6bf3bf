# SPDX-License-Identifier: Apache-2.0
# By bench/report.py, which sets the terminal and `data`. `kind`: a `curve` of all systems against the
# size of the message (with `about` and `colours`), or what docs/measurements/pictures shows:
# `systems`, of 8 bytes, and `sizes`.
set encoding utf8
set datafile missing "?"
set key top left
set format y "%g"
if (kind eq "systems") {
    set title "8 bytes from one process to another on one host, one way"
    set ylabel "nanoseconds (logarithmic)"
    set logscale y
    set format y "%'.0f"
    set yrange [10:*]
    set grid ytics lc rgb "#dddddd"
    set style data histograms
    set style histogram clustered gap 1
    set style fill solid 0.9 border -1
    set boxwidth 0.9
    set xtics rotate by -35 scale 0 nomirror
    set rmargin 7
    plot data using 3:xtic(1) title "p50" lc rgb "#2f6db3", \
         '' using 4 title "p99" lc rgb "#e0a030", \
         '' using ($0 - 0.2):3:($3 < 10000 ? sprintf("%.0f", $3) : sprintf("%.0f µs", $3 / 1000)) \
            with labels offset -0.3,0.7 font ",10" notitle
    exit
}
set xlabel "bytes of the message"
set logscale xy
set xtics ("0" 0.8, "1" 1, "8" 8, "64" 64, "256" 256, "1 KiB" 1024, "4 KiB" 4096, \
           "16 KiB" 16384, "64 KiB" 65536, "256 KiB" 262144, "1 MiB" 1048576)
set grid lc rgb "#dddddd"
if (kind eq "sizes") {
    set title "One way from process to process on one host, against the size of the message"
    set ylabel "microseconds one way"
    set xrange [6:1500000]
    plot data using 1:($2/1000) with linespoints lw 2 pt 7 lc rgb "#2f6db3" title "rmem, inline (default)", \
         '' using 1:($3/1000) with linespoints lw 2 pt 5 dt 2 lc rgb "#5aa9e6" title "rmem, paper", \
         '' using 1:($4/1000) with linespoints lw 2 pt 9 lc rgb "#c0392b" title "Open MPI", \
         '' using 1:($5/1000) with linespoints lw 2 pt 11 lc rgb "#e0a030" title "MPICH"
} else {
    set title about
    set ylabel "ns a message"
    set xrange [0.7:1500000]
    plot for [i = 2:words(colours) + 1] data using 1:i with linespoints \
         lw (i == 2 ? 3 : 1.5) pt 7 ps (i == 2 ? 0.5 : 0.35) lc rgb word(colours, i - 1) \
         title columnheader(i) noenhanced
}
