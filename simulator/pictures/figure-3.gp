# SPDX-License-Identifier: Apache-2.0
# The paper's figure 3, of which it prints where the other networks cross. `data` and the terminal
# come from simulator/pictures/run.
set encoding utf8
set title "One way by MPI between two of four nodes, and MPICH over other networks (the paper's figure 3)"
set xlabel "bytes of the message"
set ylabel "microseconds one way"
set xrange [-20:1040]
set yrange [0:500]
set grid lc rgb "#dddddd"
set key top left
set arrow 1 from 512,0 to 512,260 nohead dt 3 lw 2 lc rgb "#c0392b"
set arrow 2 from 580,0 to 580,260 nohead dt 3 lw 2 lc rgb "#c0392b"
set label 1 "Fast Ethernet\nabout 512 bytes" at 500,70 right tc rgb "#c0392b"
set label 2 "ATM\nabout 580 bytes" at 592,70 left tc rgb "#c0392b"
$paper << EOD
0 44
4 49
EOD
plot data using 1:2 with linespoints lw 2 pt 7 ps 0.7 lc rgb "#2f6db3" title "simulated, over the ring", \
     '' using 1:3 with lines lw 2 dt 2 lc rgb "#3a9a5c" title "Fast Ethernet: a line, from the paper's 554 µs for a barrier", \
     '' using 1:4 with lines lw 2 dt 4 lc rgb "#8e5aa9" title "ATM: a line, from the paper's 660 µs for a barrier", \
     $paper using 1:2 with points pt 2 ps 1.8 lw 3 lc rgb "#c0392b" title "paper, over the ring: 44 and 49 µs", \
     NaN with lines dt 3 lw 2 lc rgb "#c0392b" title "paper: sizes from which the other network is faster"
