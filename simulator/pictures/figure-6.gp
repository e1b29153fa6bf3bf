# SPDX-License-Identifier: Apache-2.0
# The paper's figure 6. `data` and the terminal come from simulator/pictures/run.
set encoding utf8
set title "A barrier against the number of nodes (the paper's figure 6)"
set xlabel "nodes"
set ylabel "microseconds"
set xrange [1.5:16.5]
set yrange [1:10000]
set logscale y
set xtics 2,2,16
set grid lc rgb "#dddddd"
set key top left
$paper << EOD
3 37
4 37
EOD
$mpi << EOD
3 179
EOD
plot data using 1:2 with linespoints lw 2 pt 7 lc rgb "#2f6db3" title "simulated: bbp\\_barrier by messages and a multicast", \
     '' using 1:3 with linespoints lw 2 pt 5 dt 2 lc rgb "#3a9a5c" title "simulated: bbp\\_barrier by arrival words (this library's)", \
     '' using 1:4 with linespoints lw 2 pt 9 lc rgb "#e0a030" title "simulated: MPI\\_Barrier point to point, as in MPICH", \
     $paper using 1:2 with points pt 2 ps 1.8 lw 3 lc rgb "#c0392b" title "paper: 37 µs, an MPI\\_Barrier over the first; 3 or 4 nodes", \
     $mpi using 1:2 with points pt 3 ps 1.8 lw 3 lc rgb "#c0392b" title "paper: 179 µs, MPI\\_Barrier point to point"
