package store

// union returns a with the elements of b that it has not. A key of a map that is there keeps its value.
func union(a, b Datum) (out Datum) {
	return merge(a, b, func(inA, inB bool, _, _ any) (keep, second bool) { return true, !inA })
}

// subtract returns a without the elements of b; without values b has keys alone.
func subtract(a, b Datum) (out Datum) {
	return merge(a, b, func(inA, inB bool, x, y any) (keep, second bool) {
		return inA && (!inB || y != nil && x != y), false
	})
}

// diff returns what changes a into b, and b into a: elements that one has alone, and pairs of b with another value. It is the diff of
// ovsdb-server(7), section 4.1.14, for columns of more than one element. That of a and a diff is b again.
func diff(a, b Datum) (out Datum) {
	return merge(a, b, func(inA, inB bool, x, y any) (keep, second bool) {
		return !inA || !inB || x != y, inB
	})
}

// merge walks over two values in order. choose says for each key whether it is kept, and whether with the second's value.
func merge(a, b Datum, choose func(inA, inB bool, x, y any) (keep, second bool)) (out Datum) {
	i, j := 0, 0
	for i < len(a.keys) || j < len(b.keys) {
		order := 0
		switch {
		case i == len(a.keys):
			order = 1
		case j == len(b.keys):
			order = -1
		default:
			order = compare(a.keys[i], b.keys[j])
		}
		var key, x, y any
		if order <= 0 {
			key, x = a.keys[i], a.value(i)
			i++
		}
		if order >= 0 {
			key, y = b.keys[j], b.value(j)
			j++
		}
		keep, second := choose(order <= 0, order >= 0, x, y)
		if !keep {
			continue
		}
		out.keys = append(out.keys, key)
		if second {
			x = y
		}
		if x != nil {
			out.values = append(out.values, x)
		}
	}
	return out
}
