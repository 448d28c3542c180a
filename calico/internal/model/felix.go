package model

import (
	"iter"
	"strings"

	"github.com/vxswitch/vxswitch/calico/internal/resource"
)

// Felixes yields the FelixConfigurations of a node, by name: that of all nodes, the one that selects it, of several the oldest or the first by
// name, and that of its own name. What a later one says counts.
func Felixes(s *Store, node string) iter.Seq2[string, *resource.Felix] {
	return func(yield func(string, *resource.Felix) bool) {
		for _, name := range []string{"default", selected(s, node), "node." + node} {
			if f := One[resource.Felix](s, resource.KindFelix, name); f != nil && !yield(name, f) {
				return
			}
		}
	}
}

// selected returns the name of the FelixConfiguration that selects a node, "" if none does.
func selected(s *Store, node string) (oldest string) {
	n := One[resource.Node](s, resource.KindNode, node)
	if n == nil {
		return ""
	}
	var first *resource.Felix
	for name, f := range All[resource.Felix](s, resource.KindFelix) {
		if name == "default" || strings.HasPrefix(name, "node.") || f.Nodes == nil || !f.Nodes.Matches(n.Labels) {
			continue
		}
		if first == nil || f.Made.Before(first.Made) {
			oldest, first = name, f
		}
	}
	return oldest
}

// A Said is a number of VXLAN in a FelixConfiguration, which is By; zero if none has it.
type Said struct {
	Value uint32
	By    string
}

// felix reads what other nodes send VXLAN with.
func (x *compiler) felix() {
	for name, f := range Felixes(x.s, x.c.Node) {
		of := "felixconfigurations/" + name
		if f.VXLANVNI != 0 {
			x.plan.VNI = Said{uint32(f.VXLANVNI), of}
		}
		if f.VXLANPort != 0 {
			x.plan.Port = Said{uint32(f.VXLANPort), of}
		}
	}
}
