# SPDX-License-Identifier: Apache-2.0
# One rhythm of all systems against the size of the message. `data`, `about`, `colours` (of the
# systems) and the terminal come from bench/rivals/page.py.
set encoding utf8
set title about
set xlabel "bytes of the message"
set ylabel "ns a message"
set logscale xy
set xrange [0.7:1500000]
set xtics ("0" 0.8, "1" 1, "8" 8, "64" 64, "256" 256, "1 KiB" 1024, "4 KiB" 4096, \
           "16 KiB" 16384, "64 KiB" 65536, "256 KiB" 262144, "1 MiB" 1048576)
set format y "%g"
set grid lc rgb "#dddddd"
set key top left
set datafile missing "?"
plot for [i = 2:words(colours) + 1] data using 1:i with linespoints lw (i == 2 ? 3 : 1.5) pt 7 \
     ps (i == 2 ? 0.5 : 0.35) lc rgb word(colours, i - 1) \
     title columnheader(i) noenhanced
