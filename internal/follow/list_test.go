package follow

import "testing"

// Each function is told until it is removed, whoever else comes and goes.
func TestList(t *testing.T) {
	var l List[int]
	var a, b int
	removeA := l.Add(func(x int) { a += x })
	removeB := l.Add(func(x int) { b += x })
	l.Tell(1)
	removeA()
	removeA()
	l.Tell(10)
	removeB()
	l.Tell(100)
	if a != 1 || b != 11 {
		t.Errorf("told %d and %d, want 1 and 11", a, b)
	}
}
