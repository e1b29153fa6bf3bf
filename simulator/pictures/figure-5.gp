# SPDX-License-Identifier: Apache-2.0
# The paper's figure 5, of which it prints one size. `data` and the terminal come from
# simulator/pictures/run.
set encoding utf8
set title "MPI\\_Bcast to all of four nodes (the paper's figure 5)"
set xlabel "bytes of the message"
set ylabel "microseconds"
set xrange [-20:1040]
set yrange [0:1000]
set grid lc rgb "#dddddd"
set key top left
set arrow 1 from 450,0 to 450,440 nohead dt 3 lw 2 lc rgb "#c0392b"
set label 1 "about 450 bytes" at 462,60 left tc rgb "#c0392b"
plot data using 1:2 with linespoints lw 2 pt 9 ps 0.8 lc rgb "#e0a030" title "simulated, over the ring, point to point", \
     '' using 1:3 with linespoints lw 2 pt 7 ps 0.7 lc rgb "#2f6db3" title "simulated, over the ring, by one multicast", \
     '' using 1:4 with lines lw 2 dt 2 lc rgb "#3a9a5c" title "Fast Ethernet: a line, from the paper's 554 µs for a barrier", \
     NaN with lines dt 3 lw 2 lc rgb "#c0392b" title "paper: size from which Fast Ethernet is faster than point to point"
