# SPDX-License-Identifier: Apache-2.0
# The paper's figure 4. `data` and the terminal come from simulator/pictures/run.
set encoding utf8
set title "A message to one node, and a broadcast to all of four (the paper's figure 4)"
set xlabel "bytes of the message"
set ylabel "microseconds"
set xrange [-20:1040]
set yrange [0:360]
set grid lc rgb "#dddddd"
set key top left
$paper << EOD
0 6.5
4 7.8
EOD
$paper_all << EOD
4 10.1
EOD
set multiplot
plot data using 1:2 with linespoints lw 2 pt 7 ps 0.7 lc rgb "#2f6db3" title "simulated, to one", \
     '' using 1:3 with linespoints lw 2 pt 9 ps 0.8 dt 2 lc rgb "#3a9a5c" title "simulated, to the last of three", \
     $paper using 1:2 with points pt 2 ps 1.8 lw 3 lc rgb "#c0392b" title "paper, to one: 6.5 and 7.8 µs", \
     $paper_all using 1:2 with points pt 8 ps 1.8 lw 3 lc rgb "#c0392b" title "paper, broadcast: 10.1 µs"
# The corner where the paper's points are, larger.
set origin 0.52,0.12
set size 0.44,0.42
unset title
unset key
set xlabel "first 16 bytes" offset 0,0.5
unset ylabel
set xrange [-1:17]
set yrange [5:15]
set xtics 4
set object 1 rectangle from graph 0,0 to graph 1,1 behind fc rgb "white" fs solid noborder
plot data using 1:2 with linespoints lw 2 pt 7 lc rgb "#2f6db3", \
     '' using 1:3 with linespoints lw 2 pt 9 dt 2 lc rgb "#3a9a5c", \
     $paper using 1:2 with points pt 2 ps 1.8 lw 3 lc rgb "#c0392b", \
     $paper_all using 1:2 with points pt 8 ps 1.8 lw 3 lc rgb "#c0392b"
unset multiplot
