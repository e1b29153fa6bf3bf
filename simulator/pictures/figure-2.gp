# SPDX-License-Identifier: Apache-2.0
# The paper's figure 2, of which it prints only where the other networks cross. `data` and the
# terminal come from simulator/pictures/run.
set encoding utf8
set title "One way between two of four nodes, and where the paper saw other networks cross (figure 2)"
set xlabel "bytes of the message"
set ylabel "microseconds one way"
set logscale xy
set xrange [3:20000]
set yrange [3:10000]
set xtics ("4" 4, "16" 16, "64" 64, "256" 256, "1 KiB" 1024, "4 KiB" 4096, "16 KiB" 16384)
set format y "%g"
set grid lc rgb "#dddddd"
set key top left
set arrow 1 from 500,3 to 500,166 nohead dt 3 lw 2 lc rgb "#c0392b"
set arrow 2 from 1000,3 to 1000,327 nohead dt 3 lw 2 lc rgb "#c0392b"
set label 1 "Myrinet API\nabout 500 bytes" at 470,8 right tc rgb "#c0392b"
set label 2 "ATM, TCP\n1000 bytes" at 1080,8 left tc rgb "#c0392b"
set label 3 "Fast Ethernet, TCP:\nseveral thousand bytes →" at 1080,20 left tc rgb "#c0392b"
$paper << EOD
4 7.8
EOD
plot data using 1:2 with linespoints lw 2 pt 7 lc rgb "#2f6db3" title "simulated, fixed packets of 4 bytes", \
     '' using 1:3 with linespoints lw 2 pt 5 dt 2 lc rgb "#5aa9e6" title "simulated, packets up to 256 bytes", \
     $paper using 1:2 with points pt 2 ps 1.8 lw 3 lc rgb "#c0392b" title "paper: 7.8 µs", \
     NaN with lines dt 3 lw 2 lc rgb "#c0392b" title "paper: sizes from which the other network is faster"
