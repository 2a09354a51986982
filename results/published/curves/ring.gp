# Time of a collective by number of ranks. Run it where ring.csv is: gnuplot ring.gp
# Columns: 1 algorithm, 2 ranks, 3 time_s, 4 closed_form_s, 5 bound_s, 6 busbw_bytes_per_s

set datafile separator comma
set datafile missing NaN
set encoding utf8

is(algorithm) = strcol(1) eq algorithm
positive(x) = x > 0 ? x : NaN

do for [picture = 1:2] {
    if (picture == 1) {
        set terminal svg size 1160,520 dynamic background rgb 'white' font 'Helvetica,13'
        set output 'ring.svg'
    } else {
        set terminal pngcairo size 1160,520 font 'Helvetica,11'
        set output 'ring.png'
    }
    set multiplot layout 1,2 title "all_reduce of 64 MiB, switch of 25 GB/s and 5 us per link" noenhanced font ',16'
    set logscale xy
    set logscale x 2
    set xlabel 'ranks'
    set grid lc rgb '#dddddd'
    set border 3
    set tics nomirror out
    set key top left reverse Left samplen 2 noenhanced

    set title 'Nobody is in charge in a ring, and that is why it scales'
    set ylabel 'time (ms)'
    plot \
        'ring.csv' using (is("ring") ? $2 : NaN):(positive($3) * 1000) with lines lw 5 lc rgb '#0072B2' title "ring", \
        'ring.csv' using (is("tree") ? $2 : NaN):(positive($3) * 1000) with lines lw 2 lc rgb '#009E73' title "tree", \
        'ring.csv' using (is("direct") ? $2 : NaN):(positive($3) * 1000) with lines lw 2 lc rgb '#E69F00' title "direct", \
        'ring.csv' using (is("central") ? $2 : NaN):(positive($3) * 1000) with lines lw 2 lc rgb '#D55E00' title "central", \
        'ring.csv' using (is("ring") ? $2 : NaN):(positive($4) * 1000) with points pt 6 ps 0.8 lw 1.5 lc rgb '#0072B2' notitle, \
        'ring.csv' using (is("tree") ? $2 : NaN):(positive($4) * 1000) with points pt 6 ps 0.8 lw 1.5 lc rgb '#009E73' notitle, \
        'ring.csv' using (is("direct") ? $2 : NaN):(positive($4) * 1000) with points pt 6 ps 0.8 lw 1.5 lc rgb '#E69F00' notitle, \
        'ring.csv' using (is("central") ? $2 : NaN):(positive($4) * 1000) with points pt 6 ps 0.8 lw 1.5 lc rgb '#D55E00' notitle, \
        NaN with points pt 6 ps 0.8 lw 1.5 lc rgb '#555555' title 'closed form', \
        'ring.csv' using (is("ring") ? $2 : NaN):(positive($5) * 1000) with lines lw 1 dt 2 lc rgb '#888888' title 'bandwidth bound'

    set title 'What is left of each port'
    set ylabel 'bus bandwidth (GB/s)'
    set key bottom left
    plot \
        'ring.csv' using (is("ring") ? $2 : NaN):(positive($6) / 1e9) with lines lw 5 lc rgb '#0072B2' title "ring", \
        'ring.csv' using (is("tree") ? $2 : NaN):(positive($6) / 1e9) with lines lw 2 lc rgb '#009E73' title "tree", \
        'ring.csv' using (is("direct") ? $2 : NaN):(positive($6) / 1e9) with lines lw 2 lc rgb '#E69F00' title "direct", \
        'ring.csv' using (is("central") ? $2 : NaN):(positive($6) / 1e9) with lines lw 2 lc rgb '#D55E00' title "central", \
        25 with lines lw 1 dt 2 lc rgb '#888888' title 'port'
    unset multiplot
    unset output
}
