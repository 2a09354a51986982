# Idle fraction of pipeline schedules. Run it where idle.csv is: gnuplot idle.gp
# Columns: 1 schedule, 2 pipeline, 3 chunks, 4 micro_batches, 7 idle_fraction, 8 closed_form_idle

set datafile separator comma
set datafile missing NaN
set encoding utf8

# Of a curve's points, those that stand apart on a logarithmic axis: powers of 2, and 3 times them.
power(m) = m & (m - 1)
sparse(m) = power(int(m)) == 0 || (int(m) % 3 == 0 && power(int(m) / 3) == 0) ? m : NaN

do for [picture = 1:2] {
    if (picture == 1) {
        set terminal svg size 1860,880 dynamic background rgb 'white' font 'Helvetica,13'
        set output 'idle.svg'
    } else {
        set terminal pngcairo size 1860,880 font 'Helvetica,11'
        set output 'idle.png'
    }
    set multiplot layout 2,3 title 'Idle fraction of a pipeline: lines simulated, circles closed form' font ',16'
    set logscale x 2
    set xlabel 'micro-batches'
    set ylabel 'idle (%)'
    set yrange [0:100]
    set ytics 10
    set grid lc rgb '#dddddd'
    set border 3
    set tics nomirror out
    set xrange [1:256]
    set key outside right center reverse Left samplen 1.5 title "ranks: batch\nfor idle < 10 %"
    set title "gpipe" noenhanced font ',15'
    plot \
        'idle.csv' skip 1 every ::0::255 using 4:(100 * $7) with lines lw 2 lc rgb '#0072B2' title '2: 10', \
        'idle.csv' skip 1 every ::0::255 using (sparse($4)):(100 * $8) with points pt 6 ps 0.7 lw 1.5 lc rgb '#0072B2' notitle, \
        'idle.csv' skip 1 every ::256::511 using 4:(100 * $7) with lines lw 2 lc rgb '#D55E00' title '4: 28', \
        'idle.csv' skip 1 every ::256::511 using (sparse($4)):(100 * $8) with points pt 6 ps 0.7 lw 1.5 lc rgb '#D55E00' notitle, \
        'idle.csv' skip 1 every ::512::767 using 4:(100 * $7) with lines lw 2 lc rgb '#009E73' title '8: 64', \
        'idle.csv' skip 1 every ::512::767 using (sparse($4)):(100 * $8) with points pt 6 ps 0.7 lw 1.5 lc rgb '#009E73' notitle, \
        'idle.csv' skip 1 every ::768::1023 using 4:(100 * $7) with lines lw 2 lc rgb '#CC79A7' title '16: 136', \
        'idle.csv' skip 1 every ::768::1023 using (sparse($4)):(100 * $8) with points pt 6 ps 0.7 lw 1.5 lc rgb '#CC79A7' notitle, \
        'idle.csv' skip 1 every ::1024::1279 using 4:(100 * $7) with lines lw 2 lc rgb '#E69F00' title '32: more than 256', \
        'idle.csv' skip 1 every ::1024::1279 using (sparse($4)):(100 * $8) with points pt 6 ps 0.7 lw 1.5 lc rgb '#E69F00' notitle, \
        NaN with points pt 6 ps 0.7 lw 1.5 lc rgb '#555555' title 'closed form', \
        10 with lines lw 1 dt 2 lc rgb '#888888' title '10 %'
    set title "1f1b" noenhanced font ',15'
    plot \
        'idle.csv' skip 1 every ::2560::2815 using 4:(100 * $7) with lines lw 2 lc rgb '#0072B2' title '2: 10', \
        'idle.csv' skip 1 every ::2560::2815 using (sparse($4)):(100 * $8) with points pt 6 ps 0.7 lw 1.5 lc rgb '#0072B2' notitle, \
        'idle.csv' skip 1 every ::2816::3071 using 4:(100 * $7) with lines lw 2 lc rgb '#D55E00' title '4: 28', \
        'idle.csv' skip 1 every ::2816::3071 using (sparse($4)):(100 * $8) with points pt 6 ps 0.7 lw 1.5 lc rgb '#D55E00' notitle, \
        'idle.csv' skip 1 every ::3072::3327 using 4:(100 * $7) with lines lw 2 lc rgb '#009E73' title '8: 64', \
        'idle.csv' skip 1 every ::3072::3327 using (sparse($4)):(100 * $8) with points pt 6 ps 0.7 lw 1.5 lc rgb '#009E73' notitle, \
        'idle.csv' skip 1 every ::3328::3583 using 4:(100 * $7) with lines lw 2 lc rgb '#CC79A7' title '16: 136', \
        'idle.csv' skip 1 every ::3328::3583 using (sparse($4)):(100 * $8) with points pt 6 ps 0.7 lw 1.5 lc rgb '#CC79A7' notitle, \
        'idle.csv' skip 1 every ::3584::3839 using 4:(100 * $7) with lines lw 2 lc rgb '#E69F00' title '32: more than 256', \
        'idle.csv' skip 1 every ::3584::3839 using (sparse($4)):(100 * $8) with points pt 6 ps 0.7 lw 1.5 lc rgb '#E69F00' notitle, \
        NaN with points pt 6 ps 0.7 lw 1.5 lc rgb '#555555' title 'closed form', \
        10 with lines lw 1 dt 2 lc rgb '#888888' title '10 %'
    set title "interleaved_1f1b, 2 chunks" noenhanced font ',15'
    plot \
        'idle.csv' skip 1 every ::6401::6655 using 4:(100 * $7) with lines lw 2 lc rgb '#0072B2' title '2: 6', \
        'idle.csv' skip 1 every ::6401::6655 using (sparse($4)):(100 * $8) with points pt 6 ps 0.7 lw 1.5 lc rgb '#0072B2' notitle, \
        'idle.csv' skip 1 every ::6659::6911 using 4:(100 * $7) with lines lw 2 lc rgb '#D55E00' title '4: 16', \
        'idle.csv' skip 1 every ::6659::6911 using (sparse($4)):(100 * $8) with points pt 6 ps 0.7 lw 1.5 lc rgb '#D55E00' notitle, \
        'idle.csv' skip 1 every ::6919::7167 using 4:(100 * $7) with lines lw 2 lc rgb '#009E73' title '8: 32', \
        'idle.csv' skip 1 every ::6919::7167 using (sparse($4)):(100 * $8) with points pt 6 ps 0.7 lw 1.5 lc rgb '#009E73' notitle, \
        'idle.csv' skip 1 every ::7183::7423 using 4:(100 * $7) with lines lw 2 lc rgb '#CC79A7' title '16: 80', \
        'idle.csv' skip 1 every ::7183::7423 using (sparse($4)):(100 * $8) with points pt 6 ps 0.7 lw 1.5 lc rgb '#CC79A7' notitle, \
        'idle.csv' skip 1 every ::7455::7679 using 4:(100 * $7) with lines lw 2 lc rgb '#E69F00' title '32: 160', \
        'idle.csv' skip 1 every ::7455::7679 using (sparse($4)):(100 * $8) with points pt 6 ps 0.7 lw 1.5 lc rgb '#E69F00' notitle, \
        NaN with points pt 6 ps 0.7 lw 1.5 lc rgb '#555555' title 'closed form', \
        10 with lines lw 1 dt 2 lc rgb '#888888' title '10 %'
    set title "zb1p" noenhanced font ',15'
    plot \
        'idle.csv' skip 1 every ::7680::7935 using 4:(100 * $7) with lines lw 2 lc rgb '#0072B2' title '2: 4', \
        'idle.csv' skip 1 every ::7680::7935 using (sparse($4)):(100 * $8) with points pt 6 ps 0.7 lw 1.5 lc rgb '#0072B2' notitle, \
        'idle.csv' skip 1 every ::7936::8191 using 4:(100 * $7) with lines lw 2 lc rgb '#D55E00' title '4: 10', \
        'idle.csv' skip 1 every ::7936::8191 using (sparse($4)):(100 * $8) with points pt 6 ps 0.7 lw 1.5 lc rgb '#D55E00' notitle, \
        'idle.csv' skip 1 every ::8192::8447 using 4:(100 * $7) with lines lw 2 lc rgb '#009E73' title '8: 22', \
        'idle.csv' skip 1 every ::8192::8447 using (sparse($4)):(100 * $8) with points pt 6 ps 0.7 lw 1.5 lc rgb '#009E73' notitle, \
        'idle.csv' skip 1 every ::8448::8703 using 4:(100 * $7) with lines lw 2 lc rgb '#CC79A7' title '16: 46', \
        'idle.csv' skip 1 every ::8448::8703 using (sparse($4)):(100 * $8) with points pt 6 ps 0.7 lw 1.5 lc rgb '#CC79A7' notitle, \
        'idle.csv' skip 1 every ::8704::8959 using 4:(100 * $7) with lines lw 2 lc rgb '#E69F00' title '32: 94', \
        'idle.csv' skip 1 every ::8704::8959 using (sparse($4)):(100 * $8) with points pt 6 ps 0.7 lw 1.5 lc rgb '#E69F00' notitle, \
        NaN with points pt 6 ps 0.7 lw 1.5 lc rgb '#555555' title 'closed form', \
        10 with lines lw 1 dt 2 lc rgb '#888888' title '10 %'
    set title "zb1p, 2 chunks" noenhanced font ',15'
    plot \
        'idle.csv' skip 1 every ::8960::9215 using 4:(100 * $7) with lines lw 2 lc rgb '#0072B2' title '2: 2', \
        'idle.csv' skip 1 every ::8960::9215 using (sparse($4)):(100 * $8) with points pt 6 ps 0.7 lw 1.5 lc rgb '#0072B2' notitle, \
        'idle.csv' skip 1 every ::9216::9471 using 4:(100 * $7) with lines lw 2 lc rgb '#D55E00' title '4: 5', \
        'idle.csv' skip 1 every ::9216::9471 using (sparse($4)):(100 * $8) with points pt 6 ps 0.7 lw 1.5 lc rgb '#D55E00' notitle, \
        'idle.csv' skip 1 every ::9472::9727 using 4:(100 * $7) with lines lw 2 lc rgb '#009E73' title '8: 11', \
        'idle.csv' skip 1 every ::9472::9727 using (sparse($4)):(100 * $8) with points pt 6 ps 0.7 lw 1.5 lc rgb '#009E73' notitle, \
        'idle.csv' skip 1 every ::9728::9983 using 4:(100 * $7) with lines lw 2 lc rgb '#CC79A7' title '16: 23', \
        'idle.csv' skip 1 every ::9728::9983 using (sparse($4)):(100 * $8) with points pt 6 ps 0.7 lw 1.5 lc rgb '#CC79A7' notitle, \
        'idle.csv' skip 1 every ::9984::10239 using 4:(100 * $7) with lines lw 2 lc rgb '#E69F00' title '32: 47', \
        'idle.csv' skip 1 every ::9984::10239 using (sparse($4)):(100 * $8) with points pt 6 ps 0.7 lw 1.5 lc rgb '#E69F00' notitle, \
        NaN with points pt 6 ps 0.7 lw 1.5 lc rgb '#555555' title 'closed form', \
        10 with lines lw 1 dt 2 lc rgb '#888888' title '10 %'
    unset multiplot
    unset output
}
