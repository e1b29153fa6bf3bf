# SPDX-License-Identifier: Apache-2.0
# The paper's figure 1. `data` and the terminal come from simulator/pictures/run.
set encoding utf8
set title "One way between two of four nodes (the paper's figure 1)"
set xlabel "bytes of the message"
set ylabel "microseconds one way"
set xrange [-20:1040]
set yrange [0:420]
set grid lc rgb "#dddddd"
set key top left
$paper << EOD
0 6.5
4 7.8
EOD
$mpi << EOD
0 44
4 49
EOD
plot data using 1:2 with linespoints lw 2 pt 7 ps 0.7 lc rgb "#2f6db3" title "simulated, fixed packets of 4 bytes", \
     '' using 1:3 with linespoints lw 2 pt 5 ps 0.7 dt 2 lc rgb "#5aa9e6" title "simulated, packets up to 256 bytes", \
     '' using 1:4 with linespoints lw 2 pt 9 ps 0.8 lc rgb "#e0a030" title "simulated, MPI over fixed packets", \
     $paper using 1:2 with points pt 2 ps 1.8 lw 3 lc rgb "#c0392b" title "paper, billboard: 6.5 and 7.8 µs", \
     $mpi using 1:2 with points pt 3 ps 1.4 lw 2 lc rgb "#c0392b" title "paper, MPI: 44 and 49 µs"
