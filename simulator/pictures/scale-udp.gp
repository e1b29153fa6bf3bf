# SPDX-License-Identifier: Apache-2.0
# What a write costs on more and more nodes of link udp. `data` and the terminal come from
# simulator/pictures/run.
set encoding utf8
set multiplot layout 1,2
set logscale xy
set xrange [6:5500]
set xtics ("8" 8, "16" 16, "32" 32, "64" 64, "128" 128, "256" 256, "1024" 1024, "4096" 4096) rotate by 45 right
set format y "%g"
set xlabel "nodes"
set ylabel "microseconds"
set grid lc rgb "#dddddd"
set key top left reverse Left samplen 2 font ",10"
run(kind, y) = kind == 1 ? y : NaN

set title "Until half of all other banks have a write"
set yrange [4:60000]
plot for [w = 0:3] data index w using 1:4 with lines lw 2 dt 2 lc rgb word("#2f6db3 #c0392b #3a9a5c #e0a030", w + 1) notitle, \
     for [w = 0:3] data index w using 1:(run($3, $4)) with linespoints lw 2 pt 7 lc rgb word("#2f6db3 #c0392b #3a9a5c #e0a030", w + 1) notitle, \
     NaN with lines lw 2 lc rgb "#2f6db3" title "multicast", \
     NaN with lines lw 2 lc rgb "#c0392b" title "fan-out", \
     NaN with lines lw 2 lc rgb "#3a9a5c" title "tree of racks of 32, multicast", \
     NaN with lines lw 2 lc rgb "#e0a030" title "chain of racks of 32, multicast", \
     NaN with linespoints lw 2 pt 7 lc rgb "black" title "run by the link's own code", \
     NaN with lines lw 2 dt 2 lc rgb "black" title "computed"

set title "The busiest node's processor, for one write"
set yrange [4:60000]
plot for [w = 0:3] data index w using 1:9 with lines lw 2 dt 2 lc rgb word("#2f6db3 #c0392b #3a9a5c #e0a030", w + 1) notitle, \
     for [w = 0:3] data index w using 1:(run($3, $9)) with linespoints lw 2 pt 7 lc rgb word("#2f6db3 #c0392b #3a9a5c #e0a030", w + 1) notitle
unset multiplot
