# SPDX-License-Identifier: Apache-2.0
# Multicast and barrier on more and more nodes. `data` and the terminal come from
# simulator/pictures/run.
set encoding utf8
set title "Multicast and barrier: full, on one ring; open, on 8, 16, 32 and 64 rings of as many nodes"
set xlabel "nodes"
set ylabel "microseconds"
set logscale xy
set xrange [1.7:5500]
set yrange [0.9:20000]
set xtics ("2" 2, "4" 4, "8" 8, "16" 16, "32" 32, "64" 64, "128" 128, "256" 256, "1024" 1024, "4096" 4096)
set format y "%g"
set grid lc rgb "#dddddd"
set key top left
plot data index 0 using 1:5 with linespoints lw 2 pt 7 lc rgb "#2f6db3" title "bbp\\_barrier, as in the paper, all nodes", \
     '' index 0 using 1:4 with linespoints lw 2 pt 9 lc rgb "#3a9a5c" title "bbp\\_mcast to all nodes", \
     '' index 0 using 1:7 with linespoints lw 2 pt 5 lc rgb "#e0a030" title "barrier by a word of each node", \
     '' index 0 using 1:6 with linespoints lw 2 pt 13 lc rgb "#c0392b" title "one word to all nodes", \
     '' index 1 using 1:5 with linespoints lw 1.5 dt 2 pt 6 ps 1.3 lc rgb "#2f6db3" title "both, of 64 ranks spread over the nodes", \
     '' index 1 using 1:4 with linespoints lw 1.5 dt 2 pt 8 ps 1.3 lc rgb "#3a9a5c" notitle, \
     '' index 1 using 1:7 with linespoints lw 1.5 dt 2 pt 4 ps 1.3 lc rgb "#e0a030" title "both, of all nodes", \
     '' index 1 using 1:6 with linespoints lw 1.5 dt 2 pt 12 ps 1.3 lc rgb "#c0392b" notitle
