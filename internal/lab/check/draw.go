package check

// A Draw makes choices of the bytes of a fuzzer, and the first of each when there are none left.
type Draw []byte

// N returns a number from 0 to k-1, for a k of 256 at most.
func (d *Draw) N(k int) int {
	if len(*d) == 0 {
		return 0
	}
	x := (*d)[0]
	*d = (*d)[1:]
	return int(x) % k
}

// Pick returns one of a list.
func Pick[T any](d *Draw, list ...T) T { return list[d.N(len(list))] }
