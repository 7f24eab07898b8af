break setup
run --seed 23951
finish
watch W.side[0].s.err
c
bt 8
