# SPDX-License-Identifier: Apache-2.0
# One-way latency of 8 B, all systems. `data` and the terminal come from bench/pictures/run.
set encoding utf8
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
set key top left
plot data using 3:xtic(1) title "p50" lc rgb "#2f6db3", \
     '' using 4 title "p99" lc rgb "#e0a030", \
     '' using ($0 - 0.2):3:($3 < 10000 ? sprintf("%.0f", $3) : sprintf("%.0f µs", $3 / 1000)) \
        with labels offset -0.3,0.7 font ",10" notitle
