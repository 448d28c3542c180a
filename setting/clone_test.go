package setting

import (
	"net/netip"
	"reflect"
	"testing"
)

func TestClone(t *testing.T) {
	type part struct {
		N    *int
		List []netip.Prefix
		Map  map[string][]int
		Func func()
	}
	n := 1
	was := &part{&n, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, map[string][]int{"a": {1}}, func() { n++ }}
	is := Clone(was)
	if is.Func(); n != 2 {
		t.Error("the function is another one")
	}
	n, is.Func, was.Func = 1, nil, nil
	if !reflect.DeepEqual(is, was) {
		t.Fatalf("%+v, want %+v", is, was)
	}
	*was.N, was.List[0], was.Map["a"][0], was.Map["b"] = 2, netip.Prefix{}, 2, nil
	if *is.N != 1 || !is.List[0].IsValid() || is.Map["a"][0] != 1 || len(is.Map) != 1 {
		t.Errorf("what the copy shares has changed: %+v", is)
	}
	if Clone((*part)(nil)) != nil || Clone(part{}).List != nil {
		t.Error("of nothing, something")
	}
}

type embedded struct{ List []int }

// What is embedded, and what arrays have, is copied too; nil of an interface is one.
func TestCloneEmbedded(t *testing.T) {
	type part struct {
		embedded
		Pair [2][]int
		Any  any
		own  []int
	}
	was := part{embedded{[]int{1}}, [2][]int{{1}, nil}, 1, []int{1}}
	is := Clone(was)
	was.List[0], was.Pair[0][0], was.own[0] = 2, 2, 2
	if is.List[0] != 1 || is.Pair[0][0] != 1 || is.own[0] != 2 {
		t.Errorf("%+v", is)
	}
	if Clone[any](nil) != nil || Clone[error](nil) != nil {
		t.Error("of nothing, something")
	}
}
